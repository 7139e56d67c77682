"""Reductions over the rows of a register tile, and the states that they are folded into."""

from __future__ import annotations

from cake_core import hookimpl
from cake_reduce.argmin import ARGMIN, ROW_ARGMIN
from cake_reduce.fold import FOLD, MERGE
from cake_reduce.simple import OF_ROWS, SIMPLE
from cake_reduce.topk import TOPK

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (FOLD, MERGE, *SIMPLE, *OF_ROWS, ARGMIN, ROW_ARGMIN, TOPK)
