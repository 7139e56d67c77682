"""How many turns an access of shared memory takes at its banks: from which lane touches which element, strides and swizzle.

Shared memory has 32 banks of 4 bytes, and each gives one word a turn; lanes that want the same word share it. The lanes of a warp are
served together as far as their pieces make up 128 bytes: all of them up to 4 bytes each, halves of the warp with 8, quarters with 16 (CUDA C++
Programming Guide, Compute Capability 5.x and later, Shared Memory). A matrix of 8 rows by 16 bytes is a quarter by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from cake_core.facts.schema import Extent, Region
from cake_core.frozen import frozen
from cake_core.ir import swizzle
from cake_core.ir.nodes import Int
from cake_core.ir.plan import BufferPlan
from cake_core.ir.tiles import range_of

LANES = 32
BANKS = 32
WORD = 4
MATRIX_ROWS, MATRIX_BYTES = 8, 16


class Arithmetic:
    """The instructions by which a layout computes where a thread's elements are, on numbers."""

    def add(self, a: int, b: int) -> int:
        return a + b

    def sub(self, a: int, b: int) -> int:
        return a - b

    def mul(self, a: int, b: int) -> int:
        return a * b

    def shl(self, a: int, n: int) -> int:
        return a << n

    def shr(self, a: int, n: int) -> int:
        return a >> n

    def land(self, a: int, b: int) -> int:
        return a & b

    def xor(self, a: int, b: int) -> int:
        return a ^ b

    def floordiv(self, a: int, b: int, nonneg: bool) -> int:
        return a // b

    def mod(self, a: int, b: int, nonneg: bool) -> int:
        return a % b


@frozen
class Thread:
    """What a layout asks of a context: the place of one thread of an instance."""

    warp: int
    lane: int
    b: Arithmetic = field(default_factory=Arithmetic)

    @property
    def thread(self) -> int:
        return LANES * self.warp + self.lane


def of_matrices(touched: Region, buffer: BufferPlan) -> int | None:
    """Turns of the matrix of a tile that takes most. None: not known, as where a swizzled tile starts inside of a pattern."""
    start = _start(touched.box, buffer)
    return None if start is None else max((_together(m, MATRIX_BYTES) for m in _matrices(start, touched, buffer)), default=None)


def of_threads(
    touched: Region, width: int, layout, words: Mapping[str, object], shape: tuple[int, ...], warps: int, buffer: BufferPlan
) -> int | None:
    """Turns of the instruction that takes most, each lane with `width` bytes. `layout`, `words`, `shape`: how `warps` warps hold the tile. None:
    not known."""
    start = _start(touched.box, buffer)
    if start is None or width % buffer.elem.bytes:
        return None
    singles = tuple(x.single for x in touched.box)
    key = (layout, str(sorted(words.items())), shape, warps, width, tuple(start), singles, buffer.shape, buffer.elem, buffer.swizzle)
    if key not in _KNOWN:
        _KNOWN[key] = _most(layout, words, shape, warps, width, start, touched, buffer)
    return _KNOWN[key]


#: What was counted before: a kernel stores many tiles alike.
_KNOWN: dict[tuple, int | None] = {}


def _most(layout, words, shape, warps: int, width: int, start: list[int], touched: Region, buffer: BufferPlan) -> int | None:
    """Over all pieces of the first and of the last warp: warps stand whole patterns apart."""
    pieces = layout.offsets(shape, warps, words)[:: width // buffer.elem.bytes]
    most = 0
    for warp in sorted({0, warps - 1}):
        try:
            origins = [layout.origin(Thread(warp, lane), words) for lane in range(LANES)]
        except AttributeError:  # it asks more than the place of a thread
            return None
        for piece in pieces:
            at = [_address(start, touched, [o + p for o, p in zip(origin, piece, strict=True)], buffer) for origin in origins]
            served = min(LANES, LANES * WORD // width)
            most = max(most, *(_together(at[n : n + served], width) for n in range(0, LANES, served)))
    return most or None


def _start(box: tuple[Extent, ...], buffer: BufferPlan) -> list[int] | None:
    """Where the tile starts, up to what moves all lanes alike; None: nothing that is known."""
    out = []
    for n, x in enumerate(box):
        if isinstance(x.lo, Int):
            out.append(x.lo.value)
            continue
        step = buffer.swizzle // buffer.elem.bytes if n == len(box) - 1 else swizzle.ROWS if n == len(box) - 2 else 1
        if buffer.swizzle and not range_of(x.lo).multiple_of(step):
            return None
        out.append(0)
    if buffer.swizzle and len(box) > 2 and buffer.shape[-2] % swizzle.ROWS:
        return None
    return out


def _address(start: list[int], touched: Region, at: list[int], buffer: BufferPlan) -> int:
    inside = iter(at)
    return swizzle.offset(buffer, tuple(s if x.single else s + next(inside) for s, x in zip(start, touched.box, strict=True)))


def _matrices(start: list[int], touched: Region, buffer: BufferPlan) -> Iterator[list[int]]:
    """Addresses of the rows of matrices of a tile: of those in its first rows, as every pattern repeats behind eight."""
    shape = [x.size.value if isinstance(x.size, Int) else 0 for x in touched.box if not x.single]
    if len(shape) != 2:
        return
    wide = MATRIX_BYTES // buffer.elem.bytes
    for column in range(0, shape[1] - wide + 1 if shape[0] >= MATRIX_ROWS else 0, wide):
        yield [_address(start, touched, [r, column], buffer) for r in range(MATRIX_ROWS)]


def _together(at: list[int], width: int) -> int:
    """Turns of lanes that are served together."""
    wanted: dict[int, set[int]] = {}
    for a in at:
        for word in range(a // WORD, (a + width - 1) // WORD + 1):
            wanted.setdefault(word % BANKS, set()).add(word)
    return max(map(len, wanted.values()))
