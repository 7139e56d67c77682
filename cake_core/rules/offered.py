"""Capabilities that rules ask of a target: a word that no architecture offers makes a rule that is silent for ever.

Which architectures there are is a question of what is installed, so a rule for one that is not stays inapplicable. What is only misspelt is told
wherever rules are judged, and with the texts beside a rule any word that nobody offers: they can't be judged either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.diagnostics.near import get_close_matches
from cake_core.rules.schema import Rule


def unoffered(rules: Iterable[Rule], offered: Collection[str], misspelt: bool = False) -> Iterator[Diagnostic]:
    """What is told of capabilities that are not in `offered`, what all architectures that are installed offer: an error, or with `misspelt` a
    warning where one of them is nearly the same word, and nothing else."""
    known = sorted(offered)
    for rule in rules:
        for name in rule.capabilities:
            if name in offered:
                continue
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            if misspelt and not near:
                continue
            yield Diagnostic(
                "rules/capability",
                f"'{rule.id}' applies where a target offers '{name}', which no architecture that is installed does",
                rule.span,
                Severity.WARNING if misspelt else Severity.ERROR,
                why="so it is never judged",
                fix=f"did you mean '{near[0]}'?" if near else f"install the architecture that does, or write one of {', '.join(known)}",
                rule_version=f"{rule.pack} {rule.version}" if rule.pack else None,
            )
