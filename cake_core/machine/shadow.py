"""Who has touched which bytes, and whether that is ordered: the search for races of one schedule.

A `Record` of an access is complete, for someone, when his clock's component `by` has reached `at`. An access of an asynchronous
operation is in use from its issue until then. Two accesses conflict if they share bytes and one writes; the later one must know the
earlier one to be complete. The executions of one collective statement by the warps of an instance do not conflict: the primitive's
lane map divides it among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cake_core.effects import Proxy
from cake_core.machine.clocks import Clock, Layout
from cake_core.machine.outcome import Fault, Kind, Policy
from cake_core.machine.places import Location, apart, overlap
from cake_core.machine.steps import Step, Touch, combine, divided_alike
from cake_core.machine.threads import Agent

NEVER = 1 << 60


@dataclass(slots=True, eq=False)
class Record:
    """`lane`: who did or issued it, at `start` of its own component. `seen`: what a fence of that lane must have reached. `order`: of an
    asynchronous one, the queue or engine that it is in, which serves one after another."""

    by: int
    at: int
    lane: int
    start: int
    seen: int
    touch: Touch
    agent: Agent
    step: Step
    order: tuple | None

    @property
    def asynchronous(self) -> bool:
        return self.order is not None


class Shadow:
    """Accesses of all locations. `report(fault)` takes what is found; `after[lane]`: the lane's clock at its last fence behind a
    hand-off of tensor memory; `fences`: of proxies, each as the component and the count that tell of it, and the lane's clock then."""

    def __init__(self, layout: Layout, policy: Policy, report: Callable[[Fault, Agent, Step], None]) -> None:
        self.layout, self.policy, self.report = layout, policy, report
        self.records: dict[int, list[Record]] = {}
        self.after: dict[int, Clock] = {}
        self.fences: list[tuple[int, int, Clock]] = []

    def access(self, new: Record, clock: Clock) -> None:
        """Compare an access with those before it, by someone who knows `clock`."""
        t = new.touch
        here = t.location
        kept = []
        if (not t.write or t.atomic) and here.memory in ("shared", "tensor"):
            self._unwritten(new)
        for old in self.records.get(here.id, ()):
            o = old.touch
            known = clock[old.by] >= old.at
            if (t.write or o.write) and (o.box == t.box or overlap(o.box, t.box)):
                self._conflict(old, new, clock, known)
            if known and (t.write and _covers(t.box, o.box) or old.by == new.by and o.box == t.box and o.write == t.write and not old.asynchronous):
                continue
            kept.append(old)
        kept.append(new)
        self.records[here.id] = kept
        if here.aliases:
            lo, hi = here.span(t.box)
            for other in here.aliases:
                for old in self.records.get(other.id, ()):
                    if t.write or old.touch.write:
                        first, last = other.span(old.touch.box)
                        if first < hi and lo < last:
                            self._conflict(old, new, clock, clock[old.by] >= old.at)

    def _unwritten(self, new: Record) -> None:
        """A read of what no one has begun to write, in any part of it."""
        t = new.touch
        if not any(old.touch.write and overlap(old.touch.box, t.box) for old in self.records.get(t.location.id, ())):
            x, second = t.location, new.agent.site(new.step)
            told = f"{'read' if not t.write else 'change'} of '{x.name}'{list(x.slot) if x.slot else ''} in CTA {x.cta}, which no one has written"
            self.report(Fault(Kind.UNWRITTEN, told, x.name, x.slot, cta=x.cta, second=second), new.agent, new.step)

    def _conflict(self, old: Record, new: Record, clock: Clock, known: bool) -> None:
        a, b = old.agent, new.agent
        if (
            old.step.event is new.step.event
            and old.step.iteration == new.step.iteration
            and (a is b or a.name == b.name and a.instance == b.instance and a.cta == b.cta)
        ):
            return
        memory = new.touch.location.memory
        if a is not b and a.fellow(b) and divided_alike(old.touch, new.touch):
            return
        if combine(old.touch, new.touch, a.cta == b.cta) or by_warps(old) and by_warps(new) and apart(memory, (a.first, a.warps), (b.first, b.warps)):
            return
        if known:
            if memory == "shared":
                self._proxies(old, new, clock)
            elif memory == "tensor" and a is not b:
                self._tensor(old, new, clock)
            return
        if memory != "shared" and old.order is not None and old.order == new.order:
            return
        behind = old.asynchronous and clock[old.lane] >= old.start
        self._tell(Kind.ASYNC if behind else Kind.RACE, old, new, _RACE[behind])

    def _proxies(self, old: Record, new: Record, clock: Clock) -> None:
        """PTX ISA, memory consistency model, proxies: a generic write and a later asynchronous read need a proxy fence on the way."""
        if old.touch.proxy is not Proxy.GENERIC or new.touch.proxy is Proxy.GENERIC:
            return
        usual, strict = old.touch.write and not new.touch.write, self.policy.strict
        if not usual and not strict:
            return
        fence = self.layout.get("fence", "proxy_async", old.lane)
        own = fence is not None and clock[fence] >= old.seen
        if not own and (usual and strict or not self._fenced(old, clock)):
            self._tell(Kind.FENCE, old, new, "no proxy fence lies between the two")

    def _fenced(self, old: Record, clock: Clock) -> bool:
        """Whether someone fenced who knew of the earlier access, and is known to have."""
        return any(clock[by] >= at and then[old.by] >= old.at for by, at, then in self.fences)

    def _tensor(self, old: Record, new: Record, clock: Clock) -> None:
        """PTX ISA, memory consistency of tensor memory: accesses of two threads are ordered by a fence in front of the hand-off and one behind it; an
        engine's arrival has the first built in."""
        if old.order is None or old.order[0] != "engine":
            fence = self.layout.get("fence", "tensor_before", old.lane)
            if fence is None or clock[fence] < old.seen:
                self._tell(Kind.FENCE, old, new, "no fence of tensor memory in front of the hand-off")
                return
        after = self.after.get(new.lane)
        if after is None or after[old.by] < old.at:
            self._tell(Kind.FENCE, old, new, "no fence of tensor memory behind the hand-off")

    def _tell(self, kind: Kind, old: Record, new: Record, why: str) -> None:
        x = new.touch.location
        verbs = tuple("write" if r.touch.write else "read" for r in (old, new))
        name = f"'{x.name}'{list(x.slot) if x.slot else ''}"
        other = old.touch.location.name
        shared = f" (the same bytes as '{other}')" if other != x.name else ""
        first, second = old.agent.site(old.step), new.agent.site(new.step)
        message = f"{verbs[1]} of {name} in CTA {x.cta} after a {verbs[0]}{shared}: {why}"
        self.report(Fault(kind, message, x.name, x.slot, cta=x.cta, first=first, second=second), new.agent, new.step)

    def left(self, cta: int, clock: Clock, memory: str | None = None):
        """Accesses of a CTA's memory that `clock` does not know to be complete."""
        for records in self.records.values():
            for r in records:
                x: Location = r.touch.location
                if x.cta == cta and x.memory != "registers" and (memory is None or x.memory == memory) and clock[r.by] < r.at:
                    yield r


def by_warps(r: Record) -> bool:
    """Whether each warp does it for itself, and no engine for all."""
    return r.order is None or r.order[0] == "group"


_RACE = {False: "nothing orders the two", True: "it may not be complete"}


def _covers(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a == b or all(a[d] <= b[d] and b[d + 1] <= a[d + 1] for d in range(0, min(len(a), len(b)), 2))
