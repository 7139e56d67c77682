"""What a run with a clock does, gathered as it goes, and told as a trace: an instance of a role a track, and one for each engine, barrier and slot.

The agents of an instance run the same statements: one track stands for all of them where the others do nothing that the first one does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake_core.effects import Mode
from cake_core.facts.schema import Access, Event, Facts
from cake_core.machine.outcome import Scenario
from cake_core.machine.places import Barrier, Location
from cake_core.machine.steps import Do, Step, Touch
from cake_core.machine.threads import Agent, Cluster
from cake_core.trace import Arrow, Kind, Mark, Slice, Trace, Track

UNIT = "units: a statement of a thread takes one unit, an operation of an engine one for each 4 KiB that it touches, eight at most"
#: Names of places that the name of a slice lists.
NAMED = 3

WAITS = frozenset({Do.WAIT, Do.DRAIN, Do.MEET, Do.CONVERGE})
ISSUES = frozenset({Do.COPY, Do.GROUP, Do.ENGINE})
ARRIVES = frozenset({Do.ARRIVE, Do.ENGINE_ARRIVE, Do.COMMIT})
#: What a statement does, by the first of these that one of its steps is.
WORDS = (("wait", WAITS), ("issue", ISSUES), ("arrive", ARRIVES), ("access", frozenset({Do.ACCESS})))


@dataclass(slots=True, eq=False)
class Doing:
    """One execution of a statement by an agent; with `queue`, an operation that the statement `by` gave to an engine."""

    agent: Agent
    event: Event
    iteration: tuple[tuple[str, int], ...]
    start: int
    end: int
    steps: list[Step]
    waited: int = 0
    what: str = ""
    queue: str = ""
    by: Doing | None = None
    gave: list[Doing] = field(default_factory=list)
    size: int = 0  # bytes of an operation

    @property
    def key(self) -> tuple:
        return self.event.id, self.iteration


@dataclass(slots=True, eq=False)
class Use:
    """A slot is read or written: for as long as an operation takes, or by a thread in the unit that ends at `now`."""

    where: Location
    write: bool
    doing: Doing
    now: int | None

    @property
    def start(self) -> int:
        return self.doing.start if self.now is None else self.now - 1

    @property
    def end(self) -> int:
        return self.doing.end if self.now is None else self.now


@dataclass(slots=True, eq=False)
class Phase:
    """One phase of a barrier. `of`: who arrived or sent bytes, the last one last, each with its words."""

    start: int
    end: int | None = None
    of: list[tuple[Doing | None, str, int]] = field(default_factory=list)


class Story:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.all: list[Doing] = []
        self.uses: list[Use] = []
        self.phases: dict[int, list[Phase]] = {}
        self.begun: dict[int, int] = {}
        self.barriers: dict[int, Barrier] = {}
        self.meetings: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.arrows: list[tuple[Doing, Doing, str, bool]] = []
        self.end, self.whole = 1, True

    # --- gathering -------------------------------------------------------------------------------------------------

    def begin(self, agent: Agent, step: Step, start: int) -> Doing:
        made = Doing(agent, step.event, tuple(zip(step.loops, step.iteration, strict=True)), start, start + 1, [step])
        self.all.append(made)
        return made

    def did(self, doing: Doing | None, step: Step) -> None:
        if doing is not None and step is not doing.steps[0]:
            doing.steps.append(step)

    def operation(self, agent: Agent, queue: str, by: Doing, step: Step, start: int) -> Doing:
        made = Doing(agent, by.event, by.iteration, start, start + 1, [], what="engine", queue=queue, by=by)
        by.gave.append(made)
        self.all.append(made)
        self.arrows.append((by, made, queue, False))
        return made

    def touches(self, doing: Doing | None, touches: list[Touch], now: int | None = None) -> None:
        """Accesses by an operation, or by a thread in the unit that ends `now`."""
        if doing is not None:
            self.uses += [Use(t.location, t.write, doing, now) for t in touches if t.location.memory != "registers"]

    def started(self, barrier: Barrier, now: int) -> None:
        self.begun[barrier.id] = now

    def arrival(self, barrier: Barrier, phase: int, now: int, cause: Doing | None, n: int, size: int) -> None:
        """`n` arrivals, `size` bytes announced with them or, without arrivals, received."""
        said = [f"{n} arrival{'s' if n != 1 else ''}"] if n else []
        said += [f"{size} bytes {'announced' if n else 'received'}"] if size else []
        self._phase(barrier, phase).of.append((cause, ", ".join(said) or "nothing", now))

    def completed(self, barrier: Barrier, phase: int, now: int, cause: Doing | None) -> None:
        self._phase(barrier, phase).end = now

    def latest(self, barrier: Barrier, phase: int) -> int:
        """When the last of what has come to a phase came."""
        of = self._phase(barrier, phase)
        return max((of.start, *(now for _, _, now in of.of)))

    def passed(self, barrier: Barrier, phase: int, doing: Doing | None) -> int:
        """A wait for a phase is over: what arrived in it let it go on. When it was complete."""
        if doing is None or phase < 0:
            return 0
        of = self._phase(barrier, phase)
        for cause, _, now in of.of:
            if cause is not None:
                self.arrows.append((cause, doing, place_of(barrier, self.cluster.facts), now == of.end))
        return of.end or 0

    def met(self, key: tuple[int, int], name: str, now: int, others: list[Doing], cause: Doing | None) -> None:
        """A meeting is complete: the last one to come lets the others go on."""
        start = min((*(d.start for d in others), cause.start if cause is not None else now), default=now)
        self.meetings.setdefault(key, []).append((max(start, *(e for _, e in self.meetings[key])) if self.meetings.get(key) else start, now))
        if cause is not None:
            self.arrows += [(cause, d, name, True) for d in others if d.agent.instance != cause.agent.instance or d.agent.name != cause.agent.name]

    def finish(self, end: int, whole: bool) -> None:
        """`whole`: all threads have ended."""
        self.end, self.whole = end, whole

    def _phase(self, barrier: Barrier, phase: int) -> Phase:
        self.barriers[barrier.id] = barrier
        known = self.phases.setdefault(barrier.id, [])
        while len(known) <= phase:
            known.append(Phase((known[-1].end or 0) if known else self.begun.get(barrier.id, 0)))
        return known[phase]

    # --- telling ---------------------------------------------------------------------------------------------------

    def trace(self, facts: Facts, scenario: Scenario) -> Trace:
        stand = self._shown()
        tracks: dict[Track, int] = {}
        numbers: dict[int, int] = {}
        slices: list[Slice] = []
        for cta in range(facts.cluster):
            self._roles(cta, stand, tracks, slices, numbers)
            self._barriers(cta, tracks, slices)
            self._memory(cta, stand, tracks, slices)
        marks = tuple(self._marks(tracks))
        arrows: dict[tuple, Arrow] = {}
        for source, target, name, last in self.arrows:
            a, b = (numbers.get(id(stand.get(id(d), d))) for d in (source, target))
            if a is not None and b is not None and a != b:
                arrows[a, b] = Arrow(a, b, name, last or (a, b) in arrows and arrows[a, b].last)
        about = (*scenario.params.items(), *((("cluster", f"{scenario.cluster} of {scenario.clusters}"),) if scenario.clusters > 1 else ()))
        return Trace(f"{facts.kernel} for {facts.arch}", UNIT, tuple(tracks), tuple(slices), marks, tuple(arrows.values()), about)

    def _shown(self) -> dict[int, Doing]:
        """By identity, the execution that stands for each one: its own, or that of the instance's first agent."""
        mine: dict[int, list[Doing]] = {a.id: [] for a in self.cluster.agents}
        for d in self.all:
            if not d.queue:
                mine[d.agent.id].append(d)
        out: dict[int, Doing] = {}
        for agent in self.cluster.agents:
            if agent.role is None:
                continue
            first = min(self.cluster.members(agent), key=lambda a: a.warp)
            named, own = _numbered(mine[first.id]), _numbered(mine[agent.id])
            behind = max((d.start for d in mine[first.id]), default=0)
            if not all(key in named or not self.whole and d.start >= behind for key, d in own.items()):
                named = own  # it does something else
            for key, d in own.items():
                if (other := named.get(key)) is not None:
                    out[id(d)] = other
                    out |= {id(op): other.gave[n] if n < len(other.gave) else op for n, op in enumerate(d.gave)}
        return out

    def _roles(self, cta: int, stand: dict[int, Doing], tracks: dict[Track, int], slices: list[Slice], numbers: dict[int, int]) -> None:
        shown = [d for d in self.all if d.agent.cta == cta and stand.get(id(d)) is d]
        agents = dict.fromkeys(d.agent for d in shown)
        for agent in (a for a in self.cluster.agents if a in agents):
            alone = not any(d.agent is not agent and d.agent.fellow(agent) for d in shown)
            label = label_of(agent) if alone else f"{label_of(agent)} {_warps(agent.warp, agent.warps)}"
            of = [d for d in shown if d.agent is agent]
            for queue in dict.fromkeys(("", *(d.queue for d in of))):
                warps = agent.role.plan.warps if alone else agent.warps
                track = Track(f"CTA {cta}", label, Kind.ROLE, f"{warps} warp{'s' if warps != 1 else ''}")
                if queue:
                    track = Track(f"CTA {cta}", f"{label}: {queue}", Kind.ENGINE, f"given by {label}")
                n = tracks.setdefault(track, len(tracks))
                for d in sorted((d for d in of if d.queue == queue), key=lambda d: (d.start, d.end)):
                    numbers[id(d)] = len(slices)
                    slices.append(_slice(n, d, self.cluster.facts))

    def _barriers(self, cta: int, tracks: dict[Track, int], slices: list[Slice]) -> None:
        for b in sorted((b for b in self.barriers.values() if b.cta == cta), key=self._declared):
            n = tracks.setdefault(self._barrier_track(b), len(tracks))
            for number, p in enumerate(self.phases[b.id]):
                if p.end is None and not p.of:
                    continue
                short = () if p.end is not None else (("open", "not complete at the end"),)
                said = (("parity", number % 2), ("of", "; ".join(f"{words} by {_who(d)}" for d, words, _ in p.of)))
                slices.append(Slice(n, f"phase {number}", p.start, max(p.end or self.end, p.start), 0, "phase", None, (*said, *short)))
        for key, generations in sorted(self.meetings.items()):
            if key[0] == cta or key[0] < 0 == cta:
                name = "barrier of the cluster" if key[0] < 0 else f"named barrier {key[1]}" if key[1] else "barrier of the CTA"
                n = tracks.setdefault(Track(f"CTA {cta}", name, Kind.BARRIER, "counts threads"), len(tracks))
                slices += [Slice(n, f"generation {i}", lo, hi, 0, "phase") for i, (lo, hi) in enumerate(generations)]

    def _declared(self, b: Barrier) -> tuple[int, int]:
        return list(self.cluster.facts.barriers).index(b.name), b.index

    def _barrier_track(self, b: Barrier) -> Track:
        return Track(f"CTA {b.cta}", place_of(b, self.cluster.facts, False), Kind.BARRIER, f"{b.count} arrival{'s' if b.count != 1 else ''} a phase")

    def _marks(self, tracks: dict[Track, int]) -> Iterator[Mark]:
        for id, phases in self.phases.items():
            n = tracks[self._barrier_track(self.barriers[id])]
            for number, p in enumerate(phases):
                yield from (Mark(n, f"{words} by {_who(d)}", now, d.event.span if d else None, (("phase", number),)) for d, words, now in p.of)

    def _memory(self, cta: int, stand: dict[int, Doing], tracks: dict[Track, int], slices: list[Slice]) -> None:
        by: dict[int, list[Use]] = {}
        for u in self.uses:
            if u.where.cta == cta and stand.get(id(u.doing)) is u.doing:
                by.setdefault(u.where.id, []).append(u)
        for uses in sorted(by.values(), key=lambda us: (us[0].where.memory, us[0].where.lo, us[0].where.name)):
            x = uses[0].where
            where = f"columns {x.lo} to {x.hi} of tensor memory" if x.memory == "tensor" else f"bytes {x.lo} to {x.hi} of shared memory"
            n = tracks.setdefault(Track(f"CTA {cta}", location_name(x), Kind.MEMORY, where), len(tracks))
            slices += _stretches(n, uses)


