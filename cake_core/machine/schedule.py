"""One schedule of a scenario from start to end, with vector clocks: what it finds holds for the schedules that it stands for.

A wait that passes learns no more than it must: the first phase of its parity that is not in its own past. So that someone was lucky in
this schedule does not hide that nothing orders him, and where the other interleavings would differ (a phase that may be over before someone has
waited for it, an arrival that may fall into an earlier phase) is a fault by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from random import Random

from cake_core.frozen import frozen
from cake_core.machine.accesses import access, commit, converge, copy, drain, engine, fence, group
from cake_core.machine.arrivals import arrive, complete, engine_arrive, init, meet, wait
from cake_core.machine.barriers import EngineArrival, Flight, Meeting, Phases
from cake_core.machine.clocks import Clock, Layout, join
from cake_core.machine.ends import cta_exit, reserve, role_end
from cake_core.machine.outcome import Fault, Kind, Site
from cake_core.machine.shadow import Record, Shadow
from cake_core.machine.steps import Do, Step
from cake_core.machine.threads import Agent, Cluster, FaultFound

#: How many steps back the interleaving of a fault is told.
TRAIL = 200
#: Steps between two looks at the clock on the wall.
CHECK = 500


@frozen
class Order:
    """Who goes first. `rank`: one number an agent, the smallest that can go on does; `engines`: theirs. `last`: which of several copies
    completes first. `seed` not None: all is drawn. `turns`: agents take turns instead, one visible step each."""

    rank: tuple[int, ...]
    engines: int
    last: bool = False
    seed: int | None = None
    turns: bool = False


class Carrier:
    """What moves data while a schedule runs; this one moves none. Called when a step is done, and when what is asynchronous comes to its end."""

    def done(self, run: Schedule, agent: Agent, step: Step) -> None:
        """A step of an agent, which was not held up."""

    def delivered(self, run: Schedule, flight: Flight) -> None:
        """One delivery of a copy, in front of what its bytes let go on."""

    def arrived(self, run: Schedule, arrival: EngineArrival) -> None:
        """An engine's arrival, in front of what it lets go on."""


