"""`sum(v)`: the sum of a value that every thread holds whole."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.places import fragments_in, names
from cake_core.ir.types import F32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Function, LowerContext
from cake_core.ptx.builder import Operand
from cake_shuffle.chain import argument, total


@dataclass(frozen=True, kw_only=True)
class Sum(Function):
    """Every thread adds the same elements in ascending order, row by row, and gets the same bits."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        a = argument(call)
        if isinstance(a.type, Scalar):
            raise fail("type/operand", "'sum' takes a register tile, not a scalar", a.span)
        if fragments := fragments_in(a):
            raise fail(
                "core/undistributed",
                f"'sum' of '{fragments[0].id}', which lies over the threads",
                a.span,
                why="a sum over threads needs scratch memory and a barrier, and neither is ever hidden",
                fix="store `warpsum(..)` to one element a warp of a shared buffer, `sync`, and take `sum(load(..))` of it",
            )
        return Scalar(F32, max(Level.INSTANCE, _level(a)))

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return (total(cx, call.positional[0]),)


def _level(e: Expr) -> Level:
    """The highest level of the scalars that decide which value it is."""
    return max((n.type.level for n in names(e) if isinstance(n.type, Scalar)), default=Level.CTA)


SUM = Sum(
    name="sum",
    arguments="whole",
    doc="f32 sum in ascending element order, rounded to nearest even at each step (PTX ISA, Floating Point Instructions, add and fma).",
)
