"""Asking z3, which would take an interrupt from the keyboard for itself while it works, and then answer unknown."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import z3


def checked(solver: z3.Solver, *given: z3.BoolRef) -> z3.CheckSatResult:
    """`solver.check(*given)`. What came from the keyboard meanwhile is Python's: KeyboardInterrupt when there is an answer."""
    _leave_interrupts()
    return solver.check(*given)


@cache
def _leave_interrupts() -> None:
    import z3

    z3.set_param("ctrl_c", False)
