"""What an id of a rule stands for: the rule, the rule that it is called now, or what became of it.

Whoever names a rule, on the command line, in `cake.toml` or in a text, asks here, so that all are told the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen
from cake_core.rules.schema import Pack, Removed, Rule, Status


@frozen
class Named:
    """`rule`: what the name stands for, None for nothing. `said`: what is to be told about the name, in words, "" where it is right;
    `why`, `fix`: more of it. `removed`: the entry, where the rule is gone."""

    rule: Rule | None
    said: str = ""
    why: str | None = None
    fix: str | None = None
    removed: Removed | None = None


def named(packs: Iterable[Pack], id: str) -> Named:
    """What an id stands for in these packs."""
    packs = tuple(packs)
    rules = {r.id: r for p in packs for r in p.rules}
    if (rule := rules.get(id)) is not None:
        return Named(rule, *deprecation(rule)) if rule.status is Status.DEPRECATED else Named(rule)
    gone = {r.id: (r, p) for p in packs for r in p.removed}
    if (rule := next((r for _, r in sorted(rules.items()) if _takes_over(r, id, gone)), None)) is not None:
        why = gone[id][0].reason if id in gone else None
        return Named(rule, f"rule '{id}' is called '{rule.id}' now", why, f"write '{rule.id}'")
    if id in gone:
        removed, pack = gone[id]
        said = f"rule '{id}' is gone since version {removed.since} of the pack '{pack.name}'"
        fix = f"use '{removed.replaced_by}' instead" if removed.replaced_by else "leave it out"
        return Named(None, said, removed.reason, fix, removed)
    near = get_close_matches(id, rules, n=1)
    return Named(None, f"there is no rule '{id}'", None, f"did you mean '{near[0]}'?" if near else "'cake rules list' lists them")


def _takes_over(rule: Rule, id: str, gone: dict[str, tuple[Removed, Pack]]) -> bool:
    """Whether a rule is another one renamed. Of another pack's rule it may say so where that pack does as well."""
    if ("renamed", id) not in rule.related:
        return False
    own = rule.id.partition("/")[0] == id.partition("/")[0]
    return own or id in gone and gone[id][0].replaced_by == rule.id


def deprecation(rule: Rule) -> tuple[str, str | None, str | None]:
    """(said, why, fix) of a deprecated rule."""
    said = f"rule '{rule.id}' is deprecated: version {rule.until} of the pack '{rule.pack}' is without it"
    return said, None, f"use '{rule.replaced_by}' instead" if rule.replaced_by else None
