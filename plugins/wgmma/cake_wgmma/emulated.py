"""Which instructions this plugin executes without a GPU: names, and where they are made."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, Asynchronous Warpgroup Level Matrix Instructions: "

EMULATES = (
    Emulated(
        "wgmma.mma_async",
        "cake_wgmma.emulate:mma_async",
        doc=_ISA + "wgmma.mma_async; Register Fragments and Shared Memory Matrix Layouts; Matrix-descriptor",
    ),
    Emulated("wgmma.fence", "cake_wgmma.emulate:fence", doc=_ISA + "wgmma.fence"),
    Emulated("wgmma.commit_group", "cake_wgmma.emulate:commit_group", doc=_ISA + "wgmma.commit_group"),
    Emulated("wgmma.wait_group", "cake_wgmma.emulate:wait_group", waits=True, doc=_ISA + "wgmma.wait_group"),
)
