"""Which facts fit a pattern, and every way to match the variables of a rule."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.facts import Row, Rows
from cake_core.rules import ast
from cake_core.rules.evaluate import Evaluator
from cake_core.rules.formula import Formula, conjunction
from cake_core.rules.schema import Pattern, Relation
from cake_core.rules.shapes import RESOURCE


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
    at as soon as its variables have facts."""
    names = [n for n, _ in shape.match]
    parts = list(_conjuncts(shape.where)) if shape.where is not None else []
    due = [[p for p in parts if _last(p, names) == i] for i in range(len(names))]
    tables = [[r for r in rows[p.relation] if fits(r, p)] for _, p in shape.match]

    def search(i: int, env: dict[str, Row], left: tuple[Formula, ...]):
        if i == len(names):
            yield env, conjunction(left)
            return
        for row in tables[i]:
            inner = {**env, names[i]: row}
            found = tuple(f for p in due[i] if (f := evaluator.condition(p, inner)) is not True)
            if False not in found:
                yield from search(i + 1, inner, (*left, *found))

    yield from search(0, {}, ())


def _conjuncts(node: ast.Node) -> Iterator[ast.Node]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _last(node: ast.Node, names: list[str]) -> int:
    """Position of the last of a rule's variables in a part of `where`."""
    used = ast.variables(node)
    return max((i for i, n in enumerate(names) if n in used), default=0)
