"""Mutants of a kernel, and who finds them: the cross-check of prover, rules and event machine (docs/mutants.md)."""

from cake_core.mutate.campaign import drawn, mutants
from cake_core.mutate.judging import Case, Judge, Outcome

__all__ = ["Case", "Judge", "Outcome", "drawn", "mutants"]
