"""`warpsum(x)`, `warpmax(x)`, `warpmin(x)`: one value a warp."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Effect
from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.places import fragments_in
from cake_core.ir.types import F32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Operand, Reg
from cake_shuffle.chain import ADD, argument, combined

#: Distances of the butterfly: after the last step all lanes hold the same bits, since each step combines the same two values.
STEPS = (16, 8, 4, 2, 1)
LAST_LANE, ALL_LANES = 31, -1


@frozen(kw_only=True)
class OverWarp(Function):
    """First each lane's elements in element order, then the lanes by a butterfly of distances 16, 8, 4, 2, 1.

    All lanes of the warp must be there: it stands where the whole warp is (shfl.sync with a full mask).
    """

    opcode: str
    verb: str
    whole: str  # the function that does the same on a value that every thread holds whole
    arguments: str = "own"
    capabilities: frozenset[str] = frozenset({"shuffle"})

    def result(self, call: Call, cx: CheckContext) -> Type:
        a = argument(call)
        if not isinstance(a.type, Scalar) and not fragments_in(a):
            raise fail(
                "core/undistributed",
                f"'{self.name}' {self.verb} what the lanes hold, and every thread holds this value whole",
                a.span,
                why="each element would be counted once a lane",
                fix=f"use `{self.whole}(..)`, or assign the value to a `frag`",
            )
        return Scalar(F32, Level.WARP)

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (OF_WARP,)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = cx.lanes(call.positional[0]).astype(np.float32).reshape(cx.warps, -1)
        found = {"warpsum": np.sum, "warpmax": np.max, "warpmin": np.min}[self.name](x, axis=1, keepdims=True)
        return found if cx.warps > 1 else found[0, 0]

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        b = cx.b
        result = combined(cx, call.positional[0], self.opcode)
        if not isinstance(result, Reg):  # a constant
            result = b.mov(float(result), "f32")
        for distance in STEPS:
            other = b.reg("f32")
            b.emit("shfl.sync.bfly.b32", other, result, distance, LAST_LANE, ALL_LANES)
            result = b.op(self.opcode, result, other)
        return (result,)


_SHUFFLE = "PTX ISA, Data Movement Instructions, shfl.sync, mode .bfly"
OVER_WARP = (
    OverWarp(name="warpsum", opcode=ADD, verb="adds", whole="sum", doc=f"f32 sum over the lanes of a warp ({_SHUFFLE})."),
    OverWarp(
        name="warpmax",
        opcode="max.NaN.f32",
        verb="compares",
        whole="maximum",
        doc=f"The largest f32 of a warp's lanes; NaN if any element is ({_SHUFFLE}; Floating Point Instructions, max with .NaN).",
    ),
    OverWarp(
        name="warpmin",
        opcode="min.NaN.f32",
        verb="compares",
        whole="minimum",
        doc=f"The smallest f32 of a warp's lanes; NaN if any element is ({_SHUFFLE}; Floating Point Instructions, min with .NaN).",
    ),
)
