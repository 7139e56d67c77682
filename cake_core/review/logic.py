"""Conditions of rules as formulas of first-order logic, so that one can be asked whether it follows from another.

Facts are of one sort, columns are functions of them, relations are properties. What the logic does not know, predicates, counts, sums, is a
function of the facts that stand in it: equal where it is written alike, and else anything. So there are more models than kernels, and what
is valid here holds of all kernels; what is not valid is not decided. A column without a value is equal to `none` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_core.facts.relations import BOOL, EXPR, INT, RELATIONS, TEXT
from cake_core.review.inline import Inliner, key
from cake_core.rules import ast
from cake_core.rules.schema import RESOURCE, Pattern
from cake_core.rules.sorts import Sort, of_column


class Beyond(Exception):
    """What this logic can't say."""


#: Steps of the solver for one implication: they are small, and what is not decided counts as looser.
RLIMIT = 3_000_000


class Logic:
    """One vocabulary, in a solver's context of its own: answers do not depend on what was asked elsewhere."""

    def __init__(self) -> None:
        import z3

        z3.set_param("ctrl_c", False)  # an interrupt from the keyboard is Python's
        self.z3, self.ctx = z3, z3.Context()
        self.fact = z3.DeclareSort("Fact", self.ctx)
        self.word = z3.DeclareSort("Word", self.ctx)
        self.sorts = {INT: z3.IntSort(self.ctx), BOOL: z3.BoolSort(self.ctx), TEXT: self.word, "fact": self.fact, "set": self.word}
        self.words: dict[str, object] = {}
        self.axioms: list = []
        self.functions: dict[tuple, object] = {}

    def follows(self, from_: Iterable, what) -> bool:
        """Whether `what` holds wherever all of `from_` do; False: it does not, or that is not decided."""
        z3 = self.z3
        solver = z3.Solver(ctx=self.ctx)
        solver.set("rlimit", RLIMIT)
        solver.add(*from_, z3.Not(what))
        if len(self.words) > 1:
            solver.add(z3.Distinct(*self.words.values()))
        solver.add(*self.axioms)
        return solver.check() == z3.unsat

    # --- facts and patterns ----------------------------------------------------------------------------------------

    def a_fact(self, name: str):
        return self.z3.Const(name, self.fact)

    def is_of(self, relation: str, fact):
        return self._function(("relation", relation), (self.fact,), BOOL)(fact)

    def fits(self, pattern: Pattern, term, resource=None):
        """That a fact is of the pattern's relation and its columns have one of the values each."""
        parts = [self.is_of(pattern.relation, term)]
        columns = RELATIONS.get(pattern.relation)
        for name, values in pattern.columns:
            sort = of_column(columns.column(name))
            column = self._column(pattern.relation, name, sort, term)
            parts.append(self._or(self._is(column, sort, v, resource) for v in values))
        return self._and(parts)

    def _is(self, column, sort: Sort, value, resource):
        if value is None:
            return column == self._none(sort)
        if sort.kind == "fact":
            if value == RESOURCE and resource is not None:
                return column == resource
            return self._name_of(column) == self._word(str(value))
        if sort.kind == BOOL:
            return column if value else self.z3.Not(column)
        return column == (self.z3.IntVal(value, self.ctx) if sort.kind == INT else self._word(str(value)))

    # --- expressions -----------------------------------------------------------------------------------------------

    def condition(self, node: ast.Node | None, definitions: Mapping, env: Mapping):
        """A condition with its definitions written out; `env`: variables to facts. Raises TooLarge."""
        if node is None:
            return self.z3.BoolVal(True, self.ctx)
        return self._bool(Inliner(definitions).of(node, {}), dict(env))

    def _bool(self, node: ast.Node, env: dict):
        z3 = self.z3
        match node:
            case ast.Literal(bool() as value):
                return z3.BoolVal(value, self.ctx)
            case ast.Unary("not", operand):
                return z3.Not(self._bool(operand, env))
            case ast.Binary("and", left, right):
                return self._and((self._bool(left, env), self._bool(right, env)))
            case ast.Binary("or", left, right):
                return self._or((self._bool(left, env), self._bool(right, env)))
            case ast.Call("implies", (condition, then)):
                return z3.Implies(self._bool(condition, env), self._bool(then, env))
            case ast.Choice(test, then, other):
                return z3.If(self._bool(test, env), self._bool(then, env), self._bool(other, env))
            case ast.Quantified(kind, over, body):
                x = self.a_fact(over.var)
                inner = {**env, over.var: x}
                among = self._and((self.is_of(over.relation, x), *((self._bool(over.where, inner),) if over.where is not None else ())))
                held = self._bool(body, inner)
                return z3.ForAll([x], z3.Implies(among, held)) if kind == "forall" else z3.Exists([x], z3.And(among, held))
            case ast.Binary("==", left, right):
                return self._equal(left, right, env)
            case ast.Binary("!=", left, right):
                return z3.Not(self._equal(left, right, env))
            case ast.Binary("<" | "<=" | ">" | ">=" as op, left, right) if TEXT not in (left.sort.kind, right.sort.kind):
                a, b = self._int(left, env), self._int(right, env)
                return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
            case ast.Member(item, ast.Listed(items)):
                return self._or(self._equal(item, i, env) for i in items)
        return self._term(node, BOOL, env)

    def _equal(self, left: ast.Node, right: ast.Node, env: dict):
        kinds = {k: n for n in (left, right) for k in (_kind(n.sort),)}
        if "none" in kinds:
            other = next((n for n in (left, right) if _kind(n.sort) != "none"), None)
            return self.z3.BoolVal(True, self.ctx) if other is None else self._of(other, env) == self._none(other.sort)
        if kinds.keys() == {"fact", TEXT}:
            return self._name_of(self._of(kinds["fact"], env)) == self._of(kinds[TEXT], env)
        return self._of(left, env) == self._of(right, env)

    def _of(self, node: ast.Node, env: dict):
        """A value of the node's own sort."""
        match _kind(node.sort):
            case "int":
                return self._int(node, env)
            case "bool":
                return self._bool(node, env)
            case kind:
                return self._value(node, kind, env)

    def _int(self, node: ast.Node, env: dict):
        z3 = self.z3
        match node:
            case ast.Literal(int() as value):
                return z3.IntVal(int(value), self.ctx)
            case ast.Unary("-", operand):
                return -self._int(operand, env)
            case ast.Unary("+", operand):
                return self._int(operand, env)
            case ast.Binary("+" | "-" | "*" as op, left, right):
                a, b = self._int(left, env), self._int(right, env)
                return a + b if op == "+" else a - b if op == "-" else a * b
            case ast.Binary("/" | "%" as op, left, ast.Literal(int() as by)) if by > 0:  # z3's are floors there too
                a = self._int(left, env)
                return a / by if op == "/" else a % by
            case ast.Call("min" | "max" as name, (left, right)):
                a, b = self._int(left, env), self._int(right, env)
                return z3.If(a < b, a, b) if name == "min" else z3.If(a < b, b, a)
        return self._value(node, INT, env)

    def _value(self, node: ast.Node, kind: str, env: dict):
        match node:
            case ast.Literal(str() as value):
                return self._word(value)
            case ast.Literal(None):
                return self._none_of(kind)
            case ast.Name(id) if id in env:
                return env[id]
            case ast.Choice(test, then, other) if "none" not in (_kind(then.sort), _kind(other.sort)):
                return self.z3.If(self._bool(test, env), self._of(then, env), self._of(other, env))
        return self._term(node, kind, env)

    def _term(self, node: ast.Node, kind: str, env: dict):
        if isinstance(node, ast.Field) and isinstance(node.base, ast.Name | ast.Field):
            base = self._value(node.base, "fact", env)
            return self._column(node.base.sort.relation, node.name, node.sort, base, kind)
        free: list[str] = []
        name = key(node, free)
        args = [env[f] for f in free]
        return self._function(("term", name), tuple(self.fact for _ in args), kind)(*args)

    # --- vocabulary ------------------------------------------------------------------------------------------------

    def _column(self, relation: str, name: str, sort: Sort, term, kind: str | None = None):
        """`kind`: what an expression of the kernel stands for, a number or a condition."""
        if name == "id":
            return self._name_of(term)
        kind = kind or _kind(sort)
        known = ("column", relation, name, kind) in self.functions
        function = self._function(("column", relation, name, kind), (self.fact,), kind)
        if not known and sort.kind == TEXT and sort.words:
            x = self.a_fact("x.")
            may_be = [function(x) == self._word(w) for w in sort.words] + [function(x) == self._none(sort)]
            self.axioms.append(self.z3.ForAll([x], self.z3.Implies(self.is_of(relation, x), self._or(may_be)), patterns=[function(x)]))
        return function(term)

    def _name_of(self, term):
        return self._function(("column", "", "id", TEXT), (self.fact,), TEXT)(term)

    def _none(self, sort: Sort):
        return self._none_of(_kind(sort))

    def _none_of(self, kind: str):
        if kind == TEXT:
            return self._word("\0none")
        if kind == BOOL:  # of two values none is left for it
            raise Beyond("a condition that may have no value")
        return self._function(("none", kind), (), kind)()

    def _word(self, text: str):
        if text not in self.words:
            self.words[text] = self.z3.Const(f"'{text}'", self.word)
        return self.words[text]

    def _function(self, name: tuple, takes: tuple, kind: str):
        if name not in self.functions:
            self.functions[name] = self.z3.Function(f"f{len(self.functions)}", *takes, self.sorts[kind])
        return self.functions[name]

    def _and(self, parts):
        parts = list(parts)
        return self.z3.And(*parts) if parts else self.z3.BoolVal(True, self.ctx)

    def _or(self, parts):
        parts = list(parts)
        return self.z3.Or(*parts) if parts else self.z3.BoolVal(False, self.ctx)


def _kind(sort: Sort) -> str:
    """Numbers of the text and expressions of the kernel are numbers alike."""
    return INT if sort.kind in (INT, EXPR) else sort.kind
