"""Which instructions this plugin executes without a GPU: names, and where they are made."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, TensorCore 5th Generation Family Instructions: "
_AT = "cake_tcgen05.emulate."

EMULATES = (
    Emulated("tcgen05.alloc", _AT + "columns:alloc", waits=True, doc=_ISA + "tcgen05.alloc; CUTLASS, cute/arch/tmem_allocator_sm100.hpp"),
    Emulated("tcgen05.dealloc", _AT + "columns:dealloc", doc=_ISA + "tcgen05.dealloc"),
    Emulated("tcgen05.relinquish_alloc_permit", _AT + "columns:relinquish", doc=_ISA + "tcgen05.relinquish_alloc_permit"),
    Emulated("tcgen05.ld", _AT + "moves:load", waits=True, doc=_ISA + "tcgen05.ld; Data Movement Shape; CUTLASS, cute/atom/copy_traits_sm100.hpp"),
    Emulated("tcgen05.st", _AT + "moves:store", doc=_ISA + "tcgen05.st; Data Movement Shape; CUTLASS, cute/atom/copy_traits_sm100.hpp"),
    Emulated("tcgen05.wait::ld", _AT + "moves:wait_loads", doc=_ISA + "tcgen05.wait"),
    Emulated("tcgen05.wait::st", _AT + "moves:wait_stores", waits=True, doc=_ISA + "tcgen05.wait"),
    Emulated("tcgen05.cp", _AT + "copies:copy", doc=_ISA + "tcgen05.cp; CUTLASS, cute/atom/copy_traits_sm100.hpp"),
    Emulated("tcgen05.mma", _AT + "products:product", doc=_ISA + "tcgen05.mma; Instruction descriptor; CUTLASS, cute/arch/mma_sm100_desc.hpp"),
    Emulated("tcgen05.commit", _AT + "orders:commit", doc=_ISA + "tcgen05.commit"),
    Emulated("tcgen05.fence::before_thread_sync", _AT + "orders:fence", doc=_ISA + "tcgen05.fence"),
    Emulated("tcgen05.fence::after_thread_sync", _AT + "orders:fence", doc=_ISA + "tcgen05.fence"),
    Emulated("tcgen05.shift", _AT + "orders:shift", doc=_ISA + "tcgen05.shift: refused, no text says which way rows go"),
)
