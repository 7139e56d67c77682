"""`log(x)`: the natural logarithm, from the approximate one to the base 2."""

from __future__ import annotations

import math

from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Operand
from cake_math.operands import f32_result


@frozen(kw_only=True)
class Log(Function):
    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        return np.log2(np.float32(cx.value(call.positional[0]))) * np.float32(math.log(2))

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        b = cx.b
        return tuple(b.op("mul.rn.f32", b.op("lg2.approx.ftz.f32", x), math.log(2)) for x in cx.registers(call.positional[0]))


LOG = Log(
    name="log",
    doc="Natural logarithm, approximate: the logarithm to the base 2 times ln 2, absolute error 2**-22 for x in (0.5, 2), relative error "
    "2**-21 elsewhere; subnormals become zero (PTX ISA, Floating Point Instructions, lg2 and mul).",
)
