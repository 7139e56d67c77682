"""One run of a scenario in which everything starts as soon as it can: who does what when, as a trace for pictures.

The event machine says what may follow what, not how long it takes. Here each statement of a thread takes one unit, and what it gives to an engine or a
queue one unit for each 4 KiB of shared or tensor memory that it touches there, eight at most, one behind the other. So widths are no measurement;
order, overlap and waiting are the text's own. The run has the same vector clocks as any other: what it finds is a fault.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field

from cake_core.facts.schema import Facts, events
from cake_core.frozen import frozen
from cake_core.machine.arrivals import land
from cake_core.machine.clocks import Layout, layout_of
from cake_core.machine.outcome import Fault, Scenario
from cake_core.machine.outcome import Kind as Wrong
from cake_core.machine.places import Location
from cake_core.machine.scenarios import scenarios_of, some_sizes
from cake_core.machine.schedule import ACTS, Order, Schedule
from cake_core.machine.steps import Do, Step, Touch
from cake_core.machine.story import Doing, Story
from cake_core.machine.threads import Agent, Cluster, FaultFound, cluster_of
from cake_core.machine.values import MachineError
from cake_core.machine.worlds import worlds
from cake_core.trace import Trace

#: Bytes that an engine moves in a unit, the most units that one of its operations takes, and bytes of a column of tensor memory (128 lanes).
PIECE, LONGEST, COLUMN = 4 << 10, 8, 512
#: Picks of someone to go on, after which a picture ends; by CTA, when nobody named the sizes; and at how many sizes it is then tried.
PICKS, SHOWN, TRIED = 20_000, 900, 8
#: Phases of a barrier that show how it goes round.
ROUNDS = 2


@frozen
class Timeline:
    """`trace`: times in units, tracks of all CTAs of one cluster. `faults`: what the run found; a fatal one ended it. `cut`: it was ended before all was over,
    for its length."""

    trace: Trace
    scenario: Scenario
    faults: tuple[Fault, ...]
    cut: bool


def timeline(facts: Facts, scenario: Scenario, *, picks: int = PICKS, seed: int = 0) -> Timeline:
    """Run `facts` once at `scenario`, until someone has been picked to go on `picks` times. Raises MachineError where the scenario cannot be run."""
    world = next(iter(worlds(facts, scenario, seed)))
    cluster = cluster_of(facts, world, whole=True)
    run = Soonest(cluster, picks)
    try:
        faults = run.run()
    except FaultFound as e:  # of a step that can't be made
        faults = [*run.faults.values(), e.fault]
    run.leave_open(faults)
    return Timeline(run.story.trace(facts, scenario), scenario, tuple(faults), run.cut)


def telling(facts: Facts, seed: int = 0, tries: int = TRIED) -> Timeline:
    """A run at small sizes that shows much: of some sizes, the one at which most lines are executed, then the one at which barriers have most
    phases, two of each counted, then the shortest. Raises MachineError where no sizes can be run."""
    given = [Scenario(sizes) for sizes in some_sizes(facts, tries, seed)]
    try:
        given = [*scenarios_of(facts, 2, wanted=lambda slots: ((2, slots + 1), (1, 2 * slots + 1))), *given]
    except MachineError:
        if not given:
            raise
    lines = {e.span for block in (facts.before, facts.after, *(r.body for r in facts.roles)) for e in events(block) if e.span.line and e.acts}
    rounds = ROUNDS * facts.cluster * sum(b.slots for b in facts.barriers.values())
    best, why = None, None
    for scenario in given:
        try:
            made = timeline(facts, scenario, picks=SHOWN * facts.cluster, seed=seed)
        except MachineError as e:
            why = e
            continue
        if best is None or _worth(made) > _worth(best):
            best = made
        whole, executed, phases, _ = _worth(best)
        if whole and executed >= len(lines) and phases >= rounds:
            break
    if best is None:
        raise why
    return best


def _worth(t: Timeline) -> tuple[bool, int, int, int]:
    """That it is whole, lines of the text that are executed, phases of barriers, and how short it is: more is better."""
    executed = {s.span for s in t.trace.slices if s.span is not None and s.span.line}
    phases = Counter(s.track for s in t.trace.slices if s.what == "phase")
    return not t.cut, len(executed), sum(min(ROUNDS, n) for n in phases.values()), -len(t.trace.slices)


@dataclass(slots=True, eq=False)
class Op:
    """An operation that was given to a queue which all warps of an instance issue together: it starts when the last one has. `by`: who gave it."""

    by: Doing
    step: Step
    doing: Doing | None = None


@dataclass(slots=True, eq=False)
class Engine:
    """What serves one thread's operations in order. `free`: when it is done with all; `last`: the last one; `done`: by group, when it is over."""

    free: int = 0
    last: Doing | None = None
    done: dict[int, int] = field(default_factory=dict)


