"""Arithmetic on f32 and on tiles of integers, masks and choices by them, casts, elementary functions."""

from __future__ import annotations

from cake_core import hookimpl
from cake_math.approximate import FUNCTIONS
from cake_math.casts import CASTS
from cake_math.erf import ERF
from cake_math.extremes import EXTREMES
from cake_math.gelu import GELU
from cake_math.log import LOG
from cake_math.masks import MASKS
from cake_math.operators import OPERATORS

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (*OPERATORS, *CASTS, *FUNCTIONS, *EXTREMES, *MASKS, LOG, ERF, GELU)
