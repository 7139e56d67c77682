"""A loop in closed form: from what one pass of its body does to each value, to the value at every iteration and behind the loop.

counter    grows by what does not depend on the way there          start + sum of the steps
tied       grows so if some values keep the distance that they      the same; that they keep it is proved, by induction
           had in front of the loop (`if released < waited`)
latest     is set anew by each iteration                            what the iteration before left
search     anything else: opaque, and equal where the texts are
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from cake_core import smt
from cake_core.frozen import thawed
from cake_core.ir.ranges import ANY
from cake_core.prove.numbers import HEAD, OPAQUE, ZERO, literal
from cake_core.prove.sums import Sums
from cake_core.prove.text import Key

State = dict[Key, smt.Term]


#: Groups that a loop leaves in flight, at most, for its drains to be followed exactly.
MOST_PENDING = 8


class Kept(Enum):
    """From when on a value keeps its distance to a counter."""

    ALWAYS = "in front of the loop too"
    BEHIND = "behind its first iteration"
    LATER = "when the counter has gone so far, and what it was until then"


@thawed
class Closing:
    """`heads`: a symbol for the value of each key at the head of iteration `index`; `after`: behind one pass of the body, in terms of them."""

    sums: Sums
    index: smt.Term
    trips: smt.Term
    entry: State
    heads: State
    after: State
    inside: smt.Term = field(init=False)
    symbols: dict[str, Key] = field(init=False)

    def __post_init__(self) -> None:
        self.inside = smt.And(self.index >= 0, self.index < self.trips)
        self.symbols = {h.name: k for k, h in self.heads.items()}
        self.after = {k: smt.simplify(self.after.get(k, ZERO)) for k in self.heads}

    def close(self) -> tuple[State, State, list[Key]]:
        """Values at iteration `index`, values behind the loop, and the keys that are left: neither counted nor set anew."""
        at: State = {}
        behind: State = {}
        steps = self._steps()
        for k, step in steps.items():
            at[k] = smt.simplify(self._start(k) + self.sums.sum(step, self.index, self.index))
            behind[k] = smt.simplify(self._start(k) + self.sums.sum(step, self.index, self.trips))
        left = []
        known = [(self.heads[k], at[k]) for k in steps]
        for k in self.heads:
            if k in steps:
                continue
            if (like := self._like(k, steps, at)) is not None:
                counter, apart, kept = like
                for values, first in ((at, self.index == 0), (behind, self.trips == 0)):
                    kept_apart = self._kept(values[counter], apart, self._start(k), kept)
                    values[k] = kept_apart if kept is Kept.ALWAYS else smt.If(first, self._start(k), kept_apart)
                continue
            if not self._set_anew(k, steps):
                if k[0] in ("read", "retired"):  # it never falls: at least what it was
                    at[k] = behind[k] = self._start(k)
                else:
                    left.append(k)
                continue
            at[k] = smt.simplify(smt.If(self.index == 0, self._start(k), self._left_by(self.index - 1, k, known)))
            behind[k] = smt.simplify(smt.If(self.trips == 0, self._start(k), self._left_by(self.trips - 1, k, known)))
        return at, behind, left

    def _start(self, key: Key) -> smt.Term:
        return self.entry.get(key, ZERO)

    # --- counters --------------------------------------------------------------------------------------------------

    def _steps(self) -> State:
        raw = {k: minus(self.after[k], h) for k, h in self.heads.items()}
        steps = {k: s for k, s in raw.items() if not self.used(s)}
        bound = [k for k in raw if k not in steps]
        if not bound:
            return steps
        ties = self._ties(raw, bound)
        moved = [(self.heads[k], t) for k, t in ties.items()]
        for k in bound:
            step = minus(smt.substitute(self.after[k], *moved), smt.substitute(self.heads[k], *moved))
            if k[0] not in ("read", "retired") and (flat := self._flat(step)) is not None:
                steps[k] = flat
        return steps

    def _ties(self, raw: State, bound: list[Key]) -> State:
        """Values that the bound ones depend on, written by one of them: those that keep their distance. Proved: each iteration
        that finds them so leaves them so."""
        met = {self.symbols[s] for k in bound for s in self.used(raw[k]) if self.symbols[s] != k} | {k for k in bound if k[0] == "var"}
        candidates = [k for k in self.heads if k in met and k[0] == "var"]
        while len(candidates) > 1:
            base = candidates[0]
            apart = {k: literal(smt.simplify(self._start(k) - self._start(base))) for k in candidates}
            ties = {k: self.heads[base] + d for k, d in apart.items() if d is not None}
            moved = [(self.heads[k], t) for k, t in ties.items()]
            grown = {k: minus(smt.substitute(self.after[k], *moved), t) for k, t in ties.items()}
            flat = {k: self._flat(g) for k, g in grown.items()}
            kept = [k for k in ties if flat[base] is not None and flat[k] is not None and self.sums.holds(flat[k] == flat[base], self.inside)]
            if len(kept) == len(candidates):
                return {k: t for k, t in ties.items() if k != base}
            candidates = kept if base in kept and len(kept) > 1 else candidates[1:]
        return {}

    def _flat(self, step: smt.Term) -> smt.Term | None:
        """A step that is the same wherever the loop's head stands, written without the head; None: it is not."""
        names = self.used(step)
        if not names:
            return step
        if not self.visible(step):
            return None
        zero = smt.simplify(smt.substitute(step, *[(smt.Int(s), ZERO) for s in names]))
        return zero if self.sums.holds(step == zero, self.inside) else None

    # --- values that are set anew ----------------------------------------------------------------------------------

    def _set_anew(self, key: Key, counted: State) -> bool:
        """Whether what an iteration leaves does not depend on what it found there, from the second iteration on, and on nothing that is not known."""
        after, own = self.after[key], self.heads[key].name
        if any(s != own and self.symbols[s] not in counted for s in self.used(after)) or not self.visible(after):
            return False
        if own not in self.used(after):
            return True
        other = smt.Int(own + "'")
        bounds = [smt.substitute(b, (self.heads[key], x)) for b in self._bounds(key) for x in (self.heads[key], other)]
        return self.sums.holds(smt.Implies(self.index >= 1, after == smt.substitute(after, (self.heads[key], other))), self.inside, *bounds)

    def _like(self, key: Key, steps: State, at: State) -> tuple[Key, int, Kept] | None:
        """A counter that the value keeps its distance to behind each iteration, such as groups closed, of which all but the last are
        waited for; the distance, and from when on it is kept."""
        counter = ("commit", key[1])
        if key[0] not in ("read", "retired") or counter not in steps or not self.visible(self.after[key]):
            return None
        own, of, start = self.heads[key], self.heads[counter], self._start(key)
        seen = {literal(smt.simplify(self.after[counter] - x)) for x in leaves(self.after[key])}  # the distances that a pass can leave
        late = (self.index, smt.IntVal(2 * MOST_PENDING))  # an iteration that most distances are refuted by, if there is such a one
        far = [late, (of, smt.substitute(at[counter], late))]
        exists = not smt.is_false(smt.simplify(smt.substitute(self.inside, late)))
        first = [(own, start), (of, self._start(counter)), (self.index, ZERO)]
        grown = smt.And(of >= self._start(counter), of == at[counter])  # a count never falls
        for how in (Kept.BEHIND, Kept.LATER):
            for apart in sorted(range(MOST_PENDING + 1), key=lambda n: n not in seen):
                here, then = (self._kept(x, apart, start, how) for x in (of, self.after[counter]))
                kept = smt.substitute(self.after[key], (own, here)) == then
                if exists and smt.is_false(smt.simplify(smt.substitute(kept, *far))) or not self.sums.holds(kept, self.inside, grown):
                    continue
                if how is Kept.BEHIND and smt.simplify(start - self._start(counter) + apart).eq(ZERO):
                    return counter, apart, Kept.ALWAYS
                if self.sums.holds(smt.substitute(self.after[key] == then, *first), self.trips > 0):
                    return counter, apart, how
        return None

    @staticmethod
    def _kept(counter: smt.Term, apart: int, start: smt.Term, how: Kept) -> smt.Term:
        """A value that is so far from a counter; while there is not enough of it, what it was in front of the loop."""
        left = counter - apart
        return smt.If(left >= start, left, start) if how is Kept.LATER else left

    def _bounds(self, key: Key) -> list[smt.Term]:
        """No more groups are waited for than were closed."""
        if key[0] not in ("read", "retired"):
            return []
        closed = ("commit", key[1])
        return [self.heads[key] <= self.heads.get(closed, self._start(closed))]

    def _left_by(self, then: smt.Term, key: Key, known: list) -> smt.Term:
        """What the iteration `then` left of `key`."""
        after = smt.substitute(self.after[key], *known) if known else self.after[key]
        first = smt.substitute(after, (self.heads[key], self._start(key)))
        later = smt.substitute(after, (self.heads[key], ZERO))
        if first.eq(later):
            return smt.substitute(later, (self.index, then))
        return smt.If(then == 0, smt.substitute(first, (self.index, ZERO)), smt.substitute(later, (self.index, then)))

    # --- searches --------------------------------------------------------------------------------------------------

    def used(self, term: smt.Term) -> list[str]:
        """Head symbols in a term, those that an opaque value hides too."""
        met, hidden = self.sums.numbers.mentioned.of(term), self.sums.numbers.hidden
        return [s for s in self.symbols if s in met or any(s in hidden[n] for n in met if n in hidden)]

    def knot(self) -> list[Key]:
        """The fewest values that depend on no others but themselves."""
        found = None
        for key in self.heads:
            group, work = [], [key]
            while work:
                k = work.pop()
                if k not in group:
                    group.append(k)
                    work += [self.symbols[s] for s in self.used(self.after[k])]
            if found is None or len(group) < len(found):
                found = group
        return [k for k in self.heads if k in found]

    def visible(self, term: smt.Term) -> bool:
        """Whether no opaque value hides a head in the term: then putting something else for a head means what it says."""
        hidden = self.sums.numbers.hidden
        return not any(h in self.symbols for n in self.sums.numbers.mentioned.of(term) for h in hidden.get(n, ()))


