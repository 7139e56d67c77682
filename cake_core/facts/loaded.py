"""Which numbers are read from memory while a kernel runs, and which are made of such: what stands there is not for the text to say."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.facts.schema import Access, Arrive, BarrierRef, Block, EngineArrive, Event, Wait, WithBytes, events
from cake_core.frozen import frozen
from cake_core.ir.build import INTEGER_CALLS
from cake_core.ir.nodes import Call, Expr, Option
from cake_core.ir.places import names
from cake_core.ir.visit import calls

#: Calls whose value is a matter of their arguments alone.
PLAIN = (*INTEGER_CALLS, "i32", "u32")


@frozen
class Loaded:
    """`names` of a role that hold numbers from memory."""

    names: frozenset[str]

    @staticmethod
    def of(block: Block) -> Loaded:
        sets = [s for e in events(block) for s in e.sets]
        found = {s.name for s in sets if s.value is None or _reads(s.value)}
        while more := {s.name for s in sets if s.value is not None and s.name not in found and any(n.id in found for n in names(s.value))}:
            found |= more
        return Loaded(frozenset(found))

    def holds(self, *exprs: Expr | None) -> bool:
        return any(e is not None and (_reads(e) or any(n.id in self.names for n in names(e))) for e in exprs)

    def act(self, act) -> bool:
        """Whether a place that an act names depends on memory."""
        return self.holds(*_places(act))

    def event(self, e: Event) -> bool:
        """Whether the numbers that an event computes are made of numbers from memory. What it only reads is none of them: its place is."""
        return any(map(self.act, e.acts)) or any(self.holds(*_computed(s.value)) for s in e.sets)


def _computed(e: Expr | None) -> tuple[Expr, ...]:
    """What is computed of a value: of one that is read, its place."""
    if isinstance(e, Call) and e.name not in PLAIN:
        return tuple(a.value if isinstance(a, Option) else a for a in e.args)
    return () if e is None else (e,)


def _reads(e: Expr) -> bool:
    return any(c.name not in PLAIN for c in calls(e))


def _places(act) -> Iterator[Expr]:
    match act:
        case Access():
            yield from act.region.slot
            for x in act.region.box:
                yield from (x.lo, x.size)
            if isinstance(act.completion, WithBytes):
                yield act.completion.barrier.index
        case Wait(BarrierRef(_, index)) | Arrive(BarrierRef(_, index)) | EngineArrive(BarrierRef(_, index)):
            yield index
