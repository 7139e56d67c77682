"""The layout `mma`: the accumulator of the matrix units."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext
from cake_core.ptx.builder import Operand, Reg
from cake_fragments.grid import GRANULE, GRID, WARP_ROWS, columns, granule, grid_of, place_of_warp

AXES = ("row", "col")


@frozen(kw_only=True)
class Mma(Layout):
    """The accumulator of a warpgroup's m64nN product, and of a warp's m16n8 product, for any number of warps.

    Warp w holds rows 16w .. 16w + 15, lane l of it rows l / 4 and l / 4 + 8, columns 8j + 2 (l mod 4) and the next one.
    Element order: e = 4j + {0, 1} for row l / 4 and 4j + {2, 3} for row l / 4 + 8. A tile of more than 16 rows a warp is
    blocks of 16 * warps rows, the block being the slowest index of e.

    On a grid of R rows and C columns of warps the blocks have 16 R rows, and the columns of a tile are dealt out to the C columns
    of warps in pairs of granules, 16 columns each (see `grid.py`).

    A one-dimensional tile `over row` has the elements of the rows that a thread touches (l / 4 and l / 4 + 8 of each
    block), the same in the four lanes of a row; `over col` those of its columns, the same in every warp and row.
    """

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, int], elem: Elem) -> int | None:
        grid = grid_of(words, warps)
        if grid is None:
            return None
        rows, wide = WARP_ROWS * grid[0], granule(grid)
        if len(shape) == 1:
            axis = words.get("over")
            if axis not in AXES or elem.bits != 32 or shape[0] % (rows if axis == "row" else wide):
                return None
            return len(self.offsets(shape, warps, words))
        if len(shape) != 2 or shape[0] % rows or shape[1] % wide:
            return None
        return shape[0] * shape[1] // (32 * warps)

    def origin(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...]:
        axis, (row, column) = words.get("over"), place_of_warp(cx, words)
        at = () if axis == "col" else (cx.b.add(row, cx.b.shr(cx.lane, 2)),)
        return at if axis == "row" else (*at, cx.b.add(column, cx.b.mul(cx.b.land(cx.lane, 3), 2)))

    def corner(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...] | None:
        return None if "over" in words else place_of_warp(cx, words)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, int]) -> tuple[tuple[int, ...], ...]:
        grid = grid_of(words, warps)
        rows = WARP_ROWS * grid[0]
        if words.get("over") == "row":
            return tuple((block * rows + 8 * i,) for block in range(shape[0] // rows) for i in range(2))
        if words.get("over") == "col":
            return tuple((column + i,) for column in columns(shape[0], grid) for i in range(2))
        return tuple(
            (block * rows + 8 * (i // 2), column + i % 2)
            for block in range(shape[0] // rows)
            for column in columns(shape[1], grid)
            for i in range(4)
        )

    def lanes(self, words: dict[str, object]) -> tuple[int, ...] | None:
        """The four lanes of a quad; not where a row goes on in other warps."""
        return (1, 2) if words.get("grid", (0, 1))[1] == 1 else None

    def owner(self, cx: LowerContext, words: dict[str, object]) -> Reg | bool:
        """Along the rows the first lane of a quad, in the first column of warps; along the columns the first row of each warp of the
        first row of warps."""
        b, (row, column) = cx.b, place_of_warp(cx, words)
        lane, across = (b.land(cx.lane, 3), column) if words.get("over") == "row" else (b.shr(cx.lane, 2), row)
        return b.compare("==", lane if across == 0 else b.op("or.b32", lane, across), 0)

    def run(self, words: dict[str, int]) -> int:
        return 1 if words.get("over") == "row" else 2

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, int]
    ) -> tuple[int, ...] | None:
        """Columns in whole granules, rows in whole blocks: what is left is the same for every thread."""
        if len(shape) == 1:
            return tuple(range(len(self.offsets(shape, warps, words)))) if (lo, size) == ((0,), shape) else None
        grid = grid_of(words, warps)
        granules = (WARP_ROWS * grid[0], granule(grid))
        if len(lo) != 2 or any(at % g or n % g for at, n, g in zip(lo, size, granules, strict=True)):
            return None
        if any(at < 0 or n <= 0 or at + n > extent for at, n, extent in zip(lo, size, shape, strict=True)):
            return None
        held = GRANULE * grid[1]  # columns of the tile for each granule that a warp holds
        (block0, j0), (blocks, js) = (tuple(x // g for x, g in zip(part, (granules[0], held), strict=True)) for part in (lo, size))
        wide = shape[1] // held
        return tuple(4 * (block * wide + j) + i for block in range(block0, block0 + blocks) for j in range(j0, j0 + js) for i in range(4))


MMA = Mma(
    name="mma",
    words=(GRID,),
    doc="The D fragment of wgmma.mma_async.m64nNk16 (PTX ISA, wgmma.mma_async, Register Fragments, accumulator D) and, 16 rows a "
    "warp, of mma.m16n8k16 (PTX ISA, Matrix Fragments for mma.m16n8k16).",
)
