"""The contraction rule of the language: which products are fused with the addition that takes them.

A product that stands directly as an operand of a sum or difference of f32, or under a reduction that adds, is not rounded by
itself: the pair is one fused multiply-add (IEEE 754, fusedMultiplyAdd: one rounding). Nothing else is contracted.
"""

from __future__ import annotations

from cake_core.ir.nodes import Binary, Expr
from cake_core.ir.types import F32, Scalar, Tile, Value


def factors(e: Expr) -> tuple[Expr, Expr] | None:
    """The two factors of an f32 product, if `e` is one as it stands."""
    match e:
        case Binary("*", left, right, type=Scalar(elem=elem) | Value(elem=elem) | Tile(elem=elem)) if elem == F32:
            return left, right
    return None