def _numbered(doings: list[Doing]) -> dict[tuple, Doing]:
    """By key, and how often it came before."""
    seen: dict[tuple, int] = {}
    out = {}
    for d in doings:
        seen[d.key] = seen.get(d.key, -1) + 1
        out[*d.key, seen[d.key]] = d
    return out


def _slice(track: int, d: Doing, facts: Facts) -> Slice:
    what = d.what or next((word for word, kinds in WORDS if any(s.do in kinds for s in d.steps)), "")
    details = (*d.iteration, *((("queue", d.queue),) if d.queue else ()))
    return Slice(track, _name(d, facts), d.start, d.end, d.waited, what, d.event.span, details)


def _name(d: Doing, facts: Facts) -> str:
    """The statement's verb, and the places that it is about: what it writes, and what it reads for it."""
    said = dict.fromkeys(p for s in d.steps for p in _places(s, d.agent.cta, facts))
    moved = [m for s in d.steps for m in _moved(s, d.agent.cta)]
    moved += [(a.mode is Mode.WRITE, a.region.name) for a in d.event.acts if isinstance(a, Access) and a.region.memory in ("global", "registers")]
    into, out_of = (list(dict.fromkeys(name for write, name in moved if write is w)) for w in (True, False))
    verb = d.event.op if d.event.op.replace(".", "").replace("_", "").isalnum() else "set"
    parts = [_listed(list(said)), _listed(into), "<-" if into and out_of else "", _listed([n for n in out_of if n not in into or not into])]
    return " ".join(p for p in (verb, *parts) if p)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (", .." if len(names) > NAMED else "")


