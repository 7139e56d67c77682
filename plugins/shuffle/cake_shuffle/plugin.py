"""Reductions to one value: over the lanes of a warp, and over a value that every thread holds."""

from __future__ import annotations

from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated
from cake_shuffle.reread import REREADS
from cake_shuffle.warp import OVER_WARP
from cake_shuffle.whole import WHOLE

CAKE_API = 1

EMULATES = (
    Emulated("shfl", "cake_shuffle.emulate:shfl", doc="PTX ISA, shfl.sync"),
)


@hookimpl
def cake_primitives():
    return (*OVER_WARP, *WHOLE)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
