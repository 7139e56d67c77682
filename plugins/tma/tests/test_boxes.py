"""How tiles fall into boxes: every element once, dense, within the limits of the hardware."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from cake_tma.boxes import BOX_MAX, Box, Buffer, boxes
from hypothesis import given, settings
from hypothesis import strategies as st


def bf16(*shape: int, slotted: bool = False) -> Buffer:
    return Buffer(shape, slotted, 2)


def test_a_row_as_wide_as_the_swizzle_is_one_box():
    assert boxes(bf16(128, 64), (128, 64), 128) == (Box((0, 0), (128, 64)),)


def test_wider_rows_lie_in_panels():
    assert boxes(bf16(64, 128), (64, 128), 128) == (Box((0, 0), (64, 64)), Box((0, 64), (64, 64)))
    assert boxes(bf16(64, 64), (64, 64), 32) == tuple(Box((0, c), (64, 16)) for c in (0, 16, 32, 48))


def test_unswizzled_rows_stay_whole():
    assert boxes(bf16(64, 128), (64, 128), 0) == (Box((0, 0), (64, 128)),)


@pytest.mark.parametrize(("rows", "steps"), [(256, [256]), (384, [192, 192]), (512, [256, 256]), (300, [256, 44])])
def test_long_tiles_are_cut_evenly_where_patterns_stay_whole(rows, steps):
    assert [b.size[0] for b in boxes(bf16(rows, 64), (rows, 64), 128)] == steps


def test_a_vector():
    assert [b.size for b in boxes(bf16(1024), (1024,), 0)] == [(256,)] * 4


def test_unswizzled_rows_over_256_elements_go_row_by_row():
    assert [b.size for b in boxes(bf16(2, 512), (2, 512), 0)] == [(1, 256)] * 4


@pytest.mark.parametrize(
    ("buffer", "tile", "swizzle", "why"),
    [
        (bf16(8, 4), (8, 4), 0, "not a multiple of 16"),
        (bf16(8, 48), (8, 48), 64, "not whole panels of 64"),
        (bf16(64, 128), (64, 32), 128, "not whole panels of 128"),
        (bf16(12, 128), (12, 128), 128, "panels of 12 rows"),
        (bf16(4, 64, slotted=True), (4, 64), 128, "slots of 512 bytes"),
        (bf16(8, slotted=True), (8,), 0, "slots of 16 bytes"),
        (bf16(8, 80), (8, 40), 0, "multiple of 128 bytes"),
        (bf16(4, 4, 64), (4, 2, 64), 128, "multiple of 8 rows"),
    ],
)
def test_what_has_no_boxes(buffer, tile, swizzle, why):
    assert why in boxes(buffer, tile, swizzle)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 8, 16, 320]), min_size=0, max_size=2),
    inner=st.sampled_from([8, 16, 32, 48, 64, 128, 192, 512]),
    swizzle=st.sampled_from([0, 32, 64, 128]),
    data=st.data(),
)
def test_boxes_cover_the_tile_once_and_densely(shape, inner, swizzle, data):
    buffer = bf16(*shape, inner)
    tile = tuple(data.draw(st.integers(1, n)) for n in shape) + (data.draw(st.sampled_from([n for n in (8, 16, 64, inner) if n <= inner])),)
    found = boxes(buffer, tile, swizzle)
    if isinstance(found, str):
        return
    assert sum(prod(b.size) for b in found) == prod(tile)
    starts = {b.lo for b in found}
    assert len(starts) == len(found)
    for b in found:
        assert all(1 <= n <= BOX_MAX and lo + n <= t for lo, n, t in zip(b.lo, b.size, tile, strict=True))
        assert b.size[-1] * 2 % 16 == 0 and (not swizzle or b.size[-1] * 2 == swizzle)
        rows = row_addresses(buffer, b, swizzle)
        assert rows == [rows[0] + 2 * b.size[-1] * i for i in range(len(rows))]
        assert rows[0] % (8 * swizzle or 128) == 0


def row_addresses(buffer: Buffer, box: Box, swizzle: int) -> list[int]:
    """Byte addresses of a box's rows in the order in which the hardware writes them (swizzle not applied)."""
    width = swizzle // 2 if swizzle else buffer.shape[-1]
    column = box.lo[-1]
    out = []
    for offset in product(*map(range, box.size[:-1])):
        row = sum((lo + o) * prod(buffer.shape[d + 1 : -1]) for d, (lo, o) in enumerate(zip(box.lo[:-1], offset, strict=True)))
        out.append(2 * (column // width * buffer.rows * width + row * width + column % width))
    return out
