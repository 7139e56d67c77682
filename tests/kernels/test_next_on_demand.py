"""`t.next` of items on demand, from the text to PTX, run on a machine of the ISA: it is the item that the cluster takes next."""

from functools import cache

import numpy as np
import pytest
import rowwise
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

GRID = """cake 1
kernel ahead(M: i32, N: i32, Y: inout i32[M, N], A: out i32[M, N, 2], B: out i32[M, N], NEXT: workspace i32[1])
  require 0 <= M, M <= 1000, 0 <= N, N <= 1000
  target sm90{cluster}
{{
  tiles t = persistent(m: M, n: N{raster}) dynamic NEXT{ahead}
  shared x: i32[2][1]
  pipeline p: 2 {{ x }} from give to take
  role give: 1 warp {{
    for (m, n) in t {{
      acquire p as s
      store x[s][0] <- 100 * m + n
      commit p
    }}
  }}
  role take: 2 warps {{
    for (m, n) in t {{
      wait p as s
      if m < M {{
        red.add Y[m, n] <- 1
        store A[m, n, 0] <- t.next.m
        store A[m, n, 1] <- t.next.n
        store B[m, n] <- load(x[s][0]) * 1000 + t.n
      }}
      release p
    }}
  }}
}}
"""


@cache
def built(text):
    return build(Source("ahead.cake", text), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")


def run(kernel, scalars, tensors, clusters, seed):
    held = {n: np.array(x) for n, x in tensors.items()} | {"NEXT": np.zeros(4, np.int32)}
    info = kernel.manifest.launch
    rowwise.Grid(kernel.lowered.ptx, info.cluster, info.threads // 32, info.shared_bytes, scalars, held, seed).run(clusters)
    assert (held["NEXT"] == 0).all(), "the counter is not as it was found"
    return held


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize(("raster", "ahead"), [("", ""), ("", " ahead 3"), (", raster = 3", "")])
@settings(max_examples=10, deadline=None)
@given(m=st.integers(1, 6), n=st.integers(1, 4), clusters=st.integers(1, 3), seed=st.integers(0, 99))
def test_it_is_the_item_that_the_cluster_takes_next(raster, ahead, ctas, m, n, clusters, seed):
    kernel = built(GRID.format(raster=raster, ahead=ahead, cluster="" if ctas == 1 else f"\n  cluster m = {ctas}"))
    clusters = min(clusters, -(-m // ctas) * n)  # as a launch does
    shape = {"Y": (m, n), "A": (m, n, 2), "B": (m, n)}
    held = run(kernel, {"M": m, "N": n}, {x: np.full(s, 0 if x == "Y" else -1, np.int32) for x, s in shape.items()}, clusters, seed)
    assert (held["Y"] == 1).all(), "an item is taken twice, or not at all"
    turn = held["B"] % 1000
    assert (held["B"] // 1000 == 100 * np.arange(m)[:, None] + np.arange(n)).all()
    followers = [tuple(map(int, x)) for x in held["A"].reshape(-1, 2)]
    inside = [x for x in followers if x[0] < m and x[1] < n]
    if ctas == 1:
        assert len(set(inside)) == len(inside), "two items have one follower"
        assert set(inside) == {(i, j) for i in range(m) for j in range(n) if turn[i, j] > 0}, "whoever is second to none follows one"
        assert all(turn[x] == turn.reshape(-1)[k] + 1 for k, x in enumerate(followers) if x in inside)
    assert all(x[1] >= n or x[0] < m + ctas for x in followers)
    assert sum(x[1] >= n for x in followers) >= 1, "behind the last item of a cluster the coordinates lie past the end"
    for first in range(0, m, ctas):  # the CTAs of a cluster lie side by side, in the next item too
        group = held["A"][first : first + ctas]
        assert (group[:, :, 0] - group[0, :, 0] == np.arange(len(group))[:, None]).all() and (group[:, :, 1] == group[0, :, 1]).all()


RAGGED = """cake 1
kernel ahead(E: i32, T: i32, OFF: in i32[E + 1], N: in i32[E], Y: out i32[T, 3], NEXT: workspace i32[1])
  require 1 <= E, E <= 1000, 0 <= T, T <= 1000
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{{
  tiles t = ragged(rows: OFF, block = 3){order} dynamic NEXT
  role main: 1 warp {{
    for (b, r0, r1) in t {{
      store Y[r0, 0] <- t.next.b
      store Y[r0, 1] <- t.next.r0
      store Y[r0, 2] <- t.next.r1
    }}
  }}
}}
"""


@pytest.mark.parametrize("order", ["", " order group_major"])
@settings(max_examples=10, deadline=None)
@given(rows=st.lists(st.integers(0, 7), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_behind_the_last_ragged_item_there_are_no_rows(order, rows, seed):
    off = np.cumsum([0, *rows]).astype(np.int32)
    items = [(g, r, int(off[g + 1])) for g in range(len(rows)) for r in range(off[g], off[g + 1], 3)]
    tensors = {"OFF": off, "N": np.zeros(len(rows), np.int32), "Y": np.full((max(int(off[-1]), 1), 3), -1, np.int32)}
    held = run(built(RAGGED.format(order=order)), {"E": len(rows), "T": int(off[-1])}, tensors, 1, seed)
    if items:
        said = {r: tuple(map(int, held["Y"][r])) for _, r, _ in items}
        assert sum(r0 == r1 for _, r0, r1 in said.values()) == 1
        found = [items[0]]
        while (following := said[found[-1][1]])[1] != following[2]:
            found.append(following)
        assert sorted(found) == sorted(items)


def test_all_roles_receive_one_ahead_if_one_asks():
    """So they go round alike, and what a role does an item is known of the others."""
    text = built(GRID.format(raster="", ahead="", cluster="")).derived_text
    assert text.count("if t_wait > 1 {") == 2 and text.count("if t_at >= 0 {") == 0
    plain = GRID.format(raster="", ahead="", cluster="").replace("t.next.m", "m").replace("t.next.n", "n")
    assert "t_wait > 1" not in built(plain).derived_text
