"""Where an expression of a rule has no value: a column without one in a comparison, a division by zero. A rule fails there, which is no
verdict that lets anything pass; so where the old version failed, the new one has to fail or be violated.

What is looked at depends on the order: `and`, `or`, `implies` and a choice leave their right side alone where facts decide the left one.
`x.slot == none or x.slot < 3` always has a value, and the other way round it has not. What is not modelled, joins and what goes over facts,
fails or not by the text of the expression: alike where it is written alike, and else anything.
"""

from __future__ import annotations

from cake_core.facts.relations import EXPR, RELATIONS
from cake_core.review.inline import Inliner, key
from cake_core.rules import ast
from cake_core.rules.check import Definition
from cake_core.rules.joins import conjuncts
from cake_core.rules.predicates import SIGNATURES

COMPARED = ("==", "!=")
DIVIDED = ("/", "%")


class Failing:
    """Of one `Logic`. What it gives is False, surely a value, or a formula of when there is none."""

    def __init__(self, logic):
        self.logic, self.z3 = logic, logic.z3

    def where(self, node: ast.Node | None, definitions: dict[str, Definition], env: dict):
        """Of the `where` of a match: at most where one of its parts fails, each of which is looked at as soon as its variables have facts, and
        only beside facts that joins leave."""
        if node is None:
            return False
        whole = Inliner(definitions).of(node, {})
        fails = self._or(*(self._condition(p, dict(env)) for p in conjuncts(whole)))
        return fails if fails is False else self.z3.And(fails, self._written("where", whole, env))

    def decided(self, node: ast.Node | None, definitions: dict[str, Definition], env: dict):
        """Of a condition that facts have to decide."""
        if node is None:
            return False
        whole = Inliner(definitions).of(node, {})
        return self._or(self._condition(whole, dict(env)), self._written("decided", whole, env) if _depends(whole) else False)

    def condition(self, node: ast.Node | None, definitions: dict[str, Definition], env: dict):
        """Of a condition in which what the facts do not decide is left open."""
        return False if node is None else self._condition(Inliner(definitions).of(node, {}), dict(env))

    # --- conditions ------------------------------------------------------------------------------------------------

    def _condition(self, node: ast.Node, env: dict):
        match node:
            case ast.Unary("not", operand):
                return self._condition(operand, env)
            case ast.Binary("and", left, right) | ast.Call("implies", (left, right)):
                return self._behind(left, True, right, env)
            case ast.Binary("or", left, right):
                return self._behind(left, False, right, env)
            case ast.Choice(test, then, other) if node.sort is not None and node.sort.kind == "bool":
                arms = self._behind(test, True, then, env), self._behind(test, False, other, env)
                return self._or(*arms)
        return self._or(self._value(node, env), self._missing(node, env))

    def _behind(self, left: ast.Node, goes_on: bool, right: ast.Node, env: dict):
        """`right` is looked at where the facts do not decide that `left` is the other one."""
        first, then = self._condition(left, env), self._condition(right, env)
        if then is False:
            return first
        held = self.logic._bool(left, env)
        stops = self.z3.Not(held) if goes_on else held
        if _depends(left):
            stops = self.z3.And(stops, self._written("decided", left, env))
        return self._or(first, self.z3.And(self.z3.Not(stops), then))

    # --- values ----------------------------------------------------------------------------------------------------

    def _value(self, node: ast.Node, env: dict):
        match node:
            case ast.Literal() | ast.Name():
                return False
            case ast.Field(base, _):
                return self._or(self._value(base, env), self._missing(base, env))
            case ast.Binary("and" | "or", _, _) | ast.Unary("not", _) | ast.Call("implies", _):
                return self._condition(node, env)
            case ast.Binary(op, left, right) if op in COMPARED:
                return self._or(self._value(left, env), self._value(right, env))
            case ast.Binary(op, left, right):
                by_zero = op in DIVIDED and not (isinstance(right, ast.Literal) and right.value)
                zero = self._written("zero", right, env) if by_zero else False
                return self._or(*(f(n, env) for n in (left, right) for f in (self._value, self._missing)), zero)
            case ast.Unary(_, operand):
                return self._or(self._value(operand, env), self._missing(operand, env))
            case ast.Member(item, items):
                return self._or(self._value(item, env), self._value(items, env))
            case ast.Listed(items):
                return self._or(*(self._value(i, env) for i in items))
            case ast.Call(name, args):
                own = False if name == "text" else self._or(*(self._missing(a, env) for a in args))
                return self._or(*(self._value(a, env) for a in args), own)
        return self._written("fails", node, env) if self.risky(node) else False

    def _missing(self, node: ast.Node, env: dict):
        """That a value is none, where one is wanted."""
        if _optional(node):
            return self.logic._of(node, env) == self.logic._none(node.sort)
        return self._written("missing", node, env) if isinstance(node, ast.Choice) and self.risky(node) else False

    def risky(self, node: ast.Node) -> bool:
        """Whether there may be no value for it, or for a part of it that wants one."""
        match node:
            case ast.Fold("min" | "max", _, _):
                return True
            case ast.Binary("/" | "%", _, right) if not (isinstance(right, ast.Literal) and right.value):
                return True
            case ast.Quantified(_, over, _) | ast.Count(over) | ast.Fold(_, _, over) if over.where is not None and _depends(over.where):
                return True
        wants = not isinstance(node, ast.Member | ast.Listed) and not (isinstance(node, ast.Binary) and node.op in COMPARED)
        wants &= not (isinstance(node, ast.Call) and node.name == "text")
        return any(self.risky(k) or wants and _optional(k) for k in ast.kids(node))

    def _written(self, what: str, node: ast.Node, env: dict):
        free: list[str] = []
        name = key(node, free)
        args = [env[f] for f in free]
        return self.logic._function((what, name), tuple(self.logic.fact for _ in args), "bool")(*args)

    def _or(self, *parts):
        real = [p for p in parts if p is not False]
        return False if not real else real[0] if len(real) == 1 else self.z3.Or(*real)


def _optional(node: ast.Node) -> bool:
    """Whether it is a column that may have no value. Of what the base is, nothing is said."""
    if not isinstance(node, ast.Field):
        return False
    relation = RELATIONS.get(node.base.sort.relation) if node.base.sort is not None else None
    column = relation.column(node.name) if relation is not None and node.name not in ("id", "loc") else None
    return column is not None and column.optional


def _depends(node: ast.Node) -> bool:
    """Whether facts alone may not decide it: values of the run, and predicates, stay open."""
    match node:
        case ast.Field() if node.sort is not None and node.sort.kind == EXPR:
            return True
        case ast.Call(name) if name in SIGNATURES:
            return True
    return any(map(_depends, ast.kids(node)))
