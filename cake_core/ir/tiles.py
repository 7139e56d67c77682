"""What is known of a tile in memory from the text alone: addresses, bounds, and how wide an access may be.

Everything follows from ranges and congruences of starts and extents, so that `derive`, which picks a width, and `check`,
which judges one, can't differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from cake_core.ir import ranges
from cake_core.ir.build import add, span
from cake_core.ir.nodes import All, Declaration, Expr, Index, Int, Slice
from cake_core.ir.places import Part, Place, place_of, root
from cake_core.ir.plan import BufferPlan, integer
from cake_core.ir.ranges import ANY, Range
from cake_core.ir.types import Level, Scalar, Tile

#: Bytes that the base of every tensor and of every shared buffer is a multiple of, and the widest access (PTX ISA, ld: .v4.b32).
BASE_ALIGN = 16
WIDTHS = (16, 8, 4, 2)


def place(expr: Expr) -> Place:
    """A tile expression taken apart."""
    return place_of(expr, root(expr).type)


def declared(expr: Expr) -> Tile:
    """The type of the buffer or tensor that a tile expression is part of."""
    return root(expr).type


def range_of(x: Expr | int) -> Range:
    """All that is known of an integer."""
    if isinstance(x, int):
        return ranges.constant(x)
    if isinstance(x, Int):
        return ranges.constant(x.value)
    return x.type.range if isinstance(x.type, Scalar) else ANY


def _divisor(r: Range) -> int:
    """The largest number that divides every value; 0 if all values are 0."""
    return gcd(r.mod, r.rem)


def _strides(expr: Expr) -> tuple[Range, ...]:
    """Bytes from one element to the next along each declared dimension."""
    tile = declared(expr)
    stride, out = ranges.constant(tile.elem.bytes), []
    for extent in reversed(tile.shape):
        out.append(stride)
        stride = ranges.mul(stride, range_of(extent))
    return tuple(reversed(out))


def alignment(expr: Expr, declaration: Declaration | None = None) -> int:
    """Bytes, at most 16, that the address of the first element of every row of a tile is surely a multiple of.

    A swizzle permutes whole 16-byte chunks, so it changes nothing here. `declaration`: of a shared buffer, whose `at` counts.
    """
    tile, where = declared(expr), place(expr)
    known = BASE_ALIGN
    if declaration is not None:
        known = gcd(known, integer(declaration.words, "at"))
    if where.slots:
        known = gcd(known, BufferPlan(where.name, tile.elem, tile.slots, tile.shape, 0, 0, expr.span).slot_bytes)
    strides = _strides(expr)
    for part, stride in zip(where.parts, strides, strict=True):
        known = gcd(known, _divisor(ranges.mul(range_of(part.lo), stride)))
    for part, stride in zip(where.parts[:-1], strides, strict=False):
        if part.size is not None and part.size != 1:
            known = gcd(known, _divisor(stride))
    return known


def inside(part: Part, extent: Expr | int) -> bool:
    """Whether a slice surely lies within its dimension, for every admitted shape: it then needs no clip."""
    lo, size, whole = range_of(part.lo), range_of(part.size), range_of(extent)
    if part.size == extent and lo.constant == 0:
        return True
    return lo.nonneg and None not in (lo.hi, size.hi, whole.lo) and lo.hi + size.hi <= whole.lo


def refusal(expr: Expr, by: int, declaration: Declaration | None = None) -> str | None:
    """Why accesses of `by` bytes are not legal on a tile; None if they are. What a thread holds side by side comes on top."""
    tile, where = declared(expr), place(expr)
    n = by // tile.elem.bytes
    if by not in WIDTHS or n < 1:
        return f"an access of {tile.elem} has {' or '.join(str(w) for w in reversed(WIDTHS) if w >= tile.elem.bytes)} bytes"
    if n == 1:
        return None
    last, extent = where.parts[-1], tile.shape[-1]
    if last.size is None:
        return "the last dimension is not sliced, so neighbours of the tile are not neighbours in memory"
    if not range_of(last.size).multiple_of(n):
        return f"a row of the tile has {last.size} elements, which is no multiple of {n}"
    if (known := alignment(expr, declaration)) % by:
        return f"addresses are known to be multiples of {known} bytes only"
    # The start is a multiple of n, since it counts in the alignment: only the edge itself can cut an access.
    if tile.space == "global" and not inside(last, extent) and not range_of(extent).multiple_of(n):
        return f"the tile is clipped, and the extent is not known to be a multiple of {n}: an access could straddle the edge"
    return None


def widest(expr: Expr, run: int, limit: int, declaration: Declaration | None = None) -> int:
    """Bytes of the widest legal access of at most `limit`, where a thread holds runs of `run` neighbours."""
    size = declared(expr).elem.bytes
    fitting = (w for w in WIDTHS if size < w <= limit and run % (w // size) == 0)
    return next((w for w in fitting if refusal(expr, w, declaration) is None), size)


def level(expr: Expr) -> Level:
    """Among which threads the place is the same: the highest level of its indices."""
    where = place(expr)
    indices = (*where.slots, *(p.lo for p in where.parts))
    return max((i.type.level for i in indices if isinstance(i.type, Scalar)), default=Level.CTA)


def narrow(expr: Expr, cuts: Sequence[tuple[Expr | int, int] | None]) -> Expr:
    """The part of `expr` that `cuts` give: (offset, size) a declared dimension, or None for one that stays as it is written."""
    if not any(cuts):
        return expr
    last = isinstance(expr, Index) and isinstance(expr.base.type, Tile) and len(expr.base.type.groups) == 1
    base = expr.base if last else expr
    indices = expr.indices if last else (All(span=expr.span),) * len(cuts)
    return Index(base, tuple(i if c is None else _cut(i, *c) for i, c in zip(indices, cuts, strict=True)), span=expr.span)


def _cut(index: Expr, offset: Expr | int, size: int) -> Slice:
    return span(add(index.lo if isinstance(index, Slice) else 0, offset), size)
