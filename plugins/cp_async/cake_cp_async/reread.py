"""What copies by threads do to their groups, read from the PTX ISA (Non-bulk copy) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, aligned, committed, drained, used
from cake_core.ptx.reader import Statement

QUEUE = "cp_async"  # the cp.async-group of the executing thread


def _copy(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`[dst], [src], cp-size ..`: what is not read is filled."""
    to, _, size = s.operands[:3]
    first, count = at.shared(to), at.value(size)
    return (used(QUEUE, first, first + count, aligned(first, first + count)),)


REREADS = (
    Reread("cp.async.ca", _copy, doc="PTX ISA, cp.async"),
    Reread("cp.async.cg", _copy, doc="PTX ISA, cp.async"),
    Reread("cp.async.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, cp.async.commit_group"),
    Reread("cp.async.wait_group", lambda s, at: (drained(QUEUE, at.value(s.operands[0])),), doc="PTX ISA, cp.async.wait_group"),
)
