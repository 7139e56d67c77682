"""Rules as entries of the catalogue: what `cake explain` says of one, and docs/diagnostics.md."""

from __future__ import annotations

from collections.abc import Iterable

from cake_core.diagnostics.catalog import Entry
from cake_core.rules.book import selected
from cake_core.rules.schema import Level, Pack, Rule
from cake_core.rules.verdict import severity


def entries(packs: Iterable[Pack]) -> dict[str, Entry]:
    """An entry a rule, by its id."""
    packs = tuple(packs)
    judged = {r.id for r in selected(packs)}
    return {r.id: entry(r, r.id in judged) for p in packs for r in p.rules}


def entry(rule: Rule, judged: bool = True) -> Entry:
    parts = [rule.why]
    if rule.limits:
        parts.append(f"Not decided: {rule.limits}")
    if rule.references:
        parts.append("See " + "; ".join(title for title, _ in rule.references) + ".")
    return Entry(rule.id, rule.title, " ".join(parts), rule.fix, origin=rule.pack, level=_level(rule), judged=judged)


def _level(rule: Rule) -> str:
    return "none" if rule.level is Level.OFF else str(severity(rule))
