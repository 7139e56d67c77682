"""Where a factor lies in shared memory, by the fields of its matrix descriptor.

A descriptor names a start, two byte offsets and a swizzle (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions: Shared Memory Matrix Layout,
Strides, Matrix-descriptor; the descriptors of tensor memory's engine have the same fields. A second source: the canonical layouts that CuTe's
descriptor iterators name). Everything comes in pieces of 16 bytes, which no swizzle parts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx.emulated import swizzled

PIECE = 16
#: Addresses repeat their swizzle after so many bytes at most.
PATTERN = 1024


@frozen
class Strides:
    """How lines lie: `major` 'k': a line is a row of the factor, along K; 'mn': a line is one index of K, along rows. `leading`, `stride`: bytes.
    `swizzle`: 0, 32, 64, 128; `atom`: bytes that it moves together, 16 or 32."""

    major: str
    leading: int
    stride: int
    swizzle: int
    atom: int = 16


@lru_cache(maxsize=4096)
def pieces(how: Strides, lines: int, width: int, phase: int) -> np.ndarray:
    """Where the pieces lie: int64 (lines, width), bytes from the last multiple of `PATTERN` at or below the start; `phase` is the start's distance
    from it. `width` in pieces. The swizzle acts on addresses."""
    line, piece = np.arange(lines)[:, None], np.arange(width)[None, :]
    match how.major, how.swizzle:
        case "k", 0:  # 8 x 16 byte core matrices: along K by `leading`, down by `stride`
            at = line // 8 * how.stride + line % 8 * PIECE + piece * how.leading
        case "k", span:  # rows of `span` bytes, eight a group; `leading` is not used
            at = line // 8 * how.stride + line % 8 * span + piece * PIECE
        case "mn", 0:  # 8 lines a core matrix: along rows by `stride`, from 8 lines to the next by `leading`
            at = piece * how.stride + line // 8 * how.leading + line % 8 * PIECE
        case "mn", span:
            wide, tall = span // PIECE, 4 if how.atom == 32 else 8
            at = piece // wide * how.leading + line // tall * how.stride + line % tall * span + piece % wide * PIECE
    at = _swizzled(at + phase, how).astype(np.int64)
    at.setflags(write=False)
    return at


def _swizzled(addresses: np.ndarray, how: Strides) -> np.ndarray:
    """Of atoms of 32 bytes bits 5-6 are exchanged by bits 7-8."""
    return addresses ^ ((addresses >> 7 & 3) << 5) if how.atom == 32 else swizzled(addresses, how.swizzle)


def rows_of(read: np.ndarray, major: str, bytes_of_element: int) -> np.ndarray:
    """What was read by `pieces`, uint8 (lines, width, 16), as rows of the factor: uint8 (rows, bytes along K)."""
    lines = read.shape[0]
    flat = read.reshape(lines, -1)
    if major == "k":
        return flat
    turned = flat.reshape(lines, -1, bytes_of_element).transpose(1, 0, 2)
    return np.ascontiguousarray(turned).reshape(turned.shape[0], -1)
