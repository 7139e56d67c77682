"""Tiles of several values a row, each row whole in every thread that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive.contexts import Distribution
from cake_core.primitive.kinds import Layout

if TYPE_CHECKING:
    from cake_core.primitive.contexts import LowerContext
    from cake_core.ptx.builder import Operand, Reg


@frozen(kw_only=True)
class Listed(Layout):
    """A tile of `size` values a row, which every thread that holds the row holds all of; `rows` lays out the rows."""

    rows: Layout
    size: int

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, object], elem: Elem) -> int | None:
        held = self.rows.elements(shape[:1], warps, words, elem)
        return None if held is None else held * self.size

    def origin(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...]:
        return (*self.rows.origin(cx, words), 0)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, object]) -> tuple[tuple[int, ...], ...]:
        return tuple((row, n) for (row,) in self.rows.offsets(shape[:1], warps, words) for n in range(self.size))

    def run(self, words: dict[str, object]) -> int:
        return self.size

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, object]
    ) -> tuple[int, ...] | None:
        return None

    def owner(self, cx: LowerContext, words: dict[str, object]) -> Reg | bool:
        return self.rows.owner(cx, words)


def listed(rows: Distribution, size: int) -> Distribution:
    """`size` values for each row of a tile along the rows."""
    layout = Listed(name=rows.layout.name, rows=rows.layout, size=size)
    offsets = tuple((row, n) for (row,) in rows.offsets for n in range(size))
    return Distribution(layout, (*rows.shape, size), rows.warps, rows.words, offsets)
