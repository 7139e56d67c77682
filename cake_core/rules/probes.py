"""Probes of a rule by its own texts: the rule with nothing required, and with what nothing keeps, judged in its place.

A rule that still fires with nothing required fires for another reason than what it requires. A rule that no good text breaks with what nothing
keeps is not reached by any of them, so that they show nothing; one that fires on no bad text even so matches nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cake_core.facts import Rows
from cake_core.rules import ast
from cake_core.rules.engine import judge
from cake_core.rules.predicates import Predicates
from cake_core.rules.schema import Path, Protocol, Relation, Rule
from cake_core.rules.sorts import CONDITION
from cake_core.rules.verdict import Outcome

#: An event that no protocol has: the automaton that admits it alone admits none of those that there are.
NEVER = "no_event_of_this_name"

Judged = tuple[Rows, Predicates | None]


def loosest(rule: Rule) -> Rule | None:
    """The rule with nothing required; None for a path, which requires nothing but what it passes."""
    match rule.shape:
        case Relation():
            return replace(rule, shape=replace(rule.shape, require=ast.Literal(True, sort=CONDITION)))
        case Protocol(events=events):
            return replace(rule, shape=replace(rule.shape, automaton=f"({' | '.join(name for name, _ in events)})*"))
    return None


def tightest(rule: Rule) -> Rule:
    """The rule with what nothing keeps: `false`, a path on which nothing is enough, a protocol that admits no event."""
    match rule.shape:
        case Relation():
            return replace(rule, shape=replace(rule.shape, require=ast.Literal(False, sort=CONDITION)))
        case Path():
            return replace(rule, shape=replace(rule.shape, must_pass=()))
        case Protocol():
            return replace(rule, shape=replace(rule.shape, automaton=f"{NEVER}?"))
    raise AssertionError(type(rule.shape).__name__)


def fires(rule: Rule, judged: Judged) -> bool:
    """Whether a rule tells anything of a text. What it has no answer to it does not tell."""
    rows, predicates = judged
    return any(v.outcome in (Outcome.VIOLATED, Outcome.UNKNOWN) for v in judge([rule], rows, predicates))


def probe(rule: Rule, bad: Sequence[Judged], good: Sequence[Judged]) -> dict[str, str]:
    """What each probe finds wrong, by its name: empty texts where it finds nothing."""
    loose, tight = loosest(rule), tightest(rule)
    return {
        "vacuity": "" if not bad or any(fires(tight, b) for b in bad) else "nothing in a bad text is what the rule matches",
        "kill": "still fires on a bad text with nothing required" if loose is not None and any(fires(loose, b) for b in bad) else "",
        "reach": "" if not good or any(fires(tight, g) for g in good) else "no good text is told even where nothing is enough",
    }
