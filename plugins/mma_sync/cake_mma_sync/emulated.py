"""Which instructions this plugin executes without a GPU: names, and where they are made."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, Warp-level Matrix Instructions: "

EMULATES = (
    Emulated(
        "mma.sync", "cake_mma_sync.emulate:product", doc=_ISA + "mma; Matrix Fragments for mma.m8n8k4 to mma.m16n8k256; Block Scaling for mma.sync"
    ),
    Emulated("wmma.load", "cake_mma_sync.wmma:load", doc=_ISA + "wmma.load; Matrix Fragments for wmma"),
    Emulated("wmma.mma", "cake_mma_sync.wmma:product", doc=_ISA + "wmma.mma"),
    Emulated("wmma.store", "cake_mma_sync.wmma:store", doc=_ISA + "wmma.store"),
    Emulated("movmatrix", "cake_mma_sync.emulate:movmatrix", doc=_ISA + "movmatrix"),
)
