"""Whether there is anything to prove: contracts that hold together, and roles that some launch has something to do for.

A proof for all sizes that a kernel's `require`s admit is one of nothing where they admit none. Both questions are answered no where linear
arithmetic shows it, and yes else: a kernel that nothing is told of may still be one that never runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_core.facts import Row
from cake_core.facts.schema import Event, Facts, events
from cake_core.ir.nodes import Expr
from cake_core.ir.printer import expr_text
from cake_core.prove.entailment import Entailment, Linear
from cake_core.prove.places import Places
from cake_core.prove.polynomials import Condition
from cake_core.prove.quantities import Quantities
from cake_core.rules.predicates import PROVED, Answer, Standing


def may_hold(facts: Facts, linear: Linear) -> Answer:
    """Whether some values keep all `require`s and `assume`s and give the launch an item; the reason names as few as contradict each other."""
    contracts = [*facts.requires, *facts.assumes]
    if not _contradict(facts, contracts, linear):
        return PROVED
    for e in list(contracts):  # in their order, so that what is left is the same in every run
        if _contradict(facts, rest := [x for x in contracts if x is not e], linear):
            contracts = rest
    if not contracts:
        return Answer(Standing.VIOLATED, "whatever the sizes, the launch has no item")
    texts = [f"`{expr_text(e)}`" for e in contracts]
    others = tuple((e.span, f"{text} stands against it") for e, text in zip(contracts[1:], texts[1:], strict=True))
    return Answer(Standing.VIOLATED, f"no values keep {_listed(texts)} in a launch that has an item", places=others, span=contracts[0].span)


def _contradict(facts: Facts, contracts: list[Expr], linear: Linear) -> bool:
    requires, assumes = (tuple(e for e in of if any(e is c for c in contracts)) for of in (facts.requires, facts.assumes))
    q = Quantities(replace(facts, requires=requires, assumes=assumes))
    return Entailment(q, linear).impossible(tuple(q.condition(e, {}) for e in assumes))


def may_run(places: Places, role: Row) -> Answer:
    """Whether some launch comes to a statement of the role that does more than set variables. Where no launch comes anywhere, that is what is
    to be mended first, and of the role nothing is said."""
    at = list(_paths(places, role))
    if not at or any(not path for path in at) or places.entailment.impossible(()):
        return PROVED
    for path in sorted(set(at), key=lambda p: (len(p), at.index(p))):
        if not places.entailment.impossible(path):
            return PROVED
    return Answer(Standing.VIOLATED, "of the conditions and loops around its statements none lets one through, whatever the sizes")


def _paths(places: Places, role: Row) -> Iterator[tuple[Condition, ...]]:
    doing: list[Event] = [e for e in events(places.facts.role(role.id).body) if e.acts]
    for e in doing:
        for spot in places.spots.get(e.id, ()):
            yield spot.path


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]} together"
