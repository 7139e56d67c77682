"""The comparison against verdicts: of built-in rules changed in small ways, what is said to be no looser finds all that the rule found, in every text.

The logic knows nothing of how rules are evaluated, so a mistake in either shows here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from cake_core.cli.versions import rows_of_source
from cake_core.diagnostics import CakeError
from cake_core.review.compare import Direction, judged
from cake_core.rules import Outcome, Rule, asking, find_packs, judge
from cake_core.rules.load import load_rule
from cake_core.source import Source

#: What one place of a rule becomes: a word or sign, and what stands there then.
EDITS = [(" and ", " or "), (" or ", " and "), ("<=", "<"), (">=", ">"), ("==", "!="), ("!=", "=="), (" < ", " <= "), (" > ", " >= "), ("not ", "")]
EDITS += [
    ("forall ", "exists "),
    ("exists ", "forall "),
    ("[shared, tensor]", "[shared]"),
    ("mode: write", "mode: read"),
    ("write", "read"),
    (" + 1", ""),
    (" == none", " != none"),
]
PLACES = re.compile(r"(?m)^(?:match|where|require|define|from|to|must_pass|automaton|events):(?:.*\n(?:  .*\n)*)")
#: Two conditions beside each other, which change places: where one has no value, the order decides whether it is asked.
BESIDE = re.compile(r"(\w[\w.]* [=!<>]=? \w+) (and|or) (\w[\w.]* [=!<>]=? \w+)")
#: Texts, the shortest first, and mutants of one rule, at the most.
TEXTS, MUTANTS = 30, 8
RULES = [r for p in find_packs(local=None) for r in p.rules if not asking(r)]


@pytest.fixture(scope="module")
def rows():
    paths = sorted((p for r in RULES for p in r.path.parent.glob("*.cake")), key=lambda p: (p.stat().st_size, str(p)))
    return [rows_of_source(Source(p.name, p.read_text())) for p in paths[:TEXTS]]


def mutants(text: str) -> list[str]:
    """One edit each, spread over all that there are."""
    found, turned = [], []
    for block in PLACES.finditer(text):
        for at in BESIDE.finditer(block.group()):
            start, end = block.start() + at.start(), block.start() + at.end()
            turned.append(text[:start] + at.expand(r"\3 \2 \1") + text[end:])
        for old, new in EDITS:
            for at in re.finditer(re.escape(old), block.group()):
                start = block.start() + at.start()
                found.append(text[:start] + new + text[start + len(old) :])
    return [*turned[:2], *found[:: max(1, -(-len(found) // MUTANTS))]]


def stops(rule, row) -> bool | None:
    """Whether the rule lets the kernel not pass: it is violated, or fails. None where it is not decided."""
    outcomes = {v.outcome for v in judge([rule], row)}
    return None if Outcome.UNKNOWN in outcomes else bool(outcomes & {Outcome.VIOLATED, Outcome.ERROR})


def changed(rule, folder) -> Iterator[tuple[str, Rule]]:
    """Mutants that can be read, with their texts."""
    for number, text in enumerate(mutants(rule.path.read_text())):
        path = folder / f"{number}.yaml"
        path.write_text(text)
        with suppress(CakeError):
            yield text, load_rule(path)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_what_is_no_looser_finds_what_was_found(rule, rows, tmp_path):
    before = [stops(rule, r) for r in rows]
    for text, other in changed(rule, tmp_path):
        direction = judged(rule, other)
        for a, b in zip(before, (stops(other, r) for r in rows), strict=True):
            no_looser, no_tighter = a is True and b is False, b is True and a is False
            assert not (direction in (Direction.TIGHTER, Direction.SAME) and no_looser), text
            assert not (direction in (Direction.LOOSER, Direction.SAME) and no_tighter), text


def test_the_mutants_are_of_each_direction(tmp_path):
    """Else the comparison above would say nothing of one of them."""
    met = Counter(judged(rule, other) for rule in RULES[:18] for _, other in changed(rule, tmp_path))
    assert all(met[d] >= 5 for d in (Direction.LOOSER, Direction.TIGHTER, Direction.UNKNOWN)), met
