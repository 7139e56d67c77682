"""That a flag in global memory is that of the write which it hands over: the predicate `meant`.

A CTA writes, then releases a flag; another one acquires a flag, then reads. Where the two touch a common element of the tensor, the flag that is
acquired has to be the one that was released, element by element, as for `disjoint`. A loop that waits until a flag has come to a count has to wait for
all that release it: the CTAs that do have numbers below the count, no two of them the same, each adds 1, and no other statement adds to a flag of that tensor, which starts
at 0. What is decided by the value of a flag in another way, as by who comes last, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.effects import Mode
from cake_core.facts import Row
from cake_core.facts.schema import Access, Block, Event, Facts, Loop, While, events, walk
from cake_core.frozen import frozen
from cake_core.ir.nodes import Binary, Expr, Int, Name
from cake_core.ir.places import names
from cake_core.ir.printer import expr_text
from cake_core.prove.disjoint import Apart, Pair, Second, Twins
from cake_core.prove.entailment import Follows
from cake_core.prove.memory import Memory
from cake_core.prove.places import Places, Spot
from cake_core.prove.polynomials import All, Any, AtLeast, Condition, Poly, equal
from cake_core.rules.known import happens_before
from cake_core.rules.predicates import PROVED, Answer, Standing, unknown

#: Scopes that have the threads of other CTAs.
WIDE = ("gpu", "sys")


def meant(a: Row, b: Row, memory: Memory) -> Answer:
    """Of a write `a` and a read `b` of one tensor by different CTAs. Where no flag is released and acquired between, nothing is said."""
    if memory.common(a, b, Pair).standing is Standing.PROVED:
        return PROVED
    releases = [r for r in _flags(memory, Mode.WRITE, "release") if r["event"] == a["event"] or _known(memory, a, r)]
    acquires = [q for q in _flags(memory, Mode.READ, "acquire") if _known(memory, q, b)]
    found = [_handed(a, b, r, q, memory) for r in releases for q in acquires if r["buffer"] == q["buffer"]]
    if not found or any(x.standing is Standing.PROVED for x in found):
        return PROVED
    return found[0] if len(found) == 1 else unknown(f"which of several flags hands over '{a['buffer']}': {found[0].reason}")


def _flags(memory: Memory, mode: Mode, order: str) -> list[Row]:
    return [r for r in memory.rows["access"] if r["atomic"] and r["mode"] == mode and r["sem"] in (order, "acq_rel") and r["scope"] in WIDE]


def _known(memory: Memory, a: Row, b: Row) -> bool:
    return happens_before(memory.rows, a, b).standing is Standing.PROVED


def _handed(a: Row, b: Row, r: Row, q: Row, memory: Memory) -> Answer:
    places, undecided = memory.places(), None
    tensor = next(t for t in memory.rows.facts.tensors if t.name == a["buffer"])
    for at_a, at_b, at_r, at_q in _spots(places, a, b, r, q):
        pair = Matched(places, tensor, a.site.act, b.site.act, at_a, at_b, r.site.act, q.site.act, at_r, at_q)
        if not pair.never() and (found := places.entailment.follows(*pair.goal())).follows is not Follows.YES:
            line = q.site.event.span.line
            why = f"the flag of '{q['buffer']}' that is acquired in line {line} may be another one than the one that was released behind this write"
            if found.follows is Follows.NO and not found.loose:
                return Answer(Standing.VIOLATED, why)
            undecided = unknown(why)
    if undecided is not None:
        return undecided
    return _counted(a, b, r, q, memory)


def _spots(places: Places, *rows: Row) -> Iterator[tuple[Spot, ...]]:
    first, *rest = (places.spots.get(row.site.event.id, ()) for row in rows)
    for spot in first:
        for others in _all(rest):
            yield spot, *others


def _all(lists: list) -> Iterator[tuple[Spot, ...]]:
    if not lists:
        yield ()
        return
    for x in lists[0]:
        for others in _all(lists[1:]):
            yield x, *others


@frozen
class Matched(Pair):
    """A write and a read, and the flags that the one's CTA releases and the other's acquires."""

    r: Access
    q: Access
    at_r: Spot
    at_q: Spot

    def never(self) -> bool:
        twins = Twins(self.places, self.at_a.path)
        try:
            twins.close([*self._overlap(), *self._fixed()])
        except Apart:
            return True
        return any(all(twins.equal(p, q) for p, q in pairs) for pairs in (self.ctas(), self._elements()))

    def goal(self) -> tuple[Condition, tuple[Condition, ...]]:
        one, path = Pair.goal(self)
        second = Second(self.places)
        same = All(tuple(equal(p, second.number(q)) for p, q in self._elements()))
        return Any((one, same)), (*path, *self.at_r.path, *map(second.condition, self.at_q.path))

    def _elements(self) -> list[tuple[Poly, Poly]]:
        q = self.places.quantities
        boxes = zip(self.r.region.box, self.q.region.box, strict=True)
        return [(q.number(x.lo, self.at_r.env), q.number(y.lo, self.at_q.env)) for x, y in boxes]


# --- counts --------------------------------------------------------------------------------------------------------


def _counted(a: Row, b: Row, r: Row, q: Row, memory: Memory) -> Answer:
    """Whether a loop that waits for a count of the flag goes on only when all who release it have."""
    counts = list(_bounds(memory.rows.facts, q.site.event))
    if not counts:
        if _decided(memory.rows.facts, b.site.event):
            return PROVED
        return Answer(Standing.VIOLATED, f"the flag is acquired in line {q.site.event.span.line}, and no one waits until it was released")
    if (other := _adds_otherwise(r, memory)) is not None:
        line, said = other.site.event.span.line, "not 1" if other["event"] == r["event"] else "too"
        return unknown(f"the loop in line {q.site.event.span.line} counts who releases '{r['buffer']}', and line {line} adds to it {said}")
    places = memory.places()
    numbers = [Int(0), *(x.lo for x in a.site.act.region.box)]
    if all(any(_numbered(places, r, n, count, memory) for n in numbers) for count in counts):
        flag = next(t for t in memory.rows.facts.tensors if t.name == r["buffer"])
        if flag.mode == "workspace":  # the runtime's, which holds zeros in front of each launch
            return PROVED
        return unknown(f"nothing says that the flag of '{flag.name}' starts at 0, from which the loop in line {q.site.event.span.line} counts: let it be a `workspace`")
    why = f"the loop in line {q.site.event.span.line} goes on when the flag is {' or '.join(map(expr_text, counts))}, which others that release it may have brought it to"
    shared = memory.common(r, r, Pair)
    if shared.standing is Standing.VIOLATED and all(c == Int(1) for c in counts):
        return Answer(Standing.VIOLATED, why, shared.values)
    return unknown(why)


def _adds_otherwise(r: Row, memory: Memory) -> Row | None:
    """A statement for which the flag is not the number of those that have released it by `r`: it adds something else than 1, or adds beside it."""
    for w in memory.rows["access"]:
        if w["buffer"] == r["buffer"] and w["mode"] == Mode.WRITE and w["atomic"]:
            adds = w.site.act.adds
            if adds != Int(0) and (adds != Int(1) or w["event"] != r["event"]):
                return w
    return None


def _bounds(facts: Facts, acquires: Event) -> Iterator[Expr]:
    """What a loop waits for the flag to come to."""
    read = {s.name for s in acquires.sets}
    for role in facts.roles:
        for n in walk(role.body):
            if isinstance(n, While) and any(x.id in read for x in names(n.test)):
                match n.test:
                    case Binary("<", Name(), bound):
                        yield bound
                    case Binary("==", Name(), Int(0)):
                        yield Int(1)
                    case _:
                        yield Int(0)  # no count that is known


def _decided(facts: Facts, event: Event) -> bool:
    """Whether something that was read decides whether an event happens."""
    around = [n for role in facts.roles for n in walk(role.body) if not isinstance(n, Event) and any(x is event for x in events((n,)))]
    loops = {n.var for n in around if isinstance(n, Loop)}
    known = {*facts.scalars, *loops, *(f"{r.name}.i" for r in facts.roles), "warp", "cluster.id", "cluster.count", f"cluster.{facts.axis}"}
    return any(x.id not in known for n in around if not isinstance(n, Loop) for x in names(n.test))


def _numbered(places: Places, r: Row, number: Expr, count: Expr, memory: Memory) -> bool:
    """Whether those that release one flag have numbers from 0 up to the count, each its own."""
    q = places.quantities
    tensor = next(t for t in memory.rows.facts.tensors if t.name == r["buffer"])
    for at in places.spots.get(r.site.event.id, ()):
        n, most = q.number(number, at.env), q.number(count, at.env)
        if any(x not in memory.rows.facts.scalars for x in most.atoms()):
            return False
        if not all(places.entailment.follows(c, at.path).follows is Follows.YES for c in (AtLeast(n), AtLeast(most - 1 - n))):
            return False
        for other in places.spots.get(r.site.event.id, ()):
            pair = Numbered(places, tensor, r.site.act, r.site.act, at, other, number)
            if not pair.never() and places.entailment.follows(*pair.goal()).follows is not Follows.YES:
                return False
    return True


@frozen
class Numbered(Pair):
    """Two releases of a flag by who has one number: they are one CTA's, in one turn of the loops around."""

    number: Expr

    def known(self) -> list[tuple[Poly, Poly]]:
        q = self.places.quantities
        return [(q.number(self.number, self.at_a.env), q.number(self.number, self.at_b.env))]

    def ctas(self) -> list[tuple[Poly, Poly]]:
        loops = [n for role in self.places.facts.roles for n in walk(role.body) if isinstance(n, Loop | While) and _inside(n.body, self.at_a.event)]
        turns = [
            (self.at_a.env[n.var], self.at_b.env[n.var]) if isinstance(n, Loop) and n.var in self.at_a.env else (Poly.of(0), Poly.of(1))
            for n in loops
        ]
        return [*Pair.ctas(self), *turns]


def _inside(block: Block, event: Event) -> bool:
    return any(x is event for x in events(block))
