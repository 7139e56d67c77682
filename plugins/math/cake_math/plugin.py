"""Float arithmetic: the operators on f32, casts between float types, elementary functions."""

from __future__ import annotations

from cake_core import hookimpl
from cake_math.approximate import FUNCTIONS
from cake_math.casts import CASTS
from cake_math.erf import ERF
from cake_math.operators import OPERATORS

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (*OPERATORS, *CASTS, *FUNCTIONS, ERF)
