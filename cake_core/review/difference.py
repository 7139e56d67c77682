"""What two versions of packs say of the same kernels, and what each takes of the solver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from math import ceil

from cake_core.frozen import frozen
from cake_core.review.compare import Change, Direction
from cake_core.review.packs import Compared, Pair, beside
from cake_core.review.verdicts import NO_FACTS, Bench, Tally, Text
from cake_core.rules import Outcome
from cake_core.rules.schema import Kind

#: The share of the texts of which a rule's largest question is within its budget.
SHARE = 0.95


@frozen
class Row:
    """What becomes of a text by a rule, before and now; None where the rule is not there. `zoo`: of a kernel that every rule must leave as it is."""

    id: str
    text: str
    old: Tally | None
    new: Tally | None
    zoo: bool = False

    @property
    def what(self) -> str:
        """`new`, `gone`, `changed` or `same`."""
        if self.old is None:
            return "new"
        if self.new is None:
            return "gone"
        return "same" if self.old.found == self.new.found else "changed"


@frozen
class Cost:
    """Steps of the solver that a rule takes on all texts together, and in the largest question of each text: of `SHARE` of them at most."""

    steps: int
    most: int


def cost(tallies: Iterable[Tally | None]) -> Cost | None:
    """None where the rule was judged on nothing."""
    there = [t for t in tallies if t is not None and t != NO_FACTS]
    largest = sorted(t.most for t in there)
    return Cost(sum(t.steps for t in there), largest[ceil(len(largest) * SHARE) - 1]) if there else None


def rows(
    packs: Iterable[Compared], texts: list[tuple[Text, bool]], bench: Bench, on_step: Callable[[str], None], kinds: Collection[Kind] = tuple(Kind)
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Of each rule that is new, gone or not shown to be the same, on each text; `texts`: with whether they are of the zoo. What neither version
    matches is left out. `kinds`: of the rules. And the texts that have no facts, of which nothing is known."""
    pairs = [p for c in packs for p in c.pairs if (p.judges or p.new is None) and (p.new or p.old).kind in kinds]
    rules = [r for p in pairs for r in (p.old, p.new) if r is not None]
    out, unread = [], []
    for (text, zoo), tallies in zip(texts, bench.all([(rules, t) for t, _ in texts]), strict=True) if rules else ():
        on_step(text.shown)
        if NO_FACTS in tallies:
            unread.append(text.name)
            continue
        found = iter(tallies)
        for p in pairs:
            old, new = (next(found) if r is not None else None for r in (p.old, p.new))
            if any(t is not None and t.verdict != Outcome.INAPPLICABLE for t in (old, new)):
                out.append(Row(p.id, text.shown, old, new, zoo))
    return tuple(sorted(out, key=lambda r: (r.id, r.text))), tuple(dict.fromkeys(unread))


def witnessed(packs: Iterable[Compared], texts_of: Callable[[str, bytes], list[Text]], bench: Bench) -> tuple[tuple[Compared, ...], tuple[Row, ...]]:
    """The packs, with what the texts of the old version show: one that the old rule found wrong and the new one does not makes it looser, whatever
    else is known. And the verdicts of both on those, and on texts that are new."""
    packs, seen = tuple(packs), []
    done = tuple(replace(c, pairs=tuple(_shown(p, c, texts_of, bench, seen) for p in c.pairs)) for c in packs)
    return done, tuple(seen)


def _shown(pair: Pair, pack: Compared, texts_of, bench: Bench, seen: list[Row]) -> Pair:
    if not pair.judges:
        return pair
    rules = [r for r in (pair.old, pair.new) if r is not None]
    found = []
    for name, data, before in _texts(pair, pack):
        for text in texts_of(name, data):
            tallies = bench.tallies(rules, text)
            old, new = tallies[0] if pair.old is not None else None, tallies[-1]
            seen.append(Row(pair.id, text.shown, old, new))
            if before and old is not None and old.verdict == Outcome.VIOLATED and new.verdict != Outcome.VIOLATED:
                found.append(Change("texts", Direction.LOOSER, f"'{name}' was violated and is {new.verdict}"))
    return replace(pair, changes=(*pair.changes, *found))


def _texts(pair: Pair, pack: Compared) -> Iterator[tuple[str, bytes, bool]]:
    """(name, content, whether the old version had it) of the texts beside both versions."""
    old = beside(pair.old, pack.old) if pair.old is not None else {}
    new = beside(pair.new, pack.new)
    for name, data in sorted(old.items()):
        if name.endswith(".cake"):
            yield name, data, True
    for name, data in sorted(new.items()):
        if name.endswith(".cake") and old.get(name) != data:
            yield name, data, False


def costs(found: Iterable[Row]) -> dict[str, tuple[Cost | None, Cost | None]]:
    """By rule, as its rows call it: before and now."""
    by: dict[str, list[Row]] = {}
    for row in found:
        by.setdefault(row.id, []).append(row)
    return {id: (cost(r.old for r in rows), cost(r.new for r in rows)) for id, rows in sorted(by.items())}
