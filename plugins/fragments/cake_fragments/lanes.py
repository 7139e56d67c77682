"""The layout `lanes`: one row a warp, dealt out to its lanes."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext, WordSpec
from cake_core.ptx.builder import Operand, Reg

LANES = 32


@frozen(kw_only=True)
class Lanes(Layout):
    """Warp w has row w. Element e of lane l stands in column 32e + l. A tile `over row` has one element a warp, in all of its lanes;
    `over col` one for each column, the same in all warps."""

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, object], elem: Elem) -> int | None:
        if elem.bits != 32:
            return None
        match words.get("over"), shape:
            case "row", (rows,):
                return 1 if rows == warps else None
            case "col", (columns,):
                return columns // LANES if columns % LANES == 0 else None
            case None, (rows, columns):
                return columns // LANES if rows == warps and columns % LANES == 0 else None
        return None

    def origin(self, cx: LowerContext, words: dict[str, object]) -> tuple[Operand, ...]:
        return {"row": (cx.warp,), "col": (cx.lane,)}.get(words.get("over"), (cx.warp, cx.lane))

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, object]) -> tuple[tuple[int, ...], ...]:
        match words.get("over"):
            case "row":
                return ((0,),)
            case "col":
                return self.dealt(shape[0])
        return tuple((0, column) for (column,) in self.dealt(shape[1]))

    def lanes(self, words: dict[str, object]) -> tuple[int, ...]:
        return (1, 2, 4, 8, 16)

    def dealt(self, count: int) -> tuple[tuple[int, ...], ...]:
        return tuple((start,) for start in range(0, count, LANES))

    def owner(self, cx: LowerContext, words: dict[str, object]) -> Reg | bool:
        return cx.b.compare("==", cx.lane if words.get("over") == "row" else cx.warp, 0)

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, object]
    ) -> tuple[int, ...] | None:
        """Only the whole tile."""
        whole = all(x == 0 for x in lo) and size == shape
        return tuple(range(len(self.offsets(shape, warps, words)))) if whole else None


LANES_LAYOUT = Lanes(
    name="lanes",
    words=(WordSpec("over", "name"),),
    doc="A row for the lanes of a warp (PTX ISA, Data Movement Instructions, shfl.sync; Special Registers, %laneid).",
)
