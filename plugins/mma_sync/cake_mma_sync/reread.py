"""Products of warps and loads of their factors: they do nothing to barriers (PTX ISA, Warp Level Matrix Instructions)."""

from __future__ import annotations

from cake_core.ptx.acts import Reread

REREADS = (
    Reread("mma.sync", writes=True, doc="PTX ISA, mma"),
    Reread("ldmatrix", writes=True, doc="PTX ISA, ldmatrix"),
)
