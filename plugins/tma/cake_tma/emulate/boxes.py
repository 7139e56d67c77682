"""The box of a tensor map: where its elements lie in global and in shared memory.

PTX ISA, Tensors (Dimension, Size and Format; Tiled Mode; Out of Boundary Access; Traversal-stride; Swizzling Modes), and the CUDA driver API,
cuTensorMapEncodeTiled. In shared memory the box is dense, innermost dimension first; rows are as long as the box, also where a swizzle spans more. A
dimension with an element stride `s` has ceil(box / s) elements; the innermost is read element by element (without interleave its stride is
ignored). Swizzles exchange 16-byte chunks by address bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx.emulated import swizzled

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Agent, TiledMap

CHUNK = 16

#: A swizzle repeats after so many bytes, whichever it is.
PERIOD = 1024

#: The NaN that fills what lies outside, by the bits of an element: the ISA and the driver say that it is one; these are an H200's (driver 580.159.04,
#: 2026-12-01), the same two bytes again and again.
FILL = {16: 0x7FF7, 32: 0x7FF77FF7, 64: 0x7FF77FF77FF77FF7}
FLOATS = ("float16", "bfloat16", "float32", "tfloat32", "float32_ftz", "tfloat32_ftz", "float64")


class Box:
    """`counts`: elements of each dimension. `pitch`: bytes of a row in shared memory, `rows` of them; `bytes`: of all. Of each row `far` is how far it is
    from the first one in global memory, and `steps[d]` its coordinate in dimension d + 1, both counted from the box's corner."""

    def __init__(self, map: TiledMap) -> None:
        self.map, self.rank = map, len(map.shape)
        steps = (1, *map.steps[1:]) if map.steps else (1,) * self.rank
        self.counts = tuple(-(-b // s) for b, s in zip(map.box, steps, strict=True))
        self.bits = map.bits
        self.pitch = self.counts[0] * map.bits // 8
        self._layout(self.counts[1:], steps[1:])
        self._orders: dict[int, np.ndarray | None] = {}

    def _layout(self, counts: tuple[int, ...], steps: tuple[int, ...]) -> None:
        self.rows = math.prod(counts)
        self.bytes = self.rows * self.pitch
        row, self.steps, self.far = np.arange(self.rows), [], np.zeros(self.rows, np.int64)
        for n, step, stride in zip(counts, steps, self.map.strides, strict=True):
            self.steps.append(row % n * step)
            self.far = self.far + self.steps[-1] * stride
            row = row // n

    def gathered(self) -> Box:
        """Four rows of a map of two dimensions, each at a coordinate of its own (PTX ISA, .tile::gather4 and .tile::scatter4)."""
        other = Box(self.map)
        other.rows, other.bytes, other.far, other.steps = 4, 4 * self.pitch, np.zeros(4, np.int64), [np.zeros(4, np.int64)]
        return other

    def wrong(self, agent: Agent) -> Exception | None:
        """What of the map the ISA does not allow."""
        m = self.map
        if m.address % CHUNK or any(s % CHUNK for s in m.strides):
            return agent.fault(
                "emulate/misaligned", f"a tensor map of address {hex(m.address)} and strides {m.strides}: they are multiples of {CHUNK}"
            )
        if self.pitch % CHUNK or self.counts[0] * m.bits % 8:
            return agent.fault("emulate/operand", f"a tensor map whose box has rows of {self.pitch} bytes; they are multiples of {CHUNK}")
        if m.swizzle and self.pitch > m.swizzle:
            return agent.fault("emulate/operand", f"a tensor map whose box has rows of {self.pitch} bytes under a swizzle of {m.swizzle}")
        if m.swizzle and self.pitch < m.swizzle:  # padded to the span in shared memory (H200, driver 580.159.04, 2026-12-01): not executed here
            return agent.fault("emulate/operand", f"a tensor map whose box has rows of {self.pitch} bytes, fewer than its swizzle's {m.swizzle}")
        if m.fill == "nan" and m.kind not in FLOATS:  # an illegal instruction (H200, driver 580.159.04, 2026-12-01)
            return agent.fault("emulate/operand", f"a tensor map of {m.kind} that fills with NaN: only floating-point types have one")
        if any(not 1 <= b <= 256 for b in m.box):
            return agent.fault("emulate/operand", f"a tensor map with the box {m.box}: 1 to 256 elements a dimension")
        return None

    # --- which elements are inside

    def inside(self, coordinates: tuple[int, ...], each: np.ndarray | None = None) -> tuple[np.ndarray | None, int, int]:
        """(rows that are inside, None: all; first and end of the elements of a row that are). `each`: second coordinates of gathered rows."""
        low, high = max(-coordinates[0], 0), min(self.map.shape[0] - coordinates[0], self.counts[0])
        if high <= low:
            return np.zeros(0, np.int64), 0, 0
        good = None
        for d in range(1, self.rank):
            start, extent = coordinates[d] if each is None else each, self.map.shape[d]
            if each is None and start >= 0 and start + int(self.steps[d - 1][-1] if self.rows else 0) < extent:
                continue
            at = self.steps[d - 1] + start
            fits = (at >= 0) & (at < extent)
            good = fits if good is None else good & fits
        return (None if good is None or good.all() else np.flatnonzero(good)), low, high

    def sources(self, coordinates: tuple[int, ...], rows: np.ndarray | None, low: int, each: np.ndarray | None = None) -> np.ndarray:
        """Where the element `low` of these rows lies in global memory: addresses, int64. Sub-byte elements start at whole bytes."""
        m = self.map
        first = m.address + (coordinates[0] + low) * m.bits // 8
        far = self.far
        if each is None:
            first += sum(c * s for c, s in zip(coordinates[1:], m.strides, strict=True))
        else:
            far = each * m.strides[0]
        return (far if rows is None else far[rows]) + first

    # --- shared memory

    def order(self, address: int) -> np.ndarray | None:
        """Of a box at `address`: the chunk of shared memory, counted from there, in which each chunk of the box lies. None: in order."""
        if not self.map.swizzle:
            return None
        base = address % PERIOD
        if base not in self._orders:
            found = np.arange(self.bytes // CHUNK) * CHUNK + base
            self._orders[base] = (swizzled(found, self.map.swizzle) - base) // CHUNK
        return self._orders[base]

    def places(self, address: int, rows: np.ndarray | None, low: int, high: int) -> tuple[np.ndarray, int]:
        """(addresses, unit): where the bytes `low` to `high` of these rows lie in shared memory, piece by piece: (rows, pieces)."""
        unit = math.gcd(CHUNK, low, high)
        at = np.arange(low, high, unit) + address
        starts = np.arange(self.rows) if rows is None else rows
        found = starts[:, None] * self.pitch + at
        return (swizzled(found, self.map.swizzle) if self.map.swizzle else found), unit

    def filled(self) -> np.ndarray:
        """A box full of what stands for elements outside: uint8 (rows, pitch)."""
        if self.map.fill == "nan":
            value = FILL[self.bits].to_bytes(self.bits // 8, "little")
            return np.tile(np.frombuffer(value, np.uint8), (self.rows, self.counts[0])).copy()
        return np.zeros((self.rows, self.pitch), np.uint8)
