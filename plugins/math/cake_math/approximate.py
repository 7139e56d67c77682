"""Functions that the special function unit approximates; the error bounds are the ISA's."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext
from cake_core.ptx.builder import Operand
from cake_math.operands import f32_result


@dataclass(frozen=True, kw_only=True)
class Approximate(Function):
    """One instruction an element, on f32 scalars and register tiles."""

    opcode: str

    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(cx.b.op(self.opcode, x) for x in cx.registers(call.positional[0]))


RSQRT = Approximate(
    name="rsqrt",
    opcode="rsqrt.approx.f32",
    doc="1 / sqrt(x), approximate; subnormals are kept (PTX ISA, Floating Point Instructions, rsqrt).",
)
EXP2 = Approximate(
    name="exp2",
    opcode="ex2.approx.ftz.f32",
    doc="2 to the x, approximate; subnormal inputs count as zero and subnormal results become zero "
    "(PTX ISA, Floating Point Instructions, ex2).",
)
