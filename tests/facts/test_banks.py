"""Turns at the banks of shared memory, of texts whose lanes are easily counted; and where a swizzle puts elements."""

from __future__ import annotations

import itertools

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.ir.plan import BufferPlan
from cake_core.ir.swizzle import CHUNK, ROWS, offset
from cake_core.ir.types import BF16, F32
from cake_core.pipeline import frontend
from cake_core.source import NOWHERE, Source

ROW = """cake 1 derived
kernel k(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  require 1 <= R, R <= 64
  target sm90
{{
  launch R
  shared s: f32[2][512] at 0
  role main: 2 warps at 0 {{
    frag x: f32[512] vec {vec} layout vector
    x = load(X[cluster.id, 0 +: 512], by = {by})
    store s[R % 2] <- x by {by}
    store Y[cluster.id, 0 +: 512] <- x by {by}
  }}
}}
"""

TILE = """cake 1 derived
kernel k(R: i32, X: in {elem}[R, {n}], Y: out {elem}[R, {n}])
  require 1 <= R, R <= 64
  target sm90
{{
  launch 1
  shared s: {elem}[2][64, {pitch}] at 0{swizzle}
  role main: 1 warpgroup at 0 {{
    frag x: {elem}[64, {n}] layout mma
    x = load(X[0 +: 64, 0 +: {n}], by = {by})
    store s[R % 2][0 +: 64, {column} +: {n}] <- x by {how}
    store Y[0 +: 64, 0 +: {n}] <- x by {by}
  }}
}}
"""


def turns(text: str, offered) -> int | None:
    front = frontend(Source("case.cake", text), offered)
    rows = rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)
    (store,) = [a for a in rows["access"] if a["buffer"] == "s" and a["mode"] == "write"]
    return store["turns"]


@pytest.mark.parametrize(
    ("vec", "by", "found"),
    [(1, 4, 1), (2, 4, 2), (2, 8, 1), (4, 4, 4), (4, 8, 2), (4, 16, 1), (8, 4, 8), (8, 8, 4), (8, 16, 2)],
)
def test_a_row(vec, by, found, offered):
    """Lanes stand `vec` words apart."""
    assert turns(ROW.format(vec=vec, by=by), offered) == found


def tile(offered, elem="bf16", n=64, pitch=None, swizzle=0, how="4", column="0", by=4) -> int | None:
    words = f" swizzle {swizzle}" if swizzle else ""
    return turns(TILE.format(elem=elem, n=n, pitch=pitch or n, swizzle=words, how=how, column=column, by=by), offered)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ({}, 8),  # eight rows of 128 bytes, four words each
        ({"swizzle": 128}, 1),
        ({"n": 32, "swizzle": 64}, 1),
        ({"n": 32}, 4),
        ({"n": 64, "pitch": 72}, 1),  # rows 16 bytes longer
        ({"n": 64, "pitch": 68}, 2),  # rows two words longer: each row's four words share two banks with those of the next
        ({"how": "stmatrix"}, 8),
        ({"how": "stmatrix", "swizzle": 128}, 1),
        ({"how": "stmatrix", "n": 64, "pitch": 72}, 1),
        ({"how": "stmatrix", "n": 16, "pitch": 16}, 2),
        ({"elem": "f32", "n": 32, "by": 8, "how": "8"}, 4),
        ({"elem": "f32", "n": 32, "by": 8, "how": "8", "swizzle": 128}, 2),  # a half of a warp: two chunks of four rows, 0 1 and 1 0 and so on
        ({"swizzle": 128, "pitch": 128, "column": "64"}, 1),
        ({"swizzle": 128, "pitch": 128, "column": "R % 2 * 64"}, 1),
    ],
)
def test_a_tile(shape, found, offered):
    assert tile(offered, **shape) == found


@pytest.mark.parametrize(
    ("elem", "width", "swizzle"), [(BF16, 64, 128), (BF16, 128, 128), (F32, 16, 64), (BF16, 16, 32), (F32, 64, 0), (BF16, 64, 64)]
)
def test_a_swizzle_permutes_chunks(elem, width, swizzle):
    """Each element has a place of its own in the slot; chunks stay together; in the rows of a pattern no two put one chunk at one place of it."""
    buffer = BufferPlan("s", elem, (), (16, width), 0, swizzle, NOWHERE)
    at = {i: offset(buffer, i) for i in itertools.product(range(16), range(width))}
    assert sorted(at.values()) == list(range(0, buffer.slot_bytes, elem.bytes))
    per_chunk = CHUNK // elem.bytes
    assert all(at[r, c] - at[r, c - c % per_chunk] == c % per_chunk * elem.bytes for r, c in at)
    if swizzle == 128:
        assert len({at[r, 0] % 128 for r in range(ROWS)}) == ROWS
