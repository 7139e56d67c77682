"""`+ - *` and `-x` on tiles of integers: index tiles and fragments of i32 or u32."""

from __future__ import annotations

from cake_core.ir.nodes import Call
from cake_core.primitive import Elements, LowerContext
from cake_core.primitive.elements import counted, one
from cake_core.ptx.builder import Builder


def computed(call: Call, cx: LowerContext) -> Elements:
    """The result of one of the operators. What is a constant away from one base stays so: its elements cost no registers."""
    found = cx.elements(*call.positional)
    if len(found) == 1:
        return _scaled(cx.b, found[0], -1)
    x, y = found
    match call.name:
        case "+":
            return _sum(cx.b, x, y)
        case "-":
            return _sum(cx.b, x, _scaled(cx.b, y, -1)) if y.steps is not None else _plain("sub.s32", cx.b, x, y)
    for a, factor in ((x, y.single), (y, x.single)):
        if isinstance(factor, int):
            return _scaled(cx.b, a, factor)
    return Elements(x.count, lambda n: cx.b.mul(x.at(n), y.at(n)))


def _sum(b: Builder, x: Elements, y: Elements) -> Elements:
    if x.steps is not None and y.steps is not None:
        return counted(b, b.add(x.base, y.base), (s + t for s, t in zip(x.steps, y.steps, strict=True)))
    return Elements(x.count, lambda n: b.add(x.at(n), y.at(n)))


def _scaled(b: Builder, x: Elements, factor: int) -> Elements:
    if x.steps is not None:
        base = b.sub(0, x.base) if factor == -1 else b.mul(x.base, factor)
        return counted(b, base, (s * factor for s in x.steps)) if any(x.steps) else one(base).pick((0,) * x.count)
    if factor == -1:
        return Elements(x.count, lambda n: b.sub(0, x.at(n)))
    return Elements(x.count, lambda n: b.mul(x.at(n), factor))


def _plain(opcode: str, b: Builder, x: Elements, y: Elements) -> Elements:
    return Elements(x.count, lambda n: b.op(opcode, x.at(n), y.at(n)))
