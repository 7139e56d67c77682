"""What each rule takes of the solver and what it says, over texts: which rules are expensive, which are not decided, which say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cake_core.frozen import frozen
from cake_core.review.difference import cost
from cake_core.review.verdicts import NO_FACTS, Bench, Tally, Text
from cake_core.rules import Outcome, Rule


@frozen
class Stats:
    """Of one rule. `texts`: on which it was judged; `reached`: those in which it matches anything; `findings`, `unknown`: places that it tells,
    places of which it does not know; `checks`, `steps` of the solver, `most`: the largest question of all, `usual`: of 95% of the texts at most;
    `dearest`: the text that takes most."""

    rule: Rule
    texts: int
    reached: int
    findings: int
    unknown: int
    checks: int
    steps: int
    most: int
    usual: int
    dearest: str


def stats(
    rules: Iterable[Rule], corpus: list[Text], beside: Callable[[Rule], list[Text]], bench: Bench, on_step: Callable[[str], None]
) -> tuple[Stats, ...]:
    """The most expensive first. Each rule is judged on the texts beside it and on the corpus."""
    rules = list(rules)
    work = [((r,), t) for r in rules for t in beside(r)] + [(tuple(rules), t) for t in corpus]
    found: dict[str, list[tuple[str, Tally]]] = {r.id: [] for r in rules}
    for (judged, text), tallies in zip(work, bench.all(work), strict=True):
        on_step(text.shown)
        for rule, tally in zip(judged, tallies, strict=True):
            if tally != NO_FACTS:
                found[rule.id].append((text.shown, tally))
    return tuple(sorted((_of(r, found[r.id]) for r in rules), key=lambda s: (-s.steps, s.rule.id)))


def _of(rule: Rule, found: list[tuple[str, Tally]]) -> Stats:
    tallies = [t for _, t in found]

    def count(*outcomes: Outcome) -> int:
        return sum(n for t in tallies for o, n in t.outcomes if o in outcomes)

    taken = cost(tallies)
    dearest = max(found, key=lambda f: (f[1].steps, f[0]), default=("", None))
    return Stats(
        rule,
        len(tallies),
        sum(t.verdict != Outcome.INAPPLICABLE for t in tallies),
        count(Outcome.VIOLATED),
        count(Outcome.UNKNOWN, Outcome.ERROR),
        sum(t.checks for t in tallies),
        sum(t.steps for t in tallies),
        max((t.most for t in tallies), default=0),
        taken.most if taken is not None else 0,
        dearest[0] if dearest[1] is not None and dearest[1].steps else "",
    )
