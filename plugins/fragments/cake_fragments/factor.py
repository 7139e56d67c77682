"""The layouts `mma_a` and `mma_b`, and those for elements of 32 and 8 bits: the factors of a warp's matrix product, in registers.

A factor is K-major: `[M, K]` or `[N, K]`. Its registers of 32 bits are the lanes' parts of matrices of 8 rows by 16 bytes: lane l
holds the 4 bytes at 4 (l mod 4) of row l / 4, as `ldmatrix` leaves them. Depth comes in steps of 32 bytes, two such matrices side by
side. A row of the grid of warps holds its rows of the left factor in all of its columns, and a column of warps its rows of the right one.
"""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext
from cake_core.ptx.builder import Operand
from cake_fragments.grid import GRID, WARP_ROWS, Grid, columns, granule, grid_of, place_of_warp


@frozen(kw_only=True)
class Factor(Layout):
    """`left`: the rows are those of the result, otherwise its columns. `bits` of an element.

    Order of the registers of a left factor: block of 16 rows, 16 bytes of depth, upper or lower 8 rows; of a right one: granule of 8 rows,
    16 bytes of depth.
    """

    left: bool
    bits: int

    @property
    def pack(self) -> int:
        """Elements of a register."""
        return 32 // self.bits

    @property
    def chunk(self) -> int:
        """Elements of a row of a matrix."""
        return 128 // self.bits

    def _unit(self, grid: Grid) -> int:
        """What the number of rows is a multiple of."""
        return WARP_ROWS * grid[0] if self.left else granule(grid)

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, object], elem: Elem) -> int | None:
        grid = grid_of(words, warps)
        if grid is None or len(shape) != 2 or elem.bits != self.bits or shape[0] % self._unit(grid) or shape[1] % (2 * self.chunk):
            return None
        return shape[0] * shape[1] // (32 * grid[0 if self.left else 1])

    def corner(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...] | None:
        return place_of_warp(cx, words)[0 if self.left else 1], 0

    def origin(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...]:
        row, _ = self.corner(cx, words)
        return cx.b.add(row, cx.b.shr(cx.lane, 2)), cx.b.mul(cx.b.land(cx.lane, 3), self.pack)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, object]) -> tuple[tuple[int, ...], ...]:
        grid, (rows, depth) = grid_of(words, warps), shape
        chunks = range(0, depth, self.chunk)
        if self.left:
            corners = ((block + half, k) for block in range(0, rows, WARP_ROWS * grid[0]) for k in chunks for half in (0, 8))
        else:
            corners = ((row, k) for row in columns(rows, grid) for k in chunks)
        return tuple((row, k + i) for row, k in corners for i in range(self.pack))

    def run(self, words: dict[str, object]) -> int:
        return self.pack

    def places(self, words: dict[str, object]) -> str:
        """A left factor of 16 bits over one column of warps is an accumulator: a result can be the next product's factor."""
        alike = self.left and self.bits == 16 and words.get("grid", (0, 1))[1] == 1
        return "mma" if alike else self.name

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, object]
    ) -> tuple[int, ...] | None:
        """Rows in whole units, depth in whole steps."""
        units = (self._unit(grid_of(words, warps)), 2 * self.chunk)
        if len(lo) != 2 or any(at % u or n % u for at, n, u in zip(lo, size, units, strict=True)):
            return None
        if any(at < 0 or n <= 0 or at + n > extent for at, n, extent in zip(lo, size, shape, strict=True)):
            return None
        inside = lambda at: all(a <= x < a + n for x, a, n in zip(at, lo, size, strict=True))  # noqa: E731
        return tuple(e for e, at in enumerate(self.offsets(shape, warps, words)) if inside(at))


_DOC = "PTX ISA, Matrix Fragments for mma.{shapes}; ldmatrix"

FACTORS = tuple(
    Factor(name=f"mma_{side}{suffix}", left=side == "a", bits=bits, words=(GRID,), doc=_DOC.format(shapes=shapes))
    for suffix, bits, shapes in (("", 16, "m16n8k16"), ("32", 32, "m16n8k8"), ("8", 8, "m16n8k32"))
    for side in ("a", "b")
)
