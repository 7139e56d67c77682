"""Walks over one statement: the calls in its expressions, the blocks inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

from cake_core.ir.nodes import Block, Call, Expr, For, Group, If, Node, Role, Stmt, While


def nested(s: Stmt) -> tuple[Block, ...]:
    """The blocks inside a statement."""
    match s:
        case For() | While() | Role() | Group():
            return (s.body,)
        case If():
            return (s.then, s.other) if s.other is not None else (s.then,)
    return ()


def written_flat(block: Block) -> Iterator[Stmt]:
    """The statements of a block, those of its `group`s in their place."""
    for s in block:
        if isinstance(s, Group):
            yield from written_flat(s.body)
        else:
            yield s


def calls(node) -> Iterator[Call]:
    """All calls in the expressions of one statement, not those of nested statements."""
    if isinstance(node, Call):
        yield node
    for name in _parts(type(node)):
        value = getattr(node, name)
        for x in value if isinstance(value, tuple) else (value,):
            if isinstance(x, tuple):
                for y in x:
                    yield from calls(y)
            elif isinstance(x, Node) and not isinstance(x, Stmt):
                yield from calls(x)


@cache
def _parts(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a node that may hold others."""
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "type", "label"))


def size(node, most: int) -> int:
    """How many expressions there are in one, counted up to `most`."""
    count, left = 0, [node]
    while left and count < most:
        x = left.pop()
        if isinstance(x, tuple):
            left += x
        elif isinstance(x, Expr):
            count += 1
            left += (getattr(x, name) for name in _parts(type(x)))
    return count


def own_expressions(s: Stmt) -> Iterator[Expr]:
    """The expressions that stand directly in one statement, not those of nested statements."""
    for f in fields(s):
        yield from _expressions(getattr(s, f.name)) if f.name not in ("span", "label") else ()


def _expressions(x) -> Iterator[Expr]:
    if isinstance(x, Expr):
        yield x
    elif isinstance(x, tuple):
        for y in x:
            yield from _expressions(y)
    elif isinstance(x, Node) and not isinstance(x, Stmt):
        for name in _all_parts(x.__class__):
            yield from _expressions(getattr(x, name))


@cache
def _all_parts(kind: type[Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "span")
