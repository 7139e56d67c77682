"""Probes of a rule by its own texts: the rule with nothing required, and with what nothing keeps, judged in its place.

A rule that still fires with nothing required fires for another reason than what it requires. A rule that no good text breaks with what nothing
keeps is not reached by any of them, so that they show nothing; one that fires on no bad text even so matches nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from cake_core.facts import Rows
from cake_core.rules import ast
from cake_core.rules.engine import judge
from cake_core.rules.predicates import Predicates
from cake_core.rules.schema import Path, Pattern, Protocol, Relation, Rule
from cake_core.rules.sorts import CONDITION
from cake_core.rules.verdict import Outcome
from cake_core.source import Span

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


# --- part by part ------------------------------------------------------------------------------------------------


def untested(rule: Rule, bad: Sequence[Judged], good: Sequence[Judged]) -> Iterator[tuple[str, Span]]:
    """Parts of a rule that no text needs, in words and with their places: what is required and could be left out with every bad text told as before; what
    narrows the match and could be left out with every good text as before."""
    for what, span, other in _less_required(rule):
        if bad and all(_violated(other, b) for b in bad):
            yield f"{what}: every bad text is told without it too", span
    for what, span, other in _more_matched(rule):
        if good and not any(fires(other, g) for g in good):
            yield f"{what}: no good text is told without it", span


def _violated(rule: Rule, judged: Judged) -> bool:
    rows, predicates = judged
    return any(v.outcome is Outcome.VIOLATED for v in judge([rule], rows, predicates))


def _less_required(rule: Rule) -> Iterator[tuple[str, Span, Rule]]:
    if isinstance(shape := rule.shape, Relation):
        for part, rest in _without(shape.require):
            if rest is not None:
                yield "a part of 'require'", part.span, replace(rule, shape=replace(shape, require=rest))


def _more_matched(rule: Rule) -> Iterator[tuple[str, Span, Rule]]:
    shape = rule.shape
    for part, rest in _without(shape.where) if shape.where is not None else ():
        yield "a part of 'where'", part.span, replace(rule, shape=replace(shape, where=rest))
    if isinstance(shape, Relation):
        for n, (name, pattern) in enumerate(shape.match):
            for column, other in _wider(pattern):
                match = (*shape.match[:n], (name, other), *shape.match[n + 1 :])
                yield f"'{column}' in the pattern of '{name}'", pattern.span or rule.span, replace(rule, shape=replace(shape, match=match))
    if isinstance(shape, Path):
        for key, name in (("start", "from"), ("end", "to")):
            pattern = getattr(shape, key)
            for column, other in _wider(pattern):
                yield f"'{column}' in the pattern of '{name}'", pattern.span or rule.span, replace(rule, shape=replace(shape, **{key: other}))
        if len(shape.must_pass) > 1:
            for n, pattern in enumerate(shape.must_pass):
                rest = (*shape.must_pass[:n], *shape.must_pass[n + 1 :])
                yield f"alternative {n + 1} of 'must_pass'", pattern.span or rule.span, replace(rule, shape=replace(shape, must_pass=rest))


def _without(node: ast.Node) -> Iterator[tuple[ast.Node, ast.Node | None]]:
    """Each part of a conjunction, and the others; None where there is no other."""
    parts = _parts(node)
    for n, part in enumerate(parts):
        others = [*parts[:n], *parts[n + 1 :]]
        yield part, reduce(lambda a, b: ast.Binary("and", a, b, span=a.span, sort=CONDITION), others) if others else None


def _parts(node: ast.Node) -> list[ast.Node]:
    if isinstance(node, ast.Binary) and node.op == "and":
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _wider(pattern: Pattern) -> Iterator[tuple[str, Pattern]]:
    """A pattern without each of its columns. A text has one kernel: where a pattern leaves that out no good text reaches the rule."""
    if pattern.relation == "kernel":
        return
    for n, (column, _) in enumerate(pattern.columns):
        yield column, replace(pattern, columns=(*pattern.columns[:n], *pattern.columns[n + 1 :]))
