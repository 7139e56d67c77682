"""Parts of memory as rows of bytes, so that what a text names and what instructions touch can be compared to the byte.

An area is (first byte, rows, bytes from one row to the next, bytes of a row). A swizzle permutes bytes inside of a row of its panel, alike for all who
touch it, so places are those that they would have without one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import prod

from cake_core.ir.plan import BufferPlan, TensorPlan
from cake_core.ptx.acts import LANE, Act

Area = tuple[int, int, int, int]

#: Lanes of tensor memory, and those that one warp of four reaches.
LANES, OWN = 128, 32


def area_of(act: Act) -> Area:
    """Of an act that touches something."""
    (_, first, end) = act.parts[0]
    if not act.number:
        return first, 1, end - first, end - first
    return first, act.number, act.at, end - first - (act.number - 1) * act.at


@cache
def joined(areas: frozenset[Area]) -> tuple[Area, ...]:
    """The same bytes in as few areas as it goes by joining neighbours: columns side by side, whole rows behind each other. Two sets of one box cut up
    differently come to the same."""
    found = sorted(areas)
    while True:
        side = _fold(sorted(found, key=lambda a: (a[1], a[2], a[0])), _beside)
        behind = _fold(sorted((_whole(a) for a in side), key=lambda a: (a[2] != a[3], a[0])), _behind)
        if behind == found:
            return tuple(sorted(behind))
        found = behind


def _whole(a: Area) -> Area:
    """Rows without gaps are one."""
    first, rows, pitch, width = a
    return (first, 1, rows * width, rows * width) if width == pitch or rows == 1 else a


def _fold(areas: Iterable[Area], join) -> list[Area]:
    out: list[Area] = []
    for a in areas:
        if out and (both := join(out[-1], a)) is not None:
            out[-1] = both
        else:
            out.append(a)
    return out


def _beside(a: Area, b: Area) -> Area | None:
    if a[1] == 1 or a[1:3] != b[1:3] or not a[0] <= b[0] <= a[0] + a[3]:
        return None
    width = max(a[3], b[0] + b[3] - a[0])
    return (a[0], a[1], a[2], width) if width <= a[2] else None


def _behind(a: Area, b: Area) -> Area | None:
    """Runs of bytes that meet or overlap; blocks of equal rows, one below the other."""
    if a[1] == b[1] == 1 and a[0] <= b[0] <= a[0] + a[3]:
        size = max(a[3], b[0] + b[3] - a[0])
        return a[0], 1, size, size
    if a[2:] == b[2:] and a[2] != a[3] and b[0] == a[0] + a[1] * a[2]:
        return a[0], a[1] + b[1], a[2], a[3]
    return None


def in_buffer(plan: BufferPlan, first: int, box: tuple[int, ...]) -> tuple[Area, ...] | None:
    """Where a box of a slot that starts at the byte `first` lies. None: its rows are not evenly spaced."""
    shape, size = plan.shape, plan.elem.bytes
    lo, hi = box[::2], box[1::2]
    if not shape or not lo or any(a >= b for a, b in zip(lo, hi, strict=True)):
        return ()
    row, rows, open_ = 0, 1, False
    for d, n in enumerate(shape[:-1]):
        row = row * n + lo[d]
        if open_ and (lo[d], hi[d]) != (0, n):
            return None
        open_ = open_ or hi[d] - lo[d] > 1
        rows *= hi[d] - lo[d]
    start, end = lo[-1] * size, hi[-1] * size
    if not (plan.swizzle and plan.row_bytes > plan.swizzle):
        return (_whole((first + row * plan.row_bytes + start, rows, plan.row_bytes, end - start)),)
    width, panel = plan.swizzle, prod(shape[:-1]) * plan.swizzle
    return tuple(
        _whole((first + p * panel + row * width + max(start - p * width, 0), rows, width, min(end - p * width, width) - max(start - p * width, 0)))
        for p in range(start // width, -(-end // width))
    )


def whole_rows(plan: BufferPlan, areas: tuple[Area, ...]) -> tuple[Area, ...]:
    """Areas of a buffer, widened to whole rows: under a swizzle the bytes of a row lie anywhere in it."""
    if not plan.swizzle:
        return areas
    out = []
    for first, rows, pitch, width in areas:
        end = first + (rows - 1) * pitch + width
        lo, hi = first // plan.swizzle * plan.swizzle, -(-end // plan.swizzle) * plan.swizzle
        out.append((lo, 1, hi - lo, hi - lo))
    return tuple(out)


def in_tensor_memory(plan: TensorPlan, first: int, box: tuple[int, ...], own: bool) -> Area | None:
    """Where a box of a slot that starts at the column `first` lies. `own`: the part of one warp, whose lanes count from the first that it reaches; else all
    lanes. None: it is none of whole columns."""
    columns, count = plan.slot_columns, plan.shape[-1]
    lo, hi = box[-2] * columns, box[-1] * columns
    whole = plan.shape[0] if len(plan.shape) > 1 else 0
    if lo % count or hi % count or len(plan.shape) != 2 or (box[0], box[1]) != (0, whole):
        return None
    lanes = OWN * min(whole, LANES) // LANES if own else LANES
    return first + lo // count, lanes, 1 << LANE, (hi - lo) // count
