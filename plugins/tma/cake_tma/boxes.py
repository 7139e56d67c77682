"""How a tile of a shared buffer falls into boxes of bulk tensor copies.

A box lands densely: its rows one behind the other, at most 256 elements in each dimension, at a 128-byte boundary (PTX ISA,
Tensors; CUDA driver API, cuTensorMapEncodeTiled). Under a swizzle of B bytes a buffer lies in column panels of B bytes, each
holding all of the buffer's rows, so that a box is one panel wide; its first row must be the first of the pattern's 8 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from cake_core.frozen import frozen

BOX_MAX = 256  # elements in each dimension of a box
GRAIN = 16  # bytes: the inner extent of a box is a multiple of it
ALIGN = 128  # bytes: of a box in shared memory
PATTERN = 8  # rows after which a swizzle repeats
SWIZZLES = (128, 64, 32)  # bytes, best first: the wider, the fewer bank conflicts


@frozen
class Box:
    """One box of a tile: offset from the tile's start and size, one a dimension of the buffer, outermost first."""

    lo: tuple[int, ...]
    size: tuple[int, ...]


@frozen
class Buffer:
    """What of a shared buffer decides how it can be addressed. `shape` is that of one slot."""

    shape: tuple[int, ...]
    slotted: bool
    elem_bytes: int

    @property
    def rows(self) -> int:
        return prod(self.shape[:-1])

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] * self.elem_bytes

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes

    def why_not(self, swizzle: int) -> str | None:
        """Why the buffer as a whole can't be laid out under `swizzle`, or None if it can."""
        if swizzle == 0:
            return f"its slots of {self.bytes} bytes do not start at multiples of {ALIGN}" if self.slotted and self.bytes < ALIGN else None
        if self.row_bytes % swizzle:
            return f"its rows of {self.row_bytes} bytes are not whole panels of {swizzle}"
        if self.row_bytes > swizzle and self.rows % PATTERN:
            return f"its panels of {self.rows} rows do not start with a swizzle pattern of {PATTERN} rows"
        if self.slotted and self.bytes % (PATTERN * swizzle):
            return f"its slots of {self.bytes} bytes do not start with a swizzle pattern of {PATTERN * swizzle} bytes"
        return None


def boxes(buffer: Buffer, tile: Sequence[int], swizzle: int) -> tuple[Box, ...] | str:
    """The boxes that a tile of the buffer consists of, or why there are none.

    `tile` has one size a dimension of the buffer, outermost first; a dimension that one index picked has size 1.
    """
    shape, inner = buffer.shape, tile[-1]
    if reason := buffer.why_not(swizzle):
        return reason
    if inner * buffer.elem_bytes % GRAIN:
        return f"its rows have {inner * buffer.elem_bytes} bytes, not a multiple of {GRAIN}"
    width = swizzle // buffer.elem_bytes if swizzle else _even(inner, BOX_MAX)
    if swizzle and inner % width:
        return f"its rows have {inner * buffer.elem_bytes} bytes, not whole panels of {swizzle}"
    # A dimension may take more than one step only where all inside it is whole: a box has no gaps.
    steps, dense = [width], bool(swizzle) or width == shape[-1]
    for extent, size in zip(reversed(shape[:-1]), reversed(tile[:-1]), strict=True):
        steps.append(_even(size, BOX_MAX) if dense else 1)
        dense = dense and steps[-1] == extent
    cuts = [[(lo, min(step, size - lo)) for lo in range(0, size, step)] for size, step in zip(tile, reversed(steps), strict=True)]
    found = tuple(Box(tuple(lo for lo, _ in c), tuple(n for _, n in c)) for c in product(*cuts))
    for dimension, unit in enumerate(start_units(buffer, swizzle)):
        if any(b.lo[dimension] % unit for b in found):
            return f"a part of it would not start at a multiple of {f'{PATTERN} rows' if swizzle else f'{ALIGN} bytes'}"
    return found


def start_units(buffer: Buffer, swizzle: int) -> tuple[int, ...]:
    """What the start of a box must be a multiple of, one a dimension of the buffer."""
    shape = buffer.shape
    if swizzle:
        return (*(_unit(PATTERN, prod(shape[d + 1 : -1])) for d in range(len(shape) - 1)), swizzle // buffer.elem_bytes)
    return tuple(_unit(ALIGN, prod(shape[d + 1 :]) * buffer.elem_bytes) for d in range(len(shape)))


def _unit(multiple: int, pitch: int) -> int:
    """The least n > 0 for which n * pitch is a multiple of `multiple`, a power of two."""
    return multiple // min(multiple, pitch & -pitch)


def _even(size: int, most: int) -> int:
    """A step of at most `most` that covers `size`: in equal parts of whole swizzle patterns where there are such."""
    parts = -(-size // most)
    if parts == 1 or size % parts == 0 and size // parts % PATTERN == 0:
        return size // parts
    return most
