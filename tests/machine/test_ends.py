"""A CTA that leaves early, on texts of two CTAs of which one does less."""

import pytest
from machine_texts import read

from cake_core.machine import Kind, Scenario, explore

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
