"""Which instructions for bulk copies are executed without a GPU."""

from __future__ import annotations

from cake_core.ptx.emulated import Emulated

_ISA = "PTX ISA, cp.async.bulk"
_SPACES = ("shared::cluster", "shared::cta", "global")
EMULATES = (
    *(Emulated(f"cp.async.bulk.{space}", "cake_bulk.emulate:copy", doc=_ISA) for space in _SPACES),
    *(Emulated(f"cp.reduce.async.bulk.{space}", "cake_bulk.emulate:reduce", doc="PTX ISA, cp.reduce.async.bulk") for space in _SPACES),
    Emulated("cp.async.bulk.prefetch.L2", "cake_bulk.emulate:prefetch", doc=f"{_ISA}.prefetch"),
    Emulated("cp.async.bulk.commit_group", "cake_bulk.emulate:commit", doc=f"{_ISA}.commit_group"),
    Emulated("cp.async.bulk.wait_group", "cake_bulk.emulate:wait", waits=True, doc=f"{_ISA}.wait_group"),
)
