"""Rows of a tile in registers: which elements of a thread belong to one row, and the lanes that hold the rest of it."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr
from cake_core.ir.types import Elem, Value
from cake_core.primitive import Distribution, LowerContext
from cake_core.ptx.builder import Builder, Operand, Reg
from cake_core.source import Span

LAST_LANE, ALL_LANES = 31, -1


def by_row(d: Distribution) -> dict[int, list[int]]:
    """Row offset to the numbers of a thread's elements in it, columns ascending."""
    found: dict[int, list[int]] = {}
    for n, (row, _) in enumerate(d.offsets):
        found.setdefault(row, []).append(n)
    return {row: sorted(numbers, key=lambda n: d.offsets[n][1]) for row, numbers in found.items()}


def slots(cx: LowerContext, x: Expr) -> dict[int, int]:
    """Row offset to the number of the row's element, of a tile along the rows."""
    return {row: n for n, (row,) in enumerate(known(cx.distribution_of(x), x.span).offsets)}


def known(d: Distribution | None, span: Span) -> Distribution:
    """How a tile lies. Raises CakeError where nothing says so."""
    if d is None:
        raise fail("derive/no-layout", "nothing says how this tile lies over the threads", span, fix="assign it to a `frag`")
    return d


def distances(d: Distribution, span: Span) -> tuple[int, ...]:
    """Distances of the butterfly over the lanes of a row. Raises CakeError where a row is not inside a warp."""
    found = d.layout.lanes(d.words)
    if found is None:
        raise fail(
            "derive/row-over-warps",
            f"the rows of layout '{d.layout.name}' are spread over several warps here",
            span,
            why="lanes are combined by shuffles, which stay inside a warp",
            fix="let the warps be one column: leave `over (r, c)` out, or write `(r, 1)`",
        )
    return found


def dealt(rows: Distribution | None, count: int, span: Span) -> Distribution:
    """How `count` elements of one row lie that are dealt out to its lanes. Raises CakeError."""
    d = known(rows, span)
    offsets = d.layout.dealt(count)
    if offsets is None:
        raise fail(
            "derive/no-layout",
            f"layout '{d.layout.name}' does not deal elements out to the lanes of a row",
            span,
            fix="fold a tile of rows and columns",
        )
    return replace(d, shape=(count,), words=d.words | {"over": "col"}, offsets=offsets)


def from_lane(b: Builder, x: Reg, distance: int) -> Reg:
    """x of the lane whose number differs by `distance` in one bit (PTX ISA, shfl.sync, mode .bfly)."""
    out = b.reg(x.kind)
    b.emit("shfl.sync.bfly.b32", out, x, distance, LAST_LANE, ALL_LANES)
    return out


def register(cx: LowerContext, x: Operand, kind: str = "f32") -> Reg:
    """x in a register: a shuffle takes no immediate."""
    return x if isinstance(x, Reg) else cx.b.mov(float(x) if kind == "f32" else x, kind)


def row_tile(elem: Elem, rows: int, part: str | None = None) -> Value:
    """The type of one value a row."""
    return Value(elem, (rows,), "row", part)