def minus(a: smt.Term, b: smt.Term) -> smt.Term:
    """a - b, the subtraction carried into the branches of a choice, so that what they share goes."""
    if a.kind == smt.ITE:
        x, y = minus(a.args[1], b), minus(a.args[2], b)
        return x if x.eq(y) else smt.simplify(smt.If(a.args[0], x, y))
    return smt.simplify(a - b)


def leaves(term: smt.Term) -> list[smt.Term]:
    """What a choice chooses between."""
    if term.kind == smt.ITE:
        return [*leaves(term.args[1]), *leaves(term.args[2])]
    return [term]


def opaque(kind: str, keys: list[Key], heads: State, after: State, entry: State, sums: Sums, extra: str = "") -> State:
    """Values of which nothing is known but that equal texts from equal values give equal ones. `kind` and `extra`: what else they depend on."""
    texts = {k: after.get(k, ZERO).sexpr() for k in heads}
    out = {}
    for key in keys:
        order, work = [], [key]
        while work:  # what the value depends on
            k = work.pop(0)
            if k not in order:
                order.append(k)
                met = set(HEAD.findall(texts[k])).union(*(sums.numbers.hidden.get(u, ()) for u in OPAQUE.findall(texts[k])))
                work += [h for h in heads if heads[h].name in met]
        full = " ; ".join([kind, key[1], *(f"{k[1]}: {texts[k]} from {entry.get(k, ZERO).sexpr()}" for k in order), extra])
        out[key] = sums.numbers.unknown(full, key[1], ANY).term
    return out
