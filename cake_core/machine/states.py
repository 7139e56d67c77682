"""All interleavings of a small scenario: states, each seen once.

Only steps that others can notice interleave: waits, arrivals, copies that set out, meetings. What an agent does between two of them is
in use as long as the agent stands before the second, so two accesses race if there is a state in which both are in use; that is exact,
for nothing between two such steps can be held up. Threads that meet go on in one step, and bytes arrive when they complete a
phase: before, no one can tell. Initialisation, fences and what follows the last step of a CTA are asked of the vector clocks
(`schedule.py`), for which one schedule is enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations

from cake_core.machine.outcome import Fault, Kind, Site
from cake_core.machine.places import apart, overlap
from cake_core.machine.steps import LANES, Do, Step, Touch, combine, divided_alike
from cake_core.machine.threads import Agent, Cluster, FaultFound

#: Steps that interleave; beside them COMMIT and DRAIN of queues that warps issue together.
SEEN = frozenset({Do.WAIT, Do.ARRIVE, Do.ENGINE_ARRIVE, Do.COPY, Do.MEET, Do.EXIT})
#: Copies to one barrier of which all sets are tried.
SETS = 6


@dataclass(slots=True, eq=False)
class Use:
    """A touch that is in use. `number`: of an operation of `engine` (or of a queue that warps issue together), its place there."""

    touch: Touch
    agent: Agent
    step: Step
    engine: str | None = None
    number: int = 0


@dataclass(slots=True, eq=False)
class Stop:
    """An agent stands before `step`. `uses`: what may still be going on; `engine`, `groups`: all that was given to engines, and in groups
    that warps issue together; `committed`, `drained`: such groups so far; `issued`: operations of engines so far."""

    step: Step
    uses: list[Use]
    committed: dict[str, int]
    drained: dict[str, int]
    issued: dict[str, int]
    engine: list[Use]
    groups: list[Use]


def stops_of(agent: Agent, lanes: bool) -> list[Stop]:
    """All stops of an agent, the last one before its exit. `lanes`: see `Policy`."""
    out: list[Stop] = []
    now: list[Use] = []  # since the last stop
    behind: list[Use] = []  # of lanes that need not have followed the leading one
    groups: dict[tuple[bool, str], list[list[Use]]] = {}
    engine: list[Use] = []
    together: list[Use] = []
    committed: dict[str, int] = {}
    drained: dict[str, int] = {}
    issued: dict[str, int] = {}
    i = 0
    while (step := agent.step(i)) is not None:
        i += 1
        before = dict(committed), dict(drained)
        match step.do:
            case Do.ACCESS:
                made = [Use(t, agent, step) for t in step.a if t.location.memory != "registers"]
                now += made
                behind += made if step.all and lanes else ()
            case Do.GROUP if step.b in agent.collective:
                number = committed.get(step.b, 0) + 1
                together = [*together, *(Use(t, agent, step, step.b, number) for t in step.a if t.location.memory != "registers")]
            case Do.GROUP:
                made = [Use(t, agent, step) for t in step.a if t.location.memory != "registers"]
                now += made
                groups.setdefault((step.all, step.b), [[]])[-1] += made
            case Do.ENGINE:
                issued[step.b] = issued.get(step.b, 0) + 1
                engine = [*engine, *(Use(t, agent, step, step.b, issued[step.b]) for t in step.a)]
            case Do.COMMIT:
                for every in (True, False):
                    if (every, step.a) in groups and (step.all or not every):
                        groups[every, step.a].append([])
                committed[step.a] = committed.get(step.a, 0) + 1
            case Do.CONVERGE if step.all:  # one lane alone meets no one
                now, behind = now + behind, []
        seen = step.do in SEEN or step.do in (Do.COMMIT, Do.DRAIN) and step.a in agent.collective
        if seen:
            out.append(Stop(step, now + behind, *before, dict(issued), engine, together))
            if step.all and step.do in (Do.ARRIVE, Do.ENGINE_ARRIVE, Do.COMMIT) or step.do is Do.MEET:
                behind = []
        if step.do is Do.DRAIN:
            drained[step.a] = max(drained.get(step.a, 0), committed.get(step.a, 0) - step.b)
            for every in (True, False):
                if (gs := groups.get((every, step.a))) and (step.all or not every):
                    over = gs[: max(0, len(gs) - 1 - step.b)]
                    for g in over:
                        retired = [u for u in g if not (step.c and u.touch.write)]
                        behind += retired if every and lanes else ()
                        g[:] = [u for u in g if u not in retired]
        if seen:
            now = [u for gs in groups.values() for g in gs for u in g]
    return out


State = tuple


class Search:
    """`count`: states seen; `limit`: what ended the search early, "" if nothing did."""

    def __init__(self, cluster: Cluster, limit: int, end: float, first: bool) -> None:
        self.cluster, self.most, self.end, self.first = cluster, limit, end, first
        self.count, self.limit = 0, ""
        self.faults: dict[tuple, Fault] = {}
        self.stops = [stops_of(a, cluster.scenario.policy.lanes) for a in cluster.agents]
        self.fellows = [[a.id for a in cluster.members(agent)] for agent in cluster.agents]
        self.queues = [sorted(a.collective) for a in cluster.agents]
        for cta in range(cluster.facts.cluster):
            for name in cluster.facts.barriers:
                cluster.places.array(cta, name)
        self.barriers = cluster.places.barriers
        self.pairs: dict[tuple, Fault | None] = {}
        self.parents: dict[State, tuple[State | None, tuple]] = {}

    def run(self) -> list[Fault]:
        """What was found; a fault behind which nothing can go on ends the search."""
        try:
            self._run()
        except FaultFound as e:
            self.faults.setdefault(e.fault.key, e.fault)
            self.limit = "a fault"
        return list(self.faults.values())

    def _run(self) -> None:
        # positions; of each barrier (pending, bytes, phase); copies (agent, position, which, phase); arrivals (agent, position, which);
        # operations of an agent's engines that are known to be over; who has come to a meeting and gone on
        start = (
            (0,) * len(self.stops),
            tuple((b.count, 0, 0) for b in self.barriers),
            (),
            (),
            (0,) * len(self.stops),
            (),
        )
        self.parents[start] = None, ()
        todo = [start]
        while todo:
            state = todo.pop()
            self.count += 1
            if self.count >= self.most or self.count % 256 == 0 and time.monotonic() > self.end:
                self.limit = f"{self.most} states" if self.count >= self.most else "time"
                return
            self._races(state)
            nexts = list(self._next(state))
            if not nexts:
                self._end(state)
            for label, new in nexts:
                if new not in self.parents:
                    self.parents[new] = state, label
                    todo.append(new)

    # --- steps -----------------------------------------------------------------------------------------------------

    def _next(self, state: State):
        pos, phases, flights, arrivals, over, met = state
        eager = next((i for i, p in enumerate(pos) if self._eager(i, p, over)), None)
        for i in range(len(pos)) if eager is None else (eager,):
            if pos[i] < len(self.stops[i]):
                yield from self._step(state, i)
        if eager is not None:
            return
        yield from self._meetings(state)
        for k, (i, p, which) in enumerate(arrivals):
            step = self.stops[i][p].step
            b = step.a[which]
            new = self._arrive(state, phases, b.id, step.c, 0, i, step)
            done = self.stops[i][p].issued.get(step.b, 0)
            spoken = over[:i] + (max(over[i], done),) + over[i + 1 :]
            yield (i, step), (pos, new, flights, arrivals[:k] + arrivals[k + 1 :], spoken, met)
        for b, (pending, tx, phase) in enumerate(phases):
            mine = [f for f in flights if self._delivery(f)[1].id == b] if not pending else ()
            for chosen in _sets(mine, tx, lambda f: self._delivery(f)[2]):
                for f in chosen:
                    if f[3] != phase:
                        self._tell(
                            Kind.OVERRUN, f"bytes count in phase {phase}, the copy set out in phase {f[3]}", b, phase, f[0], self._copy(f), state
                        )
                rest = tuple(f for f in flights if f not in chosen)
                new = phases[:b] + ((self.barriers[b].count, 0, phase + 1),) + phases[b + 1 :]
                yield (chosen[0][0], self._copy(chosen[0])), (pos, new, rest, arrivals, over, met)

    def _eager(self, i: int, p: int, over: tuple) -> bool:
        """Whether the next step only sets something out while nothing is in use: then no one can tell when it happens."""
        stops = self.stops[i]
        if p >= len(stops):
            return False
        stop = stops[p]
        idle = not stop.uses and not stop.groups and all(u.number <= over[i] for u in stop.engine)
        return idle and stop.step.do in (Do.COPY, Do.ENGINE_ARRIVE, Do.COMMIT, Do.EXIT)

    def _copy(self, flight: tuple) -> Step:
        return self.stops[flight[0]][flight[1]].step

    def _delivery(self, flight: tuple) -> tuple:
        return self._copy(flight).b[flight[2]]

    def _step(self, state: State, i: int):
        pos, phases, flights, arrivals, over, met = state
        stop = self.stops[i][pos[i]]
        step = stop.step
        moved = pos[:i] + (pos[i] + 1,) + pos[i + 1 :]
        match step.do:
            case Do.WAIT:
                if (phases[step.a.id][2] - 1) % 2 == int(step.b):
                    yield (i, step), (moved, phases, flights, arrivals, over, met)
            case Do.ARRIVE:
                new = self._arrive(state, phases, step.a.id, step.b, step.c, i, step)
                yield (i, step), (moved, new, flights, arrivals, over, met)
            case Do.ENGINE_ARRIVE:
                more = tuple((i, pos[i], k) for k in range(len(step.a)))
                yield (i, step), (moved, phases, flights, tuple(sorted(arrivals + more)), over, met)
            case Do.COPY:
                more = tuple((i, pos[i], k, phases[b.id][2]) for k, (_, b, _) in enumerate(step.b))
                yield (i, step), (moved, phases, tuple(sorted(flights + more)), arrivals, over, met)
            case Do.DRAIN:
                done = stop.committed.get(step.a, 0) - step.b
                if all(self._committed(k, pos[k], step.a) >= done for k in self.fellows[i]):
                    yield (i, step), (moved, phases, flights, arrivals, over, met)
            case Do.MEET if not step.c:
                self._converged(i, step, state)
                if any(m[0] == step.a and m[1] == i for m in met):
                    self._fatal(Kind.NAMED, "the same threads come twice in one generation", i, step, state)
                gone = tuple(sorted((*met, (step.a, i, pos[i]))))
                yield (i, step), (moved, phases, flights, arrivals, over, gone)
            case Do.EXIT | Do.COMMIT:
                yield (i, step), (moved, phases, flights, arrivals, over, met)

    def _committed(self, i: int, p: int, queue: str) -> int:
        stops = self.stops[i]
        return stops[p].committed.get(queue, 0) if p < len(stops) else 1 << 30

    def _arrive(self, state: State, phases: tuple, b: int, n: int, announced: int, i: int, step: Step) -> tuple:
        pending, tx, phase = phases[b]
        if n > pending:
            place = self.barriers[b]
            told = f"'{place.name}'[{place.index}] of CTA {place.cta} is short of {pending} arrivals in phase {phase}, {n} come"
            self._fatal(Kind.ARRIVALS, told, i, step, state, resource=place.name, slot=(place.index,), phase=phase, cta=place.cta)
        pending, tx = pending - n, tx + announced
        # bytes that have to come come in one step with the end of the phase
        new = (self.barriers[b].count, 0, phase + 1) if not pending and not tx else (pending, tx, phase)
        return phases[:b] + (new,) + phases[b + 1 :]

    def _meetings(self, state: State):
        pos, phases, flights, arrivals, over, met = state
        standing: dict[tuple, list[int]] = {}
        for i, p in enumerate(pos):
            if p < len(self.stops[i]) and (s := self.stops[i][p].step).do is Do.MEET and s.c:
                standing.setdefault(s.a, []).append(i)
        for key, who in standing.items():
            for i in who:
                self._converged(i, self.stops[i][pos[i]].step, state)
            before = [m for m in met if m[0] == key]
            steps = [self.stops[i][pos[i]].step for i in who]
            wanted = {s.b for s in steps} | {self.stops[m[1]][m[2]].step.b for m in before}
            if len(wanted) > 1:
                self._fatal(Kind.NAMED, f"barrier {key} is to collect {' or '.join(map(str, sorted(wanted)))} threads", who[-1], steps[-1], state)
            come = sum(LANES * self.cluster.agents[i].warps for i in (*who, *(m[1] for m in before)))
            if come > steps[0].b:
                self._fatal(Kind.NAMED, f"{come} threads come to barrier {key}, which collects {steps[0].b}", who[-1], steps[-1], state)
            if come == steps[0].b:
                moved = tuple(p + 1 if i in who else p for i, p in enumerate(pos))
                yield (who[-1], steps[-1]), (moved, phases, flights, arrivals, over, tuple(m for m in met if m[0] != key))

    def _converged(self, i: int, step: Step, state: State) -> None:
        if step.event is not None and not step.all:
            self._fatal(Kind.NAMED, f"one lane of a warp comes to barrier {step.a} alone, and waits for lanes that never come", i, step, state)

    # --- what is asked of a state ------------------------------------------------------------------------------------

    def _races(self, state: State) -> None:
        pos, _, flights, _, over, _ = state
        at = [(i, p, over[i], self._drained(i, pos)) for i, p in enumerate(pos) if p < len(self.stops[i])]
        at += [("copy", *f[:3]) for f in flights]
        for x, y in combinations(at, 2):
            key = x, y
            if key not in self.pairs:
                self.pairs[key] = self._pair(self._uses(x), self._uses(y))
            if (fault := self.pairs[key]) is not None and fault.key not in self.faults:
                self._found(fault, state)

    def _uses(self, key: tuple) -> list[Use]:
        if key[0] == "copy":
            _, i, p, k = key
            step = self.stops[i][p].step
            return [Use(t, self.cluster.agents[i], step, "copy") for t in (*step.b[k][0], *step.a)]
        i, p, over, drained = key
        stop, done = self.stops[i][p], dict(zip(self.queues[i], drained, strict=True))
        return [*stop.uses, *(u for u in stop.engine if u.number > over), *(u for u in stop.groups if u.number > done[u.engine])]

    def _drained(self, i: int, pos: tuple) -> tuple[int, ...]:
        """Groups of each queue that the warps of an instance issue together which are over: whoever has waited for one knows that."""
        out = []
        for queue in self.queues[i]:
            known = [self.stops[k][pos[k]].drained.get(queue, 0) if pos[k] < len(self.stops[k]) else 1 << 30 for k in self.fellows[i]]
            out.append(max(known))
        return tuple(out)

    def _pair(self, left: list[Use], right: list[Use]) -> Fault | None:
        for a in left:
            for b in right:
                x, y = a.touch, b.touch
                if a.agent is b.agent and not (a.engine == b.engine == "copy" and a.step is not b.step) or not (x.write or y.write):
                    continue
                if combine(x, y, a.agent.cta == b.agent.cta) or not _meets(x, y):
                    continue
                if not a.engine and not b.engine and apart(x.location.memory, (a.agent.first, a.agent.warps), (b.agent.first, b.agent.warps)):
                    continue
                s, t = a.step, b.step
                if a.agent.fellow(b.agent) and (s.event is t.event and s.iteration == t.iteration or a.agent is not b.agent and divided_alike(x, y)):
                    continue
                place = x.location
                told = f"'{place.name}'{list(place.slot)} of CTA {place.cta} is {'written' if x.write else 'read'} while it is {'written' if y.write else 'read'}"
                return Fault(Kind.RACE, told, place.name, place.slot, cta=place.cta, first=a.agent.site(s), second=b.agent.site(t))
        return None

    def _end(self, state: State) -> None:
        pos, phases, flights, _, _, _ = state
        stuck = [i for i, p in enumerate(pos) if p < len(self.stops[i])]
        if stuck:
            steps = [self.stops[i][pos[i]].step for i in stuck]
            blocked = tuple((self.cluster.agents[i].site(s), self._needs(s, phases)) for i, s in zip(stuck, steps, strict=True))
            b = next((s.a for s in steps if s.do is Do.WAIT), None)
            place = {} if b is None else {"resource": b.name, "slot": (b.index,), "phase": phases[b.id][2], "cta": b.cta}
            self._found(Fault(Kind.DEADLOCK, "no one can go on", second=blocked[0][0], blocked=blocked, **place), state)
        elif flights:
            f = flights[0]
            self._tell(Kind.IN_FLIGHT, "a copy is on its way when all threads have ended", self._delivery(f)[1].id, None, f[0], self._copy(f), state)

    def _needs(self, step: Step, phases: tuple) -> str:
        if step.do is Do.WAIT:
            b = step.a
            pending, tx, phase = phases[b.id]
            return f"parity {int(step.b)} of '{b.name}'[{b.index}] in CTA {b.cta}, whose phase {phase} is short of {pending} arrivals and {tx} bytes"
        return "others at a barrier" if step.do is Do.MEET else "other warps of its instance"

    # --- telling ---------------------------------------------------------------------------------------------------

    def _tell(self, kind: Kind, told: str, b: int, phase: int | None, i: int, step: Step, state: State) -> None:
        place = self.barriers[b]
        fault = Fault(
            kind,
            f"'{place.name}'[{place.index}] of CTA {place.cta}: {told}",
            place.name,
            (place.index,),
            phase,
            place.cta,
            second=self.cluster.agents[i].site(step),
        )
        if fault.key not in self.faults:
            self._found(fault, state)

    def _fatal(self, kind: Kind, told: str, i: int, step: Step, state: State, **more) -> None:
        raise FaultFound(Fault(kind, told, second=self.cluster.agents[i].site(step), trail=self._trail(state), **more))

    def _found(self, fault: Fault, state: State) -> None:
        told = Fault(
            fault.kind,
            fault.message,
            fault.resource,
            fault.slot,
            fault.phase,
            fault.cta,
            fault.first,
            fault.second,
            fault.blocked,
            self._trail(state),
        )
        self.faults.setdefault(fault.key, told)
        if self.first:
            raise FaultFound(told)

    def _trail(self, state: State) -> tuple[Site, ...]:
        out = []
        while (before := self.parents[state])[0] is not None:
            state, (i, step) = before
            if step.event is not None:
                out.append(self.cluster.agents[i].site(step))
        return tuple(reversed(out))


def small(cluster: Cluster, limit: int) -> bool:
    """Whether there can't be many more states than `limit`."""
    bound = 1
    for a in cluster.agents:
        i = seen = 0
        while (step := a.step(i)) is not None:
            seen += step.do in SEEN
            i += 1
        bound *= seen + 1
        if bound > 100 * limit:
            return False
    return True


def _meets(x: Touch, y: Touch) -> bool:
    a, b = x.location, y.location
    if a is b:
        return overlap(x.box, y.box)
    if b in a.aliases:
        (first, last), (lo, hi) = a.span(x.box), b.span(y.box)
        return first < hi and lo < last
    return False


def _sets(flights, tx: int, size):
    """Sets of copies that bring just the bytes which are missing."""
    if not flights:
        return
    if sum(map(size, flights)) == tx:
        yield flights
    for n in range(1, min(len(flights), SETS)):
        for chosen in combinations(flights[:SETS], n):
            if sum(map(size, chosen)) == tx:
                yield list(chosen)
