"""A counterexample executed: whether the event machine goes wrong at its sizes, and whether with a fault of the kind that is told."""

from __future__ import annotations

from collections.abc import Collection

from cake_core.facts import Facts
from cake_core.machine import Fault, Kind, MachineError, Scenario, explore

#: States and steps of a replay. No clock ends it: findings are the same on every machine.
SMALL, BRIEF = 5_000, 200_000
#: By what is told (`witness.Telling`): the machine's faults that are the same. A message of another trip is read because of an order that is
#: missing. What stands not here is never shown by the machine.
SAME = {
    "deadlock": frozenset({Kind.DEADLOCK}),
    "stale": frozenset({Kind.DEADLOCK, Kind.RACE, Kind.ASYNC}),
    "race": frozenset({Kind.RACE, Kind.ASYNC}),
    "started": frozenset({Kind.RACE, Kind.ASYNC}),
    "unwritten": frozenset({Kind.UNWRITTEN}),
    "left": frozenset({Kind.IN_FLIGHT}),
    "arriving": frozenset({Kind.IN_FLIGHT}),
    "phase": frozenset({Kind.PHASE, Kind.OVERRUN}),
    "early": frozenset({Kind.OVERRUN, Kind.ARRIVALS, Kind.BYTES, Kind.NAMED}),
    "landing": frozenset({Kind.OVERRUN, Kind.ARRIVALS, Kind.BYTES}),
}


def replayed(facts: Facts, sizes: dict[str, int]) -> tuple[Fault, ...] | None:
    """What goes wrong at some sizes; None: the machine cannot run there."""
    sizes = dict(sizes)
    cluster, clusters = sizes.pop("cluster.id", 0), sizes.pop("cluster.count", 1)
    try:
        return explore(facts, Scenario(sizes, cluster, clusters), limit_states=SMALL, limit_picks=BRIEF, seconds=None).faults
    except MachineError:
        return None


def shown(faults: Collection[Fault], told: str, resource: str | None) -> tuple[bool, str]:
    """Whether one of the faults is of the kind that is told, and the one that says most of it: of that kind, of that resource."""
    same = SAME.get(told, frozenset())
    worst = min(faults, key=lambda f: (f.kind not in same, resource not in (None, f.resource)), default=None)
    return (False, "") if worst is None else (worst.kind in same, f"{worst.kind}: {worst.message}")
