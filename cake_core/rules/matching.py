"""Which facts fit a pattern, and every way to match the variables of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cake_core.facts import Row, Rows
from cake_core.rules import ast
from cake_core.rules.evaluate import Evaluator
from cake_core.rules.formula import Formula, conjunction
from cake_core.rules.joins import conjuncts, equalities, root
from cake_core.rules.schema import RESOURCE, Pattern, Relation


def fits(row: Row, pattern: Pattern, resource: Row | None = None) -> bool:
    if row.relation != pattern.relation:
        return False
    for name, values in pattern.columns:
        own = row.id if name == "id" else row.loc if name == "loc" else row[name]
        if own not in values and not (resource is not None and RESOURCE in values and own == resource.id):
            return False
    return True


def matches(shape: Relation, rows: Rows, evaluator: Evaluator) -> Iterator[tuple[dict[str, Row], Formula]]:
    """Every way to match, with what is left of `where`: conditions that the facts alone do not decide. A part of `where` is looked
    at as soon as its variables have facts; where one says that two columns are equal, the other facts are not looked at. Raises OverBudget."""
    names = [n for n, _ in shape.match]
    parts = list(conjuncts(shape.where))
    due = [[p for p in parts if _last(p, names) == i] for i in range(len(names))]
    tables = [[r for r in rows[p.relation] if fits(r, p)] for _, p in shape.match]
    joins = [_joined(due[i], names[:i], names[i], tables[i], evaluator) for i in range(len(names))]

    def search(i: int, env: dict[str, Row], left: tuple[Formula, ...]):
        if i == len(names):
            yield env, conjunction(left)
            return
        found = tables[i] if joins[i] is None else joins[i](env)
        evaluator.spend(len(found), shape.require.span)
        for row in found:
            inner = {**env, names[i]: row}
            open_ = tuple(f for p in due[i] if (f := evaluator.condition(p, inner)) is not True)
            if False not in open_:
                yield from search(i + 1, inner, (*left, *open_))

    yield from search(0, {}, ())


def _joined(parts: list[ast.Node], before: list[str], own: str, table: list[Row], evaluator: Evaluator) -> Callable | None:
    """For facts of the variables before, the rows of `table` whose column has the value that a part of `where` wants; None: none wants one."""
    for p in parts:
        for mine, other in equalities(p, own):
            if root(other) in before and (places := evaluator.places(own, mine, table)) is not None:
                return partial(evaluator.placed, places, table, other)
    return None


def _last(node: ast.Node, names: list[str]) -> int:
    """Position of the last of a rule's variables in a part of `where`."""
    used = ast.variables(node)
    return max((i for i, n in enumerate(names) if n in used), default=0)
