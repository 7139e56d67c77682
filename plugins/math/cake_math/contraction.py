"""The contraction rule: which products are fused with the addition that takes them.

A product that stands directly as an operand of `+` or `-` is never rounded by itself: the pair becomes one
fma.rn.f32 (PTX ISA, Floating Point Instructions, fma: one rounding). Nothing else is contracted.
"""

from __future__ import annotations

from cake_core.ir.nodes import Binary, Expr
from cake_core.ir.types import F32
from cake_math.operands import register_elem


def factors(e: Expr) -> tuple[Expr, Expr] | None:
    """The two factors of a float product, if `e` is one as it stands."""
    match e:
        case Binary("*", left, right) if register_elem(e.type) == F32:
            return left, right
    return None
