"""What one thread holds, combined in element order."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.contraction import factors
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import F32, Scalar, Tile, Type, Value
from cake_core.primitive import LowerContext
from cake_core.ptx.builder import Operand

ADD = "add.rn.f32"


def argument(call: Call) -> Expr:
    """The one argument, f32 in registers. Raises CakeError."""
    if len(call.args) != 1 or len(call.positional) != 1:
        raise fail("type/arguments", f"'{call.name}' takes 1 argument, not {len(call.args)}", call.span)
    (a,) = call.positional
    if not _in_registers(a.type):
        fix = "read it into registers: `load(..)`" if isinstance(a.type, Tile) else None
        raise fail("type/operand", f"'{call.name}' takes a value in registers, not a {a.type}", a.span, fix=fix)
    if a.type.elem != F32:
        raise fail(
            "type/operand", f"'{call.name}' takes f32, not {a.type.elem}", a.span, why="reductions are taken in f32", fix="cast it: `f32(..)`"
        )
    return a


def _in_registers(t: Type | None) -> bool:
    return isinstance(t, Scalar | Value) or isinstance(t, Tile) and t.space == "frag" and len(t.groups) == 1 and not t.transposed


def combined(cx: LowerContext, e: Expr, opcode: str) -> Operand:
    """((e0 . e1) . e2) . ..: it starts from the first element, so that no neutral element is needed.

    A product under a sum is summed by fma.rn.f32, by the contraction rule of `+`; the first one is rounded by itself (PTX ISA,
    Floating Point Instructions, add, mul and fma)."""
    if opcode == ADD and (product := factors(e)):
        (x, *xs), (y, *ys) = cx.broadcast(*product)
        result = cx.b.op("mul.rn.f32", x, y)
        for x, y in zip(xs, ys, strict=True):
            result = cx.b.op("fma.rn.f32", x, y, result)
        return result
    result, *others = cx.registers(e)
    for x in others:
        result = cx.b.op(opcode, result, x)
    return result
