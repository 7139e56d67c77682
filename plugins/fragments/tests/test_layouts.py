"""Layouts are bijections: every element of a tile lies in exactly one register of one thread."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.ir.types import BF16, F16, F32, I32
from cake_core.ptx.builder import Builder
from cake_fragments.mma import MMA
from cake_fragments.plugin import cake_primitives
from cake_fragments.space import FRAG
from cake_fragments.vector import VECTOR


def origin(layout, thread, words):
    """Origin of one thread: with numbers for lane and warp, the builder folds to numbers."""
    cx = SimpleNamespace(b=Builder(), lane=thread % 32, warp=thread // 32, thread=thread)
    at = layout.origin(cx, words)
    assert not cx.b.body
    return at


def held(layout, shape, warps, words):
    """Coordinates that each thread holds, in element order."""
    offsets = layout.offsets(shape, warps, words)
    return [[tuple(o + d for o, d in zip(origin(layout, t, words), off, strict=True)) for off in offsets] for t in range(32 * warps)]


def grid(shape):
    return {(i,) for i in range(shape[0])} if len(shape) == 1 else {(r, c) for r in range(shape[0]) for c in range(shape[1])}


mma_tiles = st.tuples(st.integers(1, 8), st.integers(1, 3), st.integers(1, 6)).map(lambda t: ((16 * t[0] * t[1], 8 * t[2]), t[0], {}))
vector_tiles = st.tuples(st.integers(1, 8), st.integers(1, 5), st.sampled_from([1, 2, 4, 8])).map(
    lambda t: ((32 * t[0] * t[1] * t[2],), t[0], {"vec": t[2]})
)
tiles = st.one_of(mma_tiles.map(lambda t: (MMA, *t)), vector_tiles.map(lambda t: (VECTOR, *t)))


@settings(max_examples=40, deadline=None)
@given(tiles)
def test_every_element_is_held_exactly_once(tile):
    layout, shape, warps, words = tile
    threads = held(layout, shape, warps, words)
    flat = [c for t in threads for c in t]
    assert len(flat) == len(set(flat))
    assert set(flat) == grid(shape)
    assert {len(t) for t in threads} == {layout.elements(shape, warps, words, F32)}


@settings(max_examples=40, deadline=None)
@given(tiles)
def test_runs_are_neighbours_and_start_at_their_multiples(tile):
    layout, shape, warps, words = tile
    run = layout.run(words)
    for thread in held(layout, shape, warps, words):
        for e in range(0, len(thread), run):
            first = thread[e]
            assert first[-1] % run == 0
            assert thread[e : e + run] == [(*first[:-1], first[-1] + i) for i in range(run)]


@settings(max_examples=40, deadline=None)
@given(mma_tiles, st.data())
def test_a_slice_holds_the_elements_whose_coordinates_lie_in_it(tile, data):
    shape, warps, words = tile
    granules = (16 * warps, 8)
    lo, size = [], []
    for extent, g in zip(shape, granules, strict=True):
        first = data.draw(st.integers(0, extent // g - 1))
        lo.append(first * g)
        size.append(data.draw(st.integers(1, extent // g - first)) * g)
    chosen = MMA.select(shape, warps, tuple(lo), tuple(size), words)
    for thread in held(MMA, shape, warps, words):
        inside = [e for e, c in enumerate(thread) if all(a <= x < a + n for x, a, n in zip(c, lo, size, strict=True))]
        assert list(chosen) == inside
    # A slice is laid out as a tile of its own shape is: a store of it needs no other rule.
    own = MMA.offsets(tuple(size), warps, words)
    whole = MMA.offsets(shape, warps, words)
    assert tuple(tuple(x - a for x, a in zip(whole[e], lo, strict=True)) for e in chosen) == own


@pytest.mark.parametrize(
    ("layout", "shape", "warps", "words", "lo", "size"),
    [
        (MMA, (64, 256), 4, {}, (0, 4), (64, 8)),
        (MMA, (64, 256), 4, {}, (0, 0), (64, 12)),
        (MMA, (64, 256), 4, {}, (16, 0), (16, 256)),
        (MMA, (64, 256), 4, {}, (0, 256), (64, 8)),
        (MMA, (64, 256), 4, {}, (0, 0), (64, 0)),
        (VECTOR, (8192,), 8, {"vec": 8}, (0,), (4096,)),
        (VECTOR, (8192,), 8, {"vec": 8}, (2048,), (8192,)),
    ],
)
def test_a_slice_that_cuts_a_granule_is_none(layout, shape, warps, words, lo, size):
    assert layout.select(shape, warps, lo, size, words) is None


@pytest.mark.parametrize(
    ("layout", "shape", "warps", "words", "elem", "count"),
    [
        (MMA, (64, 256), 4, {}, F32, 128),
        (MMA, (128, 64), 4, {}, F32, 64),
        (MMA, (64, 64), 4, {}, BF16, 32),
        (MMA, (64, 60), 4, {}, F32, None),
        (MMA, (72, 64), 4, {}, F32, None),
        (MMA, (64,), 4, {}, F32, None),
        (VECTOR, (8192,), 8, {"vec": 8}, F32, 32),
        (VECTOR, (8192,), 8, {"vec": 8}, BF16, 32),
        (VECTOR, (256,), 8, {}, I32, 1),
        (VECTOR, (256,), 8, {}, F16, None),
        (VECTOR, (256,), 8, {"vec": 8}, F32, None),
        (VECTOR, (64, 64), 4, {"vec": 8}, F32, None),
        (VECTOR, (8192,), 8, {"vec": 0}, F32, None),
    ],
)
def test_shapes_that_do_not_divide_are_none(layout, shape, warps, words, elem, count):
    assert layout.elements(shape, warps, words, elem) == count


def test_whole_vector_is_its_own_slice():
    assert VECTOR.select((8192,), 8, (0,), (8192,), {"vec": 8}) == tuple(range(32))


def test_what_is_offered():
    offered = {p.name: p for p in cake_primitives()}
    assert set(offered) == {"frag", "mma", "vector"}
    assert FRAG.memory == "registers"
    assert all("PTX ISA" in p.doc for p in offered.values())
