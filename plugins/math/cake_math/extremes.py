"""`min` and `max` on f32 and on tiles of integers. Integer scalars are the language's own."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.elementwise import result
from cake_core.ir.nodes import Call
from cake_core.ir.types import F32, I32, U32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Elements, Function, LowerContext, SimulateContext, Special, Specials
from cake_core.ptx.builder import Operand
from cake_core.ptx.reductions import of_numbers
from cake_math.masks import SUFFIX
from cake_math.operands import arguments, common_elem, met


@frozen(kw_only=True)
class Extreme(Function):
    """Of a number and NaN the number; NaN only of two. -0 is below +0."""

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        """What both may be, and what one may be that the other, at its own least or most, does not replace."""
        a, b = args
        wins, loses = (Special.INFINITY, Special.MINUS_INFINITY) if self.name == "max" else (Special.MINUS_INFINITY, Special.INFINITY)
        low = {Special.LOWEST, Special.MINUS_INFINITY}
        out = (a | b) & {wins} | a & b & {loses}
        if self.name == "min" or a & low and b & low:
            out |= (a | b) & {Special.LOWEST}
        return out

    def result(self, call: Call, cx: CheckContext) -> Type:
        arguments(call, 2)
        elem = common_elem(call, (F32, I32, U32))
        level = max((a.type.level for a in call.positional if isinstance(a.type, Scalar)), default=Level.CTA)
        return result(elem, met(call), Scalar(elem, level))

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x, y = cx.operands(*call.positional)
        floats = common_elem(call, (F32, I32, U32)) == F32
        of = {"min": (np.minimum, of_numbers(np.minimum)), "max": (np.maximum, of_numbers(np.maximum))}[self.name][floats]
        return of(np.float32(x), np.float32(y)) if floats else of(x, y)

    def each(self, call: Call, cx: LowerContext) -> Elements:
        x, y = cx.elements(*call.positional)
        opcode = f"{self.name}.{SUFFIX[common_elem(call, (F32, I32, U32))]}"

        def at(n: int) -> Operand:
            a, b = x.at(n), y.at(n)
            return cx.b.op(opcode, b, a) if isinstance(a, int | float) else cx.b.op(opcode, a, b)

        return Elements(x.count, at)


EXTREMES = tuple(
    Extreme(
        name=name,
        doc=f"{word} of two, element by element; of a number and NaN the number (PTX ISA, Floating Point Instructions and Integer "
        f"Arithmetic Instructions, {name}).",
    )
    for name, word in (("min", "Smaller"), ("max", "Larger"))
)
