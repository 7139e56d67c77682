"""Whether a condition on addresses follows: ranges first, then linear arithmetic with lemmas on products, and true products last.

Each product of atoms is an unknown of its own. What linear arithmetic has to know of it are lemmas, made for the products that a
question meets: bounds from the ranges of its factors, `y > z -> x*y >= x*z + x` for x >= 0, and of a quotient q = a / b with a < p,
where b and p have the factor x > 0 in common, p/x > q * b/x. Their proofs are one line each, so an answer "follows" is one. An
assignment that denies it counts only if it keeps all products and definitions.
"""

from __future__ import annotations

from dataclasses import field

from cake_core import smt
from cake_core.frozen import thawed
from cake_core.prove.effort import LINEAR, SOLVER, check
from cake_core.prove.polynomials import All, Any, AtLeast, Condition, Poly, denied
from cake_core.prove.quantities import Quantities
from cake_core.prove.question import Decision, Follows, Question

RLIMIT = 3_000_000

YES = Decision(Follows.YES)


@thawed
class Linear:
    """Where linear arithmetic refutes what no numbers keep: one context for all such questions of a kernel, since no values are asked for."""

    _context: smt.Context | None = None

    def asked(self, logic: str, text: str) -> smt.Found:
        if self._context is None:
            self._context = smt.Context()
        return check(_solver(logic, text, self._context), LINEAR)

    def refutes(self, logic: str, text: str) -> bool:
        return self.asked(logic, text) == smt.UNSAT


@thawed
class Entailment:
    quantities: Quantities
    linear: Linear = field(default_factory=Linear)
    _done: dict[tuple, Decision] = field(default_factory=dict)
    _known: list[tuple[frozenset[Condition], Poly]] = field(default_factory=list)  # what was found to be 0 or more, and where

    def follows(self, goal: Condition, path: tuple[Condition, ...], denials: bool = True) -> Decision:
        """Whether `goal` holds wherever `path`, the kernel's `require`s and its `assume`s do. `denials`: look for what denies it."""
        if self.plain(goal):
            return YES
        key = goal, path, denials
        if key not in self._done:
            known = isinstance(goal, AtLeast) and any(w.issubset(path) and self.weaker(goal.poly, p) for w, p in self._known)
            self._done[key] = YES if known else self._asked(goal, path, denials)
            if isinstance(goal, AtLeast) and self._done[key] is YES and not known:
                self._known.append((frozenset(path), goal.poly))
        return self._done[key]

    def weaker(self, p: Poly, known: Poly) -> bool:
        """Whether ranges say that p >= 0 where `known` is: that it is no less than a multiple of it."""
        for m, a in p.terms.items():
            b = known.terms.get(m, 0) if m else 0
            if a * b > 0 and self.quantities.range(p * abs(b) - known * abs(a)).nonneg:
                return True
        return False

    def forget(self) -> None:
        """More is known of atoms than when they were asked about."""
        self._done.clear()
        self._known.clear()

    def holds(self, goal: Condition, path: tuple[Condition, ...]) -> bool:
        """Whether it surely follows, without a look for what denies it."""
        return self.plain(goal) or self.follows(goal, path, False).follows is Follows.YES

    def impossible(self, path: tuple[Condition, ...]) -> bool:
        """Whether linear arithmetic shows that no numbers keep all of `path` and the kernel's `require`s."""
        q = Question(self.quantities, [*self.quantities.known, *path])
        if not q.close():
            return False
        stated = q.stated((*q.conditions, *q.definitions, *q.quotients(), *q.lemmas()))
        if (found := self.linear.asked("QF_LIA", q.declared() + stated)) != smt.UNKNOWN:
            return found == smt.UNSAT
        return self.linear.refutes("QF_LRA", q.declared("Real") + stated)

    def plain(self, goal: Condition) -> bool:
        """By ranges alone."""
        match goal:
            case AtLeast(p):
                return self.quantities.range(p).nonneg
            case All(parts):
                return all(map(self.plain, parts))
            case Any(parts):
                return any(map(self.plain, parts))
        return False

    def _asked(self, goal: Condition, path: tuple[Condition, ...], denials: bool) -> Decision:
        q = Question(self.quantities, [*self.quantities.known, *path, denied(goal)])
        if not q.close():
            return Decision(Follows.UNKNOWN)
        stated = q.stated((*q.conditions, *q.definitions, *q.quotients(), *q.lemmas()))
        if self.linear.refutes("QF_LRA", q.declared("Real") + stated):  # numbers that aren't whole are no more trouble here
            return YES
        if not denials:
            return Decision(Follows.UNKNOWN)
        s = _solver("QF_LIA", q.declared() + stated)
        if (found := check(s, LINEAR)) == smt.UNSAT:
            return YES
        if found == smt.SAT and q.keeps_products(s.model()):
            return q.denial(q.smallest(s, s.model(), q.keeps_products), goal)
        for fixed in ("", *q.small()):
            text = q.declared() + stated + q.products() + fixed
            for way, rlimit in PRODUCTS:
                s = _solver("QF_NIA", text, tactics=way, rlimit=rlimit)
                if (found := check(s, SOLVER)) == smt.SAT and q.keeps_products(s.model()):
                    return q.denial(q.smallest(_solver("QF_NIA", text, s.ctx), s.model(), q.keeps_products), goal)
                if found == smt.UNSAT and not fixed:
                    return YES
                if found != smt.UNKNOWN:
                    break
        return Decision(Follows.UNKNOWN)


_SIMPLER = ("simplify", "propagate-values", "solve-eqs", "elim-uncnstr", "simplify")
#: How true products are asked about, and with how many steps: by cells of the reals, which is quick to find numbers; then by z3's own search,
#: with what equations say put in, and without.
PRODUCTS = (((*_SIMPLER, "qfnra-nlsat"), 1_000_000), ((*_SIMPLER, "smt"), RLIMIT), (("smt",), RLIMIT))


def _solver(logic: str, text: str, context: smt.Context | None = None, tactics: tuple[str, ...] = (), rlimit: int = RLIMIT) -> smt.Solver:
    """Where values are asked for, in a context of its own: what it finds does not depend on what was asked before."""
    s = smt.Solver(logic, context or smt.Context(), tactics=tactics, rlimit=rlimit)
    s.read(text)
    return s