def _moved(s: Step, cta: int) -> Iterator[tuple[bool, str]]:
    """(whether it is written, where) of what a step touches in shared and tensor memory."""
    match s.do:
        case Do.COPY:
            touches = (*s.a, *(t for touched, _, _ in s.b for t in touched))
        case Do.ACCESS | Do.GROUP | Do.ENGINE:
            touches = s.a
        case _:
            return
    yield from ((t.write, location_name(t.location, t.location.cta != cta)) for t in touches if t.location.memory != "registers")


def _places(s: Step, cta: int, facts: Facts) -> Iterator[str]:
    """Barriers and counts that a step names."""
    match s.do:
        case Do.WAIT | Do.ARRIVE:
            yield place_of(s.a, facts, s.a.cta != cta)
        case Do.ENGINE_ARRIVE:
            yield from (place_of(b, facts, b.cta != cta) for b in s.a)
        case Do.INIT:
            yield s.a[0].name
        case Do.MEET:
            yield "the cluster" if s.a[0] < 0 else str(s.a[1])
        case Do.DRAIN:
            yield str(s.b)
        case Do.RESERVE | Do.FREE:
            yield f"{s.a} columns"


def place_of(b: Barrier, facts: Facts, foreign: bool = False) -> str:
    name = f"{b.name}[{b.index}]" if facts.barriers[b.name].slots > 1 else b.name
    return f"{name} of CTA {b.cta}" if foreign else name


