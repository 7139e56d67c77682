"""Typing of rule expressions: names are resolved, every node gets its sort, predicates stand only where they can be asked.

`checked` returns the expression with sorts, words of text columns as literals. It raises CakeError: `rules/unknown-name`,
`rules/unknown-column`, `rules/sort`, `rules/arguments`, `rules/predicate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.facts.relations import INT, RELATIONS, TEXT
from cake_core.frozen import frozen
from cake_core.rules import ast
from cake_core.rules.functions import FUNCTIONS
from cake_core.rules.predicates import SIGNATURES, Parameter
from cake_core.rules.sorts import CONDITION, INTEGER, NOTHING, TERM, WORD, Sort, comparable, fact, of_column, set_of
from cake_core.source import Span


@frozen
class Definition:
    """A named condition of a pack: `of` its arguments' sorts, `body` typed. `asked`: the predicates that stand in it and in what it uses."""

    name: str
    of: tuple[tuple[str, Sort], ...]
    body: ast.Node
    asked: frozenset[str]

    @property
    def asks(self) -> bool:
        return bool(self.asked)


@frozen
class Scope:
    variables: Mapping[str, Sort]
    definitions: Mapping[str, Definition]
    asks: bool = False  # predicates may stand here
    later: frozenset[str] = frozenset()  # what is defined here or below

    def binding(self, name: str, sort: Sort) -> Scope:
        return replace(self, variables={**self.variables, name: sort})


def checked(node: ast.Node, scope: Scope, expected: Sort | None = CONDITION) -> ast.Node:
    """The expression with its sorts; `expected`: what it must be, None: anything."""
    out = _check(node, scope)
    if expected is not None and not _fits(out.sort, expected):
        raise fail("rules/sort", f"this is {out.sort}, and {expected} stands here", node.span)
    _placed(out, scope, positive=True)
    return out


def _fits(sort: Sort, expected: Sort) -> bool:
    if expected.kind == "set":
        return sort.kind == "set"
    if expected.kind == "fact":
        return sort == expected
    return sort.kind == expected.kind or sort.kind == INT and expected == TERM or expected == CONDITION and sort == TERM


def _near(name: str, known) -> str | None:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else None


def _check(node: ast.Node, scope: Scope) -> ast.Node:
    match node:
        case ast.Literal(value):
            sort = CONDITION if isinstance(value, bool) else INTEGER if isinstance(value, int) else NOTHING if value is None else WORD
            return replace(node, sort=sort)
        case ast.Name(id):
            return _name(node, id, scope)
        case ast.Field():
            return _field(node, scope)
        case ast.Call():
            return _call(node, scope)
        case ast.Unary("not", operand):
            return replace(node, operand=_condition(operand, scope), sort=CONDITION)
        case ast.Unary(_, operand):
            inner = _number(operand, scope)
            return replace(node, operand=inner, sort=inner.sort)
        case ast.Binary("and" | "or", left, right):
            return replace(node, left=_condition(left, scope), right=_condition(right, scope), sort=CONDITION)
        case ast.Binary("==" | "!=", left, right):
            a, b = _pair(left, right, scope)
            _same(a, b, node.span)
            return replace(node, left=a, right=b, sort=CONDITION)
        case ast.Binary("<" | "<=" | ">" | ">=", left, right):
            a, b = _check(left, scope), _check(right, scope)
            if not a.sort.kind == b.sort.kind == TEXT:  # texts: as letters stand in the alphabet
                _counts(a), _counts(b)
            return replace(node, left=a, right=b, sort=CONDITION)
        case ast.Binary(_, left, right):
            a, b = _number(left, scope), _number(right, scope)
            return replace(node, left=a, right=b, sort=TERM if TERM in (a.sort, b.sort) else INTEGER)
        case ast.Member():
            return _member(node, scope)
        case ast.Listed(items):
            done = tuple(_check(i, scope) for i in items)
            for other in done[1:]:
                _same(done[0], other, other.span)
            return replace(node, items=done, sort=set_of(done[0].sort if done else None))
        case ast.Choice(test, then, other):
            t, a, b = _condition(test, scope), _check(then, scope), _check(other, scope)
            _same(a, b, node.span)
            return replace(node, test=t, then=a, other=b, sort=TERM if TERM in (a.sort, b.sort) else a.sort)
        case ast.Quantified(_, over, body):
            over, inner = _over(over, scope)
            return replace(node, over=over, body=_condition(body, inner), sort=CONDITION)
        case ast.Count(over):
            return replace(node, over=_over(over, scope)[0], sort=INTEGER)
        case ast.Fold(kind, item, over):
            over, inner = _over(over, scope)
            done = _check(item, inner) if kind == "set" else _number(item, inner)
            return replace(node, item=done, over=over, sort=set_of(done.sort) if kind == "set" else done.sort)
    raise AssertionError(type(node).__name__)


