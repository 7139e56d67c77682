"""Stores of matrices: they do nothing to barriers (PTX ISA, Warp Level Matrix Instructions)."""

from __future__ import annotations

from cake_core.ptx.acts import Reread

REREADS = (Reread("stmatrix", doc="PTX ISA, stmatrix"),)
