"""Which instructions that move matrices between shared memory and registers are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, Warp Level Matrix Instructions: "
EMULATES = (
    Emulated("ldmatrix", "cake_memory.emulate:load", doc=f"{_ISA}ldmatrix"),
    Emulated("stmatrix", "cake_memory.emulate:store", doc=f"{_ISA}stmatrix"),
)
