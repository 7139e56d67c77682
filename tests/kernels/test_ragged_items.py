"""Ragged schedules, from the text to PTX, run on a machine of the ISA: every item is visited once, in the order that was asked for."""

from dataclasses import asdict
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime.plan import make_items
from cake_core.source import Source

BLOCK = 4
TEXT = """cake 1
kernel visit(E: i32, T: i32, H: i32, OFF: in i32[E + 1], N: out i32[H, T], G: out i32[H, T], C: out i32[H, T]{counter})
  require 0 <= E, E <= 1000, 0 <= T, T <= 100000, 0 <= H, H <= 1000
  assume OFF[E] == T
  target sm90
{{
  tiles t = ragged(rows: OFF, block = 4){grid}{order}{dynamic} {{
    let rows = min(r1 - r0, 4), cost = 2 * rows + 1
    let next = r0 + rows
  }}
  role main: 1 warp {{
    for (g, first, behind{h}) in t {{
      store N[{at}, first] <- t.n
      store G[{at}, first] <- g * 100 + behind - first
      store C[{at}, first] <- next * 100 + cost
    }}
  }}
}}
"""
GRID = {"grid": " * grid(h: H)", "h": ", h", "at": "h"}
ALONE = {"grid": "", "h": "", "at": "0"}


@cache
def built(order, dynamic=False, **parts):
    counter = {"counter": ", NEXT: workspace i32[1]", "dynamic": " dynamic NEXT"} if dynamic else {"counter": "", "dynamic": ""}
    text = TEXT.format(order=f" order {order}" if order else "", **counter, **parts)
    return build(Source("visit.cake", text), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")


def visit(kernel, off, heads, ctas, seed=0):
    """(N, G, C) as the kernel left them, the CTA of every item being unknown."""
    off = np.asarray(off, np.int32)
    scalars = {"E": len(off) - 1, "T": int(off[-1]), "H": heads}
    tensors = {"OFF": off} | {n: np.full((max(heads, 1), max(int(off[-1]), 1)), -1, np.int32) for n in "NGC"}
    if kernel.manifest.plan is not None:
        tensors["t_items"] = make_items(kernel.manifest, scalars, {"OFF": off}, ctas)
        scalars["t_count"] = len(tensors["t_items"])
        ctas = min(ctas, len(tensors["t_items"]))  # as a launch does
    work = {p.name: np.zeros(1, np.int32) for p in kernel.manifest.params if p.mode == "workspace"}
    held = tensors | work
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), scalars, held, False, seed).run(ctas)
    assert all((w == 0).all() for w in work.values()), "the counter is not as it was found"
    return held


def expected(off, heads):
    """(row of an item, head) to group * 100 + rows left, and next row * 100 + cost."""
    out = {}
    for g in range(len(off) - 1):
        for r in range(off[g], off[g + 1], BLOCK):
            rows = min(off[g + 1] - r, BLOCK)
            for h in range(heads):
                out[h, r] = (g * 100 + off[g + 1] - r, (r + rows) * 100 + 2 * rows + 1)
    return out


def agrees(held, off, heads, ctas):
    wanted = expected(off, heads)
    visited = list(zip(*np.nonzero(held["N"] >= 0), strict=True))
    assert {(int(h), int(r)) for h, r in visited} == set(wanted)
    assert all((held["G"][x], held["C"][x]) == wanted[x] for x in wanted)
    # A CTA numbers its items from 0 on: as many of each number as CTAs that got so far, and so no item twice.
    counts = np.bincount(held["N"][held["N"] >= 0], minlength=1)
    assert counts.sum() == len(wanted) and (np.diff(counts) <= 0).all() and counts[0] <= ctas


OFFSETS = st.lists(st.sampled_from([0, 0, 1, 3, 4, 5, 9, 17]), min_size=0, max_size=6).map(lambda sizes: [0, *np.cumsum(sizes).tolist()])
SCANS, TABLES = (None, "group_major"), ("longest_first(cost)", "balanced(cost, section = 3)")


@pytest.mark.parametrize("order", [*SCANS, *TABLES])
@settings(max_examples=12, deadline=None)
@given(off=OFFSETS, heads=st.integers(1, 3), ctas=st.integers(1, 4))
def test_every_item_is_visited_once(order, off, heads, ctas):
    agrees(visit(built(order, **GRID), off, heads, ctas), off, heads, ctas)


@pytest.mark.parametrize("order", [*SCANS, "longest_first(cost)"])
@settings(max_examples=12, deadline=None)
@given(off=OFFSETS, heads=st.integers(1, 3), ctas=st.integers(1, 4), seed=st.integers(0, 99))
def test_every_item_is_taken_once_on_demand(order, off, heads, ctas, seed):
    agrees(visit(built(order, dynamic=True, **GRID), off, heads, ctas, seed), off, heads, ctas)


@pytest.mark.parametrize("order", [None, "group_major", "longest_first(cost)"])
@settings(max_examples=8, deadline=None)
@given(off=OFFSETS, ctas=st.integers(1, 4))
def test_rows_alone(order, off, ctas):
    agrees(visit(built(order, **ALONE), off, 1, ctas), off, 1, ctas)


@pytest.mark.parametrize(
    ("order", "key"),
    [(None, lambda g, r, h: (h, r)), ("group_major", lambda g, r, h: (g, h, r))],
    ids=["all blocks fastest", "group by group"],
)
@pytest.mark.parametrize("dynamic", [False, True], ids=["in turn", "on demand"])
def test_the_order_of_one_cta(order, key, dynamic):
    off, heads = [0, 5, 5, 14], 2
    held = visit(built(order, dynamic, **GRID), off, heads, 1)
    items = sorted(((g, r, h) for g in range(3) for r in range(off[g], off[g + 1], BLOCK) for h in range(heads)), key=lambda x: key(*x))
    assert [held["N"][h, r] for _, r, h in items] == list(range(len(items)))


def test_a_table_decides_the_order():
    off, heads = [0, 5, 5, 14], 2
    kernel = built("longest_first(cost)", **GRID)
    held = visit(kernel, off, heads, 1)
    table = make_items(kernel.manifest, {"E": 3, "T": 14, "H": heads}, {"OFF": np.array(off)}, 1)
    assert [held["N"][h, r] for _, r, h in table.tolist()] == list(range(len(table)))


def test_only_what_a_role_uses_is_computed():
    text = built(None, **GRID).derived_text
    role = text[text.index("role main") :]
    assert "let rows = min(behind - first, 4)" in role and "let cost = 2 * rows + 1" in role
    pared = TEXT.format(order="", counter="", dynamic="", **GRID).replace("      store C[h, first] <- next * 100 + cost\n", "")
    derived = build(Source("visit.cake", pared), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90").derived_text
    assert "cost" not in derived and "let next" not in derived
