"""What is so where a statement stands: the numbers that its names stand for and the conditions around it, for any instance and warp.

One walk over a role's text. A loop's index is any number between its bounds; a variable that a loop changes is, at the loop's head, a number of
which an invariant is known: a range, found by running the body from the range so far, and, where that is asked for, bounds by
parameters that hold in front of the loop and are kept by its body.
"""

from __future__ import annotations

import itertools
from dataclasses import field

from cake_core.facts.schema import Block, Branch, By, Event, Extent, Facts, Loop, RoleFacts, Set, While, events
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Binary, Expr, Name
from cake_core.ir.places import names
from cake_core.ir.ranges import ANY, Range
from cake_core.prove.entailment import Entailment
from cake_core.prove.polynomials import FALSE, TRUE, AtLeast, Condition, Poly, denied, implied, leaves
from cake_core.prove.quantities import UNSIGNED, WORD, Env, Free, Quantities, unsigned

#: Expressions with the numbers that their names stand for, and what holds where they are evaluated.
Asked = tuple[tuple[Expr, Env, tuple[Condition, ...]], ...]


@frozen
class Spot:
    """A place of the text. `path`: what holds there. `asked`: bounds and conditions around it, those that no place in front has."""

    event: Event
    env: Env
    path: tuple[Condition, ...]
    asked: Asked


@thawed
class Places:
    """All spots of a kernel, by event. `wanted`: variables of which loops are asked for bounds by parameters too."""

    facts: Facts
    quantities: Quantities
    entailment: Entailment
    wanted: frozenset[str] = frozenset()
    spots: dict[int, list[Spot]] = field(default_factory=dict)
    turned: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # of what loops carry: in front of the first turn, and behind one
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _extents: dict[tuple[int, int], tuple[Extent, Spot, tuple[Poly, int | None]]] = field(default_factory=dict)
    _count: itertools.count = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        walker = _Walker(self, None)
        env = walker.block(self.facts.before, walker.start(), (), (), True)
        for role in self.facts.roles:
            inner = _Walker(self, role)
            inner.block(role.body, env | inner.start(), (), (), True)
        walker.block(self.facts.after, env, (), (), True)

    def fresh(self, text: str, r: Range = ANY, loose: bool = False, carried: bool = False) -> Poly:
        return self.quantities.free(f"{text}#{next(self._count)}", text, r, loose, carried)

    def extent(self, x: Extent, spot: Spot) -> tuple[Poly, int | None]:
        """Where a dimension of a tile starts there, and how long it is at most."""
        if (key := (id(x), id(spot))) not in self._extents:
            q = self.quantities
            self._extents[key] = x, spot, (q.number(x.lo, spot.env), q.range(q.number(x.size, spot.env)).hi)
        return self._extents[key][2]

    def unseen(self, asked: Asked) -> Asked:
        """Those that no statement in front has."""
        new = tuple(x for x in asked if (id(x[0]), id(x[1])) not in self._seen)
        self._seen.update((id(x[0]), id(x[1])) for x in new)
        return new


