"""What the method does not speak of, executed: the event machine looks for a fault at a few small sizes.

One that is found is a violation like any other; none found proves nothing. Faults of two accesses that nothing orders are left out: the
machine does not know which lanes touch what (docs/machine.md), and every other fault is one for certain.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.facts import Row, Rows
from cake_core.facts.schema import Event
from cake_core.frozen import thawed
from cake_core.machine import Fault, Kind, MachineError, Scenario, Site, explore, scenarios_of
from cake_core.prove.text import Unanalysed
from cake_core.rules.predicates import Answer, Standing

#: States of one scenario, which end a search that found nothing, and steps, for what never ends. No clock ends it: a verdict depends on it.
STATES, STEPS = 2_000, 200_000

#: Of waits and arrivals: a stage or a parity that is another one than the text means.
PHASES = (Kind.PHASE, Kind.OVERRUN, Kind.ARRIVALS, Kind.NAMED, Kind.BYTES)
#: What a wrong stage or parity leads to as well.
FOLLOWS = (*PHASES, Kind.DEADLOCK, Kind.ASYNC, Kind.IN_FLIGHT)

#: What mends a stage or a parity that follows no count.
ONE_COUNT = "count the barrier's waits, or its arrivals, in one variable that no loop sets back, and take stage and parity from it"


@thawed
class Executed:
    """Runs of one kernel, made when the first question comes. `unknown`: what keeps the method from speaking of it."""

    rows: Rows
    unknown: Unanalysed
    _found: list[tuple[Fault, Scenario]] | None = None

    def deadlock(self) -> Answer | None:
        """A run in which no one can go on; None: none was found, or what the unknown stands at says more."""
        if self._suspect() is not None:
            return None
        return next((self._told(f, s) for f, s in self._faults() if f.kind is Kind.DEADLOCK), None)

    def phase(self, sync: Row) -> Answer | None:
        """A run that goes wrong where a stage or a parity follows no count: told at `sync` if that is the place, or where the fault is."""
        suspect = self._suspect()
        if suspect is not None:
            if sync is not suspect:
                return None
            found = min(self._faults(), key=lambda x: FOLLOWS.index(x[0].kind), default=None)
            return None if found is None else self._told(*found, sync)
        at = (x for x in self._faults() if x[0].kind in PHASES and _event(x[0]) is sync.site.event)
        return next((self._told(*x) for x in at), None)

    def drained(self) -> Answer | None:
        if self._suspect() is not None or any(f.kind is not Kind.IN_FLIGHT for f, _ in self._faults()):
            return None
        return next((self._told(*x) for x in self._faults()), None)

    # --- help ------------------------------------------------------------------------------------------------------

    def _suspect(self) -> Row | None:
        """The wait, arrival or meeting whose stage or parity is not known."""
        syncs = (*self.rows["wait"], *self.rows["arrive"], *self.rows["engine_arrive"], *self.rows["meet"])
        return next((r for r in syncs if self.unknown.span is not None and r.site.event.span == self.unknown.span), None)

    def _faults(self) -> list[tuple[Fault, Scenario]]:
        """Those of the scenarios, each with its own, up to the first that shows more than what is left at the end."""
        if self._found is None:
            self._found = []
            try:
                scenarios = scenarios_of(self.rows.facts)
            except MachineError:
                scenarios = ()
            for s in scenarios:
                try:
                    outcome = explore(self.rows.facts, s, limit_states=STATES, limit_picks=STEPS, seconds=None)
                except MachineError:
                    continue
                self._found += [(f, s) for f in outcome.faults if f.kind in FOLLOWS]
                if any(f.kind in (*PHASES, Kind.DEADLOCK) for f, _ in self._found):
                    break
        return self._found

    def _told(self, f: Fault, s: Scenario, sync: Row | None = None) -> Answer:
        """`sync`: the wait or arrival that the fault follows from."""
        values = tuple(s.params.items()) + ((("cluster.id", s.cluster), ("cluster.count", s.clusters)) if s.clusters > 1 else ())
        sites = [x for x in (f.second, f.first, *(b for b, _ in f.blocked)) if x is not None and x.event is not None]
        places = tuple((x.event.span, f"{x} is here when it goes wrong") for x in sites if x.event.span.line)
        two = [(str(x), x) for x in (f.first, f.second) if x is not None]
        lines = [(f"{x} waits for {what}", x) for x, what in f.blocked] or two
        story = tuple(line for line, _ in lines)
        there = tuple(x.event.span if x.event is not None and x.event.span.line else None for _, x in lines)
        here = _site(f)
        said = f"{f.kind}: {f.message}"
        told = Answer(Standing.VIOLATED, said, values, story, there, confirmed=True, fault=said, places=tuple(dict(places).items()))
        if here is not None and (sync is None or here.role == sync["role"]):
            its = ", ".join(f"{n}: {v}" for n, v in here.iteration)
            told = replace(told, stage=", ".join(map(str, f.slot)) or None, iteration=its or None)
        if sync is not None:
            return replace(told, reason=f"{self.unknown.what}; {told.reason}", fix=ONE_COUNT)
        if here is not None and here.event is not None:
            return replace(told, span=here.event.span, role=here.role, resource=f.resource or None)
        return told


def _site(f: Fault) -> Site | None:
    return f.second if f.second is not None else f.first


def _event(f: Fault) -> Event | None:
    site = _site(f)
    return site.event if site is not None else None
