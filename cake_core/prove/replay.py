"""A counterexample executed: whether the event machine goes wrong at its sizes, and whether with a fault of the kind that is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from cake_core.facts import Facts
from cake_core.frozen import thawed
from cake_core.machine import Endless, Fault, Kind, MachineError, Scenario, explore, scenarios_of
from cake_core.prove.numbers import Num
from cake_core.prove.smallest import admitted

#: A parameter, or which cluster of how many, with its value.
Sizes = tuple[tuple[str, int], ...]

#: States and steps of a replay. No clock ends it: findings are the same on every machine.
SMALL, BRIEF = 5_000, 200_000
#: Sizes that are tried where those of a counterexample say nothing: each at the next value that it may have.
OTHERS = (1, 3, 5)
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


@thawed
class Replays:
    """Of one kernel, each made once. `parameters`: by name, what may be known of each."""

    facts: Facts
    parameters: Mapping[str, Num]
    _found: dict[Sizes, tuple[Fault, ...] | None] = field(default_factory=dict)
    _endless: bool = False  # someone went on for ever

    def at(self, sizes: Sizes) -> tuple[Fault, ...] | None:
        """What goes wrong at some sizes; None: the machine cannot run there."""
        if sizes not in self._found:
            self._found[sizes] = self._run(dict(sizes))
        return self._found[sizes]

    def _run(self, sizes: dict[str, int]) -> tuple[Fault, ...] | None:
        cluster, clusters = sizes.pop("cluster.id", 0), sizes.pop("cluster.count", 1)
        try:
            return explore(self.facts, Scenario(sizes, cluster, clusters), limit_states=SMALL, limit_picks=BRIEF, seconds=None).faults
        except MachineError as why:
            self._endless |= isinstance(why, Endless)
            return None

    def elsewhere(self) -> Sizes | None:
        """Sizes at which the event machine goes wrong, of a few small ones."""
        return next((s for s in self._others() if self.at(s)), None)

    def silent(self) -> bool:
        """Whether the machine finds nothing anywhere. Who runs for ever, as far as it goes, is in order nowhere."""
        return self.elsewhere() is None and not self._endless

    def _others(self) -> Iterator[Sizes]:
        for least in OTHERS:
            yield tuple((n, admitted(self.parameters[n].range, least)) for n in self.facts.scalars)
        try:
            yield from (tuple((n, s.params[n]) for n in self.facts.scalars) for s in scenarios_of(self.facts))
        except MachineError:
            return


def shown(faults: Collection[Fault], told: str, resource: str | None) -> tuple[bool, str]:
    """Whether one of the faults is of the kind that is told, and the one that says most of it: of that kind, of that resource."""
    same = SAME.get(told, frozenset())
    worst = min(faults, key=lambda f: (f.kind not in same, resource not in (None, f.resource)), default=None)
    return (False, "") if worst is None else (worst.kind in same, f"{worst.kind}: {worst.message}")
