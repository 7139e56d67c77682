"""A rule's first words from two texts: what the repaired one has that the bad one lacks, and what stands where it goes wrong.

A draft is a guess about facts of two kernels, to be read and made general. It tells them apart, no more, and says so only where it does: by facts
that one of them has, by columns, or by the order of two.
"""

from __future__ import annotations

import re
from collections import Counter

from cake_core.facts import Row, Rows
from cake_core.facts.relations import EXPR, RELATIONS
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.ir.printer import expr_text
from cake_core.rules.automaton import Automaton, automaton
from cake_core.rules.matching import fits
from cake_core.rules.schema import Pattern
from cake_core.rules.shapes import VARIABLE
from cake_core.rules.sorts import HAPPENING
from cake_core.rules.strict import CONTROL

#: Columns that say where a fact stands and not what it is.
PLACE = {"event", "loop", "order"}
#: Relations that say again what another one says, or what is no hand-off: they stand last.
LAST = ("barrier_use", "assign")
#: Relations whose rows are named by their place in the text: those of one name in two texts need not be one.
NUMBERED = {"loop", "branch", "handoff"}
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
    for name in (n for n in RELATIONS if n not in HAPPENING | NUMBERED):
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
    comment += _listed(found)
    places = swapped(bad, good) if good is not None and found == Difference((), (), ()) else None
    if places is not None:
        comment += [f"# what changed places: {_shown(r)}" for r in places]
    shape = _in_order(places, bad, good) if places is not None else None
    names = shape or _told_apart(found, there, bad, good)
    told = "this tells the two texts apart; say what it is about in general." if names[-2] != REFUSE else _untold(good, places, found)
    return "\n".join([*dict.fromkeys(comment), f"# TODO: {told}", *names]) + "\n"


def _listed(found: Difference) -> list[str]:
    """The differences, a line each. Facts of one verb that differ in some columns are told by these."""
    lacks, beside = [r for r, *_ in found.lacks], [r for r, *_ in found.beside]
    told = []
    for row in list(lacks):
        other = next((o for o in beside if (o.relation, o["op"]) == (row.relation, row["op"])), None)
        if other is not None and (columns := _apart(other, row)):
            lacks.remove(row)
            beside.remove(other)
            told += [
                f"# {row.relation} of '{row['op']}': '{c}' is {_value(other[c])} in the bad text, {_value(row[c])} in the good one" for c in columns
            ]
    return [
        *(f"# only the good text has: {_shown(r)}" for r in lacks[:MOST]),
        *(f"# only the bad text has: {_shown(r)}" for r in beside[:MOST]),
        *told[:MOST],
        *(f"# {a.relation} '{a.id}': '{c}' is {_value(a[c])} in the bad text, {_value(b[c])} in the good one" for a, b, c in found.changed[:MOST]),
    ]


def _apart(row: Row, other: Row) -> list[str]:
    """The columns of a relation by which two of its facts are of another kind."""
    own = (c for c in RELATIONS[row.relation].columns if c.name not in PLACE | {"id", "loc"} and c.sort != EXPR and not c.many)
    return [c.name for c in own if row[c.name] != other[c.name]]


#: What a draft requires that found nothing: each text is told.
REFUSE = "require: false"


def _untold(good: Rows | None, places: tuple[Row, Row] | None, found: Difference) -> str:
    if good is None:
        return "there is no good text that this would be told from; say what must hold."
    if places is not None:
        return "only the order of these tells the two texts apart; say what must hold of it, with a path, a protocol or a predicate."
    if found != Difference((), (), ()):
        return "what tells the two texts apart stands above; say what must hold of it."
    return "the two texts differ in expressions alone, if at all; say what must hold of them, with arithmetic or a predicate."


def swapped(bad: Rows, good: Rows) -> tuple[Row, Row] | None:
    """Of two texts with the same facts: two that stand the other way round, the one first that is first in the good text. None: all stand
    in one order."""
    one, other = (_sequence(r) for r in (bad, good))
    for x, y in zip(one, other, strict=True):
        if _kind(x) != _kind(y):
            return y, x
    return None


def _sequence(rows: Rows) -> list[Row]:
    """What happens, in text order."""
    return sorted((r for name in sorted(HAPPENING - {"event"}) for r in rows[name]), key=lambda r: r["order"])


def _in_order(places: tuple[Row, Row], bad: Rows, good: Rows) -> list[str] | None:
    """A protocol of the two that the good text follows and the bad one does not; None where none of these is one."""
    patterns = [_pattern(r, other) for r, other in (places, places[::-1])]
    names = [re.sub(r"\W", "_", r["op"].rpartition(".")[2]) for r in places]
    names = names if names[0] != names[1] and all(VARIABLE.fullmatch(n) for n in names) else ["first", "second"]
    sequences = [[n for r in _sequence(of) for n, p in zip(names, patterns, strict=True) if fits(r, p)] for of in (good, bad)]
    for text in (f"{names[0]}* {names[1]}*", f"({names[0]}+ {names[1]}+)*"):
        if [_follows(automaton(text), came) for came in sequences] == [True, False]:
            shown = [
                f"  {n}: {{{p.relation}: {{{', '.join(f'{c}: {_quoted(v)}' for c, (v,) in p.columns)}}}}}"
                for n, p in zip(names, patterns, strict=True)
            ]
            message = "message: \"TODO: the fact, in lower case, no final period: '{came}' comes where {expected} may come\""
            return ["shape: protocol", "resource: {kernel: {}}", "events:", *shown, f"automaton: {text}", message]
    return None


def _pattern(row: Row, other: Row) -> Pattern:
    """The row by its verb; by a column too where both have one verb."""
    columns = [("op", (row["op"],))]
    if row["op"] == other["op"] and row.relation == other.relation:
        columns += [(c, (row[c],)) for c in _apart(row, other)[:1]]
    return Pattern(row.relation, tuple(columns))


def _follows(machine: Automaton, came: list[str]) -> bool:
    state: int | None = 0
    for name in came:
        if (state := machine.steps[state].get(name)) is None:
            return False
    return state in machine.accepting


def _told_apart(found: Difference, there: list[Row], bad: Rows, good: Rows | None) -> list[str]:
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
    for row, other in ((r, o) for r, *_ in found.lacks for o, *_ in found.beside if (r.relation, r["op"]) == (o.relation, o["op"])):
        pattern = _pattern(row, other)  # there are as many in both, of another kind
        n, more = (sum(fits(r, pattern) for r in of[row.relation]) for of in (good, bad))
        if n > more:
            which = " and ".join(f"x.{c} == {_quoted(v)}" for c, (v,) in pattern.columns)
            return [f"match: {match}", f"require: count(x in {row.relation} where {which}) >= {n}", _message(at.relation if at else "kernel")]
    return [f"match: {match}", REFUSE, _message(at.relation if at else "kernel")]


def _message(relation: str) -> str:
    name = "{at.op}" if relation in HAPPENING else "{at.id}"
    return f"message: \"TODO: the fact about '{name}', in lower case, no final period\""


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else "none" if value is None else _value(value)


def _shown(row: Row) -> str:
    columns = [c for c in RELATIONS[row.relation].columns if c.name not in PLACE | {"id", "loc", "part", "guarded", "apart", "loaded"}]
    values = ", ".join(f"{c.name} {_value(row[c.name])}" for c in columns if c.sort != EXPR and not c.many and row[c.name] not in (None, False))
    return f"{row.relation}: {values}"


def _value(value: object) -> str:
    if value is None or isinstance(value, Expr):
        return "none" if value is None else expr_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
