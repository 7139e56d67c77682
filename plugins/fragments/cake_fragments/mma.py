"""The layout `mma`: the accumulator of the matrix units."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext
from cake_core.ptx.builder import Operand

#: Columns that four lanes of a row hold together: the granule of a slice.
GRANULE = 8
#: Rows that a warp holds in one block.
WARP_ROWS = 16
AXES = ("row", "col")


@dataclass(frozen=True, kw_only=True)
class Mma(Layout):
    """The accumulator of a warpgroup's m64nN product, for any number of warps.

    Warp w holds rows 16w .. 16w + 15, lane l of it rows l / 4 and l / 4 + 8, columns 8j + 2 (l mod 4) and the next one.
    Element order: e = 4j + {0, 1} for row l / 4 and 4j + {2, 3} for row l / 4 + 8. A tile of more than 16 rows a warp is
    blocks of 16 * warps rows, the block being the slowest index of e.

    A one-dimensional tile `over row` has the elements of the rows that a thread touches (l / 4 and l / 4 + 8 of each
    block), the same in the four lanes of a row; `over col` those of its columns, the same in every warp and row.
    """

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, int], elem: Elem) -> int | None:
        if len(shape) == 1:
            axis = words.get("over")
            if axis not in AXES or elem.bits != 32 or shape[0] % (WARP_ROWS * warps if axis == "row" else GRANULE):
                return None
            return len(self.offsets(shape, warps, words))
        if len(shape) != 2 or shape[0] % (WARP_ROWS * warps) or shape[1] % GRANULE:
            return None
        return shape[0] * shape[1] // (32 * warps)

    def origin(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...]:
        axis = words.get("over")
        row = () if axis == "col" else (cx.b.add(cx.b.mul(cx.warp, WARP_ROWS), cx.b.shr(cx.lane, 2)),)
        return row if axis == "row" else (*row, cx.b.mul(cx.b.land(cx.lane, 3), 2))

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, int]) -> tuple[tuple[int, ...], ...]:
        rows = WARP_ROWS * warps
        if words.get("over") == "row":
            return tuple((block * rows + 8 * i,) for block in range(shape[0] // rows) for i in range(2))
        if words.get("over") == "col":
            return tuple((GRANULE * j + i,) for j in range(shape[0] // GRANULE) for i in range(2))
        return tuple(
            (block * rows + 8 * (i // 2), GRANULE * j + i % 2)
            for block in range(shape[0] // rows)
            for j in range(shape[1] // GRANULE)
            for i in range(4)
        )

    def run(self, words: dict[str, int]) -> int:
        return 1 if words.get("over") == "row" else 2

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, int]
    ) -> tuple[int, ...] | None:
        """Columns in whole granules of 8, rows in whole blocks of 16 * warps: what is left is the same for every thread."""
        if len(shape) == 1:
            return tuple(range(len(self.offsets(shape, warps, words)))) if (lo, size) == ((0,), shape) else None
        granules = (WARP_ROWS * warps, GRANULE)
        if len(lo) != 2 or any(at % g or n % g for at, n, g in zip(lo, size, granules, strict=True)):
            return None
        if any(at < 0 or n <= 0 or at + n > extent for at, n, extent in zip(lo, size, shape, strict=True)):
            return None
        (block0, j0), (blocks, js) = (tuple(x // g for x, g in zip(part, granules, strict=True)) for part in (lo, size))
        wide = shape[1] // GRANULE
        return tuple(4 * (block * wide + j) + i for block in range(block0, block0 + blocks) for j in range(j0, j0 + js) for i in range(4))


MMA = Mma(
    name="mma",
    doc="The D fragment of wgmma.mma_async.m64nNk16 (PTX ISA, wgmma.mma_async, Register Fragments, accumulator D) and, 16 rows a "
    "warp, of mma.m16n8k16 (PTX ISA, Matrix Fragments for mma.m16n8k16).",
)