class Schedule:
    """State of one run. `faults`: found so far, one of each kind, place and pair of events; `cut`: whether time was up before the end, or
    someone had been picked to go on `most` times."""

    def __init__(
        self,
        cluster: Cluster,
        layout: Layout,
        order: Order,
        first_only: bool = False,
        end: float = math.inf,
        most: int | None = None,
        carrier: Carrier | None = None,
    ) -> None:
        self.carrier = carrier or Carrier()
        self.end, self.cut, self.picks = end, False, 0
        self.most = math.inf if most is None else most
        self.cluster, self.layout, self.order, self.first_only = cluster, layout, order, first_only
        self.policy = cluster.scenario.policy
        agents = cluster.agents
        self.clocks: list[Clock] = [[0] * layout.size for _ in range(2 * len(agents))]
        for lane, clock in enumerate(self.clocks):
            clock[lane] = 1
        self.at = [0] * len(agents)
        self.ready = set(range(len(agents)))
        self.blocked: dict[int, object] = {}
        self.waiting: dict[object, list[int]] = {}
        self.phases: dict[int, Phases] = {}
        self.least: dict[tuple[int, int], int] = {}
        self.seen_start: set[tuple[int, int, bool]] = set()
        self.meetings: dict[tuple[int, int], Meeting] = {}
        self.flights: list[Flight] = []
        self.arrivals: list[EngineArrival] = []
        self.issued: dict[tuple, int] = {}
        self.closed: dict[tuple, int] = {}
        self.group_clocks: dict[tuple, list[Clock]] = {}
        self.unretired: list[list[Record]] = [[] for _ in agents]
        self.remote: dict[int, list[tuple[int, int, Agent, Step]]] = {}
        self.columns: dict[int, list] = {}
        self.running = [sum(a.cta == c for a in agents) for c in range(cluster.facts.cluster)]
        self.last_clock: list[Clock | None] = [None] * cluster.facts.cluster
        self.gone: set[int] = set()
        self.faults: dict[tuple, Fault] = {}
        self.log: list[tuple[Agent, Step]] = []
        cluster.messages.clear()
        self.shadow = Shadow(layout, self.policy, self.report)

    # --- the loop --------------------------------------------------------------------------------------------------

    def run(self) -> list[Fault]:
        """Faults of this schedule, the fatal one last."""
        try:
            self._run()
        except FaultFound as e:
            self.faults.setdefault(e.fault.key, e.fault)
        return list(self.faults.values())

    def _run(self) -> None:
        draw = Random(self.order.seed) if self.order.seed is not None else None
        rank, agents, ready, last = self.order.rank, self.cluster.agents, self.ready, -1
        while True:
            self.picks += 1
            if self.picks >= self.most or self.picks % CHECK == 0 and time.monotonic() > self.end:
                self.cut = True
                return
            flying = bool(self.flights or self.arrivals)
            if draw is not None:
                pick = draw.choice([*ready, *([-1] if flying else [])]) if ready or flying else None
            elif ready:
                pick = last = min(ready, key=lambda i: (i <= last, i)) if self.order.turns else min(ready, key=rank.__getitem__)
                if flying and self.order.engines < rank[pick]:
                    pick = -1
            else:
                pick = -1 if flying else None
            if pick is None:
                break
            if pick < 0:
                complete(self, draw)
            else:
                self._advance(agents[pick])
        if any(self.running):
            raise FaultFound(self._deadlock())

    def _advance(self, agent: Agent) -> None:
        """Steps of one agent up to and with the next that others can see."""
        i = agent.id
        while True:
            step = agent.step(self.at[i])
            self.log.append((agent, step))
            if not ACTS[step.do](self, agent, step):
                self.log.pop()
                return
            self.at[i] += 1
            self.carrier.done(self, agent, step)
            if step.do in VISIBLE:
                return

    def fatal(self, kind: Kind, message: str, agent: Agent, step: Step | None, **more) -> None:
        fault = Fault(kind, message, second=agent.site(step), trail=self.trail(), **more)
        raise FaultFound(fault)

    def report(self, fault: Fault, agent: Agent, step: Step) -> None:
        if fault.key not in self.faults:
            told = Fault(fault.kind, fault.message, fault.resource, fault.slot, fault.phase, fault.cta, fault.first, fault.second, trail=self.trail())
            self.faults[fault.key] = told
            if self.first_only:
                raise FaultFound(told)

    def trail(self) -> tuple[Site, ...]:
        return tuple(a.site(s) for a, s in self.log[-TRAIL:] if s.event is not None)

    # --- clocks ----------------------------------------------------------------------------------------------------

    def lane(self, agent: Agent, step: Step) -> int:
        return 2 * agent.id + (step.all or not self.policy.lanes)

    def publish(self, agent: Agent, step: Step, together: bool = False) -> Clock:
        """What the executing lanes know (`together`: all lanes), for who learns of this step; what they do from here on is not in it."""
        lane = 2 * agent.id + 1 if together else self.lane(agent, step)
        if not lane & 1:
            own = self.clocks[lane]
            out = own[:]
            own[lane] += 1
            return out
        leading, rest = self.clocks[lane - 1], self.clocks[lane]
        out = join(leading, rest)
        leading[lane - 1] += 1
        rest[lane] += 1
        return out

    def learn(self, agent: Agent, step: Step, clock: Clock) -> None:
        lane = self.lane(agent, step)
        self.clocks[lane & ~1] = join(self.clocks[lane & ~1], clock)
        if lane & 1:
            self.clocks[lane] = join(self.clocks[lane], clock)

    def wake(self, key: object) -> None:
        for i in self.waiting.pop(key, ()):
            self.ready.add(i)
            self.blocked.pop(i, None)

    def block(self, agent: Agent, key: object) -> bool:
        """The agent's step has to be tried again when `key` is woken."""
        self.ready.discard(agent.id)
        self.blocked[agent.id] = key
        self.waiting.setdefault(key, []).append(agent.id)
        return False

    def _deadlock(self) -> Fault:
        stuck = [(a, a.step(self.at[a.id])) for a in self.cluster.agents if a.id in self.blocked]
        blocked = tuple((a.site(step), self._needs(a, step)) for a, step in stuck)
        b = next((step.a for _, step in stuck if step.do is Do.WAIT), None)
        place = {} if b is None else {"resource": b.name, "slot": (b.index,), "phase": self.phases[b.id].phase, "cta": b.cta}
        owed = [f"'{p.place.name}'[{p.place.index}] of CTA {p.place.cta} by {p.tx} bytes" for p in self.phases.values() if p.tx]
        told = "no one can go on" + (f"; the count of bytes is off at {', '.join(owed[:3])}" if owed else "")
        return Fault(Kind.DEADLOCK, told, second=blocked[0][0], blocked=blocked, trail=self.trail(), **place)

    def _needs(self, agent: Agent, step: Step) -> str:
        """What a blocked agent waits for."""
        if step.do is Do.WAIT:
            p = self.phases[step.a.id]
            missing = [f"{p.pending} of {step.a.count} arrivals"] if p.pending else []
            missing += [f"{p.tx} bytes"] if p.tx else []
            short = f"phase {p.phase} is short of {' and '.join(missing) or 'nothing'}"
            return f"parity {int(step.b)} of '{step.a.name}'[{step.a.index}] in CTA {step.a.cta}, whose {short}"
        if step.do is Do.MEET:
            m = self.meetings[step.a]
            return f"{m.describe()}, where {m.come} of {m.wanted} threads have come"
        return f"the other warps of its instance, which have not issued what it waits for in '{step.a}'"


def _exit(run: Schedule, agent: Agent, step: Step) -> bool:
    i, cta = agent.id, agent.cta
    clock = join(run.clocks[2 * i], run.clocks[2 * i + 1])
    last = run.last_clock[cta]
    run.last_clock[cta] = clock if last is None else join(last, clock)
    run.ready.discard(i)
    run.running[cta] -= 1
    if not run.running[cta]:
        run.gone.add(cta)
        cta_exit(run, cta, agent, step)
    return True


VISIBLE = frozenset({Do.WAIT, Do.ARRIVE, Do.ENGINE_ARRIVE, Do.COPY, Do.MEET, Do.EXIT, Do.DRAIN})

ACTS: dict[Do, Callable[[Schedule, Agent, Step], bool]] = {
    Do.ACCESS: access,
    Do.GROUP: group,
    Do.ENGINE: engine,
    Do.COPY: copy,
    Do.INIT: init,
    Do.WAIT: wait,
    Do.ARRIVE: arrive,
    Do.ENGINE_ARRIVE: engine_arrive,
    Do.COMMIT: commit,
    Do.DRAIN: drain,
    Do.MEET: meet,
    Do.CONVERGE: converge,
    Do.FENCE: fence,
    Do.RESERVE: reserve,
    Do.FREE: reserve,
    Do.ROLE_END: role_end,
    Do.EXIT: _exit,
    Do.GRID: lambda run, agent, step: True,
    Do.TENSOR: lambda run, agent, step: True,
}
