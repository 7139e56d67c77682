"""How a register tile lies, from how those lie that it is computed from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cake_core.primitive.contexts import Distribution

AXES = ("row", "col")


def along(d: Distribution, axis: str) -> Distribution:
    """The tile of one value a row or column of a two-dimensional tile: each thread has those of its rows or columns, in the
    order in which its elements come to them."""
    n = AXES.index(axis)
    places = tuple(dict.fromkeys((o[n],) for o in d.offsets))
    return replace(d, shape=(d.shape[n],), words=d.words | {"over": axis}, offsets=places)


def joined(found: Iterable[Distribution | None]) -> Distribution | None:
    """How the result of elementwise arithmetic lies: as the operand of most dimensions, along which the others are
    repeated. A tile along the rows and one along the columns span a tile of both."""
    known = [d for d in found if d is not None]
    widest = max(known, key=lambda d: len(d.shape), default=None)
    if widest is None or len(widest.shape) != 1:
        return widest
    sides = {d.words.get("over"): d for d in known}
    if set(AXES) <= set(sides):
        return _spanned(sides["row"], sides["col"]) or widest
    return widest


def _spanned(rows: Distribution, columns: Distribution) -> Distribution | None:
    """The two-dimensional tile of these rows and columns; None where one of them is a part of a tile."""
    shape, words = (*rows.shape, *columns.shape), {k: v for k, v in rows.words.items() if k not in ("over", "part")}
    whole = replace(rows, shape=shape, words=words, offsets=rows.layout.offsets(shape, rows.warps, words))
    return whole if along(whole, "row").offsets == rows.offsets and along(whole, "col").offsets == columns.offsets else None
