"""Which instructions for barriers, elections and fences are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_MBARRIER, _THREADS, _FENCES = "cake_barriers.emulate.mbarrier", "cake_barriers.emulate.threads", "cake_barriers.emulate.fences"
_ISA, _BAR, _FENCE = "PTX ISA, mbarrier.", "PTX ISA, bar, barrier", "PTX ISA, membar, fence"

EMULATES = (
    Emulated("mbarrier.init", f"{_MBARRIER}:init", doc=f"{_ISA}init"),
    Emulated("mbarrier.inval", f"{_MBARRIER}:invalidate", doc=f"{_ISA}inval"),
    Emulated("mbarrier.arrive", f"{_MBARRIER}:arrive", doc=f"{_ISA}arrive"),
    Emulated("mbarrier.arrive_drop", f"{_MBARRIER}:arrive", doc=f"{_ISA}arrive_drop"),
    Emulated("mbarrier.expect_tx", f"{_MBARRIER}:expect", doc=f"{_ISA}expect_tx"),
    Emulated("mbarrier.complete_tx", f"{_MBARRIER}:complete", doc=f"{_ISA}complete_tx"),
    Emulated("mbarrier.test_wait", f"{_MBARRIER}:wait", doc=f"{_ISA}test_wait"),
    Emulated("mbarrier.try_wait", f"{_MBARRIER}:wait", waits=True, doc=f"{_ISA}try_wait"),
    Emulated("mbarrier.pending_count", f"{_MBARRIER}:pending", doc=f"{_ISA}pending_count"),
    Emulated("bar", f"{_THREADS}:barrier", waits=True, doc=_BAR),
    Emulated("barrier", f"{_THREADS}:barrier", waits=True, doc=_BAR),
    Emulated("bar.warp", f"{_THREADS}:warp", doc="PTX ISA, bar.warp.sync"),
    Emulated("elect", f"{_THREADS}:elect", doc="PTX ISA, elect.sync"),
    Emulated("fence", f"{_FENCES}:fence", doc=_FENCE),
    Emulated("membar", f"{_FENCES}:membar", doc=_FENCE),
)
