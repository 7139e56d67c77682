"""The operands of a product: where A and B lie, which way, and under which swizzles they can be described."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Attr, Expr, Int
from cake_core.ir.places import Place, place_of, root
from cake_core.ir.types import Elem, Scalar, Tile

#: Bytes of the swizzles that a matrix descriptor knows, best first: the wider, the fewer bank conflicts. Without one the
#: operand lies in 8x8 core matrices, which no row-major buffer does (PTX ISA, Shared Memory Matrix Layout).
SWIZZLES = (128, 64, 32)
PATTERN = 8  # rows after which a swizzle repeats


@dataclass(frozen=True, slots=True)
class Operand:
    """A tile as the product takes it: `extent` of M or N, `depth` of K elements.

    `k_major`: neighbours in K are neighbours in a row of the tile.
    """

    expr: Expr  # without `.T`
    tile: Tile
    declared: Tile
    place: Place
    extent: int
    depth: int
    k_major: bool

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def elem(self) -> Elem:
        return self.tile.elem

    @property
    def in_registers(self) -> bool:
        return self.tile.space == "frag"

    def why_not(self, swizzle: int) -> str | None:
        """Why no descriptor under `swizzle` reaches the tile, or None if one does."""
        shape, size = self.declared.shape, self.elem.bytes
        rows, row_bytes = prod(shape[:-1]), shape[-1] * size
        if swizzle not in SWIZZLES:
            return (
                f"its rows are swizzled by {swizzle} bytes, and a descriptor knows {', '.join(map(str, SWIZZLES))}"
                if swizzle
                else "it is not swizzled"
            )
        if row_bytes % swizzle:
            return f"its rows of {row_bytes} bytes are not whole panels of {swizzle}"
        if row_bytes > swizzle and rows % PATTERN:
            return f"its panels of {rows} rows do not start with a swizzle pattern of {PATTERN} rows"
        if self.declared.slots and rows * row_bytes % (PATTERN * swizzle):
            return f"its slots of {rows * row_bytes} bytes do not start with a swizzle pattern of {PATTERN * swizzle} bytes"
        pitches = [prod(shape[d + 1 : -1]) for d in range(len(shape) - 1)]
        units = (*(PATTERN // min(PATTERN, p & -p) for p in pitches), swizzle // size)
        for part, unit in zip(self.place.parts, units, strict=True):
            if not _multiple_of(part.lo, unit):
                return f"a start in it is not surely a multiple of {unit}"
        return None


def _multiple_of(start: Expr, unit: int) -> bool:
    if isinstance(start, Int):
        return start.value % unit == 0
    return unit == 1 or isinstance(start.type, Scalar) and start.type.range.multiple_of(unit)


def left(expr: Expr) -> Operand:
    """A: `[M, K]`, or the `.T` of a `[K, M]`."""
    return _operand(expr, transposed_is_k_major=False)


def right(expr: Expr) -> Operand:
    """B: the `.T` of an `[N, K]`, or a `[K, N]`."""
    return _operand(expr, transposed_is_k_major=True)


def _operand(expr: Expr, transposed_is_k_major: bool) -> Operand:
    tile = expr.type
    k_major = tile.transposed == transposed_is_k_major
    bare = expr
    while isinstance(bare, Attr):
        bare = bare.base
    declared = root(bare).type
    place = place_of(bare, declared)
    if tile.space == "shared" and any(p.size is None for p in place.parts[-2:]):
        raise fail(
            "type/shape", f"this tile of '{place.name}' is not made of its rows", expr.span, why="a descriptor reaches neighbouring rows"
        )
    outer, inner = tile.shape if k_major else reversed(tile.shape)
    return Operand(bare, tile, declared, place, outer, inner, k_major)
