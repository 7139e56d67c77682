"""Findings stand in the order of the text, and what follows from another finding behind it."""

from __future__ import annotations

import itertools

import pytest

from cake_core.diagnostics import Diagnostic
from cake_core.diagnostics.render import in_order
from cake_core.rules import rulebook
from cake_core.source import Span


def at(line: int, code: str, *follows: str, file: str = "a.cake") -> Diagnostic:
    return Diagnostic(code, "wrong", Span(file, line, 1, line, 2), follows=follows)


HANGS, COUNT, WAIT = at(3, "core/deadlock", "core/count", "core/wait"), at(9, "core/count"), at(7, "core/wait", "core/count")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((HANGS, at(5, "core/other")), (HANGS, at(5, "core/other"))),  # nothing that it could follow from
        ((HANGS, COUNT, at(5, "core/other")), (at(5, "core/other"), COUNT, HANGS)),
        ((HANGS, WAIT, COUNT), (COUNT, HANGS, WAIT)),
        ((HANGS, at(1, "core/count"), COUNT), (at(1, "core/count"), HANGS, COUNT)),  # one cause in front is enough
        ((HANGS, at(9, "core/count", file="b.cake")), (HANGS, at(9, "core/count", file="b.cake"))),
        ((at(1, "core/x", "core/y"), at(2, "core/y", "core/x")), (at(1, "core/x", "core/y"), at(2, "core/y", "core/x"))),
    ],
)
def test_a_cause_is_told_first(found, told):
    for given in itertools.permutations(found):
        assert tuple(in_order(given)) == told


def test_what_rules_follow_is_there():
    ids = {r.id for r in rulebook().rules}
    follows = {r.id: [id for how, id in r.related if how == "follows"] for r in rulebook().rules}
    assert "core/arrival-count" in follows["core/deadlock"]
    assert {id for of in follows.values() for id in of} <= ids
