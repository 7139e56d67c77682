"""`met` of a path: what each writer passes counts for one thread that hands over for others when these have met it behind it. Random programs
are executed, thread by thread, and the analysis says what a run shows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError
from cake_core.rules import Outcome, judge, load_rule

RULE = """schema: 1
id: acme/x
title: X
kind: safety
level: error
status: stable
precision: proof
since: "0.1"
owner: someone
why: It is.
message: it is broken
from: {fence: {kind: registers}}
to: {arrive: {}}
must_pass: {fence: {kind: proxy_async}}
of: each writer
within: agent
met: true
"""
KERNEL = """cake 1 derived
kernel k(N: i32)
  require 8 <= N, N <= 24, N % 8 == 0
  target sm90
{
  launch N
  barrier done: mbarrier[2] count 128 at 0
  if leader { mbarrier.init done; fence.mbarrier_init }
  cta.sync
  role math: 1 warpgroup at 0 {
BODY
  }
}
"""
TEXT = {
    "touch": "wgmma.fence",
    "pass": "fence.proxy.async",
    "pass, leader": "if leader { fence.proxy.async }",
    "warps meet": "warp.sync",
    "all meet": "bar.sync 1 threads 128",
    "end": "mbarrier.arrive done[0]",
    "end, warp leaders": "if warp.leader { mbarrier.arrive done[0] }",
    "end, leader": "if leader { mbarrier.arrive done[0] }",
}
THREADS = [(w, lane) for w in range(4) for lane in range(3)]


def executes(thread: tuple[int, int], event: str) -> bool:
    warp, lane = thread
    return {"leader": warp == lane == 0, "warp leaders": lane == 0}.get(event.partition(", ")[2], True)


def broken(program: list[str]) -> bool:
    """Whether some end comes where a thread's passing behind its touch is not known to be over: `known[t]` of a thread is who has passed for all
    that t knows, of itself and of whom it has met since."""
    touched, known = False, {t: set() for t in THREADS}
    for e in program:
        match e.partition(", ")[0]:
            case "touch":
                touched, known = True, {t: set() for t in THREADS}
            case "pass":
                for t in THREADS:
                    if executes(t, e):
                        known[t] |= {t}
            case "warps meet" | "all meet":
                groups = [THREADS] if e == "all meet" else [[t for t in THREADS if t[0] == w] for w in range(4)]
                for group in groups:
                    together = set().union(*(known[t] for t in group))
                    for t in group:
                        known[t] = set(together)
            case "end" if touched:
                ending = {t for t in THREADS if executes(t, e)}
                for t in THREADS:  # what each has done reaches some thread that hands over for it: itself, its warp's leader, the leader
                    speaker = t if t in ending else (t[0], 0) if (t[0], 0) in ending else (0, 0)
                    if t not in known[speaker]:
                        return True
    return False


@pytest.fixture(scope="module")
def rule(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rule.yaml"
    path.write_text(RULE)
    return load_rule(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(program=st.lists(st.sampled_from(sorted(TEXT)), min_size=2, max_size=8))
def test_as_a_run_shows(program, rule, rows_from):
    body = "\n".join("    " + TEXT[e] for e in ["touch", *program])
    found = judge([rule], rows_from(KERNEL.replace("BODY", body)))
    assert (Outcome.VIOLATED in {v.outcome for v in found}) == broken(["touch", *program])


@pytest.mark.parametrize(("old", "new"), [("of: each writer", "of: issuer"), ("within: agent", "within: kernel"), ("met: true", "met: twice")])
def test_met_is_said_of_writers_within_an_agent(tmp_path, old, new):
    path = tmp_path / "rule.yaml"
    path.write_text(RULE.replace(old, new))
    with pytest.raises(CakeError) as raised:
        load_rule(path)
    assert "'met'" in raised.value.diagnostics[0].message
