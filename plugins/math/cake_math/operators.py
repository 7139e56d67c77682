"""`+ - * /` on f32 scalars and register tiles, element by element; `+ - *` on tiles of integers too."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.contraction import factors
from cake_core.ir.nodes import Call, Expr, Float, Int
from cake_core.ir.types import Type
from cake_core.primitive import CheckContext, Elements, Function, LowerContext, SimulateContext, Special, Specials
from cake_core.ptx.builder import Builder, Operand
from cake_math import integers
from cake_math.operands import arithmetic_result, f32_result
from cake_math.operands import integers as on_integers


def negate(b: Builder, x: Operand) -> Operand:
    """-x, exact for every value, zeros included."""
    return -float(x) if isinstance(x, int | float) else b.op("neg.f32", x)


@frozen(kw_only=True)
class Operator(Function):
    """`counts`: how many operands it takes. Integers come one element at a time."""

    counts: tuple[int, ...] = (2,)

    def result(self, call: Call, cx: CheckContext) -> Type:
        return arithmetic_result(call, *self.counts)

    def each(self, call: Call, cx: LowerContext) -> Elements | None:
        return integers.computed(call, cx) if on_integers(call) else None


def _negated(x: Specials) -> Specials:
    turned = {Special.INFINITY: Special.MINUS_INFINITY, Special.MINUS_INFINITY: Special.INFINITY}
    return frozenset(turned.get(s, s) for s in x if s is not Special.LOWEST)


def _added(x: Specials, y: Specials) -> Specials:
    """A sum of two infinities of different signs is NaN (IEEE 754, 7.2)."""
    opposite = any(a in x and b in y for a, b in ((Special.INFINITY, Special.MINUS_INFINITY), (Special.MINUS_INFINITY, Special.INFINITY)))
    return x | y | {Special.NAN} if opposite else x | y


@frozen(kw_only=True)
class Multiply(Operator):
    """Never contracted itself: what takes the product may be."""

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        """By a factor below 0 infinities change places; others are taken for factors above 0."""
        (x, y), (a, b) = args, call.positional
        return _negated(x) | y if _below_zero(b) else x | _negated(y) if _below_zero(a) else x | y

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        x, y = cx.operands(*call.positional)
        return x * y

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(cx.b.op("mul.rn.f32", x, y) for x, y in zip(*cx.broadcast(*call.positional), strict=True))


@frozen(kw_only=True)
class Divide(Function):
    def result(self, call: Call, cx: CheckContext) -> Type:
        return f32_result(call, 2)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        x, y = cx.operands(*call.positional)
        return x / y

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return tuple(cx.b.op("div.rn.f32", x, y) for x, y in zip(*cx.broadcast(*call.positional), strict=True))


@frozen(kw_only=True)
class Add(Operator):
    """`x + y`. A product on either side is fused; of two products the left one is."""

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        return _added(*args)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        left, right = call.positional
        product, other = (factors(left), right) if factors(left) else (factors(right), left)
        if product is None:
            x, y = cx.operands(left, right)
            return x + y
        return fused(*cx.operands(*product, other))

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        left, right = call.positional
        product, other = (factors(left), right) if factors(left) else (factors(right), left)
        if product is None:
            return tuple(cx.b.op("add.rn.f32", x, y) for x, y in zip(*cx.broadcast(left, right), strict=True))
        return tuple(cx.b.op("fma.rn.f32", x, y, z) for x, y, z in zip(*cx.broadcast(*product, other), strict=True))


@frozen(kw_only=True)
class Subtract(Operator):
    """`x - y` and `-x`. `x * y - z` is fma(x, y, -z), `z - x * y` is fma(-x, y, z); of two products the left one is fused."""

    counts: tuple[int, ...] = (1, 2)

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        """A stand-in for minus infinity less itself is 0, like the difference of any two equal numbers."""
        if len(args) == 1:
            return _negated(args[0])
        x, y = args
        same = {Special.UNMASKED} if Special.LOWEST in x and Special.LOWEST in y else set()
        return _added(x, _negated(y)) | same

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        if len(call.positional) == 1:
            return -cx.value(call.positional[0])
        left, right = call.positional
        if product := factors(left):
            x, y, z = cx.operands(*product, right)
            return fused(x, y, -z)
        if product := factors(right):
            x, y, z = cx.operands(*product, left)
            return fused(-x, y, z)
        x, y = cx.operands(left, right)
        return x - y

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        b = cx.b
        if len(call.positional) == 1:
            return tuple(negate(b, x) for x in cx.registers(call.positional[0]))
        left, right = call.positional
        if product := factors(left):
            return tuple(b.op("fma.rn.f32", x, y, negate(b, z)) for x, y, z in zip(*cx.broadcast(*product, right), strict=True))
        if product := factors(right):
            return tuple(b.op("fma.rn.f32", negate(b, x), y, z) for x, y, z in zip(*cx.broadcast(*product, left), strict=True))
        return tuple(b.op("sub.rn.f32", x, y) for x, y in zip(*cx.broadcast(left, right), strict=True))


def fused(x: object, y: object, z: object) -> object:
    """x * y + z of floats of 32 bits as fma has it, by 64 bits: the product is exact there. (The sum is rounded twice, which differs
    from once only at ties of the second rounding.)"""
    import numpy as np

    return (np.multiply(x, y, dtype=np.float64) + z).astype(np.float32)


def _below_zero(e: Expr) -> bool:
    return isinstance(e, Float | Int) and e.value < 0


_ISA = "PTX ISA, Floating Point Instructions"
OPERATORS = (
    Add(name="+", doc=f"f32 sum, rounded to nearest even; a direct product becomes one fma.rn.f32 ({_ISA}, add and fma)."),
    Subtract(
        name="-",
        doc=f"f32 difference or negation, rounded to nearest even; a direct product becomes one fma.rn.f32 ({_ISA}, sub, neg and fma).",
    ),
    Multiply(name="*", doc=f"f32 product, rounded to nearest even ({_ISA}, mul)."),
    Divide(name="/", doc=f"f32 quotient, rounded to nearest even ({_ISA}, div)."),
)
