"""Facts that belong together by equal columns: what a condition says of two facts by `==`, so that the others are not looked at.

What is left out is what the condition denies; all that is found is judged by the whole condition all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.facts import Row
from cake_core.facts.relations import EXPR
from cake_core.rules import ast


def conjuncts(node: ast.Node | None) -> Iterator[ast.Node]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from conjuncts(node.left)
        yield from conjuncts(node.right)
    elif node is not None:
        yield node


def equalities(condition: ast.Node | None, own: str) -> Iterator[tuple[ast.Node, ast.Node]]:
    """The parts of a condition that say a column of the variable `own` is one of another variable: (own column, the other one)."""
    for p in conjuncts(condition):
        if isinstance(p, ast.Binary) and p.op == "==":
            for mine, other in ((p.left, p.right), (p.right, p.left)):
                if root(mine) == own and root(other) not in (own, None) and mine.sort == other.sort:
                    yield mine, other


def root(node: ast.Node) -> str | None:
    """The variable whose fact a column is of, or of a fact that it refers to; None of anything that is not decided by facts alone."""
    while isinstance(node, ast.Field) and node.sort is not None and node.sort.kind not in (EXPR, "set"):
        node = node.base
    return node.id if isinstance(node, ast.Name) else None


def key(value: object) -> object:
    """What `==` of the language compares: facts by which they are, other values by what they are."""
    return ("fact", id(value)) if isinstance(value, Row) else (type(value), value)
