"""A counterexample made small, and the same in every run: sizes first, then places and iterations, one after the other.

Linear arithmetic leaves products of sizes open (`numbers.py`). Here sizes are numbers, so that products are too: tuples of small sizes are
tried, the smallest first, and the one that is found is lowered size by size. Where none of them has the bad cut, the example is one of
the open arithmetic, which a launch need not be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from cake_core import smt
from cake_core.frozen import frozen
from cake_core.ir.ranges import Range
from cake_core.prove.cut import Cut
from cake_core.prove.exact import Exact
from cake_core.prove.numbers import OPAQUE, literal, solver
from cake_core.prove.sums import Sums

#: Steps of one try (`rlimit`), and tries in all: with sums as they are, and in any case. Of more than `FEW` agents, each of which makes a try dearer, so many fewer.
STEPS, FIRST, TRIES, FEW = 3_000_000, 200, 1000, 16
#: Sizes are tried from these on, each at the next value that the launch contract admits.
LADDER = (0, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025)


@frozen
class Example:
    """A model, and what it rests on that its sizes do not decide, as a person would know it; empty: nothing."""

    model: smt.Model
    rests_on: str


def smallest(assertions: Iterable[smt.Term], found: smt.Model, sums: Sums, cut: Cut, agents: Iterable[str], moments: list[str]) -> Example:
    """A model of `assertions` with the parameters as small as they can be, then the places of `agents`, their iterations, and
    those of past executions (`moments`, by name). `found`: a model."""
    search = _Search(list(assertions), found, sums, max(FEW, len(cut.protocol.runs)))
    search.sizes()
    for agent in agents:
        search.first(cut.at[agent])
    for agent in agents:
        for _, index in cut.iterations(agent):
            search.lower(index)
    for name in moments:
        search.lower(smt.Int(name))
    return Example(search.model, search.rests_on)


class _Search:
    def __init__(self, assertions: list[smt.Term], found: smt.Model, sums: Sums, agents: int) -> None:
        self.few, self.most = (n * FEW // agents for n in (FIRST, TRIES))
        self.tries = self.most
        self.true = False  # sums and products of iterations are what they are
        self.rests_on = ""
        self.met = list(dict.fromkeys(n for a in assertions for n in sums.numbers.mentioned.of(a) if OPAQUE.fullmatch(n) or n in sums.families))
        self.model = found
        self.numbers = sums.numbers
        met = sums.applications.of(assertions)
        self.exact = Exact(sums, met)
        self.prefixes = [(app, sums.families[n].step) for app in met if (n := app.name) in sums.families and sums.families[n].invariant]
        self.solver = solver(STEPS)
        self.solver.add(*assertions)

    # --- sizes -----------------------------------------------------------------------------------------------------

    def sizes(self) -> None:
        """Fix the parameters: one cluster where that is enough, then the other sizes in their order."""
        names = (*self.numbers.facts.scalars, "cluster.count")
        fixed = None
        if self.exact.sums_met:  # an example whose sums are those of a run is looked for first
            self.tries, self.true = self.few, True
            fixed = next((s for s in self._tuples(names) if self._with(*self._at(s))), None)
            self.true = fixed is not None
        self.tries = self.most
        if fixed is None:
            fixed = next((s for s in self._tuples(names) if self._with(*self._at(s))), None)
        if fixed is None:
            self.rests_on = "products and sums that no small sizes have"
            for name in names:
                self.lower(smt.Int(name), self.numbers.parameters[name].range.lo or 0)
            return
        for name in names:
            fixed[name] = self._lowered(name, fixed)
        self.solver.add(*self._at(fixed))
        self.rests_on = self._undecided(fixed)
        self.lower(smt.Int("cluster.id"))

    def _undecided(self, sizes: dict[str, int]) -> str:
        """A value or a sum that has no one value at these sizes."""
        known = self._known(sizes)
        decided = {app.name for app, step in self.prefixes if literal(smt.simplify(smt.substitute(step, *known))) is not None}
        decided |= {term.name for term, _ in self.numbers.exact} | self.numbers.defined.keys()
        decided |= self.exact.decided(known) if self.true else set()
        left = sorted((n for n in self.met if n not in decided), key=lambda n: (n not in self.numbers.opaque, n in self.numbers.open))
        return self.numbers.opaque.get(left[0], "a sum over iterations") if left else ""

    def _tuples(self, names: tuple[str, ...]) -> Iterator[dict[str, int]]:
        """Sizes, few of them above their least first, and by how many rungs they are up together."""
        ladders = [_ladder(self.numbers.parameters[n].range) for n in names]
        for raised in range(len(names) + 1):
            for total in range(raised, raised * len(LADDER)):
                for which in itertools.combinations(range(len(names)), raised):
                    for rungs in itertools.product(*(range(1, len(ladders[i])) for i in which)):
                        if sum(rungs) == total and self.tries > 0:
                            up = dict(zip(which, rungs, strict=True))
                            yield {n: ladders[i][up.get(i, 0)] for i, n in enumerate(names)}
            if raised == 0:
                yield {n: values[0] for n, values in zip(names, ladders, strict=True)}

    def _lowered(self, name: str, fixed: dict[str, int]) -> int:
        """The smallest value of one size, the others fixed; sizes that are all right too lie together in most kernels."""
        r = self.numbers.parameters[name].range
        step = r.mod or 1
        low, high = _admitted(r, r.lo or 0), fixed[name]
        while low < high:
            middle = _admitted(r, (low + high) // 2)
            if middle >= high:
                middle = max(low, high - step)
            if self._with(*self._at(fixed | {name: middle})):
                high = middle
            else:
                low = middle + step
        return high

    def _at(self, sizes: dict[str, int]) -> list[smt.Term]:
        """That the parameters have these values, and what is left open of them follows."""
        known = self._known(sizes)
        out = [p == v for p, v in known[: len(sizes)]]
        out += [term == smt.simplify(smt.substitute(exact, *known)) for term, exact in self.numbers.exact]
        for app, step in self.prefixes:  # of a step that is a number, the sum is a product
            if literal(value := smt.simplify(smt.substitute(step, *known))) is not None:
                out.append(app == value * app.args[0])
        if self.true:
            out += self.exact.at(known)
        return out

    def _known(self, sizes: dict[str, int]) -> list[tuple[smt.Term, smt.Term]]:
        """The parameters, and what is a number with them."""
        known = [(smt.Int(n), smt.IntVal(v)) for n, v in sizes.items()]
        for term, exact in self.numbers.exact:
            if literal(value := smt.simplify(smt.substitute(exact, *known))) is not None:
                known.append((term, value))
        return [*known, (smt.Int("cluster.id"), smt.IntVal(0))] if sizes.get("cluster.count") == 1 else known

    # --- the rest --------------------------------------------------------------------------------------------------

    def lower(self, term: smt.Term, least: int = 0) -> None:
        """Fix a term at its smallest value."""
        high = self.model.number(term)
        if high < least:  # nothing depends on it
            return
        low = least
        while low < high:
            middle = min(low + max((high - low) // 2, 0), high - 1)
            if self._with(term <= middle):
                high = self.model.number(term)
            else:
                low = middle + 1
        self.solver.add(term == high)

    def first(self, places: list[smt.Term]) -> None:
        """Fix the first of some places that can be."""
        if not any(self.model.holds(p) for p in places):
            return
        for p in places:
            if self._with(p):
                self.solver.add(p)
                return

    def _with(self, *claims: smt.Term) -> bool:
        self.tries -= 1
        if self.tries < 0:
            return False
        self.solver.push()
        self.solver.add(*claims)
        holds = self.solver.check() == smt.SAT
        if holds:
            self.model = self.solver.model()
        self.solver.pop()
        return holds


def _ladder(r: Range) -> list[int]:
    """Values that a parameter can have, each small for its size."""
    start = r.lo if r.lo is not None else 0
    return list(dict.fromkeys(v for x in LADDER if (v := _admitted(r, max(start, x))) is not None and (r.hi is None or v <= r.hi)))


def admitted(r: Range, at_least: int) -> int:
    """A value of a range, the next one from some value on where it has one."""
    value = _admitted(r, max(at_least, r.lo or 0))
    return value if r.hi is None or value <= r.hi else _admitted(r, r.lo or 0)


def _admitted(r: Range, at_least: int) -> int:
    """The next value that has the remainder of a range."""
    return at_least + (r.rem - at_least) % r.mod if r.mod else r.rem
