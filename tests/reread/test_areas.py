"""Places of tiles, and shares of threads, against their enumeration byte by byte."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read_back_zoo import lowered

from cake_core.ir.types import ELEMENTS
from cake_core.ptx.acts import rows_used
from cake_core.reread.areas import area_of, in_buffer, joined, whole_rows
from cake_core.reread.shares import LANES, _followed, _merged, _swizzled, every, sampled

PLAN = lowered("gemm_sm90", "sm90")[1].buffers["a"]


def bytes_of(areas) -> set[int]:
    return {first + r * pitch + i for first, rows, pitch, width in areas for r in range(rows) for i in range(width)}


def placed(plan, box) -> set[int]:
    """Where the elements of a box lie, by the definition of column panels."""
    out = set()
    for index in product(*(range(lo, hi) for lo, hi in zip(box[::2], box[1::2], strict=True))):
        row, column = 0, index[-1] * plan.elem.bytes
        for i, n in zip(index[:-1], plan.shape[:-1], strict=True):
            row = row * n + i
        width = plan.swizzle if plan.swizzle and plan.row_bytes > plan.swizzle else plan.row_bytes
        at = column // width * prod(plan.shape[:-1]) * width + row * width + column % width
        out |= set(range(at, at + plan.elem.bytes))
    return out


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_box_of_a_buffer(data):
    swizzle, elem = data.draw(st.sampled_from((0, 32, 128))), ELEMENTS[data.draw(st.sampled_from(("bf16", "e4m3", "f32")))]
    columns = (swizzle or 8 * elem.bytes) // elem.bytes * data.draw(st.integers(1, 2))
    shape = (*(data.draw(st.sampled_from((1, 2, 8))) for _ in range(data.draw(st.integers(0, 2)))), columns)
    plan = replace(PLAN, elem=elem, shape=shape, swizzle=swizzle)
    box: list[int] = []
    for n in shape:
        lo = data.draw(st.integers(0, n - 1))
        box += (lo, data.draw(st.integers(lo + 1, n)))
    areas = in_buffer(plan, 0, tuple(box))
    if areas is not None:
        assert bytes_of(areas) == placed(plan, box)
        assert bytes_of(areas) <= bytes_of(whole_rows(plan, areas))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**30))
def test_a_tile_however_it_is_cut(seed):
    """Cut into rows and columns in any way, some parts twice, in any order, it is the same; one part less or elsewhere and it is another."""
    draw = Random(seed)
    rows, pitch, width = draw.choice((8, 16, 64)), 128, draw.choice((32, 64, 128))
    first = 1 << 25 | draw.randrange(64) * 1024
    steps, tall = draw.choice((16, 32)), draw.choice((8, rows))
    parts = [(first + r * pitch + c, tall, pitch, steps) for r in range(0, rows, tall) for c in range(0, width, steps)]
    acts = [rows_used("x", *p) for p in parts]
    cut = [area_of(a) for a in acts]
    assert all(bytes_of([a]) == bytes_of([b]) for a, b in zip(cut, parts, strict=True))
    whole = joined(frozenset({area_of(rows_used("x", first, rows, pitch, width))}))
    assert joined(frozenset(draw.sample(cut, len(cut)) + cut[:1])) == whole and len(whole) == 1
    if len(cut) > 1:
        missing = draw.randrange(len(cut))
        fewer = cut[:missing] + cut[missing + 1 :]
        assert joined(frozenset(fewer)) != whole
        a, *rest = cut[missing]
        assert joined(frozenset([*fewer, (a + draw.choice((16, -16, 1024)), *rest)])) != whole


#: Where the threads of a number of warps go in a tile: (place of warp and lane, bytes), or None where a thread does nothing.
PATTERNS = {
    "rows of a swizzle": (4, lambda w, n: 128 * (16 * w + n % 16) + 16 * ((n // 16) ^ n % 8), 16),
    "rows that are padded": (4, lambda w, n: 144 * (16 * w + n % 16) + 16 * (n // 16), 16),
    "one lane of four": (2, lambda w, n: 4 * (8 * w + n // 4) if n % 4 == 0 else None, 4),
    "the leading warp": (3, lambda w, n: 8 * n if w == 0 else None, 8),
    "all the same": (5, lambda w, n: 0, 4),
    "three warps": (3, lambda w, n: 512 * w + 16 * n, 16),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_few_threads_stand_for_all(name):
    warps, place, size = PATTERNS[name]
    start = 1 << 25 | 0x5840
    by = {t: (start + place(*t), start + place(*t) + size) for t in every(warps) if place(*t) is not None}
    some = {t: by[t] for t in sampled(warps) if t in by}
    assert _followed([some], [start], warps) == _merged(by.values())


@pytest.mark.parametrize("place", [lambda w, n: 16 * (n * 3 % 32), lambda w, n: 16 * n if n < 20 else None])
def test_threads_that_go_by_no_bits_are_all_run(place):
    by = {t: (place(*t), place(*t) + 16) for t in sampled(1) if place(*t) is not None}
    assert _followed([by], [0], 1) is None


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_a_swizzle_moves_pieces_of_16_bytes_inside_of_8_rows(swizzle):
    """PTX ISA, swizzling modes: by a pattern that repeats after 256, 512 and 1024 bytes."""
    moved = {at: next(lo for lo, _ in _swizzled(swizzle, (at, 1, 16, 16))) for at in range(0, 2048, 16)}
    assert sorted(moved.values()) == sorted(moved)
    assert all(a // (swizzle or 16) == b // (swizzle or 16) for a, b in moved.items())
    rows = {128: lambda a: a // 128 % 8, 64: lambda a: a // 128 % 4, 32: lambda a: a // 128 % 2, 0: lambda a: 0}[swizzle]
    assert all(b == a ^ rows(a) * 16 for a, b in moved.items())
    assert LANES == 32
