"""Arithmetic over parameters, decided by Z3: quantifier-free, under the kernel's `require`s and the bounds of loops.

The solver is imported inside the class alone, so nothing that needs no proof loads it. Every question has an `rlimit`, which is the same
on every machine; over it the answer is unknown.
"""

from __future__ import annotations

from cake_core.facts import Row, Rows
from cake_core.facts.schema import Branch, Loop
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Int, Name, Unary
from cake_core.rules.predicates import PROVED, Answer, Standing, unknown
from cake_core.rules.terms import Origins, around, as_written, names_in, owned, plain

#: Steps of the solver for one question, where a rule sets no other budget.
RLIMIT = 2_000_000
#: The largest budget that a rule can set, and what all questions of one rule on one kernel may take together.
MAX_RLIMIT = 10_000_000
MAX_OF_RULE = 20_000_000
#: Integers of the kernel have 32 bits.
LOW, HIGH = -(2**31), 2**31 - 1


class Arithmetic:
    """One solver for one kernel. `origins`: of each renamed name, the fact and the name there (`evaluate.py`)."""

    def __init__(self, rows: Rows, origins: Origins, rlimit: int = RLIMIT):
        from cake_core import smt

        self.smt, self.ctx = smt, smt.Context()
        self.rows, self.origins, self.rlimit = rows, origins, rlimit
        self.solver = smt.Solver("QF_UFNIA", self.ctx, rlimit=rlimit)
        self.left = MAX_OF_RULE
        self.known: dict[str, object] = {}
        self.answered = None
        self.conditions: dict[Row, list] = {}  # what holds where a fact's statement runs: of questions that speak of it
        self.opaque: dict[str, str] = {}  # names of which nothing is known, with what a person calls them
        for name in rows.facts.scalars:
            self._bounded(self._variable(name))
        count = self._variable("cluster.count")
        self.solver.add(count >= 1, count <= HIGH)
        for e in (*rows.facts.requires, *rows.facts.assumes):
            if (term := self._try(e)) is not None:
                self.solver.add(term)

    def consistent(self) -> bool | None:
        """Whether some parameters satisfy the kernel's `require`s: else everything would be proved. None: not known."""
        if self.answered is None:  # the same whatever is asked later: only names of facts come in
            self.answered = self._checked()
        return None if self.answered == self.smt.UNKNOWN else self.answered == self.smt.SAT

    def satisfiable(self, e: Expr) -> bool | None:
        if (term := self._try(e)) is None:
            return None
        found = self._checked(term, *self._where(e))
        return None if found == self.smt.UNKNOWN else found == self.smt.SAT

    def _checked(self, *given):
        """The solver's answer, unknown where the rule has used up what it may ask of it."""
        if self.left <= 0:
            return self.smt.UNKNOWN
        before = self.solver.steps
        found = self.solver.check(*given)
        self.left -= self.solver.steps - before
        return found

    def _where(self, exprs) -> list:
        """The conditions of the facts whose names stand in expressions. They hold where the statements run, and nowhere else."""
        rows = dict.fromkeys(self.origins[n][0] for n in sorted(names_in(exprs)) if n in self.origins)
        return [c for row in rows for c in self.conditions.get(row, ())]

    def holds(self, alternatives: tuple[Expr, ...], given: tuple[Expr, ...] = ()) -> Answer:
        """Whether one of the alternatives holds wherever all of `given` do."""
        smt = self.smt
        try:
            terms = [*(self.term(e) for e in given), *(smt.Not(self.term(e)) for e in alternatives)]
        except _Untranslatable as error:
            return unknown(f"the solver is not asked about {error}")
        found = self._checked(*terms, *self._where((*alternatives, *given)))
        if found == smt.UNSAT:
            return PROVED
        asked = " or ".join(f"'{as_written(e)}'" for e in alternatives)
        if found == smt.UNKNOWN:
            budget = f"{self.rlimit} steps" if self.left > 0 else f"{MAX_OF_RULE} steps for all of a rule"
            return unknown(f"the solver's budget of {budget} does not decide whether {asked}")
        if used := {self.opaque[n] for n in names_in((*alternatives, *given)) if n in self.opaque}:
            return unknown(f"it depends on {', '.join(repr(n) for n in sorted(used))}, of which nothing is known here")
        return Answer(Standing.VIOLATED, f"not always {asked}", self._values(names_in((*alternatives, *given))))

    def _values(self, names: frozenset[str]) -> tuple[tuple[str, int], ...]:
        """Parameters of the counterexample, then what else stands in the question."""
        model = self.solver.model()
        shown = {}
        for name in (*self.rows.facts.scalars, *sorted(names)):
            value = model.eval(self.known[name]) if name in self.known else None
            if value is not None and value.value is not None:
                shown.setdefault(plain(name), value.value)
        return tuple(shown.items())

    # --- translation -----------------------------------------------------------------------------------------------

    def term(self, e: Expr):
        smt = self.smt
        match e:
            case Int(v):
                return self.ctx.number(v)
            case Bool(v):
                return self.ctx.truth(v)
            case Name(id):
                return self._named(id)
            case Unary("-", a):
                return -self.term(a)
            case Unary("+", a):
                return self.term(a)
            case Unary("not", a):
                return smt.Not(self.term(a))
            case Binary("and", a, b):
                return smt.And(self.term(a), self.term(b))
            case Binary("or", a, b):
                return smt.Or(self.term(a), self.term(b))
            case Binary("/", a, b):
                return self._floor(self.term(a), self.term(b))
            case Binary("%", a, b):
                x, y = self.term(a), self.term(b)
                return x % y if y.value is not None and y.value > 0 else x - y * self._floor(x, y)
            case Binary(op, a, b) if op in _OPERATORS:
                return _OPERATORS[op](self.term(a), self.term(b))
            case Cond(t, a, b):
                return smt.If(self.term(t), self.term(a), self.term(b))
            case Call():
                return self._call(e)
        raise _Untranslatable(f"'{as_written(e)}'")

    def _call(self, e: Call):
        smt = self.smt
        match e.name, e.positional:
            case "ceildiv", (a, b):
                return -self._floor(-self.term(a), self.term(b))
            case "min", (a, b):
                x, y = self.term(a), self.term(b)
                return smt.If(x < y, x, y)
            case "max", (a, b):
                x, y = self.term(a), self.term(b)
                return smt.If(x > y, x, y)
            case "clamp", (x, lo, hi):
                v, low, high = self.term(x), self.term(lo), self.term(hi)
                larger = smt.If(v > low, v, low)
                return smt.If(larger < high, larger, high)
            case "i32" | "u32", (a,):
                return self.term(a)
        raise _Untranslatable(f"'{e.name}(..)'")

    def _floor(self, a, b):
        """Floor of the quotient. z3's is floor for a positive divisor."""
        if b.value is not None and b.value > 0:
            return a / b
        return self.smt.If(b > 0, a / b, (-a) / (-b))

    def _variable(self, name: str):
        if name not in self.known:
            self.known[name] = self.ctx.int(name)
        return self.known[name]

    def _bounded(self, v) -> None:
        self.solver.add(v >= LOW, v <= HIGH)

    def _try(self, e: Expr):
        try:
            return self.term(e)
        except _Untranslatable:
            return None  # a condition that says nothing here is left out: what is proved is proved without it

    # --- names of a role -------------------------------------------------------------------------------------------

    def _named(self, name: str):
        if name in self.known:
            return self.known[name]
        v = self._variable(name)
        self._bounded(v)
        if name not in self.origins:
            self.opaque[name] = name
            return v
        row, own = self.origins[name]
        facts = self.rows.facts
        role = row.site.role if row.site else None
        if row not in self.conditions:
            self.conditions[row] = []
            self.conditions[row] += self._runs(row)
        if own in facts.scalars or own == "cluster.count":
            self.conditions[row].append(v == self._variable(own))
        elif own == "cluster.id":
            self.solver.add(v >= 0, v < self._variable("cluster.count"))
        elif own == f"cluster.{facts.axis}" or own == "pair.i":
            self.solver.add(v >= 0, v < facts.cluster)
        elif role is not None and own == f"{role.name}.i":
            self.solver.add(v >= 0, v < role.plan.instances)
        elif own == "warp":
            self.solver.add(v >= 0, v < (role.plan.warps if role else facts.warps))
        elif not any(isinstance(n, Loop) and n.var == own for n, _ in around(row)):
            self.opaque[name] = own
        return v

    def _runs(self, row: Row) -> list:
        """What holds where a fact's statement runs: indices of the loops around lie between their bounds, branches are taken; of these
        what speaks of nothing that is set on the way."""
        out = []
        for node, first in around(row):
            if isinstance(node, Branch):
                test = owned(node.test, row, self.rows.facts, self.origins)
                if (term := self._try(test)) is not None and not self._opaque(test):
                    out.append(term if first else self.smt.Not(term))
            elif isinstance(node, Loop):
                out += self._index(node, row)
        return out

    def _index(self, loop: Loop, row: Row) -> list:
        index, lo, hi = (owned(e, row, self.rows.facts, self.origins) for e in (Name(loop.var), loop.lo, loop.hi))
        v, first, last = self._named(index.id), self._try(lo), self._try(hi)
        if first is None or last is None or self._opaque((lo, hi)):
            self.opaque[index.id] = loop.var
            return []
        whole = [(v - first) % loop.step.value == 0] if isinstance(loop.step, Int) and loop.step.value > 1 else []
        return [v >= first, v < last, *whole]

    def _opaque(self, e) -> bool:
        return bool(names_in(e) & self.opaque.keys())


class _Untranslatable(Exception):
    pass


_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
