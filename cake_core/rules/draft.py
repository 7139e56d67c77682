"""A rule's first words from two texts: what the repaired one has that the bad one lacks, and what stands where it goes wrong.

A draft is a guess about facts of two kernels, to be read and made general. It tells them apart, no more.
"""

from __future__ import annotations

from collections import Counter

from cake_core.facts import Row, Rows
from cake_core.facts.relations import EXPR, RELATIONS
from cake_core.frozen import frozen
from cake_core.rules.sorts import HAPPENING
from cake_core.rules.strict import CONTROL

#: Columns that say where a fact stands and not what it is.
PLACE = {"event", "loop", "order"}
#: Relations that say again what another one says, or what is no hand-off: they stand last.
LAST = ("barrier_use", "assign")
#: Differences that a draft lists.
MOST = 12
#: Characters of a line that was said of a failure.
WIDTH = 200


@frozen
class Difference:
    """What the bad text lacks and what it has beside the good one, as facts without their place, each with how many there are of its verb, and how
    many in the other text; which columns of facts of one name differ."""

    lacks: tuple[tuple[Row, int, int], ...]
    beside: tuple[tuple[Row, int, int], ...]
    changed: tuple[tuple[Row, Row, str], ...]


def difference(bad: Rows, good: Rows) -> Difference:
    changed = []
    for name in (n for n in RELATIONS if n not in HAPPENING):
        own = {r.id: r for r in bad[name]}
        for r in good[name]:
            if r.id in own:
                changed += [(own[r.id], r, c.name) for c in RELATIONS[name].columns if c.name not in ("id", "loc") and own[r.id][c.name] != r[c.name]]
    return Difference(_more(good, bad), _more(bad, good), tuple(changed))


def _more(rows: Rows, than: Rows) -> tuple[tuple[Row, int, int], ...]:
    """What happens in one kernel more often than in another: a row of each kind."""
    out = []
    for name in sorted(HAPPENING - {"event"}):
        own, other = (Counter(map(_kind, r[name])) for r in (rows, than))
        verbs, others = (Counter(row["op"] for row in r[name]) for r in (rows, than))
        first = {_kind(r): r for r in reversed(rows[name])}
        out += [(first[kind], verbs[first[kind]["op"]], others[first[kind]["op"]]) for kind, n in own.items() if n > other[kind]]
    return tuple(sorted(out, key=lambda found: (_weight(found[0].relation)[0], found[0]["order"])))


def _weight(relation: str) -> tuple[bool, str]:
    return relation in LAST, relation


def _kind(row: Row) -> tuple:
    """A fact without its place."""
    return row.relation, *(
        (c.name, str(row[c.name])) for c in RELATIONS[row.relation].columns if c.name not in PLACE | {"id", "loc"} and c.sort != EXPR
    )


def body(bad: Rows, good: Rows | None, line: int | None, what: str) -> str:
    """What stands between the head and the words of `rule.yaml`. `line`: of the bad text, where it goes wrong; `what`: said of it."""
    comment = [f"# {CONTROL.sub(' ', text)[:WIDTH]}" for text in what.splitlines() if text.strip()][:MOST]
    there = [r for name in sorted(HAPPENING - {"event"}, key=_weight) for r in bad[name] if r.span.line == line] if line else []
    comment += [f"# where it goes wrong: {_shown(r)}" for r in there[:MOST]]
    found = difference(bad, good) if good is not None else Difference((), (), ())
    comment += [f"# only the good text has: {_shown(r)}" for r, *_ in found.lacks[:MOST]]
    comment += [f"# only the bad text has: {_shown(r)}" for r, *_ in found.beside[:MOST]]
    comment += [
        f"# {a.relation} '{a.id}': '{c}' is {_value(a[c])} in the bad text, {_value(b[c])} in the good one" for a, b, c in found.changed[:MOST]
    ]
    names = _told_apart(found, there)
    return "\n".join([*comment, "# TODO: this tells the two texts apart; say what it is about in general.", *names]) + "\n"


def _told_apart(found: Difference, there: list[Row]) -> list[str]:
    at = there[0] if there else None
    match = f"{{at: {{{at.relation}: {{op: '{at['op']}'}}}}}}" if at is not None else "{at: {kernel: {}}}"
    for a, b, column in found.changed:
        if type(b[column]) in (int, bool, str):
            text = f"'{b[column]}'" if isinstance(b[column], str) else str(b[column]).lower()
            return [f"match: {{at: {{{a.relation}: {{}}}}}}", f"where: at.id == '{a.id}'", f"require: at.{column} == {text}", _message(a.relation)]
    for rows, sign in ((found.lacks, ">="), (found.beside, "<")):
        for row, n, other in rows:
            if n > other:
                count = f"count(x in {row.relation} where x.op == '{row['op']}')"
                return [f"match: {match}", f"require: {count} {sign} {n}", _message(at.relation if at else "kernel")]
    return [f"match: {match}", "require: false", _message(at.relation if at else "kernel")]


def _message(relation: str) -> str:
    name = "{at.op}" if relation in HAPPENING else "{at.id}"
    return f"message: \"TODO: the fact about '{name}', in lower case, no final period\""


def _shown(row: Row) -> str:
    columns = [c for c in RELATIONS[row.relation].columns if c.name not in PLACE | {"id", "loc", "part", "guarded", "apart", "loaded"}]
    values = ", ".join(f"{c.name} {_value(row[c.name])}" for c in columns if c.sort != EXPR and not c.many and row[c.name] not in (None, False))
    return f"{row.relation}: {values}"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