@thawed
class _Walker:
    places: Places
    role: RoleFacts | None
    asking: bool = True  # for bounds by parameters

    def start(self) -> Env:
        p, f = self.places, self.places.facts
        warps = f.warps if self.role is None else self.role.plan.warps
        env = {"warp": p.fresh("warp", Range(0, warps - 1))}
        if f.axis is not None:
            ranks = f.ctas(self.role) if self.role is not None else tuple(range(f.cluster))
            env[f"cluster.{f.axis}"] = p.fresh(f"cluster.{f.axis}", Range(min(ranks), max(ranks)))
        if self.role is not None:
            env[f"{self.role.name}.i"] = p.fresh(f"{self.role.name}.i", Range(0, self.role.plan.instances - 1))
        return env

    def block(self, block: Block, env: Env, path: tuple, asked: Asked, record: bool) -> Env:
        q = self.places.quantities
        for node in block:
            match node:
                case Event():
                    env = self._event(node, env, path, asked, record)
                case Branch():
                    test = q.condition(node.test, env)
                    more = (*asked, (node.test, env, path))
                    then = self.block(node.then, env, (*path, test), more, record)
                    other = self.block(node.other, env, (*path, denied(test)), more, record)
                    keys = [k for k in env if then[k] != other[k]]
                    env = (
                        then
                        if test == TRUE
                        else other
                        if test == FALSE
                        else {**env, **{k: then[k] for k in env}, **{k: q.choice(test, then[k], other[k]) for k in keys}}
                    )
                case Loop() | While():
                    env, path = self._loop(node, env, path, asked, record)
        return env

    def _event(self, e: Event, env: Env, path: tuple, asked: Asked, record: bool) -> Env:
        if record:
            here = env
            if e.warp is not None or e.by is By.LEADER:
                here = env | {"warp": Poly.of(e.warp or 0)}
            self.places.spots.setdefault(e.id, []).append(Spot(e, here, path, self.places.unseen(asked)))
        if not e.sets:
            return env
        out = dict(env)
        for s in e.sets:
            out[s.name] = (
                self.places.fresh(s.name, _held_by_word(s.range), loose=True) if s.value is None else self.places.quantities.number(s.value, env)
            )
        return out

    # --- loops -----------------------------------------------------------------------------------------------------

    def _loop(self, node: Loop | While, env: Env, path: tuple, asked: Asked, record: bool) -> tuple[Env, tuple]:
        moved = list(dict.fromkeys(s.name for e in events(node.body) for s in e.sets if s.name in env))
        known: dict[str, Range] = {n: self.places.quantities.range(env[n]) for n in moved}
        words = {n: UNSIGNED if any(_unsigned(s) for e in events(node.body) for s in e.sets if s.name == n) else WORD for n in moved}
        for turn in range(4):
            heads, inside, around, within = self._head(node, env, known, words, path, asked)
            if all(r == ANY for r in known.values()):
                break
            asking, self.asking = self.asking, False
            end = self.block(node.body, inside, (*path, *around), within, False)
            self.asking = asking
            wider = {n: _widened(known[n], self.places.quantities.range(end[n]), turn) for n in moved}
            if wider == known:
                break
            known = wider
        else:
            known = dict.fromkeys(moved, ANY)
            heads, inside, around, within = self._head(node, env, known, words, path, asked)
        # What is so at the head of any turn is said of other numbers than what is so behind the last one, which is no turn's head.
        left = {n: self.places.fresh(n, _held_by_word(known[n], words[n]), loose=True, carried=True) for n in known}
        if self.asking and self.places.wanted.intersection(moved):
            kept = self._invariants(env, heads, path, around, node, inside, within)
            for values in (heads, left):
                for c in (c for n, c in enumerate(self._candidates(values)) if n in kept):
                    for a in sorted({a for p in leaves([c]) for a in p.atoms() if a.partition("#")[0] in heads}):
                        self.places.quantities.bounds.setdefault(a, []).append(c)
            self.places.entailment.forget()
        if moved:
            asking, self.asking = self.asking, False
            end = self.block(node.body, inside, (*path, *around), within, False)
            self._counts(node, heads, env, inside, end)
            self.asking = asking
            for n, head in heads.items():
                (own,), (behind,) = head.atoms(), left[n].atoms()
                at_head = self.places.quantities.atoms[own]
                counts = at_head.counts or not at_head.loose
                self.places.quantities.atoms[behind] = Free(loose=True, carried=True, counts=counts)
                self.places.turned[own] = self.places.turned[behind] = env[n], end[n]
            self.places.entailment.forget()
        if record:
            self.block(node.body, inside, (*path, *around), within, True)
        after = env | left
        done = (denied(self.places.quantities.condition(node.test, after)),) if isinstance(node, While) else ()
        return after, (*path, *done)

    def _head(self, node: Loop | While, env: Env, known: dict[str, Range], words: dict[str, Range], path: tuple, asked: Asked):
        """Variables at the head of any turn, names and conditions inside."""
        q = self.places.quantities
        heads = {n: self.places.fresh(n, _held_by_word(known[n], words[n]), loose=True, carried=True) for n in known}
        inside = env | heads
        if isinstance(node, While):
            return heads, inside, (q.condition(node.test, inside),), (*asked, (node.test, inside, path))
        lo, hi, step = (q.number(x, env) for x in (node.lo, node.hi, node.step))
        a, b, d = q.range(lo), q.range(hi), q.range(step)
        first = a.lo if d.positive else None
        stride, start = step.constant, lo.constant
        grid = (stride, start % stride) if stride and start is not None and stride > 0 else (1, 0)
        index = self.places.fresh(node.var, Range(first, None if b.hi is None else b.hi - 1).meet(Range(None, None, *grid)))
        (name,) = index.atoms()
        around = (AtLeast(hi - index - 1), *((AtLeast(index - lo),) if d.positive else ()))
        q.bounds[name], q.steps[name] = list(around), (lo, step)
        inside = inside | {node.var: index}
        within = (*asked, *((x, env, path) for x in (node.lo, node.hi, node.step)))
        if stride != 1 and not getattr(node.lo.type, "range", ANY).nonneg:  # behind the last turn; from 0 on it is compared as a u32
            within = (*within, (Binary("+", Name(node.var), node.step), inside, (*path, *around)))
        return heads, inside, around, within

    def _counts(self, node: Loop | While, heads: Env, env: Env, inside: Env, end: Env) -> None:
        """What a loop adds to a variable in every turn. By one: it is at most as far as the index is; by what no turn changes: a multiple
        of that, any of which a loop without a constant bound reaches."""
        q = self.places.quantities
        if isinstance(node, While):
            return
        (index,) = inside[node.var].atoms()
        far = Poly.atom(index) - q.number(node.lo, env)
        for n, head in heads.items():
            (name,) = head.atoms()
            added = end[n] - head
            if added == Poly.of(1) and q.range(q.number(node.step, env)).positive:
                q.bounds.setdefault(name, []).append(AtLeast(far - (head - env[n])))
                if q.number(node.step, env) == Poly.of(1):
                    q.bounds[name].append(AtLeast(head - env[n] - far))
                loose = [f for a in env[n].atoms() if getattr(f := q.atoms[a], "loose", False)]
                if all(f.counts for f in loose):
                    q.atoms[name] = Free(loose=bool(loose), carried=True, counts=bool(loose))
            elif q.number(node.hi, env).constant is None and not _held(node.body, n):
                q.atoms[name] = Free(loose=True, carried=True, counts=True)

    def _invariants(self, env: Env, heads: Env, path: tuple, around: tuple, node: Loop | While, inside: Env, within: Asked) -> list[int]:
        """The candidates that hold in front of the loop and are kept by a turn, all together (Houdini)."""
        left = [n for n, c in enumerate(self._candidates({n: env[n] for n in heads})) if self.places.entailment.holds(c, path)]
        while left:
            assumed = tuple(self._candidates(heads)[n] for n in left)
            reached = self.block(node.body, inside, (*path, *assumed, *around), within, False)
            after = self._candidates({n: reached[n] for n in heads})
            still = [n for n in left if self.places.entailment.holds(after[n], (*path, *assumed, *around))]
            if still == left:
                return left
            left = still
        return []

    def _candidates(self, values: Env) -> list[Condition]:
        """Of variables at a loop's head: at most a parameter; and that one is 0 only as long as another is."""
        wanted = self.places.wanted
        out: list[Condition] = [AtLeast(Poly.atom(p) - values[n]) for n in values if n in wanted for p in self.places.facts.scalars]
        out += [implied(AtLeast(-values[a]), AtLeast(-values[b])) for a, b in itertools.permutations(values, 2) if a in wanted]
        return out


