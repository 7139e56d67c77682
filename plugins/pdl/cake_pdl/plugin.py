"""The entry point: offers `grid.wait` and `grid.launch`."""

from __future__ import annotations

from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated
from cake_pdl.grid import GRID
from cake_pdl.reread import REREADS

CAKE_API = 1

EMULATES = (
    Emulated("griddepcontrol", "cake_pdl.emulate:griddepcontrol", doc="PTX ISA, griddepcontrol"),
)


@hookimpl
def cake_primitives():
    return GRID


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
