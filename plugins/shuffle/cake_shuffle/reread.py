"""Reductions over the lanes of a warp: they do nothing to barriers, and what they give is not followed (PTX ISA, redux.sync)."""

from __future__ import annotations

from cake_core.ptx.acts import Reread

REREADS = (Reread("redux.sync", writes=True, doc="PTX ISA, redux.sync"),)
