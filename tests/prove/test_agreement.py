"""Values that two roles read for themselves are one value where the text says so, and nowhere else: inputs, and messages that each hears in
the turn that they were sent for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.machine import MachineError, Scenario, explore
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Standing, judge, rulebook
from cake_core.source import Source

REGISTRY = load_registry()
COUNTED = (Path(__file__).parent / "texts" / "counted.cake").read_text(encoding="utf-8")

#: Two roles that hand each other a token as often as a condition or a bound of each says.
TOKENS = """cake 1 derived
kernel tokens(R: i32, N: in i32[R], Y: inout i32[1], X: in f32[2, 32])
  require 1 <= R, R <= 65536
  target sm90
{{
  launch 1
  shared m: i32[1] at 16
  barrier b: mbarrier[1] count 1 at 0
  barrier c: mbarrier[1] count 1 at 8
  if leader {{
    mbarrier.init b
    mbarrier.init c
    fence.mbarrier_init
  }}
  cta.sync
  role one: 1 warp at 0 {{
    var n = 0
    frag x: f32[32] vec 1 layout vector
    x = load(X[0, 0 +: 32], by = 4)
    {first} {{
      mbarrier.wait c[0] parity (n + 1) % 2
      if leader {{ mbarrier.arrive b[0] }}
      n = n + 1
    }}
  }}
  role other: 1 warp at 1 {{
    var n = 0
    frag x: f32[32] vec 1 layout vector
    x = load(X[1, 0 +: 32], by = 4)
    {second} {{
      mbarrier.wait b[0] parity n % 2
      if leader {{ mbarrier.arrive c[0] }}
      n = n + 1
    }}
    if leader {{ {then} }}
  }}
}}
"""


def tokens(first: str, second: str | None = None, then: str = "store Y[0] <- 0 by 4") -> str:
    return TOKENS.format(first=first, second=second or first, then=then)


def changed(*edits: tuple[str, str]) -> str:
    """The text of counts with the last occurrence of each `old` replaced."""
    text = COUNTED
    for old, new in edits:
        at = text.rindex(old)
        text = text[:at] + new + text[at + len(old) :]
    return text


@cache
def rows(text: str):
    front = frontend(Source("text.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def machine(text: str) -> set[str]:
    found: set[str] = set()
    for size in (1, 3, 4):
        try:
            found |= {str(x) for x in explore(rows(text).facts, Scenario({"R": size}), seconds=20).found}
        except MachineError as fault:
            found.add(str(fault))
    return found


HEARD, HEARS = "      let many = load(n[s][0], by = 4)\n", "      for k in 0 .. many {\n"
RELEASE = """      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2]
      }
      p_release = p_release + 1
"""
RIGHT = {
    "a bound that is an input's": tokens("for k in 0 .. load(N[0], by = 4)"),
    "a condition on an input": tokens("if load(N[0], by = 4) > 0"),
    "a message": COUNTED,
    "a message in the bound itself": changed(
        (HEARD, ""), (RELEASE, ""), (HEARS, HEARS.replace("many", "load(n[s][0], by = 4)")), ("      store Y", RELEASE + "      store Y")
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_one_value(name):
    assert Answers(rows(RIGHT[name])).deadlock_free().standing is Standing.PROVED
    assert machine(RIGHT[name]) == set()


WRONG = {
    "a bound that somebody writes": tokens("for k in 0 .. load(Y[0], by = 4)"),
    "a condition on what somebody writes": tokens("if load(Y[0], by = 4) > 0"),
    "a bound in shared memory": tokens("for k in 0 .. load(m[0], by = 4)", then="store m[0] <- 0 by 4"),
    "a condition on registers": tokens("if vote.any(x > 0.5)"),
    "a loop on what somebody writes": tokens("while n < load(Y[0], by = 4)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_two_values(name):
    """The text is the same in both roles, what it gives is not."""
    assert Answers(rows(WRONG[name])).deadlock_free().standing is not Standing.PROVED


OTHER_TURN = {
    "another slot": changed((HEARD, HEARD.replace("n[s]", "n[0]"))),
    "before it has come": changed(
        (HEARD, ""), ("      let s = p_wait % 2\n      mbarrier.wait p_full", "      let s = p_wait % 2\n" + HEARD + "      mbarrier.wait p_full")
    ),
    "when it has been handed back": changed((HEARD, ""), (HEARS, HEARD + HEARS)),
    "one turn ahead": changed(
        (
            "    for t_i in",
            "    mbarrier.wait p_full[0] parity 0\n    p_wait = 1\n"
            + RELEASE.replace("      ", "    ").replace("    mb", "      mb")
            + "    for t_i in",
        )
    ),
    "of another sender": changed(
        (HEARD, HEARD.replace("n[s][0]", "n[s][1]")),
        ("n: i32[2][1]", "n: i32[2][2]"),
        ("      store n[s][0] <- many by 4\n", "      store n[s][0] <- many by 4\n      store n[s][1] <- r by 4\n"),
    ),
}


@pytest.mark.parametrize("name", OTHER_TURN)
def test_a_message_of_another_turn_is_another_value(name):
    assert Answers(rows(OTHER_TURN[name])).deadlock_free().standing is not Standing.PROVED


PLACES = """cake 1 derived
kernel places(N: in i32[1], Y: inout i32[1])
  target sm90
{{
  launch 1
  shared a: i32[8] at 0
  role one: 1 warp at 0 {{
    if leader {{ store a[clamp(load({tensor}[0], by = 4), 0, 6)] <- 1 by 4 }}
    if leader {{ store Y[0] <- 0 by 4 }}
  }}
  role other: 1 warp at 1 {{
    if leader {{ store a[clamp(load({tensor}[0], by = 4), 0, 6) + 1] <- 2 by 4 }}
  }}
}}
"""


@pytest.mark.parametrize(("tensor", "apart"), [("N", True), ("Y", False)])
def test_a_place_that_somebody_writes_is_no_place(tensor, apart):
    """The places are neighbours if both roles read the same number."""
    found = rows(PLACES.format(tensor=tensor))
    verdicts = judge([r for r in rulebook().rules if r.id == "core/slot-race"], found, Prover(found))
    assert all(v.outcome is Outcome.PROVED for v in verdicts) is apart
