"""A counterexample made small, and the same in every run: sizes first, then places and iterations, one after the other.

What linear arithmetic leaves open of products of sizes (`numbers.py`) is put back here, so that the example is one that a launch can be;
where the solver then does not find its way, the example stays one of the open arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable

import z3

from cake_core.prove.cut import Cut
from cake_core.prove.numbers import Numbers

#: Steps of one try (`rlimit`), and tries in all.
STEPS, TRIES = 3_000_000, 400


def smallest(
    assertions: Iterable[z3.BoolRef], found: z3.ModelRef, numbers: Numbers, cut: Cut, agents: Iterable[str], moments: list[str]
) -> z3.ModelRef:
    """A model of `assertions` with the parameters as small as they can be, then the places of `agents`, their iterations, and
    those of past executions (`moments`, by name). `found`: a model."""
    search = _Search(list(assertions), found, numbers)
    for name in ("cluster.count", "cluster.id", *numbers.facts.scalars):
        search.lower(z3.Int(name), numbers.parameters[name].range.lo or 0)
    for agent in agents:
        search.first(cut.at[agent])
    for agent in agents:
        for _, index in cut.iterations(agent):
            search.lower(index, 0)
    for name in moments:
        search.lower(z3.Int(name), 0)
    return search.model


class _Search:
    def __init__(self, assertions: list[z3.BoolRef], found: z3.ModelRef, numbers: Numbers) -> None:
        self.tries = TRIES
        self.model = found
        self.solver = z3.Solver()
        self.solver.set("rlimit", STEPS)
        self.solver.add(*assertions)
        if numbers.exact:
            self.solver.push()
            self.solver.add(*numbers.exact)
            if not self._holds():
                self.solver.pop()

    def lower(self, term: z3.ArithRef, least: int) -> None:
        """Fix a term at the smallest value that is found. Small values are tried first: most examples are small."""
        high = self.model.eval(term, True).as_long()
        if high < least:  # nothing depends on it
            return
        low, step = least, 1
        while low < high:
            middle = min(low + step - 1, high - 1)
            if self._with(term <= middle):
                high = self.model.eval(term, True).as_long()
                step = 1 if high - low < step else step
                if high <= low:
                    break
                step = max(1, (high - low) // 2)
            else:
                low = middle + 1
                step *= 2
        self.solver.add(term == high)

    def first(self, places: list[z3.BoolRef]) -> None:
        """Fix the first of some places that can be."""
        if not any(z3.is_true(self.model.eval(p)) for p in places):
            return
        for p in places:
            if z3.is_true(self.model.eval(p)) or self._with(p):
                self.solver.add(p)
                return

    def _with(self, claim: z3.BoolRef) -> bool:
        self.solver.push()
        self.solver.add(claim)
        found = self._holds()
        self.solver.pop()
        return found

    def _holds(self) -> bool:
        self.tries -= 1
        if self.tries < 0 or self.solver.check() != z3.sat:
            return False
        self.model = self.solver.model()
        return True
