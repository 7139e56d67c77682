"""Expressions of rules without definitions, and as keys that are equal where only names of bound variables differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from cake_core.rules import ast
from cake_core.rules.check import Definition

#: Nodes of one expression with its definitions written out: beyond that two versions are not compared.
MOST = 5000


class TooLarge(Exception):
    """An expression that grows beyond `MOST` where its definitions are written out."""


class Inliner:
    """Writes definitions out, each bound variable under a name of its own (`x.3`, which no text has)."""

    def __init__(self, definitions: Mapping[str, Definition]):
        self.definitions, self.numbers, self.left = definitions, count(), MOST

    def of(self, node: ast.Node, env: Mapping[str, ast.Node]) -> ast.Node:
        """The expression; `env`: what stands for its free variables. Raises TooLarge."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge
        match node:
            case ast.Literal():
                return node
            case ast.Name(id):
                return env.get(id, node)
            case ast.Field(base):
                return replace(node, base=self.of(base, env))
            case ast.Call(name, args):
                done = tuple(self.of(a, env) for a in args)
                if (d := self.definitions.get(name)) is not None:
                    return self.of(d.body, dict(zip((n for n, _ in d.of), done, strict=True)))
                return replace(node, args=done)
            case ast.Unary(_, operand):
                return replace(node, operand=self.of(operand, env))
            case ast.Binary(_, left, right):
                return replace(node, left=self.of(left, env), right=self.of(right, env))
            case ast.Member(item, items):
                return replace(node, item=self.of(item, env), items=self.of(items, env))
            case ast.Listed(items):
                return replace(node, items=tuple(self.of(i, env) for i in items))
            case ast.Choice(test, then, other):
                return replace(node, test=self.of(test, env), then=self.of(then, env), other=self.of(other, env))
            case ast.Quantified(_, over, body):
                over, inner = self.over(over, env)
                return replace(node, over=over, body=self.of(body, inner))
            case ast.Count(over):
                return replace(node, over=self.over(over, env)[0])
            case ast.Fold(_, item, over):
                over, inner = self.over(over, env)
                return replace(node, item=self.of(item, inner), over=over)
        raise AssertionError(type(node).__name__)

    def over(self, over: ast.Over, env: Mapping[str, ast.Node]) -> tuple[ast.Over, dict[str, ast.Node]]:
        from cake_core.rules.sorts import fact

        name = f"{over.var}.{next(self.numbers)}"
        inner = {**env, over.var: ast.Name(name, sort=fact(over.relation))}
        return replace(over, var=name, where=self.of(over.where, inner) if over.where is not None else None), inner


def key(node: ast.Node | None, free: list[str], bound: tuple[str, ...] = ()) -> tuple:
    """What the expression is, whatever its variables are called: free ones by their place in `free`, which grows, bound ones by how far out
    they are bound."""

    def inner(n: ast.Node | None, more: tuple[str, ...] = ()) -> tuple:
        return key(n, free, (*bound, *more))

    match node:
        case None:
            return ()
        case ast.Literal(value):
            return ("literal", type(value).__name__, value)
        case ast.Name(id):
            if id in bound:
                return ("bound", len(bound) - bound.index(id))
            if id not in free:
                free.append(id)
            return ("free", free.index(id))
        case ast.Field(base, name):
            return ("field", name, base.sort.relation if base.sort else "", inner(base))
        case ast.Call(name, args):
            return ("call", name, *map(inner, args))
        case ast.Unary(op, operand):
            return ("unary", op, inner(operand))
        case ast.Binary(op, left, right):
            return ("binary", op, inner(left), inner(right))
        case ast.Member(item, items):
            return ("member", inner(item), inner(items))
        case ast.Listed(items):
            return ("listed", *map(inner, items))
        case ast.Choice(test, then, other):
            return ("choice", inner(test), inner(then), inner(other))
        case ast.Quantified(kind, over, body):
            return (kind, over.relation, inner(over.where, (over.var,)), inner(body, (over.var,)))
        case ast.Count(over):
            return ("count", over.relation, inner(over.where, (over.var,)))
        case ast.Fold(kind, item, over):
            return (kind, over.relation, inner(over.where, (over.var,)), inner(item, (over.var,)))
    raise AssertionError(type(node).__name__)
