"""Order between grids: no barrier of this one (PTX ISA, griddepcontrol)."""

from __future__ import annotations

from cake_core.ptx.acts import Reread

REREADS = (Reread("griddepcontrol", doc="PTX ISA, griddepcontrol"),)
