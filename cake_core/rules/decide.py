"""A formula to a verdict: predicates are asked, arithmetic goes to the solver, clause by clause."""

from __future__ import annotations

from dataclasses import field

from cake_core.facts import Rows
from cake_core.frozen import thawed
from cake_core.ir.build import binary
from cake_core.ir.nodes import Binary, Expr, Unary
from cake_core.rules.arithmetic import RLIMIT, Arithmetic
from cake_core.rules.bounds import surely
from cake_core.rules.formula import Arithmetic as Condition
from cake_core.rules.formula import Formula, Not, TooLarge, clauses
from cake_core.rules.predicates import PROVED, Answer, Given, Predicates, Standing, unknown
from cake_core.rules.terms import Origins
from cake_core.rules.ways import WAYS


@thawed
class Judge:
    """Decides formulas of one rule on one kernel. The solver is made when a clause first needs it."""

    rows: Rows
    predicates: Predicates
    origins: Origins
    rlimit: int = RLIMIT
    solver: Arithmetic | None = field(default=None)

    def decide(self, formula: Formula, assumed: tuple[Expr, ...] = ()) -> Answer:
        """Whether the formula holds for all instances. `assumed`: conditions that they fulfil."""
        if isinstance(formula, bool):
            return PROVED if formula else Answer(Standing.VIOLATED)
        try:
            parts = clauses(formula)
        except TooLarge:
            return unknown("the condition has too many alternatives")
        answers = [self._clause(c, assumed) for c in parts]
        for standing in (Standing.VIOLATED, Standing.UNKNOWN):
            if (found := next((a for a in answers if a.standing is standing), None)) is not None:
                return found
        return PROVED

    def at_once(self, formula: Formula) -> bool:
        """Whether intervals and congruences alone prove it: no solver is asked."""
        if isinstance(formula, bool):
            return formula
        try:
            return all(any(isinstance(p, Condition) and surely(p.condition) for p in c) for c in clauses(formula))
        except TooLarge:
            return False

    def arithmetic(self) -> Arithmetic:
        if self.solver is None:
            self.solver = Arithmetic(self.rows, self.origins, self.rlimit)
        return self.solver

    def _clause(self, clause: tuple[Formula, ...], assumed: tuple[Expr, ...]) -> Answer:
        """One of the literals must hold. Denied predicates are conditions of those that are asked."""
        if not clause:
            return Answer(Standing.VIOLATED)
        asked = [p for p in clause if isinstance(p, Given)]
        conditions = tuple(p.of for p in clause if isinstance(p, Not) and isinstance(p.of, Given))
        terms = tuple(
            p.condition if isinstance(p, Condition) else _denied(p.of.condition)
            for p in clause
            if not isinstance(p, Given) and (not isinstance(p, Not) or isinstance(p.of, Condition))
        )
        if any(surely(t) for t in terms):
            return PROVED
        if terms:
            answer = self.arithmetic().holds(terms, assumed)
            if answer.standing is Standing.PROVED or not asked and not conditions:
                return answer
        given = (*conditions, *(_denied(t) for t in terms), *assumed)
        told = [(p, self._ask(p, given)) for p in asked]
        if any(a.standing is Standing.PROVED for _, a in told):
            return PROVED
        # What is read off the text is so of the statements, whatever the instance: where it is not so, the others are left.
        answers = [a for p, a in told if p.name not in WAYS or a.standing is Standing.UNKNOWN] or [a for _, a in told[:1]]
        if len(answers) == 1:
            return answers[0]
        return next((a for a in answers if a.standing is Standing.UNKNOWN), None) or unknown(
            "of several predicates none holds for all instances; that one does for each is not decided"
        )

    def _ask(self, p: Given, given: tuple) -> Answer:
        if (way := WAYS.get(p.name)) is not None:
            return way(self.rows, *p.args, given=given)
        return getattr(self.predicates, p.name)(*p.args, given=given)


def _denied(e: Expr) -> Expr:
    opposite = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    if isinstance(e, Binary) and e.op in opposite:
        return binary(opposite[e.op], e.left, e.right)
    return Unary("not", e)
