"""What warpgroup products do to their groups, read from the PTX ISA (Asynchronous Warpgroup Level Matrix Instructions) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Reread, committed, drained, fenced

QUEUE = "wgmma"  # the wgmma-group of the executing threads

REREADS = (
    Reread("wgmma.mma_async", writes=True, doc="PTX ISA, wgmma.mma_async"),
    Reread("wgmma.fence", lambda s, at: (fenced("registers"),), doc="PTX ISA, wgmma.fence"),
    Reread("wgmma.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, wgmma.commit_group"),
    Reread("wgmma.wait_group", lambda s, at: (drained(QUEUE, at.value(s.operands[0])),), doc="PTX ISA, wgmma.wait_group"),
)
