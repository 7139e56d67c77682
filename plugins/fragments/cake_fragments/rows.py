"""The layout `rows`: every row of a tile over all threads of an instance, `vec` neighbours a thread, round after round."""

from __future__ import annotations

from itertools import product

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext, WordSpec
from cake_core.ptx.builder import Operand, Reg


@frozen(kw_only=True)
class Rows(Layout):
    """Element (r, e) of thread t of T stands at row r, column (e // v) * T * v + t * v + e % v, v being the word `vec` (1 without it);
    the row is the slowest index. A thread has elements of all rows.

    A tile `over row` has one value a row, and every thread holds them all; one `over col` lies as a row does.
    """

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, int], elem: Elem) -> int | None:
        axis, vec, threads = words.get("over"), words.get("vec", 1), 32 * warps
        if axis == "row":  # `vec` is needed here too: it tells which tile it lies along
            return shape[0] if len(shape) == 1 and elem.bits == 32 and "vec" in words else None
        if len(shape) != (1 if axis == "col" else 2) or vec < 1 or shape[-1] % (threads * vec):
            return None
        if vec % (32 // elem.bits):  # smaller elements lie in a register with their neighbours
            return None
        return shape[-1] // threads * (1 if axis == "col" else shape[0])

    def origin(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...]:
        axis = words.get("over")
        column = () if axis == "row" else (cx.b.mul(cx.thread, words.get("vec", 1)),)
        return column if axis == "col" else (0, *column)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, int]) -> tuple[tuple[int, ...], ...]:
        axis, vec, threads = words.get("over"), words.get("vec", 1), 32 * warps
        if axis == "row":
            return tuple((row,) for row in range(shape[0]))
        columns = tuple((e // vec * threads * vec + e % vec,) for e in range(shape[-1] // threads))
        return columns if axis == "col" else tuple((row, *column) for row, column in product(range(shape[0]), columns))

    def owner(self, cx: LowerContext, words: dict[str, object]) -> Reg | bool:
        """Of what all threads hold, the first one."""
        return cx.b.compare("==", cx.thread, 0) if words.get("over") == "row" else True

    def run(self, words: dict[str, int]) -> int:
        return 1 if words.get("over") == "row" else words.get("vec", 1)

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, int]
    ) -> tuple[int, ...] | None:
        """Whole rows: a part of one would lie with some of the threads. Of a tile along an axis the whole."""
        if len(shape) == 1:
            return tuple(range(len(self.offsets(shape, warps, words)))) if (lo, size) == ((0,), shape) else None
        if lo[1] or size[1] != shape[1] or not 0 <= lo[0] < lo[0] + size[0] <= shape[0]:
            return None
        each = shape[1] // (32 * warps)
        return tuple(range(lo[0] * each, (lo[0] + size[0]) * each))


ROWS = Rows(
    name="rows",
    words=(WordSpec("vec", "constant"),),
    doc="Rows for vector accesses, several at a time: `vec` elements of one thread are the operand of one ld or st with .v2 or .v4 "
    "(PTX ISA, Vectors; Data Movement Instructions, ld and st).",
)
