"""How register tiles of different shapes meet element by element: scalars are repeated, a tile along an axis is repeated
across the other one, and lane-partial tiles combine only where that gives what the whole would give (S6)."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Scalar, Tile, Type, Value


@frozen
class Meeting:
    """`shape` None: only scalars met."""

    shape: tuple[int, ...] | None
    axis: str | None = None
    part: str | None = None


def is_register_tile(t: Type | None) -> bool:
    return isinstance(t, Value) or isinstance(t, Tile) and t.space == "frag"


def meet(*types: Type) -> Meeting | str:
    """The shape that elementwise arithmetic on these has, or a sentence that says why they do not meet."""
    tiles = [t for t in types if is_register_tile(t)]
    if not tiles:
        return Meeting(None)
    plain = {tuple(t.shape) for t in tiles if t.axis is None}
    if len(plain) > 1:
        first, second = sorted(plain)[:2]
        return f"shapes {list(first)} and {list(second)} do not meet"
    whole = next(iter(plain), None)
    along = {(t.axis, tuple(t.shape)) for t in tiles if t.axis is not None}
    for axis, shape in sorted(along):
        if whole is not None and (len(whole) != 2 or whole["row col".split().index(axis)] != shape[0]):
            return f"a tile of {shape[0]} over {axis} does not meet shape {list(whole)}"
    parts = {t.part for t in tiles}
    if whole is not None:
        return Meeting(whole) if parts == {None} else "a lane-partial tile has no elements of its own before its lanes are combined"
    sides = {axis: shape for axis, shape in sorted(along)}
    if len(along) > len(sides):
        axis = next(a for a in sides if len([x for x, _ in along if x == a]) > 1)
        return f"tiles of different sizes over {axis} do not meet"
    if len(sides) > 1:  # rows and columns span a two-dimensional tile
        spanned = (*sides["row"], *sides["col"])
        return Meeting(spanned) if parts == {None} else "a lane-partial tile has no elements of its own before its lanes are combined"
    axis, shape = next(iter(along))
    return Meeting(shape, axis, next((p for p in parts if p), None))


#: What stands for the operation of a lane-partial tile that is combined by that of another one: the indices beside an argmin's values.
PART = "part"
PARTIAL = "its lanes are not combined yet, and this would not be the same before and after"


def partial_rule(op: str, left: Type, right: Type) -> str | None:
    """Why `left op right` would not combine as its parts do, or None. A sum of parts may be scaled and added to another
    such sum; nothing else is the same before and after the lanes are combined."""
    parts = [getattr(t, "part", None) for t in (left, right)]
    if parts == [None, None]:
        return None
    if parts == ["sum", "sum"] and op in "+-":
        return None
    if parts.count("sum") == 1 and parts.count(None) == 1 and (op == "*" or op == "/" and parts[0] == "sum"):
        return None
    return PARTIAL


def result(elem, met: Meeting, scalar: Scalar) -> Type:
    """The type of an elementwise result: a register tile of `elem`, or `scalar` where only scalars met."""
    return scalar if met.shape is None else Value(elem, met.shape, met.axis, met.part)
