"""Fragments: tiles in the registers of one role instance, and the layouts in which they lie there."""

from __future__ import annotations

from cake_core import hookimpl
from cake_fragments.factor import FACTORS
from cake_fragments.indices import INDICES
from cake_fragments.lanes import LANES_LAYOUT
from cake_fragments.mma import MMA
from cake_fragments.rows import ROWS
from cake_fragments.space import FRAG
from cake_fragments.vector import VECTOR

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (FRAG, MMA, *FACTORS, LANES_LAYOUT, VECTOR, ROWS, *INDICES)
