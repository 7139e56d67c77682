"""Warps as a grid over the rows and columns of a tile: `grid (r, c)`.

Warp w stands in row w / c and column w mod c of the grid. Rows of a tile are dealt out in stripes of 16: rows 16i .. 16i + 15 belong to
grid row i mod r. Columns are dealt out likewise, in pairs of granules, where there is more than one column of warps: columns
16j .. 16j + 15 belong to grid column j mod c. So each warp holds the same part of every slice of whole rounds, and two granules that
one matrix instruction takes together are neighbours. Without the word the warps are one column.
"""

from __future__ import annotations

from cake_core.primitive import LowerContext, WordSpec
from cake_core.ptx.builder import Operand

GRANULE = 8  # columns that the four lanes of a row hold together
WARP_ROWS = 16  # rows that a warp holds in one block
PAIR = 2 * GRANULE
GRID = WordSpec("grid", "numbers", help="(r, c): the warps of the instance are a grid of r rows and c columns")

Grid = tuple[int, int]


def grid_of(words: dict[str, object], warps: int) -> Grid | None:
    """Rows and columns of the grid; None where the word does not have a place for each warp."""
    grid = words.get("grid", (warps, 1))
    fits = isinstance(grid, tuple) and len(grid) == 2 and all(isinstance(n, int) and n > 0 for n in grid) and grid[0] * grid[1] == warps
    return grid if fits else None


def granule(grid: Grid) -> int:
    """What the columns of a tile, and of a slice of it, are a multiple of."""
    return PAIR * grid[1] if grid[1] > 1 else GRANULE


def columns(extent: int, grid: Grid) -> tuple[int, ...]:
    """The first column of each granule that a warp holds, less the first column of the warp."""
    if grid[1] == 1:
        return tuple(range(0, extent, GRANULE))
    return tuple(start + part for start in range(0, extent, PAIR * grid[1]) for part in (0, GRANULE))


def place_of_warp(cx: LowerContext, words: dict[str, object]) -> tuple[Operand, Operand]:
    """First row and first column of the executing warp."""
    b = cx.b
    if "grid" not in words:
        return b.mul(cx.warp, WARP_ROWS), 0
    _, wide = words["grid"]
    row, column = b.floordiv(cx.warp, wide, nonneg=True), b.mod(cx.warp, wide, nonneg=True)
    return b.mul(row, WARP_ROWS), b.mul(column, PAIR)