def _condition(node: ast.Node, scope: Scope) -> ast.Node:
    out = _check(node, scope)
    if not _fits(out.sort, CONDITION):
        raise fail("rules/sort", f"a condition stands here, this is {out.sort}", node.span)
    return out


def _number(node: ast.Node, scope: Scope) -> ast.Node:
    return _counts(_check(node, scope))


def _counts(node: ast.Node) -> ast.Node:
    """What is checked, which has to be a number."""
    if node.sort not in (INTEGER, TERM):
        raise fail("rules/sort", f"a number stands here, this is {node.sort}", node.span)
    return node


def _same(a: ast.Node, b: ast.Node, span: Span) -> None:
    if not comparable(a.sort, b.sort):
        raise fail("rules/sort", f"{a.sort} is never {b.sort}", span)


# --- names -------------------------------------------------------------------------------------------------------


def _name(node: ast.Name, id: str, scope: Scope) -> ast.Node:
    if (sort := scope.variables.get(id)) is not None:
        return replace(node, sort=sort)
    fix = _near(id, scope.variables) or ("write a predicate with its arguments in brackets" if id in SIGNATURES or id in FUNCTIONS else None)
    if fix is None and id in RELATIONS:
        fix = f"give a fact of '{id}' a name in 'match', or go over them: 'exists x in {id}: ..'"
    raise fail(
        "rules/unknown-name",
        f"nothing here is called '{id}'",
        node.span,
        fix=fix or "texts stand in quotes where no column says which words there are",
    )


def _field(node: ast.Field, scope: Scope) -> ast.Node:
    base = _check(node.base, scope)
    if base.sort.kind != "fact":
        raise fail("rules/sort", f"{base.sort} has no columns", node.span)
    relation = RELATIONS[base.sort.relation]
    column = relation.column(node.name)
    if column is None:
        fix = _near(node.name, [c.name for c in relation.columns]) or f"its columns: {', '.join(c.name for c in relation.columns)}"
        raise fail("rules/unknown-column", f"facts of '{relation.name}' have no column '{node.name}'", node.span, fix=fix)
    return replace(node, base=base, sort=of_column(column))


def _pair(left: ast.Node, right: ast.Node, scope: Scope) -> tuple[ast.Node, ast.Node]:
    """Both sides of a comparison: a bare word is a text where the other side is one."""
    if _bare(left, scope) and not _bare(right, scope):
        b = _check(right, scope)
        return _word(left, b.sort, scope), b
    a = _check(left, scope)
    return a, _word(right, a.sort, scope)


def _bare(node: ast.Node, scope: Scope) -> bool:
    return isinstance(node, ast.Name) and node.id not in scope.variables


def _word(node: ast.Node, sort: Sort, scope: Scope) -> ast.Node:
    """A word of a text column, or any expression. A word that the column can't hold is an error, quoted or not."""
    if isinstance(node, ast.Listed):
        items = tuple(_word(i, sort, scope) for i in node.items)
        return replace(node, items=items, sort=set_of(items[0].sort if items else None))
    if sort.kind == TEXT and _bare(node, scope):
        node = ast.Literal(node.id, span=node.span)
    out = _check(node, scope)
    if sort.words and isinstance(out, ast.Literal) and isinstance(out.value, str) and out.value not in sort.words:
        raise fail(
            "rules/unknown-word",
            f"the column is never '{out.value}'",
            node.span,
            fix=_near(out.value, sort.words) or f"it is one of {', '.join(sort.words)}",
        )
    return out


def _member(node: ast.Member, scope: Scope) -> ast.Node:
    if isinstance(node.items, ast.Listed):
        item = _check(node.item, scope)
        items = _word(node.items, item.sort, scope)
    else:
        items = _check(node.items, scope)
        item = _word(node.item, items.sort.of or NOTHING, scope) if items.sort.kind == "set" else _check(node.item, scope)
    if items.sort.kind != "set":
        raise fail("rules/sort", f"a set stands behind 'in', this is {items.sort}", node.items.span)
    if items.sort.of is not None and not comparable(item.sort, items.sort.of):
        raise fail("rules/sort", f"{item.sort} is never in {items.sort}", node.span)
    return replace(node, item=item, items=items, sort=CONDITION)


def _over(over: ast.Over, scope: Scope) -> tuple[ast.Over, Scope]:
    if over.relation not in RELATIONS:
        raise fail(
            "rules/unknown-name",
            f"no relation is called '{over.relation}'",
            over.span,
            fix=_near(over.relation, RELATIONS) or "docs/facts.md lists them",
        )
    if over.var in scope.variables:
        raise fail("rules/repeated", f"'{over.var}' has a meaning here already", over.span, fix="choose another name")
    inner = scope.binding(over.var, fact(over.relation))
    where = None if over.where is None else _condition(over.where, inner)
    return replace(over, where=where), inner


# --- calls -------------------------------------------------------------------------------------------------------


