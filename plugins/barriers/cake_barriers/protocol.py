"""A pipeline over barriers with phases: one full and one empty barrier a slot.

The n-th use of a pipeline takes slot n % S in round n / S. Consumers wait for round r of `full`, whose phase has parity r % 2; a
producer waits for the phase before it of `empty`, parity (r + 1) % 2, which a fresh barrier reports complete: the first round
finds every slot empty.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.build import add, by_leader, by_warp_leader, div, index, mod, op, words
from cake_core.ir.nodes import Block, Declaration, Declare, Expr, Int, Op, Stmt, TypeExpr
from cake_core.primitive import PipelinePlan, Protocol, Signal


class Mbarrier(Protocol):
    def declare(self, plan: PipelinePlan) -> Block:
        return (_declare(_full(plan), plan.slots, plan.full_count), _declare(_empty(plan), plan.slots, plan.empty_count))

    def initialise(self, plan: PipelinePlan) -> Block:
        return (op("mbarrier.init", _full(plan)), op("mbarrier.init", _empty(plan)))

    def publish(self, cluster: int) -> Block:
        return (op("fence.mbarrier_init"),)

    def full(self, plan: PipelinePlan, slot: Expr) -> Expr:
        return index(_full(plan), slot)

    def acquire(self, plan: PipelinePlan, slot: Expr, ordinal: Expr) -> Block:
        round_before = add(div(ordinal, plan.slots), 1)
        return (op("mbarrier.wait", index(_empty(plan), slot), parity=mod(round_before, 2)),)

    def announce(self, plan: PipelinePlan, slot: Expr, amount: int) -> Block:
        if not amount:
            return ()
        full = index(_full(plan), slot)
        return (by_leader(*(Op("mbarrier.expect", (full,), words=words(bytes=amount, at=rank)) for rank in _ranks(plan.full_at))),)

    def commit(self, plan: PipelinePlan, slot: Expr, how: Signal, engine: str = "") -> Block:
        if Signal.COLLECTIVE in how:
            raise fail(
                "derive/commit-kind",
                f"a fill of '{plan.name}' cannot be committed by one arrival a warpgroup",
                why="only reads retire with a matrix operation",
            )
        full = index(_full(plan), slot)
        if Signal.ENGINE in how:
            return _by_engine(engine, full, plan.full_at)
        return _by_warps(*_arrivals(full, plan.full_at)) if Signal.WARPS in how else ()

    def send(self, plan: PipelinePlan, slot: Expr, place: Expr, value: Expr, how: Signal) -> Block:
        if how is not Signal.BYTES:
            return (op("store", place, arrow="<-", value=value, by=4),)
        full = index(_full(plan), slot)
        return tuple(Op("cluster.send", (place,), "<-", value, words(at=rank or 0, signal=full)) for rank in _ranks(plan.full_at))

    def wait(self, plan: PipelinePlan, slot: Expr, ordinal: Expr) -> Block:
        return (op("mbarrier.wait", index(_full(plan), slot), parity=mod(div(ordinal, plan.slots), 2)),)

    def release(self, plan: PipelinePlan, slot: Expr, how: Signal, engine: str = "") -> Block:
        empty = index(_empty(plan), slot)
        match how:
            case Signal.COLLECTIVE:
                return (by_leader(*_arrivals(empty, plan.empty_at)),)
            case Signal.WARPS:
                return _by_warps(*_arrivals(empty, plan.empty_at))
            case Signal.ENGINE:
                return _by_engine(engine, empty, plan.empty_at)
        raise fail(
            "derive/release-kind",
            f"a slot of '{plan.name}' cannot be released by {how.name}",
            why="a reader arrives, by warp or by warpgroup",
        )


def _full(plan: PipelinePlan) -> str:
    return f"{plan.name}_full"


def _empty(plan: PipelinePlan) -> str:
    return f"{plan.name}_empty"


def _declare(name: str, slots: int, count: int) -> Declare:
    return Declare("barrier", (Declaration(name, TypeExpr("mbarrier", ((Int(slots),),)), words(count=count)),))


def _ranks(at: tuple[int, ...]) -> tuple[int | None, ...]:
    """The CTAs whose barriers are reached; None: the own."""
    return at or (None,)


def _arrivals(barrier: Expr, at: tuple[int, ...]) -> tuple[Op, ...]:
    return tuple(Op("mbarrier.arrive", (barrier,), words=words(at=rank)) for rank in _ranks(at))


def _by_engine(engine: str, barrier: Expr, at: tuple[int, ...]) -> Block:
    """The leader lets the engine arrive when it has done what the leader gave it: one statement for all CTAs of the mask."""
    mask = sum(1 << rank for rank in at) or None
    return (by_leader(Op(engine, (barrier,), words=words(mask=mask))),)


def _by_warps(*arrivals: Stmt) -> Block:
    """One arrival a warp, after its lanes have met: the arrival speaks for all of them."""
    return (op("warp.sync"), by_warp_leader(*arrivals))


MBARRIER = Mbarrier(
    name="mbarrier",
    capabilities=frozenset({"mbarrier"}),
    doc="PTX ISA, mbarrier; Phase of the mbarrier object",
)
