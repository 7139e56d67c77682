"""Memory of a simulated cluster, and the tensors of a launch: bytes, and which of them have been written.

Shared memory is one array of bytes a CTA, so that buffers that share bytes share what they hold; tensor memory is an array a buffer, and
writing one makes those that share its columns unwritten. What has not been written is poison.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.frozen import thawed
from cake_core.primitive.simulated import dtype_of, dtypes

if TYPE_CHECKING:
    from cake_core.ir.plan import BufferPlan, Plan

#: Every byte of memory that no one has written: a NaN in each float type.
POISON = 0xFF


@thawed(eq=False)
class Block:
    """An array and which of its elements are written, of shared memory by bytes [.., bytes]. None: all of them, for ever."""

    data: np.ndarray
    written: np.ndarray | None


class Memory:
    """Shared and tensor memory of the CTAs of one cluster."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.blocks: dict[tuple[int, str], Block] = {}
        for cta in range(plan.cluster):
            data = np.full(plan.planned_bytes, POISON, np.uint8)
            written = np.zeros(plan.planned_bytes, np.bool_)
            for b in plan.buffers.values():
                self.blocks[cta, b.name] = _buffer(b, data, written)
            for t in plan.tensors.values():
                shape = (*t.slots, *t.shape)
                filled = np.full((*shape, t.elem.bytes), POISON, np.uint8).view(dtype_of(t.elem))[..., 0]
                self.blocks[cta, t.name] = Block(filled, np.zeros(shape, np.bool_))
        self.mates = {name: [m for m in mates if m in plan.tensors] for name, mates in plan.mates.items() if name in plan.tensors}

    def overwritten(self, cta: int, name: str, slot: tuple[int, ...], rows: np.ndarray | None) -> None:
        """A slot of a buffer of tensor memory is written, or some of its rows: what shares their columns holds nothing any more."""
        own = self.plan.tensors[name]
        lo = own.column + _number(slot, own.slots) * own.slot_columns
        for other in self.mates.get(name, ()):
            t = self.plan.tensors[other]
            written = self.blocks[cta, other].written.reshape(-1, *t.shape)
            for n in range(len(written)):
                first = t.column + n * t.slot_columns
                if other != name and first < lo + own.slot_columns and lo < first + t.slot_columns:
                    written[n][rows if rows is not None and len(rows) == t.shape[0] else slice(None)] = False


def _number(slot: Iterable[int], slots: tuple[int, ...]) -> int:
    number = 0
    for i, size in zip(slot, slots, strict=False):
        number = number * size + i
    return number


def _buffer(b: BufferPlan, data: np.ndarray, written: np.ndarray) -> Block:
    """A buffer as arrays [slots.., shape..] over the bytes of shared memory; flags are of each byte of an element."""
    shape, size = (*b.slots, *b.shape), b.elem.bytes
    strides = (*_steps(b.slots, b.slot_bytes), *_steps(b.shape, size))
    flags = np.ndarray((*shape, size), np.bool_, written, b.offset, (*strides, 1))
    return Block(np.ndarray(shape, dtype_of(b.elem), data, b.offset, strides), flags)


def _steps(sizes: tuple[int, ...], step: int) -> list[int]:
    """Bytes from one element to the next along each dimension, the last one first `step` apart."""
    out = []
    for n in reversed(sizes):
        out.insert(0, step)
        step *= n
    return out


def over_bytes(elem: str, shape: tuple[int, ...], data: np.ndarray | None, written: np.ndarray | None, at: int) -> Block:
    """A tensor over bytes from `at` on, in row-major order. `written`: flags of these bytes; None: all of them are. Without `data` it is empty."""
    dtype = dtypes()[elem]
    if data is None or 0 in shape:
        return Block(np.zeros(shape, dtype), None)
    flags = None if written is None else np.ndarray((*shape, dtype.itemsize), np.bool_, written, at)
    return Block(np.ndarray(shape, dtype, data, at), flags)


def blank(elem: str, shape: tuple[int, ...]) -> Block:
    """A tensor that no one has written."""
    size = dtypes()[elem].itemsize
    count = int(np.prod(shape)) * size
    return over_bytes(elem, shape, np.full(count, POISON, np.uint8), np.zeros(count, np.bool_), 0)
