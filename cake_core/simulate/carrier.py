"""When the data of asynchronous operations move: at some time between issue and completion, as the schedule has it.

Early is at issue, late is when somebody waits for them: the last moment at which a read may still see what was there, and a write not. What
a group of stores leaves may come later still, when its writes are waited for, or at the end of the kernel.
"""

from __future__ import annotations

from dataclasses import field
from random import Random
from typing import TYPE_CHECKING

from cake_core.frozen import thawed
from cake_core.machine import Fault, Kind
from cake_core.machine.barriers import EngineArrival, Flight
from cake_core.machine.schedule import Carrier, Schedule
from cake_core.machine.steps import Do, Step
from cake_core.machine.threads import Agent
from cake_core.simulate.expressions import Fragment
from cake_core.simulate.ledger import When

if TYPE_CHECKING:
    from cake_core.simulate.expressions import Env
    from cake_core.simulate.site import Site


@thawed(eq=False)
class Job:
    """An operation that was issued with an environment. `number`: of its group in its queue, or of the operation in its engine. `writes`: what it
    has read and has still to put into its place; None before it ran. `over`: when its reads and its writes are over, for who asks."""

    site: Site
    env: Env
    number: int = 0
    writes: list | None = None
    over: tuple[When, When] | None = None

    def read(self) -> None:
        """Do all but the writes."""
        if self.writes is None:
            self.writes = []
            self.site.run(self.env, None, self.writes, self.over)

    def finish(self) -> None:
        if self.writes is None:
            self.writes = []
            self.site.run(self.env, None, None, self.over)
            return
        for write in self.writes:
            write()
        self.writes = []


@thawed(eq=False)
class Mover(Carrier):
    """`early`: data move at issue; None: sometimes, as `draw` has it."""

    early: bool | None
    draw: Random
    queues: dict[tuple, list[Job]] = field(default_factory=dict)
    engines: dict[tuple, list[Job]] = field(default_factory=dict)
    upto: dict[int, int] = field(default_factory=dict)  # by the identity of a step: how many operations an engine's arrival speaks for

    def at_once(self) -> bool:
        return self.draw.random() < 0.5 if self.early is None else self.early

    # --- the machine's hooks ---------------------------------------------------------------------------------------

    def done(self, run: Schedule, agent: Agent, step: Step) -> None:
        match step.do:
            case Do.GROUP if step.job is not None:
                if step.c:
                    _fenced(run, agent, step)
                self._grouped(run, agent, step)
            case Do.FENCE if step.a == "registers":
                for x in agent.env:
                    if isinstance(x, Fragment):
                        x.touched = False
            case Do.ENGINE if step.job is not None:
                step.job.number = run.issued[agent.id, step.b]
                engine = When(run.layout.numbers["engine", agent.id, step.b], step.job.number, run.clocks[run.lane(agent, step)][:])
                step.job.over = engine, engine
                jobs = self.engines.setdefault((agent.id, step.b), [])
                jobs.append(step.job)
                if self.at_once():
                    _finish(jobs, step.job.number)
            case Do.ENGINE_ARRIVE:
                self.upto[id(step)] = run.issued.get((agent.id, step.b), 0)
            case Do.DRAIN:
                self._drained(run, agent, step)

    def delivered(self, run: Schedule, flight: Flight) -> None:
        job = flight.step.job
        if job is not None:
            to = next((r.touch.location.cta for r in flight.records), None)
            p = run.phases[flight.barrier.id]
            over = When(p.bytes, p.phase + 1, flight.clock) if p.bytes is not None else None
            job.site.run(job.env, to, None, over and (over, over))

    def arrived(self, run: Schedule, arrival: EngineArrival) -> None:
        step = arrival.step
        _finish(self.engines.get((arrival.agent.id, step.b), []), self.upto[id(step)])

    def rest(self) -> None:
        """What nobody has waited for when the kernel ends."""
        for jobs in (*self.queues.values(), *self.engines.values()):
            for job in jobs:
                job.finish()
            jobs.clear()

    # --- groups ----------------------------------------------------------------------------------------------------

    def _grouped(self, run: Schedule, agent: Agent, step: Step) -> None:
        lane, queue = run.lane(agent, step), step.b
        step.job.number = run.closed.get((lane, queue), 0) + 1
        owner = (agent.cta, agent.name, agent.instance) if step.c else lane
        clock = run.clocks[lane][:]
        step.job.over = tuple(When(run.layout.numbers[what, owner, queue], step.job.number, clock) for what in ("reads", "writes"))
        jobs = self.queues.setdefault(self._key(agent, lane, queue), [])
        jobs.append(step.job)
        if self.at_once():
            _finish(jobs, step.job.number)

    @staticmethod
    def _key(agent: Agent, lane: int, queue: str) -> tuple:
        """Whose groups they are. Warps that issue together have each their own fragments: their jobs are run one after another."""
        return (agent.cta, agent.name, agent.instance, agent.id, queue) if queue in agent.collective else (lane, queue)

    def _drained(self, run: Schedule, agent: Agent, step: Step) -> None:
        queue, pending, reads_only = step.a, step.b, step.c
        lane = run.lane(agent, step)
        if queue in agent.collective:
            for other in run.cluster.members(agent):
                jobs = self.queues.get(self._key(other, lane, queue), [])
                _finish(jobs, run.closed.get((lane, queue), 0) - pending)
            return
        for i in sorted({lane & ~1, lane}):
            jobs = self.queues.get((i, queue), [])
            upto = run.closed.get((i, queue), 0) - pending
            if reads_only:
                for job in jobs:
                    if job.number <= upto:
                        job.read()
            else:
                _finish(jobs, upto)


def _fenced(run: Schedule, agent: Agent, step: Step) -> None:
    """What a warpgroup's engine is given of registers must be fenced from what threads did with them before (PTX ISA, asynchronous warpgroup-level
    matrix operations, fence)."""
    for x in (step.job.env[slot] for slot in step.job.site.fragments):
        if x.touched:
            told = f"'{step.event.op}' uses '{x.name}', which threads have accessed with no fence of registers behind it"
            run.report(Fault(Kind.FENCE, told, x.name, cta=agent.cta, second=agent.site(step)), agent, step)


def _finish(jobs: list[Job], upto: int) -> None:
    """Run those of the first groups, in the order in which they were issued."""
    while jobs and jobs[0].number <= upto:
        jobs.pop(0).finish()
