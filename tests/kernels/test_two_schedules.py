"""Kernels with several tile schedules, from the text to PTX, run on a machine of the ISA: every item of each schedule is taken once,
by roles that go over both, and by roles that go over one of them."""

from dataclasses import asdict
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime.formula import compile_formula
from cake_core.source import Source

TEXT = """cake 1
kernel visit(M: i32, N: i32, E: i32, T: i32, OFF: in i32[E + 1], Y: inout i32[M], Z: out i32[N, T]{params})
  require 0 <= M, M <= 1000, 0 <= N, N <= 1000, 1 <= E, E <= 1000, 0 <= T, T <= 1000
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{{
  tiles first = persistent(m: M){first}
  tiles second = ragged(rows: OFF, block = 3) * grid(n: N) order group_major{second} {{
    let end = min(r1, r0 + 3)
  }}
  shared x: i32[2][1]
  pipeline p: 2 {{ x }} from give to take
  role give: 1 warp {{
    for m in first {{
      acquire p as s
      store x[s][0] <- m
      commit p
    }}
    for (b, r0, r1, n) in second {{
      for r in r0 .. end {{
        acquire p as s
        store x[s][0] <- 1000 * b + second.n
        commit p
      }}
    }}
  }}
  role take: 2 warps {{
    for m in first {{
      wait p as s
      red.add Y[load(x[s][0])] <- 1 + first.n - first.n
      release p
    }}
    for (b, r0, r1, n) in second {{
      for r in r0 .. end {{
        wait p as s
        store Z[n, r] <- load(x[s][0])
        release p
      }}
    }}
  }}
  role beside: 1 warp {{
    for (b, r0, r1, n) in second {{
      red.add Y[0] <- 0
    }}
  }}
}}
"""
COUNTERS = {"": "", "A": " dynamic A", "B": " dynamic B ahead 2"}


@cache
def built(first, second):
    text = TEXT.format(first=COUNTERS[first], second=COUNTERS[second], params="".join(f", {c}: workspace i32[1]" for c in (first, second) if c))
    return build(Source("visit.cake", text), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")


@pytest.mark.parametrize(("first", "second"), [("", ""), ("A", ""), ("", "B"), ("A", "B")])
@settings(max_examples=12, deadline=None)
@given(
    m=st.integers(0, 7),
    n=st.integers(0, 3),
    rows=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    most=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_every_item_of_both_is_taken_once(first, second, m, n, rows, most, seed):
    kernel, off = built(first, second), np.cumsum([0, *rows]).astype(np.int32)
    sizes = {"M": m, "N": n, "E": len(rows), "T": int(off[-1])}
    items = int(compile_formula(kernel.manifest.launch.items, sizes)(sizes))
    held = {"OFF": off, "Y": np.zeros(max(m, 1), np.int32), "Z": np.full((max(n, 1), max(sizes["T"], 1)), -1, np.int32)}
    work = {c: np.zeros(4, np.int32) for c in (first, second) if c}
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), sizes, held | work, False, seed).run(min(items, most))
    assert all((w == 0).all() for w in work.values()), "a counter is not as it was found"
    assert items >= m and (held["Y"] == (1 if m else 0)).all()
    if n and sizes["T"]:
        group = np.repeat(np.arange(len(rows)), rows)
        assert (held["Z"] // 1000 == group).all()
