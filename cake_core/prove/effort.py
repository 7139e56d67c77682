"""What a proof took: questions by how they were settled, and what solvers took (`smt/spent.py`). Counted where someone asks for it, and nothing
depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from cake_core.frozen import thawed

if TYPE_CHECKING:
    from cake_core import smt
    from cake_core.smt import Spent

#: How a question is settled: by ranges and the text alone, by linear arithmetic on addresses, by a query about cuts or products.
CLOSED, LINEAR, SOLVER = "closed", "linear", "solver"


@thawed
class Effort:
    """`questions`: of rules, by how they were settled. `spent`: by all solvers."""

    spent: Spent
    questions: Counter = field(default_factory=Counter)
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
    from cake_core.smt import spending  # which loads the solver

    with spending() as spent:
        before, _counting = _counting, Effort(spent)
        try:
            yield _counting
        finally:
            _counting = before


def asked() -> Effort | None:
    """Who counts, if anyone does."""
    return _counting


def check(solver: smt.Solver, how: str) -> smt.Found:
    """`solver.check()`, by which a question is settled in this way."""
    if _counting is not None:
        _counting.by(how)
    return solver.check()
