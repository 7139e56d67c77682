"""Why a kernel is proved: of each safety category the contracts that its proof needs, and what the proof took.

Which contracts are needed is found by proving without them (QuickXplain, Junker 2004): a set from which none can be left out, the same in
every run. The derived text stays as it is, elaborated with the contracts that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from cake_core.architecture import Architecture
from cake_core.check.safety import CATEGORIES, account
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.facts import Rows, facts_of, rows_of
from cake_core.frozen import frozen
from cake_core.ir.nodes import Assume, Expr, Kernel, Require
from cake_core.ir.printer import expr_text
from cake_core.prove.effort import Effort, counting
from cake_core.prove.prover import Prover
from cake_core.rules import Rule, Rulebook, judge


@frozen
class Explained:
    """One category that is proved. `requires`, `assumes`: contracts of which its proof needs each one, beside those of the form. `questions`: of rules, by how
    they were settled: "closed" without a solver, "linear" by linear arithmetic, "solver" by a query. `checks` and `steps` of the solver (z3's
    `rlimit`), `most` in one check; `seconds` of this machine."""

    category: str
    requires: tuple[str, ...]
    assumes: tuple[str, ...]
    questions: dict[str, int]
    checks: int
    steps: int
    most: int
    seconds: float


@frozen
class Explanation:
    """`form`: contracts without which the text is no kernel; every proof is made with them."""

    form: tuple[str, ...]
    categories: tuple[Explained, ...]


def explain(derived: Kernel, registry, arch: Architecture, book: Rulebook, overrides: Mapping | None = None) -> Explanation:
    """Of each category that is proved of a kernel in derived form, not elaborated, why. `overrides`: constants by name. Takes about a proof a contract.
    Raises CakeError."""
    subject = _Subject(derived, registry, arch, book, dict(overrides or {}))
    names = [c.name for c in CATEGORIES if any(c.name in r.covers for r in book.rules)]
    return Explanation(
        tuple(expr_text(e) for _, e in subject.form),
        tuple(subject.explained(n) for n in names if subject.proved(n, subject.contracts)),
    )


Contract = tuple[type, Expr]


@dataclass(slots=True)
class _Subject:
    kernel: Kernel
    registry: object
    arch: Architecture
    book: Rulebook
    overrides: dict
    contracts: tuple[Contract, ...] = field(init=False)
    form: tuple[Contract, ...] = field(init=False)
    _provers: dict[frozenset[int], tuple[Rows, Prover] | None] = field(default_factory=dict)
    _proved: dict[tuple[str, frozenset[int]], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.contracts = tuple((kind, e) for kind in (Require, Assume) for clause in self.kernel.clause(kind) for e in clause.exprs)
        self.form = tuple(c for c in self.contracts if not self._is_kernel([x for x in self.contracts if x is not c]))

    def _is_kernel(self, contracts: Collection[Contract]) -> bool:
        try:
            self._elaborated(contracts)
        except CakeError:
            return False
        return True

    def explained(self, category: str) -> Explained:
        with counting() as effort:
            started = perf_counter()
            self._judged(category, *self._fresh(self.contracts, keep=False))
            seconds = perf_counter() - started
        needed = self._needed(category, self.form, True, [c for c in self.contracts if c not in self.form])
        texts = {kind: tuple(expr_text(e) for k, e in self.contracts if k is kind and any(e is n for _, n in needed)) for kind in (Require, Assume)}
        return Explained(category, texts[Require], texts[Assume], *_counts(effort), seconds)

    def _needed(self, category: str, kept: Sequence[Contract], new: bool, of: Sequence[Contract]) -> tuple[Contract, ...]:
        """Of some contracts, beside those that are kept, as many as the proof needs. `new`: whether it was not tried with those kept."""
        if new and self.proved(category, kept):
            return ()
        if len(of) <= 1:
            return tuple(of)
        first, second = of[: len(of) // 2], of[len(of) // 2 :]
        later = self._needed(category, (*kept, *first), True, second)
        earlier = self._needed(category, (*kept, *later), bool(later), first)
        return (*earlier, *later)

    # --- proving with some contracts -------------------------------------------------------------------------------

    def proved(self, category: str, contracts: Collection[Contract]) -> bool:
        key = frozenset(n for n, (_, e) in enumerate(self.contracts) if any(e is c for _, c in contracts))
        if key not in self._provers:
            try:
                self._provers[key] = self._fresh(contracts, keep=True)
            except CakeError:  # without them it is no kernel any more
                self._provers[key] = None
        if (category, key) not in self._proved:
            made = self._provers[key]
            self._proved[category, key] = made is not None and self._judged(category, *made)
        return self._proved[category, key]

    def _fresh(self, contracts: Collection[Contract], keep: bool) -> tuple[Rows, Prover]:
        rows = rows_of(facts_of(self._elaborated(contracts), self.registry, self.arch), self.arch, self.registry)
        return rows, Prover(rows, keep=keep, examples=False)

    def _elaborated(self, contracts: Collection[Contract]) -> Kernel:
        clauses = []
        for clause in self.kernel.clauses:
            if isinstance(clause, Require | Assume):
                exprs = tuple(e for e in clause.exprs if any(e is c for _, c in contracts))
                clauses += [replace(clause, exprs=exprs)] if exprs else []
            else:
                clauses.append(clause)
        return elaborate(replace(self.kernel, clauses=tuple(clauses)), self.registry, self.arch, derived=True, overrides=self.overrides)

    def _judged(self, category: str, rows: Rows, prover: Prover) -> bool:
        """Rules that cover the category, up to the first that does not hold."""
        rules: list[Rule] = [r for r in self.book.rules if category in r.covers]
        verdicts = []
        for rule in rules:
            verdicts += judge([rule], rows, prover)
            if category not in account([rule], verdicts, rows).proved:
                return False
        prover.close()
        return True


def _counts(effort: Effort) -> tuple[dict[str, int], int, int, int]:
    return dict(sorted(effort.questions.items())), effort.spent.checks, effort.spent.steps, effort.spent.most
