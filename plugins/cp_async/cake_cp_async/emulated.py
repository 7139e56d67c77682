"""Which instructions for copies by threads are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, cp.async"
EMULATES = (
    Emulated("cp.async.ca", "cake_cp_async.emulate:copy", doc=_ISA),
    Emulated("cp.async.cg", "cake_cp_async.emulate:copy", doc=_ISA),
    Emulated("cp.async.commit_group", "cake_cp_async.emulate:commit", doc=f"{_ISA}.commit_group"),
    Emulated("cp.async.wait_group", "cake_cp_async.emulate:wait", waits=True, doc=f"{_ISA}.wait_group"),
    Emulated("cp.async.wait_all", "cake_cp_async.emulate:wait", waits=True, doc=f"{_ISA}.wait_all"),
    Emulated("cp.async.mbarrier.arrive", "cake_cp_async.emulate:arrive", doc=f"{_ISA}.mbarrier.arrive"),
)
