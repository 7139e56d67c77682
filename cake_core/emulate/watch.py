"""What a run tells to who watches it: instructions, waits, jobs of engines and phases of barriers, each with its time.

Time counts instructions of a warp, as if everything started as soon as what it waits for is over: an order of events, no measurement. A job of an
engine takes `JOB` of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cake_core.emulate.agents import Agent
    from cake_core.emulate.barriers import PhaseBarrier
    from cake_core.emulate.grid import Job
    from cake_core.emulate.warps import Lanes

JOB = 32.0


class Watch(Protocol):
    def ran(self, lanes: Lanes, lines: Sequence[int], start: float) -> None:
        """The instructions of these lines, one after another, from `start` on."""

    def waited(self, lanes: Lanes, line: int, start: float, end: float, what: str) -> None: ...

    def performed(self, job: Job, start: float, end: float) -> None: ...

    def completed(self, barrier: PhaseBarrier, agent: Agent, at: float) -> None:
        """A phase of the barrier is over, by what this agent did."""
