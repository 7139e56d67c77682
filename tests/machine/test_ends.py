"""A CTA that leaves early, on texts of two CTAs of which one does less."""

import math
from pathlib import Path

import pytest
from machine_texts import derived, read

from cake_core.machine import Kind, Scenario, explore
from cake_core.machine.states import Search
from cake_core.machine.threads import cluster_of
from cake_core.machine.worlds import worlds

ROOT = Path(__file__).resolve().parents[2]
TEXT = """cake 1 derived
kernel two(X: in f32[32], Y: out f32[2, 32])
  target sm90
  cluster c = 2
{
  launch 1
  shared s: f32[32] at 0
  barrier done: mbarrier[1] count 2 at 128
  if leader {
    mbarrier.init done
    fence.mbarrier_init
  }
  cluster.sync
  role work: 1 warp at 0 {
    frag x: f32[32] vec 1 layout vector
    x = load(X[0 +: 32], by = 4)
    store s <- x by 4
    cluster.sync
    if cluster.c == 1 {
      if leader {
        ACT
        ACT
      }
    }
    if cluster.c == 0 {
      WAIT
    }
    store Y[cluster.c, 0 +: 32] <- x by 4
  }
  END
}
"""
ARRIVE = "mbarrier.arrive done[0] at 0"
WAIT = "mbarrier.wait done[0] parity 0"


def text(act: str, wait: str, end: str) -> str:
    lines = TEXT.replace("ACT", act, 1).replace("ACT", act).replace("WAIT", wait).replace("END", end)
    return "\n".join(line for line in lines.splitlines() if line.strip()) + "\n"


@pytest.mark.parametrize(
    ("act", "wait", "end", "kinds"),
    [
        (ARRIVE, WAIT, "", set()),  # who waits knows that both have come
        (ARRIVE, "", "cluster.sync", set()),
        (ARRIVE, "", "", {Kind.EXIT}),
        ("let v = cluster.load(s[0], at = 0, by = 4)", "", "cluster.sync", set()),
        ("let v = cluster.load(s[0], at = 0, by = 4)", "", "", {Kind.EXIT}),
        ("cluster.store s[0] <- 1.0 at 0", "", "", {Kind.EXIT}),
    ],
)
def test_who_leaves_must_know_that_peers_are_done(act, wait, end, kinds):
    assert kinds <= (found := explore(read(text(act, wait, end)), Scenario({})).found), found
    assert bool(found) == bool(kinds)


def test_the_second_arrival_at_a_cta_that_has_left_shows():
    """One arrival is waited for, the other one comes when no one is there any more."""
    late = text(ARRIVE, WAIT, "").replace("count 2", "count 1")
    assert Kind.EXIT in explore(read(late), Scenario({})).found


@pytest.mark.parametrize("sync", ["warp.sync", "bar.sync 1 threads 32", "cta.sync"])
@pytest.mark.parametrize(("branch", "kinds"), [("if leader", {Kind.NAMED}), ("if warp.leader", {Kind.NAMED}), ("if warp == 0", set())])
def test_one_lane_that_comes_to_a_meeting_alone_is_a_fault(sync, branch, kinds):
    made = f"""cake 1 derived
kernel lone(N: i32)
  target sm90
{{
  launch N
  role r: 1 warp at 0 {{
    {branch} {{
      {sync}
    }}
  }}
}}
"""
    assert set(explore(read(made), Scenario({"N": 1})).found) == kinds
    if sync != "warp.sync":  # which no other warp can tell
        (world,) = worlds(read(made), Scenario({"N": 1}), 0)
        search = Search(cluster_of(read(made), world), 1000, math.inf, False)
        assert {f.kind for f in search.run()} == kinds, "the search of all interleavings, by itself"


def test_an_engine_s_arrival_that_no_one_waits_for_is_on_its_way_at_the_end():
    """What was issued behind it in the same engine is known to be over, and the arrival is not."""
    pair = derived((ROOT / "kernels" / "gemm" / "gemm_sm100_pair.cake").read_text(encoding="utf-8"))
    before, epi = pair.split("role epi")
    loop = "for t_i in cluster.id .. t_total step"
    assert epi.count(loop) == 1
    sizes = Scenario({"M": 1, "N": 8, "K": 8})
    assert not explore(read(pair), sizes).found
    short = "role epi".join((before, epi.replace(loop, "for t_i in cluster.id .. t_total - 1 step")))
    assert {f.resource for f in explore(read(short), sizes).faults if f.kind is Kind.IN_FLIGHT} == {"accp_full"}
