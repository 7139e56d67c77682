"""Items on demand, from the text to PTX, run on a machine of the ISA: each is taken once, every role stops, the counter is as it was."""

from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import rowwise
from hypothesis import given, settings
from hypothesis import strategies as st
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests" / "derive" / "texts" / "rows_on_demand.cake"


@cache
def built(text, arch="sm90"):
    return build(Source("on_demand.cake", text), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), arch)


def run(kernel, scalars, tensors, ctas, seed, late=False):
    """The tensors as the kernel leaves them; its workspaces hold zeros before and behind."""
    work = {p.name: np.zeros(4, np.int32) for p in kernel.manifest.params if p.mode == "workspace"}
    held = {n: np.array(x) for n, x in tensors.items()} | work
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), scalars, held, late, seed).run(ctas)
    assert all((held[n] == 0).all() for n in work), "the counter is not as it was found"
    return held


@pytest.mark.parametrize("arch", ["sm80", "sm90"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("rows", "ctas"), [(7, 3), (1, 4), (0, 2), (12, 1)])
def test_rows_that_a_text_takes_by_itself(rows, ctas, seed, arch):
    x = np.arange(max(rows, 1) * 256, dtype=np.float32).reshape(-1, 256)
    tensors = {"X": x, "Y": np.full_like(x, -1)}
    held = run(built(ROWS.read_text(), arch), {"R": rows, "NC": ctas}, tensors, ctas, seed)
    assert (held["Y"][:rows] == 2 * x[:rows]).all() and (held["Y"][rows:] == -1).all()


GRIDS = """cake 1
kernel visit(M: i32, N: i32, Y: inout i32[M, N], Z: out i32[M, N]{params})
  require 0 <= M, M <= 1000, 0 <= N, N <= 1000
  target {arch}
{{
  tiles t = persistent(m: M, n: N{raster}){dynamic} {{
    let sum = 100 * m + n
  }}
  shared x: i32[2][1]
  pipeline p: 2 {{ x }} from give to take
  role give: 1 warp {{
    for (a, b) in t {{
      acquire p as s
      store x[s][0] <- sum
      commit p
    }}
  }}
  role take: 2 warps {{
    for (m, n) in t {{
      wait p as s
      red.add Y[m, n] <- 1
      store Z[m, n] <- load(x[s][0]) * 1000 + t.n
      release p
    }}
  }}
}}
"""


def grid_text(raster="", dynamic=" dynamic NEXT", params=", NEXT: workspace i32[1]", arch="sm90"):
    return GRIDS.format(raster=raster, dynamic=dynamic, params=params, arch=arch)


@pytest.mark.parametrize("ahead", ["", " ahead 2", " ahead 3"])
@pytest.mark.parametrize("raster", ["", ", raster = 3"])
@settings(max_examples=12, deadline=None)
@given(m=st.integers(0, 7), n=st.integers(0, 4), ctas=st.integers(1, 4), seed=st.integers(0, 99))
def test_every_point_of_a_grid_is_taken_once(raster, ahead, m, n, ctas, seed):
    ctas = min(ctas, m * n)  # as a launch does
    shape = (max(m, 1), max(n, 1))
    tensors = {"Y": np.zeros(shape, np.int32), "Z": np.full(shape, -1, np.int32)}
    held = run(built(grid_text(raster, f" dynamic NEXT{ahead}")), {"M": m, "N": n}, tensors, ctas, seed)
    assert (held["Y"] == (1 if m and n else 0)).all()
    if m and n:
        assert (held["Z"] // 1000 == 100 * np.arange(m)[:, None] + np.arange(n)).all()
        counts = np.bincount((held["Z"] % 1000).ravel())  # how many CTAs have had an item of each number
        assert counts.sum() == m * n and (np.diff(counts) <= 0).all() and counts[0] <= ctas


def test_ctas_take_as_many_as_they_get_to():
    """In turn each CTA has the same number of items; on demand that depends on who is free."""
    shares = set()
    for seed in range(12):
        held = run(built(grid_text()), {"M": 8, "N": 1}, {"Y": np.zeros((8, 1), np.int32), "Z": np.full((8, 1), -1, np.int32)}, 2, seed)
        shares.add(int((held["Z"] % 1000).max()) + 1)
    assert len(shares) > 1


def test_the_same_order_as_in_turn():
    sizes, one = {"M": 5, "N": 4}, {"Y": np.zeros((5, 4), np.int32), "Z": np.full((5, 4), -1, np.int32)}
    in_turn = run(built(grid_text(", raster = 3", "", "")), sizes, one, 1, 0)
    on_demand = run(built(grid_text(", raster = 3")), sizes, one, 1, 0)
    assert (in_turn["Z"] == on_demand["Z"]).all()


def test_launches_follow_one_another_on_one_counter():
    kernel, work = built(grid_text()), np.zeros(4, np.int32)
    for launch in range(3):
        held = {"Y": np.zeros((3, 3), np.int32), "Z": np.zeros((3, 3), np.int32), "NEXT": work}
        Grid(kernel.lowered.ptx, asdict(kernel.manifest), {"M": 3, "N": 3}, held, False, launch).run(3)
        assert (held["Y"] == 1).all() and (work == 0).all()


@pytest.mark.parametrize("arch", ["sm80", "sm90", "sm100"])
def test_what_is_derived_builds_to_the_same(arch):
    kernel = built(grid_text(arch=arch), arch)
    again = built(kernel.derived_text, arch)
    assert again.lowered.ptx == kernel.lowered.ptx and again.manifest.workspaces == kernel.manifest.workspaces == {"NEXT"}


def test_the_role_that_draws_waits_for_the_grids_in_front():
    """Their roles draw from the counter too: a grid that starts early must not."""
    text = grid_text().replace(" warp {\n", " warp {\n    grid.wait\n").replace(" warps {\n", " warps {\n    grid.wait\n")
    kernel = built(text)
    scheduler = kernel.derived_text[kernel.derived_text.index("role t_sched") :]
    assert scheduler.index("grid.wait") < scheduler.index("while") and kernel.manifest.launch.starts_early
    assert "grid.wait" not in built(grid_text()).derived_text


def test_where_the_role_that_draws_lives():
    alone = built(grid_text()).derived_text
    assert "role take: 2 warps at 1 {" in alone and "role t_sched: 1 warp at 3 {" in alone
    moe = (ROOT / "kernels" / "moe" / "moe_grouped_dynamic_sm90.cake").read_text()
    assert "role load: 1 warp at 0 regs 40 pad 3" in built(moe).derived_text and "role t_sched: 1 warp at 1 {" in built(moe).derived_text


CLUSTERS = (ROOT / "tests" / "derive" / "texts" / "on_demand_cluster.cake").read_text()


@pytest.mark.parametrize("ctas", [2, 4])
@settings(max_examples=10, deadline=None)
@given(m=st.integers(1, 9), n=st.integers(1, 3), clusters=st.integers(1, 3), seed=st.integers(0, 99))
def test_clusters_take_theirs_together(ctas, m, n, clusters, seed):
    """All CTAs of a cluster hear of the same item, and lie side by side in it."""
    kernel = built(CLUSTERS.replace("CL = 2", f"CL = {ctas}"))
    clusters = min(clusters, -(-m // ctas) * n)  # as a launch does
    held = {"Y": np.zeros((m, n), np.int32), "Z": np.full((m, n), -1, np.int32), "NEXT": np.zeros(4, np.int32)}
    info = kernel.manifest.launch
    rowwise.Grid(kernel.lowered.ptx, ctas, info.threads // 32, info.shared_bytes, {"M": m, "N": n}, held, seed).run(clusters)
    assert (held["Y"] == 1).all() and (held["NEXT"] == 0).all()
    for first in range(0, m, ctas):
        assert (held["Z"][first : first + ctas] == held["Z"][first]).all()


RAGGED = """cake 1
kernel visit(E: i32, T: i32, H: i32, OFF: in i32[E + 1], Y: inout i32[H, T], NEXT: workspace i32[1])
  require 0 <= E, E <= 1000, 0 <= T, T <= 100000, 0 <= H, H <= 1000
  assume OFF[E] == T
  target sm90
  cluster {axis} = 2
{{
  tiles t = ragged(rows: OFF, block = 4) * grid(h: H){order} dynamic NEXT
  role main: 1 warp {{
    for (g, r0, r1, h) in t {{
      if r0 < r1 and h < H {{
        red.add Y[h, r0] <- g + 1
      }}
    }}
  }}
}}
"""


@pytest.mark.parametrize("axis", ["rows", "h"])
@pytest.mark.parametrize("order", ["", " order group_major"])
@settings(max_examples=8, deadline=None)
@given(sizes=st.lists(st.sampled_from([0, 1, 4, 5, 9, 17]), min_size=1, max_size=4), heads=st.integers(1, 3), seed=st.integers(0, 99))
def test_clusters_take_ragged_items(axis, order, sizes, heads, seed):
    """Along the rows or along a dimension: each block of each group at each point once, by the CTA whose it is."""
    kernel, off = built(RAGGED.format(axis=axis, order=order)), np.cumsum([0, *sizes]).astype(np.int32)
    scalars = {"E": len(sizes), "T": int(off[-1]), "H": heads}
    held = {"OFF": off, "Y": np.zeros((heads, max(int(off[-1]), 1)), np.int32), "NEXT": np.zeros(4, np.int32)}
    info = kernel.manifest.launch
    rowwise.Grid(kernel.lowered.ptx, 2, info.threads // 32, info.shared_bytes, scalars, held, seed).run(2)
    wanted = np.zeros_like(held["Y"])
    for g, size in enumerate(sizes):
        wanted[:, off[g] : off[g] + size : 4] = g + 1
    assert (held["Y"] == wanted).all() and (held["NEXT"] == 0).all()


def test_a_role_that_stops_too_late_never_ends():
    """The same text, its consumer written by hand in the derived form so that it asks for one message more."""
    derived = built(ROWS.read_text(), "sm90").derived_text
    assert derived.count("    var at = 0\n    while at >= 0 {\n      let s = next_wait") == 1
    wrong = derived.replace(
        "    var at = 0\n    while at >= 0 {\n      let s = next_wait", "    var at = 0\n    while at >= -1 {\n      let s = next_wait"
    )
    with pytest.raises(AssertionError, match="a deadlock"):
        run(built(wrong), {"R": 3, "NC": 2}, {"X": np.zeros((3, 256), np.float32), "Y": np.zeros((3, 256), np.float32)}, 2, 0)
