"""Functions of one instruction an element; the error bounds are the ISA's."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext, Special, Specials
from cake_core.ptx.builder import Operand
from cake_math.operands import f32_result


@frozen(kw_only=True)
class OneInstruction(Function):
    """On f32 scalars and register tiles."""

    opcode: str

    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(cx.b.op(self.opcode, x) for x in cx.registers(call.positional[0]))


@frozen(kw_only=True)
class Exponential(OneInstruction):
    """0 of minus infinity, and of what stands in for it."""

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        return args[0] - {Special.MINUS_INFINITY, Special.LOWEST}


_FTZ = "subnormal inputs and results become zero"
_ISA = "PTX ISA, Floating Point Instructions"
FUNCTIONS = (
    OneInstruction(name="abs", opcode="abs.f32", doc=f"|x|, exact ({_ISA}, abs)."),
    Exponential(
        name="exp2",
        opcode="ex2.approx.ftz.f32",
        doc=f"2 to the x, approximate; relative error 2**-22; {_FTZ} ({_ISA}, ex2).",
    ),
    OneInstruction(
        name="log2",
        opcode="lg2.approx.ftz.f32",
        doc=f"Logarithm to the base 2, approximate; absolute error 2**-22 for x in (0.5, 2), relative error 2**-22 elsewhere; {_FTZ} ({_ISA}, lg2).",
    ),
    OneInstruction(
        name="rcp",
        opcode="rcp.approx.ftz.f32",
        doc=f"1 / x, approximate; error 1 unit in the last place; {_FTZ} ({_ISA}, rcp).",
    ),
    OneInstruction(
        name="rsqrt",
        opcode="rsqrt.approx.f32",
        doc=f"1 / sqrt(x), approximate; relative error 2**-22.9; subnormals are kept ({_ISA}, rsqrt).",
    ),
    OneInstruction(
        name="sqrt",
        opcode="sqrt.approx.ftz.f32",
        doc=f"Square root, approximate; relative error 2**-23; {_FTZ} ({_ISA}, sqrt).",
    ),
    OneInstruction(
        name="tanh",
        opcode="tanh.approx.f32",
        doc=f"Hyperbolic tangent, approximate; relative error 2**-11; subnormals are kept ({_ISA}, tanh).",
    ),
)
