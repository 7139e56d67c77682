"""Paths against running: random programs of events, loops and branches are executed at every small size, and what a run shows the
analysis must say; where no branch stands, it says no more than a run shows."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

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
from: {arrive: {}}
to: {meet: {scope: named}}
must_pass: {fence: {kind: proxy_async}}
of: OF
within: agent
"""
KERNEL = """cake 1 derived
kernel k(N: i32, M: i32)
  require 8 <= N, N <= 24, N % 8 == 0, 0 <= M, M <= 3
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
#: Who executes it: all threads of the instance, or its leader.
TEXT = {
    "start": "mbarrier.arrive done[0]",
    "start, leader": "if leader { mbarrier.arrive done[0] }",
    "pass": "fence.proxy.async",
    "pass, leader": "if leader { fence.proxy.async }",
    "end": "bar.sync 1 threads 128",
}
EVENTS = st.sampled_from(sorted(TEXT))


def programs(branches: bool):
    def nested(inner):
        block = st.lists(inner, min_size=1, max_size=3)
        loops = st.tuples(st.just("loop"), st.sampled_from(["M", "0", "1", "2", "5"]), block)
        if not branches:
            return loops
        return loops | st.tuples(st.just("if"), st.sampled_from(["N > 8", "N > 16", "M > 1"]), block, block)

    return st.lists(st.recursive(EVENTS, nested, max_leaves=8), min_size=1, max_size=5)


def text(program, depth: int = 2, index: str = "i") -> str:
    lines = []
    for s in program:
        match s:
            case str():
                lines.append("  " * depth + TEXT[s])
            case ("loop", to, body):
                lines += ["  " * depth + f"for {index} in 0 .. {to} {{", text(body, depth + 1, index + "i"), "  " * depth + "}"]
            case ("if", test, then, other):
                lines += [
                    "  " * depth + f"if {test} {{",
                    text(then, depth + 1, index),
                    "  " * depth + "} else {",
                    text(other, depth + 1, index),
                    "  " * depth + "}",
                ]
    return "\n".join(lines)


def run(program, n: int, m: int):
    """The events of one execution."""
    for s in program:
        match s:
            case str():
                yield s
            case ("loop", to, body):
                for _ in range(m if to == "M" else int(to)):
                    yield from run(body, n, m)
            case ("if", test, then, other):
                yield from run(then if {"N > 8": n > 8, "N > 16": n > 16, "M > 1": m > 1}[test] else other, n, m)


def broken(trace, of: str) -> bool:
    """Whether some thread comes to an end with a start behind which what must be passed was not: for the writer by those who ran the
    start, for the issuer by all, as all run the end."""
    return any(hit for *_, hit in after(trace, {START}, of))


#: Whether a start of the leader alone is pending, one of all, and whether an end came upon one.
State = tuple[bool, bool, bool]
START: State = (False, False, False)


def step(state: State, e: str, of: str) -> State:
    leader, all_, hit = state
    match e:
        case "start":
            return leader, True, hit
        case "start, leader":
            return True, all_, hit
        case "pass":
            return False, False, hit
        case "pass, leader" if of == "anyone":
            return False, False, hit
        case "pass, leader" if of == "each writer":
            return False, all_, hit
        case "end":
            return leader, all_, hit or leader or all_
    return state


@pytest.fixture(scope="module")
def verdict(rows_from, tmp_path_factory):
    rules = {}
    for of in ("each writer", "issuer", "anyone"):
        path = tmp_path_factory.mktemp("rules") / "rule.yaml"
        path.write_text(RULE.replace("OF", of))
        rules[of] = load_rule(path)

    def judged(program, of: str) -> bool:
        found = judge([rules[of]], rows_from(KERNEL.replace("BODY", text(program))))
        return Outcome.VIOLATED in {v.outcome for v in found}

    return judged


SIZES = list(product((8, 16, 24), range(4)))
QUIET = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@QUIET
@given(programs(branches=True), st.sampled_from(["each writer", "issuer", "anyone"]))
def test_what_a_run_shows_is_said(verdict, program, of):
    if any(broken(run(program, n, m), of) for n, m in SIZES):
        assert verdict(program, of), text(program)


@QUIET
@given(program=programs(branches=False), of=st.sampled_from(["each writer", "issuer", "anyone"]))
@example(program=[("loop", "M", ["start"]), ("loop", "M", ["end"]), ("loop", "5", [("loop", "M", ["pass"])])], of="each writer")
def test_without_branches_no_more_is_said_than_runs_show(verdict, program, of):
    """Loops over one parameter run equally often; the analysis lets each run as often as it likes."""
    assert verdict(program, of) == any(hit for *_, hit in after(program, {START}, of))


def after(program, states: set[State], of: str) -> set[State]:
    """What there may be behind a program in which each loop over a parameter runs 0 to 2 times, whatever others do. Twice is enough to meet a start
    behind an end."""
    for e in program:
        if isinstance(e, str):
            states = {step(s, e, of) for s in states}
            continue
        _, to, body = e
        once = states
        for _ in range(2 if to == "M" else int(to)):
            once = after(body, once, of)
            states = states | once if to == "M" else once
    return states


@pytest.mark.parametrize("of", ["each writer", "issuer", "anyone"])
def test_branches_of_one_condition_take_one_arm(verdict, of):
    same = [("if", "N > 8", ["start"], ["end"]), ("if", "N > 8", ["pass"], ["end"]), "end"]
    other = [("if", "N > 8", ["start"], ["end"]), ("if", "N > 16", ["pass"], ["end"]), "end"]
    assert not verdict(same, of) and verdict(other, of)
