"""Asking z3, which would take an interrupt from the keyboard for itself while it works, and then answer unknown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import z3


@dataclass(slots=True)
class Spent:
    """`checks` of solvers, their `steps` in all (z3's `rlimit`), and `most`: the steps of the largest."""

    checks: int = 0
    steps: int = 0
    most: int = 0


_spent: Spent | None = None


@contextmanager
def spending() -> Iterator[Spent]:
    """Count what solvers take inside. Nothing depends on it."""
    global _spent
    before, _spent = _spent, Spent()
    try:
        yield _spent
    finally:
        _spent = before


def checked(solver: z3.Solver, *given: z3.BoolRef) -> z3.CheckSatResult:
    """`solver.check(*given)`. What came from the keyboard meanwhile is Python's: KeyboardInterrupt when there is an answer."""
    _leave_interrupts()
    if _spent is None:
        return solver.check(*given)
    before = steps(solver)
    found = solver.check(*given)
    taken = steps(solver) - before
    _spent.checks += 1
    _spent.steps += taken
    _spent.most = max(_spent.most, taken)
    return found


def steps(solver: z3.Solver) -> int:
    """What its context has taken so far."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118  it is no mapping


@cache
def _leave_interrupts() -> None:
    import z3

    z3.set_param("ctrl_c", False)
