"""What solvers take: counted where someone asks for it, and nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Spent:
    """`checks` of solvers, their `steps` in all (z3's `rlimit`), and `most`: the steps of the largest."""

    checks: int = 0
    steps: int = 0
    most: int = 0

    def add(self, steps: int) -> None:
        self.checks += 1
        self.steps += steps
        self.most = max(self.most, steps)


_counting: Spent | None = None


@contextmanager
def spending() -> Iterator[Spent]:
    """Count what solvers take inside."""
    global _counting
    before, _counting = _counting, Spent()
    try:
        yield _counting
    finally:
        _counting = before


def counting() -> Spent | None:
    """Who counts, if anyone does."""
    return _counting
