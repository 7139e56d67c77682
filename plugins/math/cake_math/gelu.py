"""`gelu(x)`: x times the share of a normal distribution below x, the activation."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Builder, Operand
from cake_math.operands import f32_result

#: Half of 1 - erf(t / sqrt(2)) is 2**q(t) on 0 <= t <= LARGEST, q a polynomial with these coefficients, the constant one first. They
#: minimise the largest absolute error of t * 2**q(t) (weighted least squares, the weights raised where the error is largest).
COEFFICIENTS = (
    -1.0000376309576309,
    -1.1507877802628976,
    -0.45999262243794514,
    -0.05182718985452995,
    0.007084469755682931,
    -0.00047329524536574767,
)
#: Beyond it gelu is its positive part to 1.1e-7.
LARGEST = 5.5


@frozen(kw_only=True)
class Gelu(Function):
    """max(x, 0) - t * 2**q(t) with t = min(|x|, 5.5): ten operations, one of them an exponential. Absolute error at most 7e-7 beside one
    rounding; NaN stays NaN."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = np.float32(cx.value(call.positional[0]))
        t = np.minimum(np.abs(x), np.float32(LARGEST))
        q = np.float32(COEFFICIENTS[-1])
        for c in reversed(COEFFICIENTS[:-1]):
            q = np.float32(t * q + np.float32(c))
        return np.fmax(x, np.float32(0)) - t * np.exp2(q)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(_gelu(cx.b, x) for x in cx.registers(call.positional[0]))


def _gelu(b: Builder, x: Operand) -> Operand:
    x = b.mov(float(x), "f32") if isinstance(x, int | float) else x
    t = b.op("min.NaN.f32", b.op("abs.f32", x), LARGEST)
    q: Operand = COEFFICIENTS[-1]
    for c in reversed(COEFFICIENTS[:-1]):
        q = b.op("fma.rn.f32", t, q, c)
    share = b.op("ex2.approx.ftz.f32", q)
    return b.op("fma.rn.f32", b.op("neg.f32", t), share, b.op("max.f32", x, 0.0))


GELU = Gelu(
    name="gelu",
    doc="x * (1 + erf(x / sqrt(2))) / 2 by a polynomial of degree 5 and one exponential; absolute error at most 7e-7 "
    "(PTX ISA, Floating Point Instructions, fma, ex2, min and max).",
)