def _call(node: ast.Call, scope: Scope) -> ast.Node:
    name = node.name
    if name == "implies":
        if len(node.args) != 2:
            raise fail("rules/arguments", f"'implies' takes a condition and what follows from it, here are {len(node.args)}", node.span)
        return replace(node, args=tuple(_condition(a, scope) for a in node.args), sort=CONDITION)
    if name == "text":
        return replace(node, args=tuple(_check(a, scope) for a in node.args), sort=WORD)
    if (definition := scope.definitions.get(name)) is not None:
        parameters, sort = tuple(Parameter(n, sort=s) for n, s in definition.of), definition.body.sort
    elif (function := FUNCTIONS.get(name)) is not None:
        parameters, sort = function.parameters, function.result
    elif name in SIGNATURES:
        parameters, sort = SIGNATURES[name], CONDITION
    elif name in scope.later:
        raise fail(
            "rules/unknown-name",
            f"'{name}' has no definition above this one",
            node.span,
            why="a definition may use those above it; none may use itself",
            fix=f"write '{name}' first, or say it without the other one",
        )
    else:
        known = [*FUNCTIONS, *SIGNATURES, *scope.definitions, "implies", "text"]
        raise fail("rules/unknown-name", f"no function, predicate or definition is called '{name}'", node.span, fix=_near(name, known))
    if len(node.args) != len(parameters):
        named = ", ".join(p.name for p in parameters)
        raise fail(
            "rules/arguments",
            f"'{name}' takes {len(parameters)} argument{'s' if len(parameters) != 1 else ''} ({named}), here are {len(node.args)}",
            node.span,
        )
    args = tuple(_argument(a, p, name, scope) for a, p in zip(node.args, parameters, strict=True))
    if name in FUNCTIONS and name not in scope.definitions and FUNCTIONS[name].numeric and all(a.sort == INTEGER for a in args):
        sort = INTEGER
    return replace(node, args=args, sort=sort)


def _argument(node: ast.Node, parameter: Parameter, of: str, scope: Scope) -> ast.Node:
    out = _word(node, WORD, scope) if parameter.sort == WORD else _check(node, scope)
    right = _fits(out.sort, parameter.sort) if parameter.sort is not None else out.sort.kind == "fact" and out.sort.relation in parameter.relations
    if not right:
        raise fail("rules/arguments", f"'{parameter.name}' of '{of}' is {parameter}, this is {out.sort}", node.span)
    return out


# --- where predicates stand --------------------------------------------------------------------------------------


def asks(node: ast.Node | None, definitions: Mapping[str, Definition]) -> bool:
    """Whether a predicate stands in it."""
    match node:
        case None | ast.Literal() | ast.Name():
            return False
        case ast.Call(name, args):
            own = definitions[name].asks if name in definitions else name in SIGNATURES
            return own or any(asks(a, definitions) for a in args)
    return any(asks(k, definitions) for k in ast.kids(node))


def asked(node: ast.Node | None, definitions: Mapping[str, Definition]) -> frozenset[str]:
    """The predicates that stand in it."""
    if node is None:
        return frozenset()
    inner = frozenset().union(*(asked(k, definitions) for k in ast.kids(node)))
    if isinstance(node, ast.Call) and node.name in definitions:
        return inner | definitions[node.name].asked
    return inner | {node.name} if isinstance(node, ast.Call) and node.name in SIGNATURES else inner


def _placed(node: ast.Node, scope: Scope, positive: bool) -> None:
    """A predicate speaks of all instances at once: its denial is no statement about any, so it is asked, or it is a condition of
    one that is asked."""
    if not asks(node, scope.definitions):
        return
    if not scope.asks:
        raise fail(
            "rules/predicate",
            "a predicate is asked in 'require' alone",
            node.span,
            why="what facts match must be known before anything is proved",
        )
    match node:
        case ast.Binary("and" | "or", left, right):
            _placed(left, scope, positive)
            _placed(right, scope, positive)
        case ast.Quantified(_, over, body):
            _static(over.where, scope)
            _placed(body, scope, positive)
        case ast.Choice(test, then, other):
            _static(test, scope)
            _placed(then, scope, positive)
            _placed(other, scope, positive)
        case ast.Call("implies", (condition, then)):
            if asks(condition, scope.definitions) and not (positive and asks(then, scope.definitions)):
                raise fail(
                    "rules/predicate",
                    "a predicate is a condition only of another one",
                    condition.span,
                    why="alone it holds of some instances and not of others",
                )
            _placed(condition, scope, positive=False)
            _placed(then, scope, positive)
        case ast.Call(args=args):
            for a in args:
                _static(a, scope)
        case _:
            raise fail(
                "rules/predicate",
                "a predicate can't be denied, counted or compared",
                node.span,
                fix="require it, or make it the condition of another one by 'implies'",
            )


def _static(node: ast.Node | None, scope: Scope) -> None:
    if asks(node, scope.definitions):
        raise fail("rules/predicate", "a predicate can't decide which facts are meant", node.span)
