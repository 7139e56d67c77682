"""`load(tile, flat = true)`: the elements of a tile in row-major order, dealt out one by one to the lanes that hold a row."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr
from cake_core.ir.types import Tile, Value
from cake_core.primitive import Distribution, LowerContext
from cake_core.ptx.builder import Operand
from cake_core.source import Span
from cake_memory.access import TILES, both
from cake_memory.holding import Holding

if TYPE_CHECKING:
    from cake_memory.load import Reader


def result(tile: Expr, shape: tuple[int, ...]) -> Value:
    """A tile of one dimension. Raises CakeError."""
    t: Tile = tile.type
    if t.space != "global" or t.elem.bits != 32:
        raise fail("type/not-implemented", f"'flat' on {t.elem} in {t.space} memory; 32-bit elements of tensors are implemented", tile.span)
    if not shape:
        raise fail("type/shape", "'flat' on one element", tile.span, fix="leave it out")
    return Value(t.elem, (prod(shape),))


def lower(cx: LowerContext, tile: Expr, read: Reader, span: Span) -> tuple[Operand, ...]:
    """One access an element; a lane without an element in the last round reads nothing and has the fill."""
    d, b, shape = cx.distribution, cx.b, tuple(tile.type.shape)
    if d is None or d.shape != (prod(shape),):
        raise fail(
            "derive/no-layout",
            "nothing deals this tile out to the lanes of a row",
            span,
            fix="fold it into a state that each lane of a row has a part of",
        )
    (first,) = d.layout.origin(cx, d.words)
    out = []
    for (offset,) in d.offsets:
        number = b.add(first, offset)
        there = True if offset + spread(d) <= prod(shape) else b.compare("<", number, prod(shape), "u32")
        memory = TILES["global"](cx, tile, Holding(_coordinates(cx, number, shape), ((0,) * len(shape),)))
        (register,) = read.registers(1, both(cx, there, memory.guard((0,) * len(shape), 1)), memory.address((0,) * len(shape)))
        out.append(register)
    return tuple(out)


def spread(d: Distribution) -> int:
    """Lanes that a row is dealt out to."""
    return 1 << len(d.layout.lanes(d.words) or ())


def _coordinates(cx: LowerContext, number: Operand, shape: tuple[int, ...]) -> tuple[Operand, ...]:
    """The place of an element in its tile."""
    found: list[Operand] = []
    for extent in reversed(shape[1:]):
        found.append(cx.b.mod(number, extent, nonneg=True))
        number = cx.b.floordiv(number, extent, nonneg=True)
    return (number, *reversed(found))
