"""The predicates that are about ways through the text alone: answered here on the event trees, whoever answers the others."""

from __future__ import annotations

from collections.abc import Callable

from cake_core.facts import Row, Rows
from cake_core.rules.known import happens_before
from cake_core.rules.paths import START, missed
from cake_core.rules.predicates import PROVED, Answer, Conditions, Standing
from cake_core.rules.schema import Path, Pattern


def fenced(rows: Rows, access: Row, before: Row, kind: str, given: Conditions = ()) -> Answer:
    """On every way from `access` to `before`, hand-offs too, those who ran the access execute a fence of this kind behind it."""
    ways, _ = missed(Path(_this(access), _this(before), (Pattern("fence", (("kind", (kind,)),)),), "writer", None), rows, _any)
    return _answer([w.over for w in ways], f"no fence '{kind}'")


def dominates(rows: Rows, a: Row, b: Row, given: Conditions = ()) -> Answer:
    """Every way to `b` passes `a` first, in the agent that runs `b`."""
    ways, _ = missed(Path(Pattern(START), _this(b), (_this(a),), "issuer", None, hand_offs=False), rows, _any)
    return _answer([w.over for w in ways], f"not '{a['op']}'")


WAYS: dict[str, Callable[..., Answer]] = {"fenced": fenced, "dominates": dominates, "happens_before": happens_before}


def _this(row: Row) -> Pattern:
    return Pattern(row.relation, (("id", (row.id,)),))


def _any(start: Row | None, end: Row | None) -> bool:
    return True


def _answer(missing: list[tuple[str, ...]], what: str) -> Answer:
    if not missing:
        return PROVED
    over = f", handed over by {' and '.join(missing[0])}" if missing[0] else ""
    return Answer(Standing.VIOLATED, f"on a way between them stands {what}{over}")