def location_name(x: Location, foreign: bool = False) -> str:
    name = x.name + "".join(f"[{i}]" for i in x.slot)
    return f"{name} of CTA {x.cta}" if foreign else name


def label_of(agent: Agent) -> str:
    return f"{agent.name}[{agent.instance}]" if agent.role is not None and agent.role.plan.instances > 1 else agent.name


def _warps(first: int, warps: int) -> str:
    return f"warp {first}" if warps == 1 else f"warps {first}-{first + warps - 1}"


def _who(d: Doing | None) -> str:
    return "the hardware" if d is None else f"{label_of(d.agent)} of CTA {d.agent.cta}"


def _stretches(track: int, uses: list[Use]) -> Iterator[Slice]:
    """Uses of a slot, one behind the other: those of one kind that overlap are one, and where a read and a write begin together it is both."""
    rows: list[list] = []  # start, end, modes, who, span
    for u in sorted(uses, key=lambda u: (u.start, u.end)):
        mode, who = (
            "written" if u.write else "read",
            label_of(u.doing.agent) + (f" of CTA {u.doing.agent.cta}" if u.doing.agent.cta != u.where.cta else ""),
        )
        last = rows[-1] if rows else None
        alike = last is not None and last[2] == {mode}
        if last is not None and (alike and (u.start < last[1] or u.start == last[1] and last[3] == {who}) or u.start == last[0]):
            last[1] = max(last[1], u.end)
            last[2] |= {mode}
            last[3] |= {who}
            continue
        if last is not None and u.start < last[1]:
            last[1] = u.start
        rows.append([u.start, u.end, {mode}, {who}, u.doing.event.span])
    for start, end, modes, who, span in rows:
        what = "write" if "written" in modes else "read"
        yield Slice(track, f"{' and '.join(sorted(modes))} by {', '.join(sorted(who))}", start, end, 0, what, span)
