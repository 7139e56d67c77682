"""tcgen05.cp: rows of shared memory into lanes of tensor memory (PTX ISA, tcgen05.cp; Data Movement Shape).

Which lanes a row goes to is CUTLASS's (cute/atom/copy_traits_sm100.hpp), and TVM's, whose maps were compared with a device.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_core.frozen import frozen
from cake_core.ptx import tiles
from cake_core.ptx.emulated import Agent, Coder, Cta, Lanes, Step
from cake_core.ptx.reader import Statement
from cake_tcgen05.emulate.columns import CELL, cells, group_of, members, offsets, owned
from cake_tcgen05.emulate.descriptors import Factor, strides
from cake_tcgen05.emulate.orders import queue


@frozen
class Shape:
    """`rows` of `width` pieces of 16 bytes; `lanes`: for each copy of them, the lane of each row."""

    rows: int
    width: int
    lanes: tuple[np.ndarray, ...]


def _rows(count: int, *to: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
    return tuple(f(np.arange(count)) for f in to)


SHAPES = {
    ("128x256b", ""): Shape(128, 2, _rows(128, lambda i: i)),
    ("128x128b", ""): Shape(128, 1, _rows(128, lambda i: i)),
    ("4x256b", ""): Shape(4, 2, _rows(4, lambda i: 32 * i)),
    ("64x128b", "warpx2::02_13"): Shape(64, 1, _rows(64, lambda i: i, lambda i: i + 64)),
    ("64x128b", "warpx2::01_23"): Shape(64, 1, _rows(64, lambda i: i + i // 32 * 32, lambda i: i + i // 32 * 32 + 32)),
    ("32x128b", "warpx4"): Shape(32, 1, _rows(32, lambda i: i, lambda i: i + 32, lambda i: i + 64, lambda i: i + 96)),
}


def copy(s: Statement, c: Coder) -> Step:
    """Behind what its thread gave the engine, in order with its products. In a pair each CTA copies from its own shared memory to its own lanes."""
    group = group_of(s, c)
    words = [w for w in s.words[2:] if not w.startswith("cta_group::")]
    if any(w.startswith(("b8x16", "b4x16", "b6x16")) for w in words):
        raise c.unsupported("decompression on the way: which bits of a byte an element gets only a figure shows")
    shape = SHAPES.get((words[0], ".".join(words[1:]))) if words else None
    if shape is None:
        raise c.unsupported(f"the words of '{s.opcode}'")
    to, source = c.address(s.operands[0]), c.source(s.operands[1], "b64")
    wide = shape.width * tiles.PIECE // CELL

    def step(lanes: Lanes) -> None:
        pair = members(lanes, group)
        addresses, descriptors = to(lanes), source(lanes)
        for lane in np.flatnonzero(lanes.active).tolist():
            address, bits = int(addresses[lane]), int(descriptors[lane])
            if address >> 16:
                raise lanes.fault(
                    "emulate/operand", f"tcgen05.cp to lanes from {address >> 16} on", why="its shape says which lanes it writes, from 0 on"
                )
            for cta in pair:
                owned(lanes, cta, address, wide, "tcgen05.cp")
            how = strides(lanes, bits, "k", "tcgen05.cp")
            if how.atom == 32:
                raise lanes.fault("emulate/unsupported", "tcgen05.cp from rows swizzled in atoms of 32 bytes", why="no text says how such rows lie")
            rows = Factor((bits & 0x3FFF) << 4, how, shape.rows, shape.width)
            lanes.start(queue(lanes, lane), _work(shape, rows, address, pair), f"tcgen05.cp of line {s.line}")

    return step


def _work(shape: Shape, rows: Factor, column: int, pair: tuple[Cta, ...]) -> Callable[[Agent], None]:
    def work(agent: Agent) -> None:
        for cta in pair:
            held = rows.read(agent, cta)
            for lanes in shape.lanes:
                cells(cta).write(agent, offsets(lanes, column), held)

    return work