class Soonest(Schedule):
    """A schedule with a clock on it: who can go on first does."""

    def __init__(self, cluster: Cluster, picks: int | None, layout: Layout | None = None, order: Order | None = None) -> None:
        super().__init__(cluster, layout or layout_of(cluster), order or Order(tuple(range(len(cluster.agents))), 0), most=picks)
        self.story = Story(cluster)
        self.now = 0
        self.cause: Doing | None = None
        self.time = [0] * len(cluster.agents)
        self.doing: dict[int, Doing] = {}  # what an agent has begun and waits in
        self.due: list[tuple[int, int, object, Doing | None]] = []  # when deliveries and engines' arrivals come, and of what
        self.engines: dict[tuple, Engine] = {}
        self.given: dict[tuple, list[Op]] = {}  # by instance, queue and group, what waits for its last warp
        self.count = 0

    # --- the loop --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        agents = self.cluster.agents
        while self.ready or self.due:
            self.picks += 1
            if self.picks >= self.most:
                self.cut = True
                return
            i = min(self.ready, key=lambda i: (self.time[i], i), default=None)
            if self.due and (i is None or self.due[0][0] <= self.time[i] + 1):
                self._land()
            else:
                self._advance(agents[i])
        if any(self.running):
            raise FaultFound(self._deadlock())

    def _land(self) -> None:
        self.now, _, what, self.cause = heapq.heappop(self.due)
        i = self.flights.index(what) if what in self.flights else len(self.flights) + self.arrivals.index(what)
        barrier, phase = what.barrier, self.phases[what.barrier.id].phase if what.barrier.id in self.phases else 0
        n, size = (0, what.bytes) if i < len(self.flights) else (what.arrivals, 0)
        self.story.arrival(barrier, phase, self.now, self.cause, n, size)
        land(self, i)

    def _advance(self, agent: Agent) -> None:
        """One statement of one agent, as far as it gets."""
        i, begin = agent.id, self.time[agent.id]
        first = step = agent.step(self.at[i])
        doing = self.doing.pop(i, None) or (self.story.begin(agent, step, begin) if step.event is not None else None)
        self.cause, self.now = doing, begin + (doing is not None)
        until = self.now
        while True:
            before = len(self.flights), len(self.arrivals)
            self.log.append((agent, step))
            self._announce(agent, step)
            if not ACTS[step.do](self, agent, step):
                self.log.pop()
                self.doing[i] = doing
                return
            self.at[i] += 1
            until = max(until, self._note(agent, step, doing, before))
            if step.do is Do.EXIT:
                break
            step = agent.step(self.at[i])
            if doing is None or step.event is not first.event or step.iteration != first.iteration:
                break
        if doing is not None:
            doing.end = self.time[i] = until
            doing.waited = until - 1 - doing.start

    def wake(self, key: object) -> None:
        for i in self.waiting.get(key, ()):
            self.time[i] = max(self.time[i], self.now)
        if isinstance(key, int):
            self.story.completed(self.phases[key].place, self.phases[key].phase - 1, self.now, self.cause)
        elif key[0] == "meet":
            self._met(key)
        super().wake(key)

    def _met(self, key: tuple) -> None:
        """Whoever waited at a meeting has passed it by what the last one did."""
        m = self.meetings[key[1]]
        others = []
        for i in self.waiting.get(key, ()):
            doing = self.doing.pop(i)
            doing.end, doing.waited = self.now, self.now - 1 - doing.start
            others.append(doing)
        self.story.met(m.key, m.describe(), self.now, others, self.cause)

    def leave_open(self, faults: list[Fault]) -> None:
        """The run is over: who still waits has waited until then, and waits for ever where no one could go on."""
        end = max((self.now, *self.time, *(d.end for d in self.story.all)))
        for doing in self.doing.values():
            doing.end, doing.waited = max(end, doing.start + 1), max(end - doing.start, 1)
            doing.what = "stuck" if any(f.kind is Wrong.DEADLOCK for f in faults) else "wait"
        self.story.finish(max(end, 1), not self.cut and not any(self.running))

    # --- what a step does to the picture ---------------------------------------------------------------------------

    def _announce(self, agent: Agent, step: Step) -> None:
        """Before a step: which phase its arrivals count in."""
        if step.do is Do.ARRIVE:
            phase = self.phases[step.a.id].phase if step.a.id in self.phases else 0
            self.story.arrival(step.a, phase, self.now, self.cause, step.b, step.c)

    def _note(self, agent: Agent, step: Step, doing: Doing | None, before: tuple[int, int]) -> int:
        """What a step that was made shows; when its thread can go on."""
        self.story.did(doing, step)
        match step.do:
            case Do.ACCESS:
                self.story.touches(doing, step.a, self.now)
            case Do.INIT:
                for b in step.a:
                    self.story.started(b, self.now)
            case Do.WAIT:
                return max(self.now, self.story.passed(step.a, self.phases[step.a.id].phase - 1, doing) + 1)
            case Do.COPY:
                reads, writes = step.a, [t for touched, _, _ in step.b for t in touched]
                largest = max((size for _, _, size in step.b), default=0)
                op = self._serve(agent, doing, step, "copies", [*reads, *writes], max(largest, size_of(self.cluster.facts, reads)))
                for f in self.flights[before[0] :]:
                    self._put(op.end, f, op)
            case Do.GROUP if step.c:
                if agent.warp == 0:
                    n = self.closed.get((self.lane(agent, step), step.b), 0) + 1
                    self.given.setdefault((instance_of(agent), step.b, n), []).append(Op(doing, step))
            case Do.GROUP:
                op = self._serve(agent, doing, step, step.b, step.a)
                lane = self.lane(agent, step)
                done = self._engine((lane, step.b)).done
                n = self.closed.get((lane, step.b), 0) + 1
                done[n] = max(done.get(n, 0), op.end)
            case Do.ENGINE:
                self._serve(agent, doing, step, step.b, step.a)
            case Do.ENGINE_ARRIVE:
                engine = self._engine((agent.id, step.b))
                for a in self.arrivals[before[1] :]:
                    self._put(max(engine.free, self.now), a, engine.last or doing)
            case Do.COMMIT:
                self._committed(agent, step)
            case Do.DRAIN:
                return max(self.now, self._drained(agent, step) + 1)
        return self.now

    def _put(self, when: int, what: object, of: Doing | None) -> None:
        self.count += 1
        heapq.heappush(self.due, (when, self.count, what, of))

    def _engine(self, key: tuple) -> Engine:
        return self.engines.setdefault(key, Engine())

    def _serve(self, agent: Agent, by: Doing, step: Step, queue: str, touches: list[Touch], size: int | None = None) -> Doing:
        """An operation of an engine of this agent, behind those that it has."""
        engine = self._engine((agent.id, queue))
        size = size_of(self.cluster.facts, touches) if size is None else size
        op = engine.last if by.gave and by.gave[-1] is engine.last else None  # accesses of one statement are one operation
        op = op or self.story.operation(agent, queue, by, step, max(engine.free, self.now))
        op.size += size
        op.end = engine.free = op.start + min(max(math.ceil(op.size / PIECE), 1), LONGEST)
        op.steps.append(step)
        self.story.touches(op, touches)
        engine.last = op
        return op

    def _committed(self, agent: Agent, step: Step) -> None:
        queue = step.a
        if queue not in agent.collective:
            return
        lane, who = self.lane(agent, step), instance_of(agent)
        n = self.closed[lane, queue]
        if self.group_clocks[(*who, queue)][n - 1][1] < agent.role.plan.warps:
            return
        first = min(self.cluster.members(agent), key=lambda a: a.warp)
        done = self._engine((who, queue)).done
        for op in self.given.pop((who, queue, n), ()):
            done[n] = max(done.get(n, 0), self._serve(first, op.by, op.step, queue, op.step.a).end)

    def _drained(self, agent: Agent, step: Step) -> int:
        """When the groups are over of which so many may be left."""
        queue, pending = step.a, step.b
        lane = self.lane(agent, step)
        over = 0
        if queue in agent.collective:
            done = self._engine((instance_of(agent), queue)).done
            last = self.closed.get((lane, queue), 0) - pending
            over = max((t for n, t in done.items() if n <= last), default=0)
        else:
            for i in {lane & ~1, lane}:
                last = self.closed.get((i, queue), 0) - pending
                over = max((over, *(t for n, t in self._engine((i, queue)).done.items() if n <= last)))
        return over


def instance_of(agent: Agent) -> tuple:
    return agent.cta, agent.name, agent.instance


def size_of(facts: Facts, touches: list[Touch]) -> int:
    """Bytes of shared and tensor memory in the CTA that has most of them: an engine of two CTAs does both halves at once."""
    sizes: dict[int, int] = {}
    for t in touches:
        if t.location.memory != "registers":
            sizes[t.location.cta] = sizes.get(t.location.cta, 0) + bytes_of(facts, t)
    return max(sizes.values(), default=0)


def bytes_of(facts: Facts, t: Touch) -> int:
    """Bytes of the box of a touch; of tensor memory those of all its columns."""
    x: Location = t.location
    if x.memory == "tensor":
        return COLUMN * (x.hi - x.lo)
    elements = math.prod(hi - lo for lo, hi in zip(t.box[::2], t.box[1::2], strict=True))
    return elements * facts.buffers[x.name].elem.bits // 8
