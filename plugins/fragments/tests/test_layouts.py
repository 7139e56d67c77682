"""Layouts are bijections: every element of a tile lies in exactly one register of one thread; a factor's in one of each warp that needs it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.ir.types import BF16, ELEMENTS, F16, F32, I32
from cake_core.ptx.builder import Builder
from cake_fragments.factor import FACTORS
from cake_fragments.mma import MMA
from cake_fragments.plugin import cake_primitives
from cake_fragments.rows import ROWS
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
grid_tiles = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 3)).map(
    lambda t: ((16 * t[0] * t[2], 16 * t[1] * t[3]), t[0] * t[1], {"grid": (t[0], t[1])})
)
mma_tiles = st.one_of(mma_tiles, grid_tiles)
vector_tiles = st.tuples(st.integers(1, 8), st.integers(1, 5), st.sampled_from([1, 2, 4, 8])).map(
    lambda t: ((32 * t[0] * t[1] * t[2],), t[0], {"vec": t[2]})
)
row_tiles = st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from([1, 2, 4, 8]), st.integers(1, 3)).map(
    lambda t: ((t[3], 32 * t[0] * t[1] * t[2]), t[0], {"vec": t[2]})
)
tiles = st.one_of(mma_tiles.map(lambda t: (MMA, *t)), vector_tiles.map(lambda t: (VECTOR, *t)), row_tiles.map(lambda t: (ROWS, *t)))


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
    rows, columns = words.get("grid", (warps, 1))
    granules = (16 * rows, 16 * columns if columns > 1 else 8)
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
        (MMA, (128, 128), 8, {"grid": (2, 4)}, F32, 64),
        (MMA, (128, 96), 8, {"grid": (2, 4)}, F32, None),
        (MMA, (48, 128), 8, {"grid": (2, 4)}, F32, None),
        (MMA, (128, 128), 8, {"grid": (4, 4)}, F32, None),
        (MMA, (32, 8), 2, {"grid": (2, 1)}, F32, 4),
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


# --- factors of a product

BY_NAME = {f.name: f for f in FACTORS}
factor_tiles = st.tuples(
    st.sampled_from(FACTORS), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)
).map(lambda t: (t[0], (16 * t[1 if t[0].left else 2] * t[3], 256 // t[0].bits * t[4]), (t[1], t[2])))


def elem_of(layout):
    return {8: ELEMENTS["e4m3"], 16: BF16, 32: F32}[layout.bits]


@settings(max_examples=40, deadline=None)
@given(factor_tiles)
def test_each_warp_that_needs_a_row_of_a_factor_holds_it_whole(tile):
    """The rows of a left factor are held in every column of the grid, those of a right one in every row, each once a warp."""
    layout, shape, grid_ = tile
    warps, words = grid_[0] * grid_[1], {"grid": grid_}
    threads = held(layout, shape, warps, words)
    assert {len(t) for t in threads} == {layout.elements(shape, warps, words, elem_of(layout))}
    of_warp = [[c for t in threads[32 * w : 32 * w + 32] for c in t] for w in range(warps)]
    assert all(len(w) == len(set(w)) for w in of_warp)
    for w, other in itertools.product(range(warps), repeat=2):
        same = w // grid_[1] == other // grid_[1] if layout.left else w % grid_[1] == other % grid_[1]
        assert set(of_warp[w]) & set(of_warp[other]) == (set(of_warp[w]) if same else set())
    assert set().union(*map(set, of_warp)) == grid(shape)


@settings(max_examples=40, deadline=None)
@given(factor_tiles)
def test_a_factor_meets_the_accumulator(tile):
    """Every warp holds the rows of A, and of B, that the elements of the result in its registers are made from."""
    layout, shape, grid_ = tile
    warps, words = grid_[0] * grid_[1], {"grid": grid_}
    rows, axis = shape[0], 0 if layout.left else 1
    result = (rows, 16 * grid_[1]) if layout.left else (16 * grid_[0], rows)
    acc, factor = held(MMA, result, warps, words), held(layout, shape, warps, words)
    for w in range(warps):
        lanes = range(32 * w, 32 * w + 32)
        assert {c[axis] for t in lanes for c in acc[t]} == {c[0] for t in lanes for c in factor[t]}


@settings(max_examples=40, deadline=None)
@given(st.one_of(factor_tiles, mma_tiles.map(lambda t: (MMA, t[0], t[2].get("grid", (t[1], 1))))))
def test_registers_are_parts_of_matrices_of_eight_rows_by_16_bytes(tile):
    """What `ldmatrix` leaves in lane l (PTX ISA, ldmatrix): 4 bytes at 4 (l mod 4) of row l / 4 of the matrix at the register's corner."""
    layout, shape, grid_ = tile
    warps, words = grid_[0] * grid_[1], {"grid": grid_}
    pack = getattr(layout, "pack", 2)
    offsets = layout.offsets(shape, warps, words)
    for thread, elements in enumerate(held(layout, shape, warps, words)):
        cx = SimpleNamespace(b=Builder(), lane=thread % 32, warp=thread // 32, thread=thread)
        corner = layout.corner(cx, words)
        for first in range(0, len(elements), pack):
            row, column = (c + o for c, o in zip(corner, offsets[first], strict=True))
            lane = thread % 32
            assert elements[first : first + pack] == [(row + lane // 4, column + pack * (lane % 4) + i) for i in range(pack)]
            assert row % 8 == 0 and column % (4 * pack) == 0


def test_the_operands_of_one_instruction_stand_as_the_isa_lists_them():
    """m16n8k16 and m16n8k8 (PTX ISA, Matrix Fragments): a0..a3 go down, then right; b0, b1 down."""
    corners = lambda name, shape: [o for o in BY_NAME[name].offsets(shape, 1, {}) if o[1] % BY_NAME[name].pack == 0]  # noqa: E731
    assert corners("mma_a", (16, 16)) == [(0, 0), (8, 0), (0, 8), (8, 8)]
    assert corners("mma_b", (8, 16)) == [(0, 0), (0, 8)]
    assert corners("mma_a32", (16, 8)) == [(0, 0), (8, 0), (0, 4), (8, 4)]
    assert corners("mma_b32", (8, 8)) == [(0, 0), (0, 4)]
    assert corners("mma_a8", (16, 32)) == [(0, 0), (8, 0), (0, 16), (8, 16)]
    assert corners("mma_b8", (8, 32)) == [(0, 0), (0, 16)]


@settings(max_examples=30, deadline=None)
@given(factor_tiles, st.data())
def test_a_slice_of_a_factor_is_laid_out_as_its_own_shape(tile, data):
    layout, shape, grid_ = tile
    warps, words = grid_[0] * grid_[1], {"grid": grid_}
    units = (16 * grid_[0] if layout.left else 16 * grid_[1] if grid_[1] > 1 else 8, 256 // layout.bits)
    lo, size = [], []
    for extent, u in zip(shape, units, strict=True):
        first = data.draw(st.integers(0, extent // u - 1))
        lo.append(first * u)
        size.append(data.draw(st.integers(1, extent // u - first)) * u)
    chosen = layout.select(shape, warps, tuple(lo), tuple(size), words)
    whole = layout.offsets(shape, warps, words)
    assert tuple(tuple(x - a for x, a in zip(whole[e], lo, strict=True)) for e in chosen) == layout.offsets(tuple(size), warps, words)
    assert layout.select(shape, warps, (lo[0] + 4, lo[1]), tuple(size), words) is None


def test_an_accumulator_is_a_left_factor_where_there_is_one_column_of_warps():
    a, b = BY_NAME["mma_a"], BY_NAME["mma_b"]
    for words, alike in (({}, True), ({"grid": (4, 1)}, True), ({"grid": (2, 2)}, False)):
        assert (a.places(words) == MMA.places(words)) == alike
        if alike:
            assert held(a, (128, 64), 4, words) == held(MMA, (128, 64), 4, words)
    assert b.places({}) != MMA.places({}) and BY_NAME["mma_a32"].places({}) != MMA.places({})


@pytest.mark.parametrize(
    ("name", "shape", "warps", "words", "elem", "count"),
    [
        ("mma_a", (128, 16), 8, {"grid": (2, 4)}, BF16, 32),
        ("mma_b", (128, 16), 8, {"grid": (2, 4)}, F16, 16),
        ("mma_a32", (128, 8), 8, {"grid": (2, 4)}, F32, 16),
        ("mma_a", (128, 16), 8, {"grid": (2, 4)}, F32, None),
        ("mma_a", (128, 8), 8, {"grid": (2, 4)}, BF16, None),
        ("mma_a", (144, 16), 8, {"grid": (2, 4)}, BF16, None),
        ("mma_b", (96, 16), 8, {"grid": (2, 4)}, BF16, None),
        ("mma_b", (24, 16), 8, {}, BF16, 12),
        ("mma_a", (128, 16), 8, {"grid": (2, 2)}, BF16, None),
        ("mma_a", (128,), 8, {}, BF16, None),
    ],
)
def test_shapes_of_factors(name, shape, warps, words, elem, count):
    assert BY_NAME[name].elements(shape, warps, words, elem) == count


def test_whole_vector_is_its_own_slice():
    assert VECTOR.select((8192,), 8, (0,), (8192,), {"vec": 8}) == tuple(range(32))


def test_what_is_offered():
    offered = {p.name: p for p in cake_primitives()}
    assert {"frag", "mma", "mma_a", "mma_b", "mma_a32", "mma_b32", "vector"} <= set(offered)
    assert FRAG.memory == "registers"
    assert all("PTX ISA" in p.doc for p in offered.values())


# --- rows


@settings(max_examples=40, deadline=None)
@given(row_tiles, st.data())
def test_a_slice_of_rows_holds_their_elements(tile, data):
    shape, warps, words = tile
    lo = data.draw(st.integers(0, shape[0] - 1))
    size = data.draw(st.integers(1, shape[0] - lo))
    chosen = ROWS.select(shape, warps, (lo, 0), (size, shape[1]), words)
    for thread in held(ROWS, shape, warps, words):
        assert [thread[e] for e in chosen] == [c for c in thread if lo <= c[0] < lo + size]


@settings(max_examples=20, deadline=None)
@given(row_tiles)
def test_tiles_along_the_axes_have_the_rows_and_columns_of_each_thread(tile):
    """Every thread has each of its elements' row and column, at the place of its own in the tile along that axis."""
    shape, warps, words = tile
    whole = held(ROWS, shape, warps, words)
    for n, axis in enumerate(("row", "col")):
        along = held(ROWS, (shape[n],), warps, words | {"over": axis})
        assert {len(t) for t in along} == {ROWS.elements((shape[n],), warps, words | {"over": axis}, F32)}
        for two, one in zip(whole, along, strict=True):
            assert {c[n] for c in two} == {i for (i,) in one}


def test_one_thread_writes_what_all_hold():
    cx = lambda t: SimpleNamespace(b=Builder(), lane=t % 32, warp=t // 32, thread=t)  # noqa: E731
    assert [ROWS.owner(cx(t), {"over": "row", "vec": 4}) for t in (0, 1, 32)] == [True, False, False]
    assert ROWS.owner(cx(5), {"over": "col", "vec": 4}) is True


@pytest.mark.parametrize(
    ("shape", "warps", "words", "elem"),
    [
        ((4, 256), 2, {"vec": 8}, F32),  # 64 threads take 512 columns at a time
        ((256,), 1, {"vec": 8}, F32),  # that is `vector`'s
        ((4, 64), 1, {"vec": 1}, BF16),  # no pairs
        ((4,), 1, {"vec": 8, "over": "row"}, BF16),
        ((4, 4), 1, {"vec": 8, "over": "row"}, F32),
        ((4,), 1, {"over": "row"}, F32),  # along which tile?
    ],
)
def test_rows_that_do_not_fit(shape, warps, words, elem):
    assert ROWS.elements(shape, warps, words, elem) is None


@pytest.mark.parametrize(("lo", "size"), [((0, 256), (4, 256)), ((0, 0), (4, 256)), ((3, 0), (2, 512)), ((-1, 0), (2, 512)), ((0, 0), (0, 512))])
def test_rows_that_no_slice_takes(lo, size):
    assert ROWS.select((4, 512), 1, lo, size, {"vec": 8}) is None