def _held(block: Block, name: str, guarded: bool = False) -> bool:
    """Whether a variable is set in a `while`, or under a condition that asks it."""
    for node in block:
        match node:
            case Event():
                if guarded and any(s.name == name for s in node.sets):
                    return True
            case Loop():
                if _held(node.body, name, guarded):
                    return True
            case While():
                if _held(node.body, name, True):
                    return True
            case Branch():
                asks = guarded or any(n.id == name for n in names(node.test))
                if _held(node.then, name, asks) or _held(node.other, name, asks):
                    return True
    return False


def _unsigned(s: Set) -> bool:
    return _held_by_word(s.range) != s.range.meet(WORD) if s.value is None else unsigned(s.value)


def _held_by_word(r: Range, word: Range = WORD) -> Range:
    """What 32 bits hold of it: those of a u32, where it says so."""
    return r.meet(UNSIGNED if r.nonneg and r.hi is not None and WORD.hi < r.hi <= UNSIGNED.hi else word)


def _widened(known: Range, met: Range, turn: int) -> Range:
    """A range that holds both, bounds given up where they still move."""
    both = known.join(met)
    if both == known:
        return known
    lo = known.lo if both.lo == known.lo else None
    hi = known.hi if both.hi == known.hi else None
    return Range(lo, hi, both.mod if turn < 2 and both.mod > 0 else 1, both.rem if turn < 2 and both.mod > 0 else 0)
