"""What a proof took: questions by how they were settled, and the solver's steps. Counted where someone asks for it, and nothing depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from cake_core.frozen import thawed

if TYPE_CHECKING:
    from cake_core import smt

#: How a question is settled: by ranges and the text alone, by linear arithmetic on addresses, by a query about cuts or products.
CLOSED, LINEAR, SOLVER = "closed", "linear", "solver"


@thawed
class Effort:
    """`questions`: of rules, by how they were settled. `checks`: of the solver; `steps`: all of them (z3's `rlimit`); `most`: the largest of one."""

    questions: Counter = field(default_factory=Counter)
    checks: int = 0
    steps: int = 0
    most: int = 0
    _how: str = CLOSED

    def begin(self) -> None:
        self._how = CLOSED

    def end(self) -> None:
        self.questions[self._how] += 1

    def by(self, how: str) -> None:
        if self._how != SOLVER:
            self._how = how


_counting: Effort | None = None


@contextmanager
def counting() -> Iterator[Effort]:
    """Count what is asked of solvers inside."""
    global _counting
    before, _counting = _counting, Effort()
    try:
        yield _counting
    finally:
        _counting = before


def asked() -> Effort | None:
    """Who counts, if anyone does."""
    return _counting


def check(solver: smt.Solver, how: str) -> smt.Found:
    """`solver.check()`, counted."""
    if _counting is None:
        return solver.check()
    before = solver.steps
    found = solver.check()
    spent = solver.steps - before
    _counting.by(how)
    _counting.checks += 1
    _counting.steps += spent
    _counting.most = max(_counting.most, spent)
    return found
