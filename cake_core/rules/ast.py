"""Expressions of rules: every node on one page. The parser builds them, the checker fills in `sort`, the evaluator reads them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from cake_core.frozen import frozen
from cake_core.source import NOWHERE, Span

if TYPE_CHECKING:
    from cake_core.rules.sorts import Sort


@frozen(kw_only=True)
class Node:
    """`sort` is None until it is checked."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)
    sort: Sort | None = field(default=None, compare=False, repr=False)


@frozen
class Literal(Node):
    """An integer, a text, `true`, `false`, or `none` (the value of an optional column that has none)."""

    value: int | str | bool | None


@frozen
class Name(Node):
    """A variable; in front of the checker also a word of a text column (`write`)."""

    id: str


@frozen
class Field(Node):
    """A column of a fact."""

    base: Node
    name: str


@frozen
class Call(Node):
    """A function, a predicate, or a definition of the pack."""

    name: str
    args: tuple[Node, ...]


@frozen
class Unary(Node):
    """`op` is `-`, `+` or `not`."""

    op: str
    operand: Node


@frozen
class Binary(Node):
    """`op` is one of `or and == != <= >= < > + - * / %`."""

    op: str
    left: Node
    right: Node


@frozen
class Member(Node):
    """`item in items`."""

    item: Node
    items: Node


@frozen
class Listed(Node):
    items: tuple[Node, ...]


@frozen
class Choice(Node):
    test: Node
    then: Node
    other: Node


@frozen
class Over:
    """`var in relation where condition`: the facts that a form goes over."""

    var: str
    relation: str
    where: Node | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Quantified(Node):
    """`kind` is `forall` or `exists`."""

    kind: str
    over: Over
    body: Node


@frozen
class Count(Node):
    over: Over


@frozen
class Fold(Node):
    """`kind` is `sum`, `max`, `min` or `set`, of `item` for each fact."""

    kind: str
    item: Node
    over: Over


def kids(node: Node) -> tuple[Node, ...]:
    """The expressions directly inside a node."""
    match node:
        case Field(base):
            return (base,)
        case Call(_, args):
            return args
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Member(item, items):
            return (item, items)
        case Listed(items):
            return items
        case Choice(test, then, other):
            return (test, then, other)
        case Quantified(_, over, body):
            return (body, *((over.where,) if over.where else ()))
        case Count(over):
            return (over.where,) if over.where else ()
        case Fold(_, item, over):
            return (item, *((over.where,) if over.where else ()))
    return ()


def variables(node: Node) -> set[str]:
    """Names in an expression; those that it binds itself are among them, for they can't be another's."""
    own = {node.id} if isinstance(node, Name) else set()
    return own.union(*map(variables, kids(node)))
