"""Reductions to one value: over the lanes of a warp, and over a value that every thread holds."""

from __future__ import annotations

from cake_core import hookimpl
from cake_shuffle.total import SUM
from cake_shuffle.warpsum import WARPSUM

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (WARPSUM, SUM)
