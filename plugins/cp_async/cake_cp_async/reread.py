"""What copies by threads do to their groups, read from the PTX ISA (Non-bulk copy) and apart from lowering."""

from __future__ import annotations

from cake_core.ptx.acts import Reread, committed, drained

QUEUE = "cp_async"  # the cp.async-group of the executing thread

REREADS = (
    Reread("cp.async.ca", doc="PTX ISA, cp.async"),
    Reread("cp.async.cg", doc="PTX ISA, cp.async"),
    Reread("cp.async.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, cp.async.commit_group"),
    Reread("cp.async.wait_group", lambda s, at: (drained(QUEUE, at.value(s.operands[0])),), doc="PTX ISA, cp.async.wait_group"),
)
