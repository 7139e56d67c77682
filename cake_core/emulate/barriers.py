"""Barriers: objects in shared memory that count arrivals and bytes, and meetings of threads.

PTX ISA, mbarrier: phases, expected arrivals (1 to 2^20 - 1), a count of transaction bytes (-(2^20 - 1) to 2^20 - 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate.clocks import Vector
from cake_core.ptx.groups import mask_of

if TYPE_CHECKING:
    from cake_core.emulate.agents import Agent
    from cake_core.emulate.grid import Cta
    from cake_core.emulate.memory import Memory
    from cake_core.emulate.warps import Lanes

MOST = 2**20 - 1
#: Bytes of an object.
SIZE = 8


class PhaseBarrier:
    """Implements `ptx.emulated.Barrier`. `pending`: arrivals that the phase still waits for; `bytes`: those that it still waits for. `born`: agent and count
    of its initialisation, and the lanes; None: races are not looked for. `token`: names the initialisation in what vectors know of it alone. `now`, `done`: what came to this phase and to those that are over. `coming`, `far`: the same of
    arrivals from other CTAs, whose scope is the cluster; `narrow`: those of a narrower scope, by agent."""

    __slots__ = (
        "alive",
        "born",
        "bytes",
        "coming",
        "count",
        "cta",
        "done",
        "far",
        "name",
        "narrow",
        "now",
        "pending",
        "phase",
        "place",
        "token",
        "trace",
    )

    def __init__(self, name: str, memory: Memory, offset: int, cta: Cta) -> None:
        self.place, self.cta = (memory, np.array([offset])), cta
        self.name, self.count, self.pending, self.bytes, self.phase = name, 0, 0, 0, 0
        self._fresh()
        self.born: tuple[int, int, int] | None = None
        self.token, self.alive = object(), False
        self.trace = None  # called with (barrier) when a phase completes

    def init(self, agent: Agent, count: int) -> None:
        if not 1 <= count <= MOST:
            raise agent.fault("emulate/barrier", f"{self.name} is initialised for {count} arrivals; 1 to {MOST} are possible")
        if self.alive:
            agent.finding("emulate/barrier", f"{self.name} is initialised again, and was not invalidated before")
            self._held(agent, False)
        memory, at = self.place
        memory.write(agent, at, np.zeros((1, SIZE), np.uint8))
        self._held(agent, True)
        self.count = self.pending = count
        self.token, self.alive = object(), True
        self.bytes = self.phase = 0
        self._fresh()
        self.born = (agent.clock.id, agent.clock.count, mask_of(agent.active)) if agent.grid.races else None

    def _fresh(self) -> None:
        self.now, self.done = Vector(), Vector()
        self.coming: Vector | None = None
        self.far: Vector | None = None
        self.narrow: dict[int, Vector] = {}

    def publish(self, stamp: Vector) -> None:
        stamp.begun |= {self.token}

    def invalidate(self, agent: Agent) -> None:
        self._alive(agent)
        self.alive = False
        self._held(agent, False)
        memory, at = self.place
        memory.forget(agent, at, SIZE)

    def _held(self, agent: Agent, held: bool) -> None:
        memory, at = self.place
        if agent.grid.races and memory.shadow is not None:
            memory.shadow.hold(int(at[0]) - memory.base, SIZE, held)

    def _alive(self, agent: Agent) -> None:
        if not self.alive:
            raise agent.fault("emulate/barrier", f"{self.name} is used, and is not initialised")
        if self.born is not None and agent.clock.id != self.born[0]:
            self._behind_init(agent)

    def _behind_init(self, agent: Agent) -> None:
        """Whether the agent knows of the initialisation."""
        who, count, lanes = self.born
        vector = agent.seen()
        if self.token in vector.begun or who < len(vector.known) and vector.known[who] >= count:
            return
        told, mask = vector.lanes.get(who, (0, 0))
        if told < count or lanes & ~mask:
            agent.finding(
                "emulate/race",
                f"{agent.who} uses {self.name}, and nothing orders that behind its initialisation by {agent.grid.name(who)}",
                why="an mbarrier object is initialised before anyone else uses it",
                fix="let the threads, or the CTAs of the cluster, meet behind the initialisation",
            )

    def arrive(self, agent: Agent, count: int = 1, expect: int = 0, drop: bool = False, release: bool = True, scope: str = "") -> int:
        self._alive(agent)
        if not 1 <= count <= MOST:
            raise agent.fault("emulate/barrier", f"{count} arrivals at {self.name}; 1 to {MOST} are possible")
        if count > self.pending:
            raise agent.fault(
                "emulate/barrier",
                f"{count} arrivals at {self.name}, whose phase {self.phase} waits for {self.pending} of {self.count}",
                why="the count of pending arrivals may not fall below 0",
            )
        if expect:
            self.expect(agent, expect)
        phase = self.phase
        if (stamp := agent.release()) is not None and release:
            self._tell(agent, stamp, scope)
        self.pending -= count
        if drop:
            self.count -= count
        self._advance(agent)
        return phase

    def _tell(self, agent: Agent, stamp: Vector, scope: str) -> None:
        if not scope or agent.cta is self.cta:
            self.now.join(stamp)
        elif scope == "cta":  # nobody who waits here is in it
            self.now.join(stamp.as_over())
            self.narrow[stamp.by[0]] = stamp
        else:
            self.coming = self.coming or Vector()
            self.coming.join(stamp)
            self.narrow.pop(stamp.by[0], None)

    def grow(self, agent: Agent, count: int = 1) -> None:
        self._alive(agent)
        self.pending += count

    def expect(self, agent: Agent, bytes: int) -> None:
        self._alive(agent)
        self.bytes += bytes
        self._bounded(agent)

    def complete(self, agent: Agent, bytes: int) -> None:
        self._alive(agent)
        if (stamp := agent.release()) is not None:
            self.now.join(stamp)
        self.bytes -= bytes
        self._bounded(agent)
        self._advance(agent)

    def _bounded(self, agent: Agent) -> None:
        if not -MOST <= self.bytes <= MOST:
            raise agent.fault("emulate/barrier", f"{self.name} counts {self.bytes} transaction bytes; {MOST} is the limit")

    def _advance(self, agent: Agent) -> None:
        if self.pending or self.bytes:
            return
        self.phase += 1
        self.pending = self.count
        self.done.join(self.now)
        self.now = Vector()
        if self.coming is not None:
            self.far = self.far or Vector()
            self.far.join(self.coming)
            self.coming = None
        agent.grid.phase_over(agent, self)

    def passed(self, parity: int) -> bool:
        return (self.phase & 1) != (parity & 1)

    def acquire(self, agent: Agent, scope: str = "", mask: int | None = None) -> None:
        self._alive(agent)
        only = {} if mask is None else {"mask": mask}
        agent.acquire(self.done, **only)
        for stamp in self.narrow.values():
            agent.unheld(stamp)
        if self.far is None:
            return
        if scope == "cta":  # nobody who arrived from another CTA is in it
            agent.acquire(self.far.as_over(), **only)
        else:
            agent.acquire(self.far, **only)

    def state(self) -> str:
        return f"{self.name}: phase {self.phase}, {self.pending} of {self.count} arrivals and {self.bytes} bytes to come"


class Meeting:
    """Implements `ptx.emulated.Meeting`."""

    __slots__ = ("arrived", "came", "expected", "generation", "gone", "left", "name", "now", "stamps", "whole")

    def __init__(self, name: str) -> None:
        """`whole`: this generation is of all threads, so that those that have ended (`gone`) are not waited for; `left`: those of them that came to it
        before they ended. `came`: by warp, the lanes that have come."""
        self.name, self.arrived, self.expected, self.generation, self.whole, self.gone = name, 0, 0, 0, False, 0
        self.came: dict[int, int] = {}
        self.left = 0
        self.now: Vector = Vector()
        self.stamps: dict[int, Vector] = {}

    def come(self, lanes: Lanes, threads: int, expected: int, release: bool = True, whole: bool = False) -> int:
        if self.arrived and expected != self.expected:
            raise lanes.fault("emulate/barrier", f"{self.name} is waited for by {self.expected} threads, and these come for {expected}")
        self.expected, self.whole = expected, whole
        self.arrived += threads
        who = lanes.clock.id
        self.came[who] = self.came.get(who, 0) | mask_of(lanes.active)
        if self.arrived > expected:
            raise lanes.fault("emulate/barrier", f"{self.arrived} threads come to {self.name}, which is for {expected}")
        if (stamp := lanes.release()) is not None and release:
            self.now.join(stamp)
        generation = self.generation
        self._advance()
        return generation

    def end(self, who: int, lanes: int, threads: int) -> None:
        """So many threads will not come any more: the lanes of this warp."""
        self.gone += threads
        self.left += (self.came.get(who, 0) & lanes).bit_count()
        if self.arrived:
            self._advance()

    def _advance(self) -> None:
        if self.arrived < self.expected - (self.gone - self.left if self.whole else 0):
            return
        self.stamps[self.generation] = self.now
        self.stamps.pop(self.generation - 2, None)
        self.arrived, self.left, self.now = 0, 0, Vector()
        self.came.clear()
        self.generation += 1

    def over(self, generation: int) -> bool:
        return self.generation > generation

    def acquire(self, agent: Agent, generation: int) -> None:
        agent.acquire(self.stamps.get(generation))

    def state(self) -> str:
        return f"{self.name}: {self.arrived} of {self.expected} threads have come"
