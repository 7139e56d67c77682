"""Barriers as the hardware has them, with what their phases make known.

An mbarrier holds the arrivals and the bytes that its phase is still short of, and completes the phase exactly when both are zero; the
count is then that of its start again (PTX ISA, mbarrier, phase completion). Who waits gives a parity and passes if the phase of that
parity is the last completed one. Beside that each object keeps the clock of each completed phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_core.machine.clocks import Clock, includes, join
from cake_core.machine.places import Barrier
from cake_core.machine.shadow import Record
from cake_core.machine.steps import Step
from cake_core.machine.threads import Agent

#: Range of the transaction count (PTX ISA, mbarrier, contents of the object).
TX = (1 << 20) - 1


@dataclass(slots=True, eq=False)
class Phases:
    """`done[p]`: what is known who passes phase p; `marks[p]`: a component and a count without which it is not known. `passed`: waits
    that passed before the running phase ends, as (component, count, who); `waited`: phases that someone has waited for, all in front of them too;
    `last`: the phase that an engine arrived in last, and who started that."""

    place: Barrier
    pending: int = 0
    tx: int = 0
    clock: Clock | None = None
    mark: tuple[int, int] = (0, 0)
    bytes: int | None = None  # component of its phases, where it counts bytes
    done: list[Clock] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    passed: list[tuple[int, int, object]] = field(default_factory=list)
    start: tuple[int, int, int] | None = None  # lane that initialised it, when, component of its fence
    received: bool = False  # bytes in this phase
    waited: int = 0
    last: tuple[int, Agent, Step] | None = None

    @property
    def phase(self) -> int:
        return len(self.done)

    def passes(self, parity: int) -> bool:
        return (len(self.done) - 1) % 2 == parity

    def add(self, clock: Clock, mark: tuple[int, int]) -> None:
        self.clock = clock if self.clock is None else join(self.clock, clock)
        self.mark = mark

    def completes(self) -> bool:
        """Complete the phase if nothing is missing."""
        if self.pending or self.tx or self.clock is None:
            return False
        clock = self.clock if not self.done else join(self.done[-1], self.clock)
        mark = self.mark
        if self.received:
            clock = clock[:]
            clock[self.bytes] = len(self.done) + 1
            mark = self.bytes, len(self.done) + 1
        self.done.append(clock)
        self.marks.append(mark)
        self.pending, self.clock, self.received = self.place.count, None, False
        return True

    def known(self, clock: Clock, least: int = 0) -> int:
        """How many phases are complete in the past that `clock` tells of; at least `least`, which it is known to."""
        while least < len(self.done):
            component, count = self.marks[least]
            if clock[component] < count or not includes(clock, self.done[least]):
                return least
            least += 1
        return least


@dataclass(slots=True, eq=False)
class Meeting:
    """A barrier that counts threads: one generation at a time."""

    key: tuple[int, int]
    wanted: int = 0
    come: int = 0
    clock: Clock | None = None
    last: Clock | None = None
    members: list[tuple] = field(default_factory=list)  # (agent, whether it waits, step)

    def describe(self) -> str:
        if self.key[0] < 0:
            return "the barrier of the cluster"
        return f"named barrier {self.key[1]}" if self.key[1] else "the barrier of the CTA"


@dataclass(slots=True, eq=False)
class Flight:
    """Bytes on their way to one barrier. `whole`: of the copy, how many deliveries are missing and what it reads until then; `phase`: the
    one in which they count, as far as the issuing thread knows."""

    agent: Agent
    step: Step
    barrier: Barrier
    bytes: int
    records: list[Record]
    whole: list
    clock: Clock
    phase: int


@dataclass(slots=True, eq=False)
class EngineArrival:
    """An engine's arrivals on their way to one barrier. `mark`: see `Phases`."""

    agent: Agent
    step: Step
    barrier: Barrier
    arrivals: int
    clock: Clock
    mark: tuple[int, int]
