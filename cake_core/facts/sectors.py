"""How much of what an access of global memory moves is asked for: sectors that a warp's instruction touches, and the widest piece a thread could take.

Global memory is moved in sectors of 32 bytes (CUDA C++ Programming Guide, device memory accesses); what an instruction does not ask of a
sector that it touches is moved for nothing. Rows and tiles are taken to start at a whole sector where nothing else is known, so that the count is the least.
"""

from __future__ import annotations

from collections.abc import Mapping

from cake_core.facts.banks import LANES, Thread
from cake_core.facts.schema import Moved, Region
from cake_core.ir.nodes import Expr, Int

SECTOR = 32
#: Bytes that one instruction moves for a thread, widest first (PTX ISA, ld and st: vectors).
PIECES = (16, 8, 4, 2, 1)


def moved(
    touched: Region, width: int, layout, words: Mapping[str, object], shape: tuple[int, ...], warps: int, extents: tuple[Expr, ...], size: int
) -> Moved | None:
    """Of accesses of `width` bytes a thread. `layout`, `words`, `shape`: how `warps` warps hold the tile; `extents` of the tensor, in elements of
    `size` bytes. None: not known."""
    if not size or width % size:
        return None
    key = (layout, str(sorted(words.items())), shape, warps, width, tuple(x.single for x in touched.box), _inner(extents), _start(touched), size)
    if key not in _KNOWN:
        _KNOWN[key] = _worst(layout, words, shape, warps, width, touched, extents, size)
    return _KNOWN[key]


#: What was counted before: a kernel moves many tiles alike.
_KNOWN: dict[tuple, Moved | None] = {}


def _worst(layout, words, shape, warps: int, width: int, touched: Region, extents: tuple[Expr, ...], size: int) -> Moved | None:
    offsets = layout.offsets(shape, warps, words)
    try:
        origins = [layout.origin(Thread(0, lane), words) for lane in range(LANES)]
    except AttributeError:  # it asks more than the place of a thread
        return None
    worst = (0, 1)
    for piece in offsets[:: width // size]:
        at = {_place([o + p for o, p in zip(origin, piece, strict=True)], touched, extents, size) for origin in origins}
        sectors = {(row, byte // SECTOR) for row, start in at for byte in (start, start + width - 1)}
        useful = len(at) * width
        if len(sectors) * worst[1] > worst[0] * useful:
            worst = len(sectors), useful
    return Moved(*worst, _side_by_side(offsets, touched, size)) if offsets else None


def _place(at: list[int], touched: Region, extents: tuple[Expr, ...], size: int) -> tuple[tuple[int, ...], int]:
    """The row of an element, and its byte in it. Where the rows are of constant length, they are one behind the other."""
    if touched.box[-1].single:  # the tile does not go along the rows
        return tuple(at), 0
    row, column = tuple(at[:-1]), at[-1] + _start(touched)
    inner = _inner(extents)
    if row and inner is not None and not touched.box[-2].single:
        row, column = row[:-1], row[-1] * inner + column
    return row, column * size


def _inner(extents: tuple[Expr, ...]) -> int | None:
    return extents[-1].value if extents and isinstance(extents[-1], Int) else None


def _start(touched: Region) -> int:
    lo = touched.box[-1].lo
    return lo.value if isinstance(lo, Int) else 0


def _side_by_side(offsets, touched: Region, size: int) -> int:
    """Bytes of the widest piece of which each thread's elements are made; `size` where the tile does not go along the rows."""
    if touched.box[-1].single:
        return size
    return next((wide for wide in PIECES if wide >= size and _in_pieces(offsets, wide // size)), size)


def _in_pieces(offsets, count: int) -> bool:
    """Whether each `count` elements of a thread lie side by side."""
    groups = [offsets[k : k + count] for k in range(0, len(offsets), count)]
    return all(len(g) == count and [tuple(at) for at in g] == [(*g[0][:-1], g[0][-1] + n) for n in range(count)] for g in groups)


def run(touched: Region, extents: tuple[Expr, ...], size: int) -> int | None:
    """Bytes of a tile of a tensor that surely lie side by side: of its innermost dimension, and of those around it as far as the tile has all
    of what is inside of them. None: not known."""
    length = 1
    for x, extent in zip(reversed(touched.box), reversed(extents), strict=True):
        if not isinstance(x.size, Int):
            return None
        length *= x.size.value
        if x.size != extent:
            break
    return length * size
