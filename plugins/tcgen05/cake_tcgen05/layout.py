"""The layout `tmem`: a tile as four warps move it between registers and tensor memory, one row a thread."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext
from cake_core.ptx.builder import Operand
from cake_tcgen05.engine import LANES, WARP_LANES

#: Columns of a slice, and of the runs that stores may take: 16 bytes of 16-bit elements.
GRANULE = 8
#: Columns of tiles that are narrower than a run.
NARROW = (1, 2, 4)


@frozen(kw_only=True)
class TensorRows(Layout):
    """Lane l of warp w holds row 32 w + l, all columns in order. A tile `over row` is one element a thread: that of its row."""

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, object], elem: Elem) -> int | None:
        if warps * WARP_LANES != LANES or shape[0] != LANES or elem.bits not in (16, 32):
            return None
        if len(shape) == 1:
            return 1 if words.get("over") == "row" and elem.bits == 32 else None
        if len(shape) != 2 or shape[1] * elem.bits % 32 or shape[1] % GRANULE and shape[1] not in NARROW:
            return None
        return shape[1]

    def origin(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...]:
        return (cx.thread,) if words.get("over") == "row" else (cx.thread, 0)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, object]) -> tuple[tuple[int, ...], ...]:
        return ((0,),) if len(shape) == 1 else tuple((0, column) for column in range(shape[1]))

    def lanes(self, words: dict[str, object]) -> tuple[int, ...]:
        """A row lies in one lane."""
        return ()

    def run(self, words: dict[str, object]) -> int:
        return 1 if words.get("over") == "row" else GRANULE

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, object]
    ) -> tuple[int, ...] | None:
        """All rows, columns in whole granules."""
        if len(shape) == 1:
            return (0,) if (lo, size) == ((0,), shape) else None
        if len(lo) != 2 or (lo[0], size[0]) != (0, shape[0]) or lo[1] % GRANULE or size[1] % GRANULE:
            return None
        return tuple(range(lo[1], lo[1] + size[1])) if 0 <= lo[1] and 0 < size[1] and lo[1] + size[1] <= shape[1] else None


LAYOUT = TensorRows(
    name="tmem",
    doc="The registers of tcgen05.ld and tcgen05.st of shape .32x32b by four warps (PTX ISA, tcgen05 data movement shapes, .32x32b).",
)
