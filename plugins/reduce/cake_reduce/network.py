"""Sorted lists of (key, index) in registers: insertion, and the merge of two.

Lists ascend by key, equal keys by index. An entry that is none is (+inf, -1): it is never inserted, so it stands behind all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake_core.ptx.builder import Builder, Operand, Reg


@dataclass(slots=True)
class List:
    """Registers that an insertion changes: keys f32, indices b32."""

    keys: list[Reg]
    indices: list[Reg]


def insert(b: Builder, into: List, key: Operand, index: Operand) -> None:
    """Put an entry in its place and drop the last one. It goes behind entries of the same key, so indices must come ascending.
    NaN and +inf go nowhere."""
    _insert(b, into, key, index, [b.op("setp.lt.f32", key, k) for k in into.keys])


def insert_in_order(b: Builder, into: List, key: Operand, index: Operand) -> None:
    """The same for indices that come in any order: of equal keys the smaller index stands first."""
    _insert(b, into, key, index, [in_order(b, key, index, k, i) for k, i in zip(into.keys, into.indices, strict=True)])


def _insert(b: Builder, into: List, key: Operand, index: Operand, before: list[Reg]) -> None:
    """`before`: whether the entry comes before each one of the list."""
    keys, indices = into.keys, into.indices
    for z in range(len(keys) - 1, 0, -1):
        # The key of place z: the median of its own, the one before it and the new one, which are in order but for the new one.
        b.emit("min.f32", keys[z], keys[z], key)
        b.emit("max.f32", keys[z], keys[z], keys[z - 1])
        b.emit("selp.b32", indices[z], index, indices[z], before[z])
        b.emit("selp.b32", indices[z], indices[z - 1], indices[z], before[z - 1])
    b.emit("selp.f32", keys[0], key, keys[0], before[0])
    b.emit("selp.b32", indices[0], index, indices[0], before[0])


def merged(b: Builder, x: List, y: List) -> List:
    """The first of both lists, as many as each has: the smaller of x's i-th and y's i-th from behind are all of them, first
    ascending and then descending; a bitonic merge sorts them downwards, and the result is read from behind (Batcher 1968;
    for lengths that are no power of two Lang, Bitonic sorting network for n not a power of 2)."""
    pairs = [_ordered(b, x.keys[i], x.indices[i], y.keys[-1 - i], y.indices[-1 - i])[0] for i in range(len(x.keys))]
    for i, j in descending(0, len(pairs)):
        pairs[j], pairs[i] = _ordered(b, *pairs[i], *pairs[j])
    pairs.reverse()
    return List([k for k, _ in pairs], [i for _, i in pairs])


def descending(start: int, count: int) -> Iterator[tuple[int, int]]:
    """Comparators (i, j), i < j, the larger entry going to i, that sort what first ascends and then descends."""
    if count < 2:
        return
    half = 1 << (count - 1).bit_length() - 1
    for i in range(start, start + count - half):
        yield i, i + half
    yield from descending(start, half)
    yield from descending(start + half, count - half)


def _ordered(b: Builder, key: Reg, index: Reg, other: Reg, at: Reg) -> tuple[tuple[Reg, Reg], tuple[Reg, Reg]]:
    """Two entries, the first in order first."""
    first = in_order(b, key, index, other, at)
    keys = b.op("selp.f32", key, other, first), b.op("selp.f32", other, key, first)
    return tuple(zip(keys, (b.op("selp.b32", index, at, first), b.op("selp.b32", at, index, first)), strict=True))


def in_order(b: Builder, x: Operand, i: Operand, y: Operand, j: Operand) -> Reg:
    """Whether (x, i) comes before (y, j): by key, then by index. Never where a key is NaN."""
    smaller, equal, both = b.op("setp.lt.f32", x, y), b.op("setp.eq.f32", x, y), b.reg("pred")
    b.emit("setp.lt.and.s32", both, i, j, equal)
    return b.op("or.pred", smaller, both)
