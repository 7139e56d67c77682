"""Why a kernel does not reach a rule: which of its patterns no fact fits, or that its conditions hold of none that do."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.facts import Row, Rows
from cake_core.rules.matching import fits
from cake_core.rules.page import said
from cake_core.rules.schema import Path, Pattern, Protocol, Relation, Rule
from cake_core.rules.shapes import ENDS


def unreached(rule: Rule, rows: Rows) -> str:
    """Of a rule that was judged on a kernel and is inapplicable."""
    offered = {r.id for r in rows["capability"]}
    if missing := [c for c in rule.capabilities if c not in offered]:
        return f"the target does not offer {' and '.join(map(repr, missing))}, which the rule applies to"
    for name, pattern in _patterns(rule):
        if not any(fits(r, pattern) for r in rows[pattern.relation]):
            return f"no fact fits '{name}', {said(pattern)}: {_nearest(pattern, rows[pattern.relation])}"
    conditions = ["where"] if rule.shape.where is not None else []
    if isinstance(rule.shape, Relation) and rule.shape.assume is not None:
        conditions.append("assume")
    return (
        f"there are facts for each pattern, and {' and '.join(map(repr, conditions))} hold of none together"
        if conditions
        else "nothing of it is what the rule matches"
    )


def _patterns(rule: Rule) -> Iterator[tuple[str, Pattern]]:
    match rule.shape:
        case Relation(match=match):
            yield from match
        case Path(start=start, end=end):
            yield from ((n, p) for n, p in (("from", start), ("to", end)) if p.relation not in ENDS)
        case Protocol(resource=resource):
            yield "resource", resource


def _nearest(pattern: Pattern, rows: tuple[Row, ...] | list[Row]) -> str:
    """The column that the facts of the relation fail by, where one alone does."""
    if not rows:
        return f"the kernel has no {pattern.relation}"
    alone = [name for name, values in pattern.columns if not any(fits(r, Pattern(pattern.relation, ((name, values),))) for r in rows)]
    number = f"of {len(rows)} there none has " if len(rows) > 1 else "the one there has not "
    return number + (f"that {' or '.join(map(repr, alone))}" if alone else "all of them at once")
