"""How a swizzle permutes the rows of a buffer in shared memory (PTX ISA, Tensors, Swizzling Modes)."""

from __future__ import annotations

from math import prod

from cake_core.ir.plan import BufferPlan

#: Swizzle to (row bits shifted out, rows in the pattern - 1): chunk ^= (row >> shift) & mask.
SWIZZLES = {128: (0, 7), 64: (1, 3), 32: (2, 1)}
CHUNK = 16  # bytes that stay together
ROWS = 8  # after which every pattern repeats


def offset(buffer: BufferPlan, at: tuple[int, ...]) -> int:
    """Bytes from the start of a slot to an element of known indices. A swizzled row that is wider than its pattern lies in panels."""
    row = 0
    for size, i in zip(buffer.shape[:-1], at[:-1], strict=True):
        row = row * size + i
    column = at[-1] * buffer.elem.bytes
    if not buffer.swizzle:
        return row * buffer.row_bytes + column
    shift, mask = SWIZZLES[buffer.swizzle]
    panel, inside = divmod(column, buffer.swizzle)
    return (panel * prod(buffer.shape[:-1]) + row) * buffer.swizzle + (inside ^ (row >> shift & mask) * CHUNK)
