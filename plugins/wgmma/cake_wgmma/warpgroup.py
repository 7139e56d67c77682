"""The unit of threads that a matrix product of this family is executed by."""

from __future__ import annotations

from cake_core.primitive import ThreadGroup

WARPGROUP = ThreadGroup(
    name="warpgroup",
    warps=4,
    aligned=4,
    capabilities=frozenset({"wgmma"}),
    doc="PTX ISA, Warpgroup: four contiguous warps, the rank of the first a multiple of 4.",
)
