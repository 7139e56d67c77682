"""The predicates about addresses: that accesses stay inside, that their numbers fit into 32 bits, that they are aligned.

None of them speaks of order: each is a statement about one place of the text, under what holds there (`places.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from math import gcd

from cake_core.facts import Row, Rows
from cake_core.facts.schema import Access, Arrive, BarrierRef, EngineArrive, Event, Tensor, Wait
from cake_core.frozen import frozen, thawed
from cake_core.ir.build import lift
from cake_core.ir.nodes import Binary, Call, Cond, Expr, Int, Option, Unary
from cake_core.ir.printer import expr_text
from cake_core.prove.disjoint import Pair
from cake_core.prove.entailment import Decision, Entailment, Follows, Linear
from cake_core.prove.places import Places, Spot
from cake_core.prove.polynomials import AtLeast, Condition, Poly, denied
from cake_core.prove.quantities import Choice, Env, Free, Quantities, unsigned, word_of
from cake_core.prove.question import loose_in
from cake_core.prove.vacuity import may_hold, may_run
from cake_core.rules.predicates import PROVED, Answer, Conditions, Standing, unknown

#: A tensor starts at a multiple of so many bytes: the host checks it at each launch.
TENSOR_ALIGNMENT = 16
#: By how much a count of turns grows at most in one of them, and from where it starts at most.
STEP, START = 8, 2**30


@frozen
class Bound:
    """A number that has to be in 0 .. `extent` - `size`, or at least 0 without an `extent`. `what` it is, and what it is of."""

    number: Expr
    size: Expr
    extent: Expr | int | None
    what: str
    of: str


@frozen
class Word:
    """A number that is computed in 32 bits, and what holds there. `goals`: what has to follow for it to fit, where ranges do not say so."""

    expr: Expr
    value: Poly
    path: tuple[Condition, ...]
    goals: tuple[AtLeast, ...]


@thawed
class Memory:
    """Answers for one kernel. Its places are walked when the first question comes, and anew with more care when one is not decided."""

    rows: Rows
    _walked: dict[frozenset[str], Places] = field(default_factory=dict)
    _linear: Linear = field(default_factory=Linear)
    _words: dict[int, list[Word]] | None = None  # by event
    _loose: set[str] = field(default_factory=set)

    # --- predicates ------------------------------------------------------------------------------------------------

    def in_bounds(self, place: Row, given: Conditions = ()) -> Answer:
        if given:
            return unknown("bounds under conditions")
        act = place.site.act
        if place.relation == "barrier_use" and isinstance(act, Access):
            bounds = [self._barrier_bound(act.completion.barrier)]
        else:
            bounds = list(self._bounds(act))
        when = act.when if isinstance(act, Access) else None
        return self._with_care(lambda places: self._inside(places, place.site.event, bounds, when)) if bounds else PROVED

    def fits(self, event: Row, given: Conditions = ()) -> Answer:
        if given:
            return unknown("ranges under conditions")
        return self._fit(self.places(), event.site.event)

    def aligned(self, access: Row, bytes: int, given: Conditions = ()) -> Answer:
        if given:
            return unknown("alignment under conditions")
        return self._aligned(access.site.event, access.site.act, bytes)

    def disjoint(self, access: Row, other: Row, given: Conditions = ()) -> Answer:
        if given:
            return unknown("disjointness under conditions")
        return self.common(access, other, Pair)

    def common(self, access: Row, other: Row, kind: type[Pair]) -> Answer:
        """Whether a common element of two accesses says what `kind` asks for."""
        a, b = access.site.act, other.site.act
        if a.region.memory != "global" or a.region.name != b.region.name:
            return unknown("disjointness of what is not one tensor in global memory")
        places, undecided = self.places(), PROVED
        for at_a in places.spots.get(access.site.event.id, ()):
            for at_b in places.spots.get(other.site.event.id, ()):
                pair = kind(places, self._tensor(a.region.name), a, b, at_a, at_b)
                if pair.never():
                    continue
                decision = places.entailment.follows(*pair.goal())
                if decision.follows is Follows.NO:  # numbers that make one element common have to be such as there are
                    starts = loose_in(places.quantities, (x for p in pair.starts() for x in p.atoms()), computed=True)
                    decision = replace(decision, loose=tuple(dict.fromkeys((*decision.loose, *starts))))
                answer = self._told(places, decision, lambda v, name=a.region.name: _common(name, v))
                if answer.standing is Standing.VIOLATED:
                    return answer
                undecided = answer if answer.standing is Standing.UNKNOWN else undecided
        return undecided

    def may_hold(self, given: Conditions = ()) -> Answer:
        return unknown("contracts under conditions") if given else may_hold(self.rows.facts, self._linear)

    def may_run(self, role: Row, given: Conditions = ()) -> Answer:
        return unknown("a role under conditions") if given else may_run(self.places(), role)

    def bank_degree(self, access: Row, most: int, given: Conditions = ()) -> Answer:
        if access["turns"] is None:
            return unknown("which banks the lanes touch")
        return PROVED if access["turns"] <= most else Answer(Standing.VIOLATED, f"its worst instruction takes {access['turns']} turns")

    # --- bounds ----------------------------------------------------------------------------------------------------

    def _bounds(self, act) -> Iterator[Bound]:
        match act:
            case Wait(barrier) | Arrive(barrier) | EngineArrive(barrier):
                yield self._barrier_bound(barrier)
            case Access():
                yield from self._tile_bounds(act)

    def _barrier_bound(self, b: BarrierRef) -> Bound:
        return Bound(b.index, Int(1), self.rows.facts.barriers[b.name].slots, "index", f"barrier array '{b.name}'")

    def _tile_bounds(self, act: Access) -> Iterator[Bound]:
        f, where = self.rows.facts, act.region
        match where.memory:
            case "global":
                tensor = self._tensor(where.name)
                for n, (x, extent) in enumerate(zip(where.box, tensor.shape, strict=True)):
                    if x.single or not act.clips:
                        yield Bound(x.lo, x.size, extent, "index" if x.single else "tile", f"dimension {n} of '{where.name}'")
                    elif not act.front:
                        yield Bound(x.lo, x.size, None, "tile", f"dimension {n} of '{where.name}'")
            case "shared" | "tensor":
                plan = (f.buffers if where.memory == "shared" else f.columns)[where.name]
                for slot, count in zip(where.slot, plan.slots, strict=False):
                    yield Bound(slot, Int(1), count, "slot", f"'{where.name}'")
                for n, (x, extent) in enumerate(zip(where.box, plan.shape, strict=False)):
                    yield Bound(x.lo, x.size, extent, "index" if x.single else "tile", f"dimension {n} of '{where.name}'")

    def _tensor(self, name: str) -> Tensor:
        return next(t for t in self.rows.facts.tensors if t.name == name)

    def _inside(self, places: Places, event: Event, bounds: list[Bound], when: Expr | None) -> Answer:
        q, undecided = places.quantities, PROVED
        for spot in places.spots.get(event.id, ()):
            path = spot.path if when is None else (*spot.path, q.condition(when, spot.env))
            for b in bounds:
                number, size, extent = (None if x is None else q.number(lift(x), spot.env) for x in (b.number, b.size, b.extent))
                goals = [(AtLeast(number), False)]
                if extent is not None:
                    goals.append((AtLeast(extent - number - size), True))
                for goal, beyond in goals:
                    answer = self._told(
                        places, places.entailment.follows(goal, path), lambda v, b=b, n=number, s=size, e=extent, y=beyond: _outside(b, n, s, e, y, v)
                    )
                    if answer.standing is Standing.VIOLATED:
                        return answer
                    undecided = answer if answer.standing is Standing.UNKNOWN else undecided
        return undecided

    def _told(self, places: Places, d: Decision, tell) -> Answer:
        match d.follows:
            case Follows.YES:
                return PROVED
            case Follows.UNKNOWN:
                return unknown("too hard an arithmetic")
        if d.loose:
            self._loose.update(d.loose)
            return unknown(f"it depends on {_listed(d.loose)}, of which nothing more is known than what loops and `assume` say")
        values = dict(d.values)
        names = [n for n in (*self.rows.facts.scalars, "cluster.id", "cluster.id'", "cluster.count") if n in values]
        names += [a for a in values if "#" in a and isinstance(places.quantities.atoms[a], Free)]
        shown = {places.quantities.texts[a]: values[a] for a in names}
        return Answer(Standing.VIOLATED, tell(values), tuple(shown.items()))

    def _with_care(self, ask) -> Answer:
        """Once more, with what loops keep of the variables that it depends on, where it is not decided without."""
        self._loose.clear()
        answer = ask(self.places())
        if answer.standing is Standing.UNKNOWN and self._loose:
            answer = ask(self.places(frozenset(self._loose)))
        return answer

    def places(self, wanted: frozenset[str] = frozenset()) -> Places:
        """Spots of all events; `wanted`: variables that loops carry, of which more is asked."""
        if wanted not in self._walked:
            q = Quantities(self.rows.facts)
            self._walked[wanted] = Places(self.rows.facts, q, Entailment(q, self._linear), wanted)
        return self._walked[wanted]

    # --- 32 bits ---------------------------------------------------------------------------------------------------

    def _fit(self, places: Places, event: Event) -> Answer:
        if self._words is None:
            self._words = {id: [w for spot in spots for w in self._computed(places, spot)] for id, spots in places.spots.items()}
        undecided = PROVED
        for word in self._words.get(event.id, ()):
            answer = self._in_word(places, word)
            if answer.standing is Standing.VIOLATED:
                return answer
            undecided = answer if answer.standing is Standing.UNKNOWN else undecided
        return undecided

    def _computed(self, places: Places, spot: Spot) -> Iterator[Word]:
        q = places.quantities
        for e, env, path in (*((e, spot.env, spot.path) for e in _numbers(spot.event)), *spot.asked):
            for part, inner, at in _computed(q, e, env, path):
                value = q.number(part, inner)
                r, word = q.range(value), word_of(part)
                in_range = r.lo is not None and r.hi is not None and word.lo <= r.lo and r.hi <= word.hi
                if not in_range and not _turns(places, value, not unsigned(part)):  # docs/proof.md: no role goes through a loop so often
                    yield Word(part, value, at, (AtLeast(-value + word.hi), AtLeast(value - word.lo)))

    def _in_word(self, places: Places, word: Word) -> Answer:
        for goal in word.goals:
            if not places.entailment.plain(goal) and (largest := self._largest(places, goal, word.path)) != goal:
                places.entailment.holds(largest, word.path)
            found = places.entailment.follows(goal, word.path)
            answer = self._told(places, found, lambda v: f"`{expr_text(word.expr)}` is {_value(word.value, v)}")
            if answer.standing is not Standing.PROVED:
                return answer
        return PROVED

    def _largest(self, places: Places, goal: AtLeast, path: tuple[Condition, ...]) -> AtLeast:
        """Of the numbers that this one is a part of, where the same holds, the one with most in it: where that fits, all of them do."""
        there = (g for words in self._words.values() for w in words if w.path == path for g in w.goals)
        larger = [g for g in there if places.entailment.weaker(goal.poly, g.poly)]
        return max(larger, key=lambda g: sum(abs(c) for m, c in g.poly.terms.items() if m), default=goal)

    # --- alignment -------------------------------------------------------------------------------------------------

    def _aligned(self, event: Event, act: Access, bytes: int) -> Answer:
        q, where = self.places().quantities, act.region
        if where.memory not in ("global", "shared"):
            return PROVED
        for spot in self.places().spots.get(event.id, ()):
            known = self._address(q, where, spot)
            if known % bytes:
                return Answer(Standing.VIOLATED, f"of the address of its first element no more is known than that it is a multiple of {known} bytes")
        return PROVED

    def _address(self, q: Quantities, where, spot: Spot) -> int:
        """The largest known number of bytes, a power of two, that divides the address of the first element."""
        f = self.rows.facts
        lows = [q.number(x.lo, spot.env) for x in where.box]
        if where.memory == "global":
            tensor = self._tensor(where.name)
            bytes, shape, known = tensor.bits // 8, [q.number(d, {}) for d in tensor.shape], TENSOR_ALIGNMENT
        else:
            plan = f.buffers[where.name]
            bytes, shape = plan.elem.bytes, [Poly.of(d) for d in plan.shape]
            known = gcd(plan.offset or 1024, 1024)
            if plan.slots:
                known = gcd(known, plan.slot_bytes)
        at = Poly.of(0)
        for lo, extent in zip(lows, shape, strict=True):
            at = at * extent + lo
        r = q.range(at * bytes)
        return gcd(known, gcd(r.mod, r.rem))


# --- help ------------------------------------------------------------------------------------------------------------


def _numbers(e: Event) -> Iterator[Expr]:
    """What the statement computes in 32 bits: indices, and what it gives to variables."""
    for act in e.acts:
        match act:
            case Access():
                yield from (*act.region.slot, *(x for d in act.region.box for x in (d.lo,)))
            case Wait(BarrierRef(_, index)) | Arrive(BarrierRef(_, index)) | EngineArrive(BarrierRef(_, index)):
                yield index
    yield from (s.value for s in e.sets if s.value is not None)


def _computed(q: Quantities, e: Expr, env: Env, path: tuple[Condition, ...]) -> Iterator[tuple[Expr, Env, tuple[Condition, ...]]]:
    """The parts of an expression that are sums, differences or products, with what holds where they are computed."""
    match e:
        case Binary(op, a, b):
            yield from _computed(q, a, env, path)
            yield from _computed(q, b, env, path)
            if op in ("+", "-", "*"):
                yield e, env, path
        case Unary(op, a):
            yield from _computed(q, a, env, path)
            if op == "-":
                yield e, env, path
        case Cond(test, a, b):
            yield from _computed(q, test, env, path)
            c = q.condition(test, env)
            yield from _computed(q, a, env, (*path, c))
            yield from _computed(q, b, env, (*path, denied(c)))
        case Call():
            for a in e.args:
                yield from _computed(q, a.value if isinstance(a, Option) else a, env, path)
            if e.name == "ceildiv":
                a, b = e.positional
                yield Binary("-", Binary("+", a, b), Int(1)), env, path


def _turns(places: Places, value: Poly, signed: bool) -> bool:
    """Whether a number is what a loop carries, one or a few turns on: a count of them, and no sum of sizes."""
    (*atoms,) = value.atoms()
    if len(atoms) != 1 or not getattr(places.quantities.atoms[atoms[0]], "carried", False):
        return False
    step = (value - Poly.atom(atoms[0])).constant
    return step is not None and (-STEP if signed else 0) <= step <= STEP and _counted(places, value, set())


def _counted(places: Places, value: Poly, seen: set[str]) -> bool:
    """Whether all that a number may be is near 0, or what a loop that counts so carries and a few more."""
    q = places.quantities
    r = q.range(value)
    if r.lo is not None and r.hi is not None and -START <= r.lo and r.hi <= START:
        return True
    (*atoms,) = value.atoms()
    if len(atoms) != 1 or (step := (value - Poly.atom(atoms[0])).constant) is None or abs(step) > STEP:
        return False
    if atoms[0] in seen:
        return True
    match q.atoms[atoms[0]]:
        case Choice(cases):
            return all(_counted(places, v + step, seen) for _, v in cases)
        case Free(carried=True) if atoms[0] in places.turned:
            seen.add(atoms[0])
            return all(_counted(places, v, seen) for v in places.turned[atoms[0]])
    return False


def _value(p: Poly, values: dict[str, int]) -> int:
    out = 0
    for m, c in p.terms.items():
        for a in m:
            c *= values.get(a, 0)
        out += c
    return out


def _outside(b: Bound, number: Poly, size: Poly, extent: Poly | None, beyond: bool, values: dict[str, int]) -> str:
    if extent is None:
        return f"the tile starts at {_value(number, values)} in {b.of}; what lies behind the end of a tensor is left out here, what lies in front is not"
    n, s, e = (_value(p, values) for p in (number, size, extent))
    if b.what == "tile":
        return f"the tile's elements {n} .. {n + s - 1} are not all in {b.of}, which has {e}"
    return f"{b.what} {n} is outside of {b.of}, which has {e}"


def _common(tensor: str, values: dict[str, int]) -> str:
    at = ", ".join(str(values[f"element {n}"]) for n in range(len(values)) if f"element {n}" in values)
    return f"element [{at}] of '{tensor}' is touched by both"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{n}'" for n in dict.fromkeys(names))
