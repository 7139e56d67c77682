"""Functions of one instruction an element; the error bounds are the ISA's."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext, Special, Specials
from cake_core.ptx.builder import Operand
from cake_math.operands import f32_result

#: The least normal f32: what is smaller becomes zero under .ftz.
TINY = 2.0**-126


@frozen(kw_only=True)
class OneInstruction(Function):
    """On f32 scalars and register tiles."""

    opcode: str

    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = np.float32(cx.value(call.positional[0]))
        flushed = x if ".ftz" not in self.opcode else np.where(np.abs(x) < TINY, np.float32(0) * x, x)
        found = {
            "abs": np.abs,
            "exp2": np.exp2,
            "log2": np.log2,
            "rcp": np.reciprocal,
            "rsqrt": lambda v: 1 / np.sqrt(v),
            "sqrt": np.sqrt,
            "tanh": np.tanh,
        }[self.name](flushed)
        return np.float32(found if ".ftz" not in self.opcode else np.where(np.abs(found) < TINY, np.float32(0) * found, found))

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
