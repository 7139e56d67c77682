"""What the instructions for barriers do, read from the PTX ISA (Parallel Synchronization and Communication Instructions) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, arrived, converged, fenced, initialised, met, waited
from cake_core.ptx.reader import Statement


def _init(s: Statement, at: Moment) -> tuple[Act, ...]:
    barrier, count = s.operands
    return (initialised(at.shared(barrier), at.value(count)),)


def _wait(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`waitComplete, [addr], phaseParity {, suspendTimeHint}`; a loop around it ends when the predicate holds, which it does at last.
    A parity is 0 or 1."""
    done, barrier, parity, *_ = s.operands
    at.give(done, True)
    return (waited(at.shared(barrier), at.value(parity)),)


def _arrive(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`state, [addr] {, count}`."""
    _, barrier, *count = s.operands
    return (arrived(at.shared(barrier), count=at.value(count[0]) if count else 1),)


def _arrive_expect(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`state, [addr], tx_count`: the bytes are expected before the arrival counts."""
    _, barrier, count = s.operands
    return (arrived(at.shared(barrier), at.value(count)),)


def _meet(waits: bool):
    def read(s: Statement, at: Moment) -> tuple[Act, ...]:
        """`a {, b}`; without b all threads of the CTA."""
        number, *threads = s.operands
        return (met(at.value(number), at.value(threads[0]) if threads else at.threads, waits),)

    return read


def _elect(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`d|p, membermask`: p holds in one lane of the mask, the same one each time; which one is not said, so the first of a warp is
    taken for it. A thread outside of the mask must not execute it, so another mask is a meeting of those in it."""
    result, mask = s.operands
    whole = at.value(mask) & 0xFFFFFFFF == 0xFFFFFFFF
    at.give(result, at.lane == 0 if whole else None)
    return () if whole else (converged(at.value(mask)),)


def _fence(kind: str):
    return lambda s, at: (fenced(kind),)


_MBARRIER, _BAR, _FENCE = "PTX ISA, mbarrier.", "PTX ISA, barrier{.cta}", "PTX ISA, membar, fence"
REREADS = (
    Reread("mbarrier.init", _init, doc=f"{_MBARRIER}init"),
    Reread("mbarrier.try_wait.parity", _wait, writes=True, doc=f"{_MBARRIER}test_wait, mbarrier.try_wait"),
    Reread("mbarrier.test_wait.parity", _wait, writes=True, doc=f"{_MBARRIER}test_wait, mbarrier.try_wait"),
    Reread("mbarrier.arrive", _arrive, writes=True, doc=f"{_MBARRIER}arrive"),
    Reread("mbarrier.arrive.expect_tx", _arrive_expect, writes=True, doc=f"{_MBARRIER}arrive (.expect_tx)"),
    Reread("bar.sync", _meet(True), doc=_BAR),
    Reread("bar.arrive", _meet(False), doc=_BAR),
    Reread("elect.sync", _elect, acts=False, writes=True, doc="PTX ISA, elect.sync"),
    Reread("bar.warp.sync", lambda s, at: (converged(at.value(s.operands[0])),), doc="PTX ISA, bar.warp.sync"),
    Reread("fence.proxy.async", _fence("proxy_async"), doc=_FENCE),
    Reread("fence.proxy.async.global", _fence("proxy_async_global"), doc=_FENCE),
    Reread("fence.mbarrier_init", _fence("barrier_init"), doc=_FENCE),
    # Without clusters and engines the order inside of the CTA is all that is to know of a barrier's start.
    Reread("fence.acq_rel.cta", _fence("barrier_init"), doc=_FENCE),
)
