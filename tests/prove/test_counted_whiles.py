"""A `while` that counts up to what does not change in it goes round as often as that takes; the event machine is the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.machine import Scenario, explore
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Standing, asking, judge, rulebook
from cake_core.source import Source

REGISTRY = load_registry()
ASKING = [r for r in rulebook().rules if asking(r)]
DRAIN = (Path(__file__).parents[1] / "derive" / "texts" / "release_late_by_two.derived").read_text(encoding="utf-8")
TEST = "while ab_release < ab_wait {"


def rows(text: str):
    assert text.count("while") == 1
    front = frontend(Source("drain.cake", text), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def machine(found) -> set[str]:
    return {str(x) for k in (0, 64, 400) for x in explore(found.facts, Scenario({"M": 320, "N": 128, "K": k}), seconds=20).found}


RIGHT = {"as it is": TEST, "up to one less": "while ab_release <= ab_wait - 1 {"}


@pytest.mark.parametrize("test", RIGHT.values(), ids=RIGHT)
def test_proved(test):
    found = rows(DRAIN.replace(TEST, test))
    assert [v.rule.id for v in judge(ASKING, found, Prover(found)) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []
    assert machine(found) == set()


WRONG = {
    "one too many": "while ab_release <= ab_wait {",
    "none": "while ab_release < 0 {",
}


@pytest.mark.parametrize("test", WRONG.values(), ids=WRONG)
def test_wrong(test):
    """Not proved: how many slots are handed back is no longer that of those that were taken, so their stage is not seen."""
    found = rows(DRAIN.replace(TEST, test))
    assert Answers(found).deadlock_free().standing is not Standing.PROVED
    assert machine(found)


def test_a_step_that_depends_is_no_count():
    """The test is of that form and the loop is not: half of the slots are handed back a turn."""
    text = DRAIN.replace(
        "        ab_release = ab_release + 1\n      }\n      store", "        ab_release = ab_release + (m + 1) / (m + 1)\n      }\n      store"
    )
    assert text != DRAIN
    assert Answers(rows(text)).deadlock_free().standing is not Standing.PROVED
