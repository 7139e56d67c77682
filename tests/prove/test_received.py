"""Loops that go on by what was received: proved where each hears what is meant for its trip, and wrong texts are found; the event machine is
the oracle."""

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
from cake_core.prove.solve import Cuts
from cake_core.rules import Outcome, Standing, asking, judge, rulebook
from cake_core.source import Source

TEXTS = Path(__file__).parent / "texts"
REGISTRY = load_registry()
ASKING = [r for r in rulebook().rules if asking(r)]
ROWS = (TEXTS / "on_demand.cake").read_text(encoding="utf-8")

WAIT = "      mbarrier.wait next_full[s] parity next_wait / 2 % 2\n      next_wait = next_wait + 1\n"
HEAR = "      at = load(item[s][0], by = 4)\n"
SEND = "      store item[s][0] <- at by 4\n"
RELEASE = """      if warp.leader {
        mbarrier.arrive next_empty[next_release % 2]
      }
"""
NEXT = "      next_release = next_release + 1\n"
SENT = "      next_commit = next_commit + 1\n"
DRAW = "at = w < R ? w : -1"


def changed(*edits: tuple[str, str], last: bool = False) -> str:
    """The text with its first (or last) occurrence of each `old` replaced."""
    text = ROWS
    for old, new in edits:
        at = text.rindex(old) if last else text.index(old)
        text = text[:at] + new + text[at + len(old) :]
    return text


@cache
def rows(text: str):
    front = frontend(Source("on_demand.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def machine(text: str) -> set[str]:
    """Faults at a few sizes, one that does not end included."""
    found: set[str] = set()
    for size in (0, 1, 3, 4):
        try:
            found |= {str(x) for x in explore(rows(text).facts, Scenario({"R": size, "NC": 1}), seconds=20).found}
        except MachineError as fault:
            found.add(str(fault))
    return found


def undecided(text: str) -> list:
    return [(v.rule.id, v.finding) for v in judge(ASKING, rows(text), Prover(rows(text))) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)]


RIGHT = {
    "as it is": ROWS,
    "the last trip hands nothing back": changed((RELEASE, "      if at >= 0 {\n" + RELEASE + "      }\n")),
    "it asks in another way what to do": changed(("      if at >= 0 {", "      if at != -1 {"), last=True),
    "with a counter beside it": changed(
        (NEXT, NEXT + "      turns = turns + 1\n"),
        ("var next_release = 0", "var next_release = 0, turns = 0"),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_proved(name):
    assert undecided(RIGHT[name]) == []
    assert machine(RIGHT[name]) == set()


@pytest.mark.parametrize("arch", ["sm90"])
def test_messages_that_go_to_two_ctas_are_proved(arch):
    path = Path(__file__).parents[1] / "derive" / "texts" / "on_demand_cluster.cake"
    front = frontend(Source(str(path), path.read_text(encoding="utf-8")), REGISTRY, arch)
    found = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    assert [v.rule.id for v in judge(ASKING, found, Prover(found)) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []


WRONG = {
    "leaves one trip early": changed(("while at >= 0", "while at >= 1"), last=True),
    "leaves after one trip": changed(("while at >= 0", "while at >= 0 and next_wait < 1"), last=True),
    "goes round once more": changed(("while at >= 0", "while at >= -1"), last=True),
    "does not come at all": changed(("var at = 0", "var at = -1"), last=True),
    "hands back every other slot": changed((RELEASE + NEXT, "      if at % 2 == 0 {\n" + RELEASE + NEXT + "      }\n")),
    "hands nothing back": changed((RELEASE, "")),
    "does not wait": changed((WAIT, "      next_wait = next_wait + 1\n")),
    "waits behind its read": changed((WAIT + HEAR, HEAR + WAIT)),
    "reads another slot": changed(("load(item[s]", "load(item[0]")),
    "reads again when it has handed back": changed((HEAR, ""), (NEXT, NEXT + HEAR)),
    "sends no terminator": changed(("while at >= 0", "for q in 0 .. R")),
    "goes on by itself": changed(("while at >= 0", "while at < R")),
    "sends something else": changed((SEND, "      store item[s][0] <- w by 4\n")),
    "changes its mind": changed((SENT, SENT + "      at = at - 1\n")),
    "sends behind the hand-over": changed((SEND, ""), (SENT, SENT + SEND)),
    "does not wait for a slot": changed(("      mbarrier.wait next_empty[s] parity (next_fill / 2 + 1) % 2\n", "")),
    "sends what never ends": changed((DRAW, "at = w < R ? w : 0"), ("let w = atomic.add(CTR[0], 1)", "let w = max(atomic.add(CTR[0], 1), 0)")),
    "its lanes have not met": changed(("      warp.sync\n", "")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    """Found by both. What only the search of small sizes confirms is no doubt of the proof's, so an error and not a text that it does not speak of."""
    of = rows(WRONG[name])
    prover = Prover(of)
    violated = [v for v in judge(ASKING, of, prover) if v.outcome is Outcome.VIOLATED]
    answer = prover._asked.deadlock_free()
    assert violated and (answer.standing is Standing.VIOLATED or "lanes" in name)
    assert machine(WRONG[name])


def test_each_cta_goes_by_its_own_messages():
    text = (TEXTS / "each_cta_on_demand.cake").read_text(encoding="utf-8")
    assert Answers(rows(text)).deadlock_free().standing is Standing.VIOLATED  # one has more trips than the other, which it meets in each
    alone = "\n".join(line for line in text.splitlines() if "peer" not in line)
    assert Answers(rows(alone)).deadlock_free().standing is Standing.PROVED


def test_two_loops_on_one_variable_go_round_as_often_as_each_is_told():
    text = (TEXTS / "twice_on_demand.cake").read_text(encoding="utf-8")
    assert Answers(rows(text)).deadlock_free().standing is Standing.VIOLATED
    handed = text.replace("    if n == m {\n", "    if n > 0 {\n")  # each is at least one trip
    assert handed != text and Answers(rows(handed)).deadlock_free().standing is Standing.PROVED


def test_a_send_under_a_condition_is_outside():
    """Both sends are right; that they are one a trip is not seen, and the event machine has nothing against it."""
    text = changed((SEND, SEND + "      if w > 3 {\n        store item[s][0] <- at by 4\n      }\n"))
    answer = Answers(rows(text)).deadlock_free()
    assert answer.standing is Standing.UNKNOWN and answer.outside and "while" in answer.reason
    assert machine(text) == set()


def test_instances_know_different_things():
    """What one instance has read is no value of another one's."""
    runs = Cuts(rows(PAIR).facts).protocol.runs
    trips = {str(f.trips) for r in runs.values() for s in r.sites for f in s.frames}
    assert len(trips) == 2
    assert Answers(rows(PAIR)).deadlock_free().standing is not Standing.PROVED


PAIR = """cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: inout i32[R])
  require 2 <= R, R <= 65536
  target sm90
{
  launch R persistent
  barrier b: mbarrier[1] count 2 at 0
  if leader {
    mbarrier.init b
    fence.mbarrier_init
  }
  cta.sync
  role work[2]: 1 warp at 0 {
    var n = 0
    let most = atomic.add(Y[0], 1)
    for k in 0 .. most {
      if leader { mbarrier.arrive b[0] }
      mbarrier.wait b[0] parity n % 2
      n = n + 1
    }
  }
}
"""
