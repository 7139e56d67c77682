"""What derivation writes for the small texts of `tests/derive` is proved too: a text that shows a construct must not be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Verdict, asking, judge, rulebook
from cake_core.source import Source

TEXTS = sorted((Path(__file__).resolve().parents[1] / "derive" / "texts").glob("*.cake"))
REGISTRY = load_registry()
ASKING = [r for r in rulebook().rules if asking(r)]

#: What is not proved of texts that are right, and may be told of them.
OPEN = {
    "item_of_a_cluster": {"core/cta-race"},  # both CTAs of a cluster have one item, and write the same
}
#: What is wrong with texts about something else.
WRONG = {
    "filled_by_threads": {"core/agent-race"},
    "filled_by_threads_one_behind": {"core/agent-race"},
    "grid_names": {"core/cta-race"},
    "inline_and_turn": {"core/agent-race"},
    "ring": {"core/unwritten-read"},
    "ring_in_a_loop": {"core/unwritten-read"},
    "sync_all": {"core/agent-race"},  # both instances store one tile
    "unrolled_names": {"core/cta-race"},
}


def judged(name: str, text: str) -> list[Verdict]:
    """What is not proved of it."""
    targets = re.search(r"^  target (.*?)( *#.*)?$", text, re.MULTILINE)[1].split(", ")
    front = frontend(Source(name, text), REGISTRY, "sm90" if "sm90" in targets else targets[0])
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    return [v for v in judge(ASKING, rows, Prover(rows)) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_a_text_of_derivation_holds(path):
    left = judged(path.name, path.read_text())
    assert [(v.rule.id, v.finding) for v in left if v.rule.id not in (OPEN | WRONG).get(path.stem, ())] == []


#: Lines of a derived text, what stands there instead, and the rule that is broken then.
WEAKER = {
    "a slot of the loop goes back while it is read": (
        "drain_two_straight",
        "        wgmma.wait 0\n        if leader {",
        "        wgmma.wait 1\n        if leader {",
        "core/slot-refill",
    ),
    "two slots go back while they are read": ("drain_two_straight", "      wgmma.wait 0\n      if leader {", "      if leader {", "core/slot-refill"),
    "the bytes go back before the other buffer is written": (
        "alias_while_held",
        "      store b <- x by 8\n      fence.proxy.async\n      warp.sync\n      if warp.leader {\n        mbarrier.arrive p_empty[0]\n      }\n",
        "      warp.sync\n      if warp.leader {\n        mbarrier.arrive p_empty[0]\n      }\n      store b <- x by 8\n      fence.proxy.async\n",
        "core/slot-race",
    ),
}


@pytest.mark.parametrize("kind", WEAKER)
def test_with_less_order_it_does_not(kind):
    name, old, new, code = WEAKER[kind]
    text = (TEXTS[0].parent / f"{name}.derived").read_text()
    assert text.count(old) == 1
    assert code in {v.rule.id for v in judged(name, text.replace(old, new)) if v.outcome is Outcome.VIOLATED}
