"""Which instructions that copy by tensor maps are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_COPIES, _ISA = "cake_tma.emulate.copies", "PTX ISA, cp.async.bulk.tensor; Tensors: Dimension, Size and Format, Swizzling Modes"
EMULATES = (
    Emulated("cp.async.bulk.tensor", f"{_COPIES}:copy", doc=_ISA),
    Emulated("cp.reduce.async.bulk.tensor", f"{_COPIES}:reduce", doc="PTX ISA, cp.reduce.async.bulk.tensor"),
    Emulated("cp.async.bulk.prefetch.tensor", f"{_COPIES}:prefetch", doc="PTX ISA, cp.async.bulk.prefetch.tensor"),
    Emulated("tensormap.replace", "cake_tma.emulate.made:replace", doc="PTX ISA, tensormap.replace"),
    Emulated("tensormap.cp_fenceproxy", "cake_tma.emulate.made:publish", doc="PTX ISA, tensormap.cp_fenceproxy"),
    Emulated("prefetch.tensormap", f"{_COPIES}:prefetch_map", doc="PTX ISA, prefetch"),
    Emulated("prefetch.param.tensormap", f"{_COPIES}:prefetch_map", doc="PTX ISA, prefetch"),
    Emulated("prefetch.const.tensormap", f"{_COPIES}:prefetch_map", doc="PTX ISA, prefetch"),
)
