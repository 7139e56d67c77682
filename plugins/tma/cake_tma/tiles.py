"""Tile expressions of copies: which dimensions they have."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Int
from cake_core.ir.places import place_of, root
from cake_core.ir.types import Elem, Scalar, Unknown


@frozen
class Extent:
    """The part of its root that a tile takes, a declared dimension each, outermost first.

    A dimension that one index picked has size 1 and is not among the `kept`.
    """

    name: str
    elem: Elem
    shape: tuple  # as declared: integers in shared memory, integers or expressions of a tensor
    slotted: bool
    starts: tuple[Expr, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return tuple(self.sizes[d] for d in self.kept)


def extent(expr: Expr) -> Extent:
    """Take a typed tile expression apart. Raises CakeError where a slot index or a constant size is missing."""
    name = root(expr)
    declared = name.type
    if expr.type.slots:
        raise fail("type/slot", f"'{name.id}' needs an index for its slot", expr.span)
    if expr.type.transposed:
        raise fail("type/transposed", f"a copy moves the rows of '{name.id}' as they lie", expr.span, fix="leave `.T` out")
    parts = place_of(expr, declared).parts
    if any(p.size is not None and not isinstance(p.size, int) for p in parts):
        raise fail("type/slice-size", f"a dimension of '{name.id}' has no constant size here", expr.span, fix="write `lo +: size`")
    return Extent(
        name.id,
        declared.elem,
        declared.shape,
        bool(declared.slots),
        tuple(p.lo for p in parts),
        tuple(1 if p.size is None else p.size for p in parts),
        tuple(d for d, p in enumerate(parts) if p.size is not None),
    )


def multiple_of(start: Expr, unit: int) -> bool:
    """Whether a start coordinate is surely a multiple of `unit`. One without a type was told already."""
    if isinstance(start.type, Unknown):
        return True
    if isinstance(start, Int):
        return start.value % unit == 0
    return unit == 1 or isinstance(start.type, Scalar) and start.type.range.multiple_of(unit)
