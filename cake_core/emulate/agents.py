"""Who accesses memory: a warp's lanes, or a job of an engine; each has a clock and a vector of what it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.emulate.clocks import Clock, Vector
from cake_core.emulate.outcome import Fault, Finding

if TYPE_CHECKING:
    import numpy as np

    from cake_core.emulate.grid import Cta


class Agent:
    """`line`: of the PTX that it executes. Implements `ptx.emulated.Agent`."""

    __slots__ = ("clock", "cta", "grid", "line")

    #: Whether its accesses go the way of engines.
    engine = False

    def __init__(self, cta: Cta, clock: Clock) -> None:
        self.cta, self.grid, self.clock, self.line = cta, cta.launch, clock, 0

    @property
    def who(self) -> str:
        raise NotImplementedError

    def seen(self) -> Vector:
        """What happened before what it does next. Not to be written into."""
        return self.clock.vector

    def parts(self, lanes: np.ndarray | None) -> list[tuple[np.ndarray | None, Vector]]:
        """Which of an access's `lanes` (None: all) know what."""
        return [(None, self.clock.vector)]

    def common(self) -> Vector:
        """What each of those who execute together knows."""
        return self.clock.vector

    def release(self, each: bool = False) -> Vector | None:
        c = self.clock
        self.grid.progress += 1
        if not self.grid.races:
            return None
        stamp = (self.common() if each else self.seen()).told()
        stamp.time, stamp.by = c.vector.time, (c.id, self.line)
        self._tell(stamp)
        c.count += 1
        return stamp

    def _tell(self, stamp: Vector) -> None:
        stamp.tell(self.clock.id, self.clock.count)

    def acquire(self, stamp: Vector | None, order: str = "") -> None:
        if stamp is not None:
            self.clock.vector.join(stamp, order)

    def relaxed(self, stamp: Vector | None) -> Vector | None:
        if not self.grid.races:
            return None
        new = Vector() if stamp is None else stamp.copy()
        new.join_fenced(self.seen())
        return new

    def acquire_fenced(self, stamp: Vector | None) -> None:
        if stamp is not None:
            self.clock.vector.join_fenced(stamp)

    def fence(self, kind: str) -> None:
        if self.grid.races:
            c = self.clock
            c.vector.fence(kind, c.id, c.count)
            c.count += 1

    def unheld(self, stamp: Vector) -> None:
        who, line = stamp.by
        self.grid.unheld[self.clock.id, who] = line

    def fault(self, code: str, message: str, why: str | None = None, fix: str | None = None) -> Fault:
        return Fault(Finding(code, message, self.line, self.who, why, fix))

    def finding(self, code: str, message: str, why: str | None = None, fix: str | None = None) -> None:
        self.grid.findings.add(Finding(code, message, self.line, self.who, why, fix))


class JobAgent(Agent):
    """A job while it takes effect. `before`: what is ordered in front of its reads and writes, by kind of memory."""

    __slots__ = ("engine", "what")

    def __init__(self, cta: Cta, clock: Clock, line: int, what: str, engine: bool) -> None:
        super().__init__(cta, clock)
        self.line, self.what, self.engine = line, what, engine

    @property
    def who(self) -> str:
        return f"{self.what} of CTA {self.cta.number}"
