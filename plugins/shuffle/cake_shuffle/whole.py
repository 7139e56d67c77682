"""`sum(v)`, `maximum(v)`, `minimum(v)`: of a value that every thread holds whole."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.places import fragments_in, names
from cake_core.ir.types import F32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Operand
from cake_shuffle.chain import ADD, argument, combined


@frozen(kw_only=True)
class Whole(Function):
    """Every thread combines the same elements in ascending order, row by row, and gets the same bits."""

    opcode: str
    warp: str  # the function that does the same over the lanes of a warp
    arguments: str = "whole"

    def result(self, call: Call, cx: CheckContext) -> Type:
        a = argument(call)
        if isinstance(a.type, Scalar):
            raise fail("type/operand", f"'{self.name}' takes a register tile, not a scalar", a.span)
        if fragments := fragments_in(a):
            raise fail(
                "core/undistributed",
                f"'{self.name}' of '{fragments[0].id}', which lies over the threads",
                a.span,
                why="a reduction over threads needs scratch memory and a barrier, and neither is ever hidden",
                fix=f"store `{self.warp}(..)` to one element a warp of a shared buffer, `sync`, and take `{self.name}(load(..))` of it",
            )
        return Scalar(F32, max(Level.INSTANCE, _level(a)))

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = np.float32(cx.value(call.positional[0]))
        return {"sum": np.sum, "maximum": np.max, "minimum": np.min}[self.name](x)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return (combined(cx, call.positional[0], self.opcode),)


def _level(e: Expr) -> Level:
    """The highest level of the scalars that decide which value it is."""
    return max((n.type.level for n in names(e) if isinstance(n.type, Scalar)), default=Level.CTA)


WHOLE = (
    Whole(
        name="sum",
        opcode=ADD,
        warp="warpsum",
        doc="f32 sum in ascending element order, rounded to nearest even at each step (PTX ISA, Floating Point Instructions, add and fma).",
    ),
    Whole(
        name="maximum",
        opcode="max.NaN.f32",
        warp="warpmax",
        doc="The largest f32; NaN if any element is (PTX ISA, Floating Point Instructions, max with .NaN).",
    ),
    Whole(
        name="minimum",
        opcode="min.NaN.f32",
        warp="warpmin",
        doc="The smallest f32; NaN if any element is (PTX ISA, Floating Point Instructions, min with .NaN).",
    ),
)
