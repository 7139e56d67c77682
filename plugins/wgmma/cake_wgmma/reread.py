"""What warpgroup products do to their groups, read from the PTX ISA (Asynchronous Warpgroup Level Matrix Instructions) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Act, Moment, Reread, committed, drained, fenced, used
from cake_core.ptx.reader import Statement

QUEUE = "wgmma"  # the wgmma-group of the executing threads


def _product(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`d, a, b, ..`: a and b in shared memory are descriptors, 64 bits whose lowest 14 are the start address over 16."""
    found = []
    for factor in s.operands[1:3]:
        if isinstance(factor, str):
            first = at.shared((at.value(factor) & 0x3FFF) << 4)
            found.append(used(QUEUE, first, first + 16))
    return tuple(found)


REREADS = (
    Reread("wgmma.mma_async", _product, writes=True, doc="PTX ISA, wgmma.mma_async"),
    Reread("wgmma.fence", lambda s, at: (fenced("registers"),), doc="PTX ISA, wgmma.fence"),
    Reread("wgmma.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, wgmma.commit_group"),
    Reread("wgmma.wait_group", lambda s, at: (drained(QUEUE, at.value(s.operands[0])),), doc="PTX ISA, wgmma.wait_group"),
)
