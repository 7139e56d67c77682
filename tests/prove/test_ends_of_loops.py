"""Loops by an unknown step that start at one number and end at different ones: how their trips compare is known, and the event machine agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.machine import Kind, Scenario, explore
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.rules import Standing
from cake_core.source import Source

REGISTRY = load_registry()
RING = (Path(__file__).parents[1] / "machine" / "texts" / "ring.cake").read_text(encoding="utf-8")
LOOP = "for t_i in cluster.id .. R step cluster.count {"


def rows(load: str, work: str):
    """The ring whose producer and consumer go up to these numbers."""
    before, between, behind = RING.split(LOOP)
    text = before + LOOP.replace("R", load) + between + LOOP.replace("R", work) + behind
    front = frontend(Source("ring.cake", text.replace("X[t_i", "X[min(t_i, 0)").replace("Y[t_i", "Y[min(t_i, 0)")), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


@pytest.mark.parametrize(
    ("load", "work", "hangs", "left"),
    [
        ("R", "R", False, False),
        ("R", "R - 1", False, True),  # the last copy is waited for by no one
        ("R + 1", "R", False, True),
        ("R + cluster.count", "R", False, True),
        ("R + 3 * cluster.count", "R", True, True),  # three slots more than come back, of two
        ("R", "R + 1", True, True),
        ("R - 1", "R", True, True),
    ],
)
def test_who_goes_further_goes_round_no_less_often(load, work, hangs, left):
    found = rows(load, work)
    proof = Answers(found)
    assert proof.deadlock_free().standing is (Standing.VIOLATED if hangs else Standing.PROVED)
    if not hangs:
        assert proof.drained(()).standing is (Standing.VIOLATED if left else Standing.PROVED)
    seen = {k for r in (1, 2, 4) for k in explore(found.facts, Scenario({"R": r})).found}
    assert (Kind.DEADLOCK in seen) == hangs and bool(seen) == left
