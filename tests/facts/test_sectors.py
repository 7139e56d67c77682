"""What accesses of global memory move and what of it they ask for, of texts whose lanes are easily counted."""

from __future__ import annotations

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.source import Source

ROW = """cake 1 derived
kernel k(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  require 1 <= R, R <= 64
  target sm90
{{
  launch R
  role main: 2 warps at 0 {{
    frag x: f32[512] vec {vec} layout vector
    x = load(X[cluster.id, {start} +: 512], fill = 0, by = {by})
    store Y[cluster.id, 0 +: 512] <- x by {by}
  }}
}}
"""

TILE = """cake 1 derived
kernel k(R: i32, C: i32, X: in {elem}[R, {extent}], Y: out {elem}[R, {extent}])
  require 1 <= R, R <= 64, 8 <= C, C <= 64, C % 8 == 0
  target sm90
{{
  launch 1
  role main: 1 warpgroup at 0 {{
    frag x: {elem}[64, {n}] layout mma
    x = load(X[0 +: 64, 0 +: {n}], fill = 0, by = {by})
    store Y[0 +: 64, 0 +: {n}] <- x by {by}
  }}
}}
"""


def load(text: str, offered):
    front = frontend(Source("case.cake", text), offered)
    rows = rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)
    (read,) = [a for a in rows["access"] if a["buffer"] == "X"]
    return read["sectors"], read["useful"], read["piece"], read["run"]


@pytest.mark.parametrize(
    ("vec", "by", "found"),
    [
        (1, 4, (4, 128, 4)),  # lanes side by side
        (2, 4, (8, 128, 8)),  # every other word
        (2, 8, (8, 256, 8)),
        (4, 4, (16, 128, 16)),  # one word of four
        (4, 16, (16, 512, 16)),
        (8, 8, (32, 256, 16)),  # a piece of 8 in each sector
        (8, 16, (32, 512, 16)),
    ],
)
def test_a_row(vec, by, found, offered):
    assert load(ROW.format(vec=vec, by=by, start=0), offered) == (*found, 2048)


def test_a_row_that_starts_inside_of_a_sector(offered):
    assert load(ROW.format(vec=1, by=4, start=1), offered)[:2] == (5, 128)


@pytest.mark.parametrize(
    ("elem", "n", "extent", "by", "found"),
    [
        ("bf16", 64, "C", 4, (8, 128, 4, 128)),  # 16 bytes of each of 8 rows
        ("f32", 64, "C", 8, (8, 256, 8, 256)),  # whole sectors
        ("f32", 64, "C", 4, (8, 128, 8, 256)),
        ("bf16", 8, "8", 4, (4, 128, 4, 1024)),  # rows of 16 bytes, one behind the other: the tile is one stretch
        ("bf16", 8, "C", 4, (8, 128, 4, 16)),
    ],
)
def test_rows_of_a_tile(elem, n, extent, by, found, offered):
    assert load(TILE.format(elem=elem, n=n, extent=extent, by=by), offered) == found


def test_a_column_takes_a_sector_an_element(offered):
    text = """cake 1 derived
kernel k(R: i32, C: i32, X: in f32[R, C], Y: out f32[R])
  require 256 <= R, R <= 65536, 1 <= C, C <= 64
  target sm90
{
  launch C
  role main: 2 warps at 0 {
    frag x: f32[256] vec 1 layout vector
    x = load(X[0 +: 256, cluster.id], by = 4)
    store Y[0 +: 256] <- x by 4
  }
}
"""
    assert load(text, offered) == (32, 128, 4, 4)
