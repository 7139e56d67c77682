"""A schedule of any order with a clock on it: what a run does that is executed for its results, as a trace.

Who goes on is the order's choice, and what is found is what the same schedule finds without a clock. Times are those of the timeline: each statement begins
as soon as its thread has done the one before and what it waits for has come, so a track shows what the text lets overlap in this run, however its
agents took turns.
"""

from __future__ import annotations

from cake_core.machine.barriers import EngineArrival, Flight
from cake_core.machine.clocks import Layout
from cake_core.machine.outcome import Fault
from cake_core.machine.schedule import ACTS, VISIBLE, Carrier, Order, Schedule
from cake_core.machine.steps import Step
from cake_core.machine.story import Doing
from cake_core.machine.threads import Agent, Cluster
from cake_core.machine.timeline import Soonest
from cake_core.trace import Trace


class Timed(Soonest):
    """`carrier`: what moves data, as for any schedule."""

    def __init__(self, cluster: Cluster, layout: Layout, order: Order, carrier: Carrier) -> None:
        super().__init__(cluster, None, layout, order)
        self.carrier = _Heard(self, carrier)
        self.coming: dict[int, tuple[object, int, Doing | None]] = {}  # by identity, what is on its way, when it comes, and of what
        self.held: set[int] = set()  # agents whose last step has to be tried again

    def _run(self) -> None:
        Schedule._run(self)

    def _advance(self, agent: Agent) -> None:
        i = agent.id
        while True:
            step = agent.step(self.at[i])
            doing = self._begun(agent, step)
            self.cause = doing
            before = len(self.flights), len(self.arrivals)
            self.log.append((agent, step))
            self._announce(agent, step)
            if not ACTS[step.do](self, agent, step):
                self.log.pop()
                self.held.add(i)
                return
            self.at[i] += 1
            self.carrier.done(self, agent, step)
            until = max(self.now, self._note(agent, step, doing, before))
            if doing is not None:
                doing.end = self.time[i] = until
                doing.waited = max(until - 1 - doing.start, 0)
            if step.do in VISIBLE:
                return

    def _begun(self, agent: Agent, step: Step) -> Doing | None:
        """The execution of a statement that a step belongs to; `now` is when the step is done if nothing holds it up."""
        i = agent.id
        doing = self.doing.get(i)
        again = i in self.held
        self.held.discard(i)
        same = doing is not None and doing.event is step.event and doing.steps[-1].iteration == step.iteration
        if not same:
            self.doing.pop(i, None)
            doing = self.story.begin(agent, step, self.time[i]) if step.event is not None else None
            if doing is not None:
                self.doing[i] = doing
        self.now = self.time[i] + (doing is not None and (again or not same))
        return doing

    def wake(self, key: object) -> None:
        """What came last in this order need not have come last by the clock."""
        if isinstance(key, int):
            here, p = self.now, self.phases[key]
            self.now = max(here, self.story.latest(p.place, p.phase - 1))
            super().wake(key)
            self.now = here
            return
        self.now = max((self.now, *(self.doing[i].start + 1 for i in self.waiting.get(key, ()) if i in self.doing)))
        super().wake(key)

    def _put(self, when: int, what: object, of: Doing | None) -> None:
        self.coming[id(what)] = what, when, of

    def comes(self, what: Flight | EngineArrival) -> None:
        """Something lands that was on its way."""
        _, self.now, self.cause = self.coming.pop(id(what), (what, self.now, None))
        b = what.barrier
        n, size = (0, what.bytes) if isinstance(what, Flight) else (what.arrivals, 0)
        self.story.arrival(b, self.phases[b.id].phase if b.id in self.phases else 0, self.now, self.cause, n, size)

    def trace(self, faults: list[Fault]) -> Trace:
        """What the run did; `faults`: what it found. Call it once, when the run is over."""
        self.doing = {i: d for i, d in self.doing.items() if i in self.blocked}
        self.leave_open(faults)
        return self.story.trace(self.cluster.facts, self.cluster.scenario)


class _Heard(Carrier):
    """Tells the clock of what lands, and passes everything on."""

    def __init__(self, of: Timed, carrier: Carrier) -> None:
        self.of, self.carrier = of, carrier

    def done(self, run: Schedule, agent: Agent, step: Step) -> None:
        self.carrier.done(run, agent, step)

    def delivered(self, run: Schedule, flight: Flight) -> None:
        self.of.comes(flight)
        self.carrier.delivered(run, flight)

    def arrived(self, run: Schedule, arrival: EngineArrival) -> None:
        self.of.comes(arrival)
        self.carrier.arrived(run, arrival)
