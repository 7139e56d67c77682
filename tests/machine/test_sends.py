"""Slots that all CTAs of a cluster fill, by sends and by multicast, on the event machine: no fault, and the faults that are put in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from machine_texts import derived, read

from cake_core.machine import Kind, Scenario, explore

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
SUMS = re.search(r"```cake\n(cake 1\nkernel sums_of_all.*?)```", PAGE, re.DOTALL)[1]
ROWS = """cake 1
kernel rows(X: in bf16[64, 512], Y: out bf16[64, 512])
  target sm90, sm100
  cluster c = 2
{
  tiles t = persistent(c: 64)
  shared x: bf16[2][8, 512], y: bf16[2][2, 512], mine: bf16[2][512]
  pipeline p: 2 { x } from load to math
  pipeline q: 2 { y } from math to show
  role load: 1 warp {
    for c in t {
      acquire p as s
      bulk.load x[s] <- X[0 +: 8, :] multicast c
      commit p
    }
  }
  role math: 2 warps {
    frag v: bf16[512] vec 8
    for c in t {
      wait p as s
      v = load(x[s][c % 8, :])
      release p
      acquire q as s
      store mine[s] <- v
      sync math
      for k in 0 .. 2 unroll {
        bulk.send y[s][c % 2 +: 1, :] <- mine[s] at k
      }
      commit q
    }
  }
  role show: 1 warp {
    frag w: bf16[512] vec 8
    for c in t {
      wait q as s
      w = load(y[s][c % 2, :])
      release q
      store Y[c, :] <- w
    }
  }
}
"""
TEXTS = {"sums": (SUMS, {"R": 3}, 1), "rows": (ROWS, {}, 8)}
#: Text, what is changed in its derived form.
FAULTS = [
    ("sums", "bytes 8", "bytes 4"),
    ("sums", "signal p_full[i]\n", "signal p_full[0]\n"),
    ("sums", "at 1\n", "at 0\n"),
    ("rows", "mask 3", "mask 1"),
    ("rows", "bytes 2048", "bytes 1024"),
]


def run(text: str, arch: str, params: dict, clusters: int):
    return explore(read(text, arch), Scenario(params, 0, clusters), limit_states=3000)


@pytest.mark.parametrize("arch", ["sm90", "sm100"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_fault(name, arch):
    text, params, clusters = TEXTS[name]
    outcome = run(derived(text, arch), arch, params, clusters)
    assert [str(f) for f in outcome.faults] == [] and outcome.schedules > 1


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_is_found(name, old, new):
    text, params, clusters = TEXTS[name]
    right = derived(text, "sm90")
    assert old in right
    assert run(right.replace(old, new), "sm90", params, clusters).faults


def test_a_warp_that_waits_while_the_leader_sends_may_miss_the_phase():
    """Two warps meet between `acquire` and the sends; derivation asks for it (`derive/leader-ahead`), and this is why."""
    text = SUMS.replace("role add: 1 warp", "role add: 2 warps").replace("let s = warpsum(x)", "let s = f32(r)")
    met = derived(text.replace("acquire p as i\n", "acquire p as i\n      sync add\n"), "sm90")
    assert not run(met, "sm90", {"R": 3}, 1).faults
    alone = met.replace("bar.sync 1 threads 64\n", "", 1)
    assert alone != met and Kind.PHASE in run(alone, "sm90", {"R": 3}, 1).found
