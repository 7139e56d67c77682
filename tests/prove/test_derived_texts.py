"""What derivation writes for the small texts of `tests/derive` is proved too: a text that shows a construct must not be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, asking, judge, rulebook
from cake_core.source import Source

TEXTS = sorted((Path(__file__).resolve().parents[1] / "derive" / "texts").glob("*.cake"))
REGISTRY = load_registry()
ASKING = [r for r in rulebook().rules if asking(r)]

#: What is not proved of texts that are right, and may be told of them.
OPEN = {
    "alias_while_held": {"core/slot-race"},  # two statements by one warp are taken to touch all of both tiles
    "drain_two_straight": {"core/slot-refill"},  # two releases in a row, and one a turn of a loop behind them
    "item_of_a_cluster": {"core/cta-race"},  # both CTAs of a cluster have one item, and write the same
}
#: What is wrong with texts about something else.
WRONG = {
    "grid_names": {"core/cta-race"},
    "unrolled_names": {"core/cta-race"},
}


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_a_text_of_derivation_holds(path):
    text = path.read_text()
    targets = re.search(r"^  target (.*?)( *#.*)?$", text, re.MULTILINE)[1].split(", ")
    front = frontend(Source(path.name, text), REGISTRY, "sm90" if "sm90" in targets else targets[0])
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    left = [v for v in judge(ASKING, rows, Prover(rows)) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)]
    assert [(v.rule.id, v.finding) for v in left if v.rule.id not in (OPEN | WRONG).get(path.stem, ())] == []
