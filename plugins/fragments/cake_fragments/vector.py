"""The layout `vector`: a row over all threads of an instance, `vec` neighbours a thread, round after round."""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.types import Elem
from cake_core.primitive import Layout, LowerContext, WordSpec
from cake_core.ptx.builder import Operand


@frozen(kw_only=True)
class Vector(Layout):
    """Element e of thread t of T stands at (e // v) * T * v + t * v + e % v, v being the word `vec` (1 without it)."""

    def elements(self, shape: tuple[int, ...], warps: int, words: dict[str, int], elem: Elem) -> int | None:
        vec = words.get("vec", 1)
        if len(shape) != 1 or vec < 1 or shape[0] % (32 * warps * vec):
            return None
        if vec % (32 // elem.bits):  # smaller elements lie in a register with their neighbours
            return None
        return shape[0] // (32 * warps)

    def origin(self, cx: LowerContext, words: dict[str, int]) -> tuple[Operand, ...]:
        return (cx.b.mul(cx.thread, words.get("vec", 1)),)

    def offsets(self, shape: tuple[int, ...], warps: int, words: dict[str, int]) -> tuple[tuple[int, ...], ...]:
        vec, threads = words.get("vec", 1), 32 * warps
        return tuple((e // vec * threads * vec + e % vec,) for e in range(shape[0] // threads))

    def run(self, words: dict[str, int]) -> int:
        return words.get("vec", 1)

    def select(
        self, shape: tuple[int, ...], warps: int, lo: tuple[int, ...], size: tuple[int, ...], words: dict[str, int]
    ) -> tuple[int, ...] | None:
        """Only the whole row: a part of it would lie with some of the threads."""
        whole = all(x == 0 for x in lo) and size == shape
        return tuple(range(shape[0] // (32 * warps))) if whole else None


VECTOR = Vector(
    name="vector",
    words=(WordSpec("vec", "constant"),),
    doc="A row for vector accesses: `vec` elements of one thread are the operand of one ld or st with .v2 or .v4 "
    "(PTX ISA, Vectors; Data Movement Instructions, ld and st).",
)
