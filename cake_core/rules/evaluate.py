"""Evaluation of checked expressions over rows: facts and constants are decided, the rest is left as a formula (`formula.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields

from cake_core.facts import Row, Rows
from cake_core.facts.relations import EXPR, RELATIONS
from cake_core.frozen import thawed
from cake_core.ir.build import binary
from cake_core.ir.nodes import Bool, Cond, Expr, Int
from cake_core.rules import ast
from cake_core.rules.check import Definition
from cake_core.rules.formula import And, Arithmetic, Formula, Not, Or, conjunction, disjunction, negated
from cake_core.rules.functions import FUNCTIONS
from cake_core.rules.joins import equalities, key
from cake_core.rules.predicates import Given
from cake_core.rules.terms import Origins, owned, words
from cake_core.source import Span

#: What one rule may look at on one kernel: facts that are matched, and nodes of expressions that are evaluated.
MAX_STEPS = 1_000_000
#: Of a number and a text that a rule computes, and of what is left of a condition, in nodes.
MAX_BITS = 256
MAX_TEXT = 4096
MAX_SIZE = 20_000


class Undecidable(Exception):
    """An expression has no value here: a column without one in arithmetic, a division by zero."""

    def __init__(self, message: str, span: Span):
        super().__init__(message)
        self.span = span


class OverBudget(Undecidable):
    """The rule looks at more than it may. It is over: another of its matches would be no cheaper."""


Env = Mapping[str, object]


@thawed
class Evaluator:
    """Evaluates one rule for one kernel. `origins`: of each name of a role that stands in a formula, the fact and the name there. `steps`: what
    it looked at, `most` the limit of it, `counted` the words for the limit."""

    rows: Rows
    definitions: Mapping[str, Definition]
    steps: int = 0
    origins: Origins = field(default_factory=dict)
    most: int = MAX_STEPS
    counted: str = f"the rule looks at more than {MAX_STEPS:,} facts and expressions"
    joins: dict[int, tuple[dict[object, list[Row]], ast.Node] | None] = field(default_factory=dict)  # by identity of what goes over facts
    sizes: dict[int, tuple[object, int]] = field(default_factory=dict)  # of what is left of conditions, by identity: parts are shared

    def spend(self, steps: int, span: Span) -> None:
        """Count what is looked at. Raises OverBudget."""
        self.steps += steps
        if self.steps > self.most:
            raise OverBudget(self.counted, span)

    def condition(self, node: ast.Node, env: Env) -> Formula:
        """A condition. What it is of the kernel's names is left as arithmetic."""
        value = self.value(node, env)
        match value:
            case Bool(held):
                return held
            case Expr():
                return Arithmetic(value)
            case None:
                raise Undecidable("a column that has no value is no condition", node.span)
        return value

    def holds(self, node: ast.Node | None, env: Env) -> bool:
        """A condition that the facts decide. Raises Undecidable where they do not."""
        if node is None:
            return True
        found = self.condition(node, env)
        if not isinstance(found, bool):
            raise Undecidable("it depends on values that are known only when the kernel runs", node.span)
        return found

    def facts(self, over: ast.Over, env: Env) -> Iterator[Env]:
        for row in self._together(over, env):
            inner = {**env, over.var: row}
            if over.where is None or self.holds(over.where, inner):
                yield inner

    def value(self, node: ast.Node, env: Env):
        self.steps += 1
        if self.steps > self.most:
            raise OverBudget(self.counted, node.span)
        match node:
            case ast.Literal(value):
                return value
            case ast.Name(id):
                return env[id]
            case ast.Field(base, name):
                return self._column(self.value(base, env), name, node.span)
            case ast.Binary("and", left, right):
                a = self.condition(left, env)
                return False if a is False else self._kept(conjunction((a, self.condition(right, env))), node.span)
            case ast.Binary("or", left, right):
                a = self.condition(left, env)
                return True if a is True else self._kept(disjunction((a, self.condition(right, env))), node.span)
            case ast.Unary("not", operand):
                return negated(self.condition(operand, env))
            case ast.Unary(op, operand):
                return self._arithmetic("-" if op == "-" else "+", 0, self._number(operand, env), node.span)
            case ast.Binary("==" | "!=" as op, left, right):
                same = self._same(self.value(left, env), self.value(right, env), node.span)
                return same if op == "==" else negated(same)
            case ast.Binary(op, left, right):
                return self._arithmetic(op, self._number(left, env), self._number(right, env), node.span)
            case ast.Member(item, items):
                one = self.value(item, env)
                many = self.value(items, env)
                self.spend(len(many), node.span)
                return self._kept(disjunction(self._same(one, x, node.span) for x in many), node.span)
            case ast.Listed(items):
                return tuple(self.value(i, env) for i in items)
            case ast.Choice(test, then, other):
                t = self.condition(test, env)
                if isinstance(t, bool):
                    return self.value(then if t else other, env)
                if node.sort.kind == "bool":
                    arms = disjunction((negated(t), self.condition(then, env))), disjunction((t, self.condition(other, env)))
                    return self._kept(conjunction(arms), node.span)
                if not isinstance(t, Arithmetic):
                    raise Undecidable("a predicate does not choose between numbers", test.span)
                return self._kept(Cond(t.condition, _lifted(self._number(then, env)), _lifted(self._number(other, env))), node.span)
            case ast.Quantified("forall", over, body):
                return self._kept(conjunction(self.condition(body, inner) for inner in self.facts(over, env)), node.span)
            case ast.Quantified(_, over, body):
                return self._kept(disjunction(self.condition(body, inner) for inner in self.facts(over, env)), node.span)
            case ast.Count(over):
                return sum(1 for _ in self.facts(over, env))
            case ast.Fold():
                return self._fold(node, env)
            case ast.Call():
                return self._call(node, env)
        raise AssertionError(type(node).__name__)

    # --- facts that belong together --------------------------------------------------------------------------------

    def _together(self, over: ast.Over, env: Env) -> list[Row]:
        """The facts that `where` may hold of beside the facts at hand."""
        table = self.rows[over.relation]
        if over.where is None:
            return table
        if id(over) not in self.joins:
            found = ((self.places(over.var, mine, table), other) for mine, other in equalities(over.where, over.var))
            self.joins[id(over)] = next((j for j in found if j[0] is not None), None)
        join = self.joins[id(over)]
        return table if join is None else self.placed(join[0], table, join[1], env)

    def places(self, own: str, column: ast.Node, table: list[Row]) -> dict[object, list[Row]] | None:
        """Rows by what the column of the variable `own` is of each; None where it has no value of one."""
        out: dict[object, list[Row]] = {}
        try:
            for row in table:
                out.setdefault(key(self.value(column, {own: row})), []).append(row)
        except OverBudget:
            raise
        except Undecidable:  # whether that row is asked depends on the others
            return None
        return out

    def placed(self, places: dict[object, list[Row]], table: list[Row], wanted: ast.Node, env: Env) -> list[Row]:
        """Those whose column is what `wanted` is; all of them where that has no value."""
        try:
            return places.get(key(self.value(wanted, env)), [])
        except OverBudget:
            raise
        except Undecidable:
            return table

    # --- budgets ---------------------------------------------------------------------------------------------------

    def _kept(self, value, span: Span):
        """What is left of a condition or number, which may not grow without end: what reads it walks over all of it."""
        if not isinstance(value, bool):
            if isinstance(value, And | Or):
                self.spend(len(value.parts), span)
            if self._size(value) > MAX_SIZE:
                raise OverBudget(f"what is left of a condition has more than {MAX_SIZE:,} parts", span)
        return value

    def _size(self, value) -> int:
        match value:
            case And(parts) | Or(parts):
                inner = parts
            case Not(of):
                inner = (of,)
            case Arithmetic(condition):
                inner = (condition,)
            case tuple():
                return sum(map(self._size, value))
            case Expr():
                inner = (getattr(value, f.name) for f in fields(value) if f.name not in ("span", "type", "function"))
            case _:
                return 1
        if (known := self.sizes.get(id(value))) is not None and known[0] is value:
            return known[1]
        size = 1 + sum(map(self._size, inner))
        self.sizes[id(value)] = value, size
        return size

    # --- parts -----------------------------------------------------------------------------------------------------

    def _column(self, row, name: str, span: Span):
        if not isinstance(row, Row):
            raise Undecidable("there is no fact whose column it could be", span)
        if name == "id":
            return row.id
        if name == "loc":
            return row.loc
        column, value = RELATIONS[row.relation].column(name), row[name]
        if value is None:
            return None
        if column.sort == EXPR:
            return tuple(self._term(v, row) for v in value) if column.many else self._term(value, row)
        if column.sort in RELATIONS:
            return self.rows.find(column.sort, value)
        return value

    def _term(self, e: Expr, row: Row):
        if isinstance(e, Int | Bool):
            return e.value
        return owned(e, row, self.rows.facts, self.origins)

    def _number(self, node: ast.Node, env: Env):
        value = self.value(node, env)
        if value is None:
            raise Undecidable("a column that has no value is no number", node.span)
        return value

    def _arithmetic(self, op: str, a, b, span: Span):
        if isinstance(a, str):
            return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        if op in ("/", "%") and b == 0:
            raise Undecidable("a division by zero", span)
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            value = binary(op, Int(a), Int(b)).value
            if not isinstance(value, bool) and abs(value) >> MAX_BITS:
                raise Undecidable(f"a number of more than {MAX_BITS} bits", span)
            return value
        folded = binary(op, _lifted(a), _lifted(b))
        return folded.value if isinstance(folded, Int | Bool) else self._kept(folded, span)

    def _same(self, a, b, span: Span) -> Formula:
        if isinstance(a, tuple) and isinstance(b, tuple):
            self.spend(len(a), span)
            return len(a) == len(b) and conjunction(self._same(x, y, span) for x, y in zip(a, b, strict=True))
        if a is None or b is None:
            return a is b
        if isinstance(a, Row) and isinstance(b, str):
            return a.id == b
        if isinstance(b, Row) and isinstance(a, str):
            return b.id == a
        if isinstance(a, Expr) or isinstance(b, Expr):
            if a == b:
                return True
            found = self._arithmetic("==", a, b, span)
            return found if isinstance(found, bool) else Arithmetic(found)
        return a is b if isinstance(a, Row) else a == b

    def _fold(self, node: ast.Fold, env: Env):
        values = [self._number(node.item, inner) if node.kind != "set" else self.value(node.item, inner) for inner in self.facts(node.over, env)]
        if node.kind == "set":
            return tuple(dict.fromkeys(values))
        if node.kind == "sum":
            total = 0
            for v in values:
                total = self._arithmetic("+", total, v, node.span)
            return total
        if not values:
            raise Undecidable(f"there is no {node.kind} of nothing", node.span)
        best = values[0]
        for v in values[1:]:
            best = FUNCTIONS[node.kind].apply(self.rows, best, v)
        return best

    def _call(self, node: ast.Call, env: Env):
        name, args = node.name, node.args
        if name == "implies":
            test = self.condition(args[0], env)
            return True if test is False else self._kept(disjunction((negated(test), self.condition(args[1], env))), node.span)
        if name == "text":
            said = "".join(words(self.value(a, env)) for a in args)
            if len(said) > MAX_TEXT:
                raise Undecidable(f"a text of more than {MAX_TEXT} characters", node.span)
            return said
        if (definition := self.definitions.get(name)) is not None:
            values = {n: self.value(a, env) for (n, _), a in zip(definition.of, args, strict=True)}
            return self.value(definition.body, values)
        values = tuple(self.value(a, env) for a in args)
        if None in values:
            raise Undecidable(f"an argument of '{name}' has no value", node.span)
        if (function := FUNCTIONS.get(name)) is not None:
            try:
                return function.apply(self.rows, *values)
            except ZeroDivisionError:
                raise Undecidable("a division by zero", node.span) from None
        return Given(name, values)


def _lifted(value) -> Expr:
    if isinstance(value, Expr):
        return value
    return Bool(value) if isinstance(value, bool) else Int(value)
