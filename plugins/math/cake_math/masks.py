"""Comparisons, `and or not` on what they give, and `where`, which chooses by it.

A mask is one predicate an element. It is made where it is used, element by element, so that a few predicate registers are
enough for any tile.
"""

from __future__ import annotations

import operator

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.elementwise import result
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import BOOL, F32, I32, U32, Level, Scalar, Type
from cake_core.primitive import CheckContext, Elements, Function, LowerContext, SimulateContext
from cake_core.ptx.builder import Builder, Operand
from cake_math.operands import arguments, common_elem, met, register_elem

#: Operator to PTX comparison, its mirror image, and what it is on numbers. `!=` holds where an operand is NaN, the others do not.
COMPARISONS = {
    "<": ("lt", "gt", operator.lt),
    "<=": ("le", "ge", operator.le),
    ">": ("gt", "lt", operator.gt),
    ">=": ("ge", "le", operator.ge),
    "==": ("eq", "eq", operator.eq),
    "!=": ("neu", "neu", operator.ne),
}
SUFFIX = {F32: "f32", I32: "s32", U32: "u32"}


@frozen(kw_only=True)
class Compare(Function):
    """f32, i32 and u32; both sides of one type."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        arguments(call, 2)
        common_elem(call, (F32, I32, U32))
        return _mask(call)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return COMPARISONS[call.name][2](*cx.operands(*call.positional))

    def each(self, call: Call, cx: LowerContext) -> Elements:
        x, y = cx.elements(*call.positional)
        suffix = SUFFIX[common_elem(call, (F32, I32, U32))]
        return Elements(x.count, lambda n: compared(cx.b, call.name, suffix, x.at(n), y.at(n)))


def compared(b: Builder, op: str, suffix: str, x: Operand, y: Operand) -> Operand:
    """A predicate, or a bool where both sides are known. An immediate may not stand first (PTX ISA, setp)."""
    name, mirrored, known = COMPARISONS[op]
    if isinstance(x, int | float):
        if isinstance(y, int | float):
            return known(x, y)
        x, y, name = y, x, mirrored
    return b.op(f"setp.{name if suffix == 'f32' else name.removesuffix('u')}.{suffix}", x, y)


@frozen(kw_only=True)
class Both(Function):
    """`and`, `or`: `stop` is the value that decides alone."""

    opcode: str
    stop: bool

    def result(self, call: Call, cx: CheckContext) -> Type:
        arguments(call, 2)
        common_elem(call, (BOOL,))
        return _mask(call)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        return (np.logical_or if self.stop else np.logical_and)(*cx.operands(*call.positional))

    def each(self, call: Call, cx: LowerContext) -> Elements:
        x, y = cx.elements(*call.positional)
        for a, other in ((x, y), (y, x)):
            if isinstance(a.single, bool):
                return a if a.single is self.stop else other

        def at(n: int) -> Operand:
            p, q = x.at(n), y.at(n)
            for a, other in ((p, q), (q, p)):
                if isinstance(a, bool):
                    return a if a is self.stop else other
            return cx.b.op(self.opcode, p, q)

        return Elements(x.count, at)


@frozen(kw_only=True)
class Not(Function):
    def result(self, call: Call, cx: CheckContext) -> Type:
        arguments(call, 1)
        common_elem(call, (BOOL,))
        return _mask(call)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        return np.logical_not(*cx.operands(*call.positional))

    def each(self, call: Call, cx: LowerContext) -> Elements:
        (x,) = cx.elements(*call.positional)

        def at(n: int) -> Operand:
            p = x.at(n)
            return not p if isinstance(p, bool) else cx.b.op("not.pred", p)

        return Elements(x.count, at)


@frozen(kw_only=True)
class Where(Function):
    """`where(c, a, b)`: a where c holds, b elsewhere. Both are computed; c is a mask or a condition."""

    def arms(self, call: Call) -> tuple[Expr, Expr, Expr]:
        return call.positional

    def result(self, call: Call, cx: CheckContext) -> Type:
        c, a, b = arguments(call, 3)
        if register_elem(c.type) != BOOL:
            raise fail(
                "type/not-a-condition", f"'where' chooses by a {c.type}, not by a condition", c.span, fix="compare it with something"
            )
        chosen = Call(call.function, (a, b), span=call.span)
        elem = common_elem(chosen, (F32, I32, U32))
        return result(elem, met(call), Scalar(elem, _level(call)))

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        c, a, b = cx.operands(*call.positional)
        floats = any(getattr(x.type, "elem", None) == F32 for x in call.positional[1:])
        chosen = np.where(c, *((np.float32(a), np.float32(b)) if floats else (a, b)))
        return chosen if chosen.ndim else chosen[()]

    def each(self, call: Call, cx: LowerContext) -> Elements:
        c, a, b = cx.elements(*call.positional)
        elem = common_elem(Call(call.function, call.positional[1:], span=call.span), (F32, I32, U32))
        opcode = "selp.f32" if elem == F32 else "selp.b32"

        def at(n: int) -> Operand:
            x, y = a.at(n), b.at(n)
            p = c.at(n)
            if isinstance(p, bool) or x is y:
                return y if p is False else x
            return cx.b.op(opcode, *(float(v) if elem == F32 and isinstance(v, int) else v for v in (x, y)), p)

        return Elements(c.count, at)


def _mask(call: Call) -> Type:
    return result(BOOL, met(call), Scalar(BOOL, _level(call)))


def _level(call: Call) -> Level:
    return max((a.type.level for a in call.positional if isinstance(a.type, Scalar)), default=Level.CTA)


_SETP = "PTX ISA, Comparison and Selection Instructions"
MASKS = (
    *(Compare(name=op, doc=f"One predicate an element ({_SETP}, setp).") for op in COMPARISONS),
    Both(name="and", opcode="and.pred", stop=False, doc="PTX ISA, Logic and Shift Instructions, and (.pred)."),
    Both(name="or", opcode="or.pred", stop=True, doc="PTX ISA, Logic and Shift Instructions, or (.pred)."),
    Not(name="not", doc="PTX ISA, Logic and Shift Instructions, not (.pred)."),
    Where(name="where", doc=f"One selection an element ({_SETP}, selp)."),
)
