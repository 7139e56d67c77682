"""Many questions at once: those about the same agents are one query, which is unsatisfiable where none of them has an answer.

Where it is satisfiable, what the model shows is set aside and the rest is asked again. What is left open is asked among more agents,
as `Cuts.consistent` does with one question.
"""

from __future__ import annotations

from cake_core import smt
from cake_core.frozen import frozen
from cake_core.prove.beside import Beside
from cake_core.prove.effort import SOLVER, check
from cake_core.prove.solve import PATIENCE, Cuts

#: One query of so many is the copy's (`beside.py`).
COPY = 2


@frozen
class Asked:
    """A question that was put to `Cuts.consistent` while it collected them."""

    state: tuple[smt.Term, ...]
    agents: tuple[str, ...]
    near: bool


def sweep(cuts: Cuts, questions: list[Asked], beside: Beside | None = None) -> set[int]:
    """Numbers of the questions of which it is sure that there is no such cut. `beside`: who asks a part of the queries meanwhile."""
    safe: set[int] = set()
    ranges = [list(cuts.ranges(q.agents, q.near)) for q in questions]
    for level in range(max(map(len, ranges), default=0)):
        groups: dict[frozenset[str], list[int]] = {}
        for n, of in enumerate(ranges):
            if n not in safe and level < len(of):
                groups.setdefault(frozenset(of[level]), []).append(n)

        def none(half: int, groups=groups) -> set[int]:
            out, left = set(), PATIENCE
            for n, (among, numbers) in enumerate(groups.items()):
                if int(n % COPY == COPY - 1) == half and left > 0:
                    found = _none(cuts, among, {n: smt.And(questions[n].state) for n in numbers})
                    left -= found is None
                    out |= found or set()
            return out

        if beside is None:
            safe |= none(0) | none(1)
            continue
        mine = none(beside.half)
        theirs = beside.exchange("safe", sorted(mine))
        if theirs is None:  # it has gone: its part is asked here
            theirs, beside = none(1 - beside.half), None
        safe |= mine | set(theirs)
    return safe


def _none(cuts: Cuts, among: frozenset[str], states: dict[int, smt.Term]) -> set[int] | None:
    """Those of the states that no consistent cut of some agents has; None: the solver gave up."""
    left: dict[int, smt.Term] | None = dict(states)
    view = cuts.view(among)
    view.solver.push()
    view.solver.add(*cuts.sums.lemmas(list(left.values()), dict(view.seen)))
    left = _shrunk(cuts, view.solver, left)
    view.solver.pop()
    return None if left is None else set(left)


def _shrunk(cuts: Cuts, solver: smt.Solver, states: dict[int, smt.Term]) -> dict[int, smt.Term] | None:
    """The states without those that models show, until none is shown; None: the solver gave up."""
    left = states
    while left:
        cuts.asked += 1
        solver.push()
        solver.add(smt.Or(list(left.values())))
        found = check(solver, SOLVER)
        model = solver.model() if found == smt.SAT else None
        solver.pop()
        if found == smt.UNSAT:
            return left
        if model is None:
            return None
        shown = {n for n, s in left.items() if model.holds(s, True)}
        left = {n: s for n, s in left.items() if n not in (shown or left)}
    return left
