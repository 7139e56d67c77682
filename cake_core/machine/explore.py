"""Asks the machine: `explore` looks for all faults of a scenario, `replay` for the first."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import islice

from cake_core.facts.schema import Facts
from cake_core.machine.clocks import layout_of
from cake_core.machine.outcome import Fault, Outcome, Scenario
from cake_core.machine.schedule import Order, Schedule
from cake_core.machine.states import Search, small
from cake_core.machine.threads import Cluster, FaultFound, cluster_of
from cake_core.machine.values import MachineError
from cake_core.machine.worlds import worlds

#: A rank behind that of all agents.
LATE = 1 << 30
#: Random schedules beside the extreme ones.
DRAWN = 4


def explore(
    facts: Facts,
    scenario: Scenario,
    *,
    limit_states: int = 100_000,
    limit_picks: int | None = None,
    seconds: float | None = 10.0,
    seed: int = 0,
    mode: str = "auto",
) -> Outcome:
    """Run `facts` as `scenario` says. `mode`: "adversarial": some schedules with vector clocks; "exhaustive": one schedule, then all
    interleavings within `limit_states` and `seconds`; "auto": the first, then the second where the kernel is small. `limit_picks`: of all
    schedules together, how often someone is picked to go on. `seconds`: None for no clock, so that the outcome is the same on every machine.
    Raises MachineError where the scenario cannot be run."""
    return _explore(facts, scenario, limit_states, limit_picks, seconds, seed, mode, False)


def replay(
    facts: Facts,
    scenario: Scenario,
    *,
    limit_states: int = 100_000,
    limit_picks: int | None = None,
    seconds: float | None = 10.0,
    seed: int = 0,
    mode: str = "auto",
) -> Outcome:
    """`explore` that ends with the first fault."""
    return _explore(facts, scenario, limit_states, limit_picks, seconds, seed, mode, True)


def _explore(facts: Facts, scenario: Scenario, limit: int, most: int | None, seconds: float | None, seed: int, mode: str, first: bool) -> Outcome:
    end = math.inf if seconds is None else time.monotonic() + seconds
    faults: dict[tuple, Fault] = {}
    schedules = states = picks = 0
    complete, out = mode != "adversarial", ""
    for world in worlds(facts, scenario, seed):
        cluster = cluster_of(facts, world)
        try:
            layout = layout_of(cluster)
            for order in islice(orders(cluster, seed), 1 if mode == "exhaustive" else None):
                schedules += 1
                schedule = Schedule(cluster, layout, order, first, end, None if most is None else most - picks)
                _add(faults, schedule.run())
                picks += schedule.picks
                if first and faults:
                    return Outcome(tuple(faults.values()), False, states, schedules, mode)
                if schedule.cut or time.monotonic() > end:
                    out = f"{most} picks" if most is not None and picks >= most else f"{seconds} seconds"
                    break
            if mode == "exhaustive" or mode == "auto" and small(cluster, limit):
                search = Search(cluster, limit - states, end, first)
                _add(faults, search.run())
                states += search.count
                out = out or search.limit
            else:
                complete = False
        except FaultFound as e:
            _add(faults, [e.fault])
            complete = False
        except MachineError as e:
            if not world.open:
                raise
            out = str(e)  # perhaps only of the values that were tried
        if world.open:
            complete = False
        if out or first and faults:
            break
    return Outcome(tuple(faults.values()), complete and not out, states, schedules, mode, out)


def _add(faults: dict[tuple, Fault], more: list[Fault]) -> None:
    for f in more:
        faults.setdefault(f.key, f)


def orders(cluster: Cluster, seed: int) -> Iterator[Order]:
    """Schedules that each drive someone to an extreme: the plain ones, then each instance as the slowest and as the fastest, with engines
    at once and as late as can be, then random ones."""
    n = len(cluster.agents)
    plain = tuple(range(n))
    yield Order(plain, -LATE)
    yield Order(plain[::-1], LATE, last=True)
    for who in dict.fromkeys((a.cta, a.name, a.instance) for a in cluster.agents if a.role is not None):
        mine = [(a.cta, a.name, a.instance) == who for a in cluster.agents]
        yield Order(tuple(i + (n if m else 0) for i, m in enumerate(mine)), -LATE)
        yield Order(tuple(i - (n if m else 0) for i, m in enumerate(mine)), LATE, last=True)
    for k in range(DRAWN):
        yield Order(plain, 0, seed=seed + k)
