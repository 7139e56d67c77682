"""`erf(x)`: the error function, for activations such as x * (1 + erf(x / sqrt(2))) / 2."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Call
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Builder, Operand
from cake_math.operands import f32_result

#: 1 - erf(t) is 2**(t * p(t)) on 0 <= t <= LARGEST, p a polynomial with these coefficients, the constant one first. They
#: minimise the largest absolute error of erf (weighted least squares, the weights raised where the error is largest).
COEFFICIENTS = (
    -1.6279137319198456,
    -0.9183286432112994,
    -0.1489636740951222,
    0.02945252599121955,
    -0.0023022494892029344,
    -0.0004615675900718388,
    0.00010022014313247653,
)
#: From here on erf is 1 in f32: 1 - erf(4) is 1.5e-8, a quarter of a unit in the last place.
LARGEST = 4.0


@frozen(kw_only=True)
class Erf(Function):
    """sign(x) * (1 - 2**(t * p(t))) with t = min(|x|, 4). Absolute error at most 5e-7; 0 and the sign of 0 are exact, NaN stays NaN."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 1)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = np.float32(cx.value(call.positional[0]))
        t = np.minimum(np.abs(x), np.float32(LARGEST))
        p = np.float32(COEFFICIENTS[-1])
        for c in reversed(COEFFICIENTS[:-1]):
            p = np.float32(t * p + np.float32(c))
        return np.copysign(np.float32(1) - np.exp2(t * p), x)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(_erf(cx.b, x) for x in cx.registers(call.positional[0]))


def _erf(b: Builder, x: Operand) -> Operand:
    x = b.mov(float(x), "f32") if isinstance(x, int | float) else x
    t = b.op("min.NaN.f32", b.op("abs.f32", x), LARGEST)
    p: Operand = COEFFICIENTS[-1]
    for c in reversed(COEFFICIENTS[:-1]):
        p = b.op("fma.rn.f32", t, p, c)
    power = b.op("ex2.approx.ftz.f32", b.op("mul.rn.f32", t, p))
    return b.op("copysign.f32", x, b.op("sub.rn.f32", 1.0, power))


ERF = Erf(
    name="erf",
    doc="The error function by a polynomial of degree 6 and one exponential; absolute error at most 5e-7 "
    "(PTX ISA, Floating Point Instructions, fma, ex2 and copysign).",
)
