"""The entry point: offers `grid.wait` and `grid.launch`."""

from __future__ import annotations

from cake_core import hookimpl
from cake_pdl.grid import GRID

CAKE_API = 1


@hookimpl
def cake_primitives():
    return GRID
