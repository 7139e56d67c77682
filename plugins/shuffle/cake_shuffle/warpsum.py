"""`warpsum(x)`: one sum a warp."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Call
from cake_core.ir.places import fragments_in
from cake_core.ir.types import F32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Function, LowerContext
from cake_core.ptx.builder import Operand, Reg
from cake_shuffle.chain import argument, total

#: Distances of the butterfly: after the last step all lanes hold the same bits, since each step adds the same two values.
STEPS = (16, 8, 4, 2, 1)
LAST_LANE, ALL_LANES = 31, -1


@dataclass(frozen=True, kw_only=True)
class WarpSum(Function):
    """First each lane's elements in element order, then the lanes by a butterfly of distances 16, 8, 4, 2, 1.

    All lanes of the warp must be there: it stands where the whole warp is (shfl.sync with a full mask).
    """

    def result(self, call: Call, cx: CheckContext) -> Type:
        a = argument(call)
        if not isinstance(a.type, Scalar) and not fragments_in(a):
            raise fail(
                "core/undistributed",
                "'warpsum' adds what the lanes hold, and every thread holds this value whole",
                a.span,
                why="each element would be counted once a lane",
                fix="use `sum(..)`, or assign the value to a `frag`",
            )
        return Scalar(F32, Level.WARP)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        b = cx.b
        result = total(cx, call.positional[0])
        if not isinstance(result, Reg):  # a constant
            result = b.mov(float(result), "f32")
        for distance in STEPS:
            other = b.reg("f32")
            b.emit("shfl.sync.bfly.b32", other, result, distance, LAST_LANE, ALL_LANES)
            result = b.op("add.rn.f32", result, other)
        return (result,)


WARPSUM = WarpSum(
    name="warpsum",
    capabilities=frozenset({"shuffle"}),
    arguments="own",
    doc="f32 sum over the lanes of a warp (PTX ISA, Data Movement Instructions, shfl.sync, mode .bfly).",
)
