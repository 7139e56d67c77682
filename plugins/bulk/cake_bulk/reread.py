"""What bulk copies do to barriers and groups, read from the PTX ISA (Asynchronous copies) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, committed, copied, drained, in_rank, used
from cake_core.ptx.reader import Statement

QUEUE = "bulk"  # the bulk async-group of the executing thread


def _copy(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dstMem], [srcMem], size, [mbar] {, ctaMask}`: with a mask the data go to the same place of each CTA in it, and so does the signal."""
    to, _, size, barrier, *mask = s.operands
    count, first, signal = at.value(size), at.shared(to), at.shared(barrier)
    if "multicast::cluster" not in s.words:
        return (copied(((signal, first, first + count),), count),)
    ranks = [r for r in range(16) if at.value(mask[0]) >> r & 1]
    return (copied([(in_rank(signal, r), in_rank(first, r), in_rank(first, r) + count) for r in ranks], count),)


def _store(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dstMem], [srcMem], size`."""
    _, source, size = s.operands[:3]
    first = at.shared(source)
    return (used(QUEUE, first, first + at.value(size)),)


def _wait(s: Statement, at: Moment) -> tuple[Act, ...]:
    return (drained(QUEUE, at.value(s.operands[0]), "read" in s.words),)


_ISA = "PTX ISA, cp.async.bulk"
REREADS = (
    Reread("cp.async.bulk.shared::cluster", _copy, doc=_ISA),
    Reread("cp.async.bulk.shared::cta", _copy, doc=_ISA),
    Reread("cp.async.bulk.global", _store, doc=_ISA),
    Reread("cp.async.bulk.prefetch.L2", doc="PTX ISA, cp.async.bulk.prefetch"),
    Reread("cp.reduce.async.bulk.shared::cluster", _copy, doc="PTX ISA, cp.reduce.async.bulk"),
    Reread("cp.reduce.async.bulk.global", _store, doc="PTX ISA, cp.reduce.async.bulk"),
    Reread("cp.async.bulk.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, cp.async.bulk.commit_group"),
    Reread("cp.async.bulk.wait_group", _wait, doc="PTX ISA, cp.async.bulk.wait_group"),
)
