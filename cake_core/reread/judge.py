"""Which threads are read back, at which sizes, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from random import Random

from cake_core.architecture import Architecture
from cake_core.diagnostics import Diagnostic, Related
from cake_core.effects import Reserve
from cake_core.facts.schema import Access, Facts, events
from cake_core.frozen import frozen
from cake_core.ir.nodes import Int
from cake_core.ir.types import ELEMENTS
from cake_core.lower import Lowered
from cake_core.lower.kernel import entry_launch
from cake_core.machine.clocks import layout_of
from cake_core.machine.explore import orders
from cake_core.machine.outcome import Scenario
from cake_core.machine.scenarios import value
from cake_core.machine.schedule import Schedule
from cake_core.machine.threads import Agent, Cluster, FaultFound, cluster_of
from cake_core.machine.values import MachineError
from cake_core.machine.worlds import World, tables_of, worlds
from cake_core.ptx.acts import Boxes, Reread, form_of, in_rank
from cake_core.ptx.reader import Entry, PtxSyntaxError, read
from cake_core.reread.coding import SPECIAL, coded
from cake_core.reread.compare import Difference, compared
from cake_core.reread.expected import Turn, Wanted, script, steps_of, wanted
from cake_core.reread.flow import NotFollowed
from cake_core.reread.launched import counted, launched
from cake_core.reread.launches import launches
from cake_core.reread.shares import Numbered, Unshared, by_number, every, numbered, sampled, shared_out, unshared
from cake_core.reread.talks import Talks, Unsaid
from cake_core.reread.telling import REPORT, of_launch, unwritten
from cake_core.reread.threads import COLUMNS, MAP, POINTER, Code, Run, Seen
from cake_core.reread.words import Names

#: Lanes that are read back, of an agent's first warp and of its last one: the leading one, and one that leads nothing.
LANES = (0, 31), (0,)
#: Where the launch puts dynamic shared memory: at a multiple of 16 and of nothing more.
SHARED = 0x410


@frozen
class Reading:
    """What came of it. `roles`: those read back in full; `left`: the others, and why; `sizes`: at which parameters."""

    findings: tuple[Diagnostic, ...] = ()
    roles: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    sizes: tuple[tuple[tuple[str, int], ...], ...] = ()
    accesses: bool = False  # what threads access of shared memory was compared too
    together: tuple[str, ...] = ()  # roles of which what the threads of an instance access together was

    def record(self) -> dict:
        """For the manifest."""
        return {
            "roles": list(self.roles),
            "not_followed": dict(self.left),
            "sizes": [dict(s) for s in self.sizes],
            "accesses": self.accesses,
            "together": list(self.together),
        }


def reread(lowered: Lowered, facts: Facts, rereads: Mapping[str, Reread], arch: Architecture) -> Reading:
    """Compare `lowered.ptx` with `facts`. Never raises for what it can't follow: that is in `left`. What threads access of shared memory is compared
    unless conditions on data decide over it, from the dearest size down to the first at which they do."""
    everyone = [r.name for r in facts.roles] or ["kernel"]
    try:
        entry, messages = read(lowered.ptx), _messages(facts)
        codes = {bool(facts.buffers): coded(entry, rereads, messages, bool(facts.buffers))}  # by whether accesses are followed
        if unread := codes[bool(facts.buffers)].unread:
            opcode, line = next(iter(unread.items()))
            raise NotFollowed(f"no plugin says what '{opcode}' does to barriers", line)
        scenarios, tables = tuple(launches(facts)), tables_of(facts)
    except (NotFollowed, PtxSyntaxError) as error:
        return Reading(left=tuple((n, _located(error)) for n in everyone))
    except MachineError as error:
        return Reading(left=tuple((n, str(error)) for n in everyone))
    found = {d.message: d for said in launched(lowered, facts, entry, lowered.plan.base_align) for d in (of_launch(said, facts, None),)}
    if (open_ := codes[bool(facts.buffers)].unwritten) is not None:
        found["unwritten"] = unwritten(lowered, *open_)
    left: dict[str, str] = {}
    failed, sizes, accesses, apart = "", [], False, set()
    all_ = bool(facts.buffers)

    def at(scenario: Scenario, all_: bool, left: dict[str, str], shared: bool = False) -> dict[str, Diagnostic] | None:
        """The findings at a size, None where it can't be run; `shared`: also of what threads access together, unless there is something of each alone."""
        nonlocal failed
        try:
            if all_ not in codes:
                codes[all_] = coded(entry, rereads, messages, all_)
            world = next(worlds(facts, scenario, 0, read=tables))
            one = _One(lowered, facts, arch, entry, codes[all_], messages, world, _cluster(facts, world, messages), left)
            told = dict(one.differences())
            return dict(one.shares(apart)) if shared and not told and not left else told
        except (MachineError, FaultFound) as error:
            failed = str(error)
        return None

    for n, scenario in enumerate(reversed(scenarios)):  # the dearest size first, at which most happens
        told: dict[str, Diagnostic] | None = None
        missed: dict[str, str] = {}
        if all_:
            told = at(scenario, True, missed, shared=n in (0, len(scenarios) - 1))
            all_ = not missed and (told is not None or n > 0)  # at a size that can't be run nothing is missed
            accesses = all_ if n == 0 else accesses
        if not all_:
            plain = at(scenario, False, left)
            told = plain if told is None else told | (plain or {})
        if told is not None:
            sizes.append(tuple(sorted(scenario.params.items())))
            found |= told  # the smallest size at which it shows
            for said in counted(lowered, facts, scenario.params):
                found["".join(c for c in said if not c.isdigit())] = of_launch(said, facts, scenario.params)
    if not sizes:
        left = dict.fromkeys(everyone, failed)
    roles = tuple(n for n in everyone if n not in left)
    together = tuple(n for n in roles if n not in apart) if accesses else ()
    return Reading(tuple(found.values()), roles, tuple(sorted(left.items())), tuple(reversed(sizes)), accesses, together)


def _located(error: NotFollowed | PtxSyntaxError) -> str:
    return f"line {error.line} of the PTX: {error.why}" if error.line else error.why


class _Always(Random):
    """Chooses one value whenever it is asked."""

    def __init__(self, value: int) -> None:
        super().__init__(0)
        self.value = value

    def choice(self, seq):
        return self.value


@dataclass(slots=True, eq=False)
class _Reader:
    """One thread that is read back. `run`: its last; `end`: what ended it before its end."""

    agent: Agent
    warp: int
    lane: int
    run: Run | None = None
    end: NotFollowed | None = None


def _role(agent: Agent) -> str:
    return agent.name if agent.role is not None else "idle"


def _lanes(agent: Agent) -> dict[int, tuple[int, ...]]:
    return dict(zip((agent.first + agent.warps - 1, agent.first), reversed(LANES), strict=True))


def _cluster(facts: Facts, world: World, messages: bool) -> Cluster:
    """The agents of a scenario. Where they tell each other numbers, all run first, in the plain order, so that each has its steps; where that goes wrong
    nothing is known of what they tell."""
    cluster = cluster_of(facts, world, tensors=True)
    if messages:
        schedule = Schedule(cluster, layout_of(cluster), next(orders(cluster, 0)), True, inf)
        if schedule.run() or schedule.cut:
            return cluster_of(facts, world, tensors=True)
    return cluster


def _messages(facts: Facts) -> bool:
    """Whether control may go by what threads store to shared memory: addresses of tensor memory decide nothing."""
    given = _allocations(facts)
    return any(
        s.source is not None and facts.buffers[s.source.name].offset not in given
        for part in (facts.before, facts.after, *(r.body for r in facts.roles))
        for e in events(part)
        for s in e.sets
    )


def _allocations(facts: Facts) -> set[int]:
    """Places in the plan to which an allocation of tensor memory writes its address: one element of shared memory."""
    return {
        facts.buffers[a.region.name].offset + facts.buffers[a.region.name].elem.bytes * a.region.box[0].lo.value
        for e in events(facts.before)
        if any(isinstance(x, Reserve) for x in e.acts)
        for a in e.acts
        if isinstance(a, Access) and a.region.memory == "shared" and not a.region.slot and isinstance(a.region.box[0].lo, Int)
    }


@dataclass(slots=True)
class _One:
    """One scenario. `template`: the slots that all threads of the launch share."""

    lowered: Lowered
    facts: Facts
    arch: Architecture
    entry: Entry
    code: Code
    messages: bool
    world: World
    cluster: Cluster
    left: dict[str, str]
    each: Cluster | None = None  # the same with an agent for each warp
    scripts: dict[int, list[Turn]] = field(default_factory=dict)  # by agent
    template: list = field(default_factory=list)
    maps: tuple[Boxes, ...] = ()
    base: int = 0
    threads: int = 0

    def differences(self) -> Iterator[tuple[str, Diagnostic]]:
        self._launch()
        registers = entry_launch(self.lowered.plan, self.arch).entry_registers
        scripts = self.scripts = {a.id: script(self.facts, a, self.base, registers) for a in self.cluster.agents if _role(a) not in self.left}
        readers = [
            _Reader(agent, warp, lane)
            for agent in self.cluster.agents
            if agent.id in scripts
            for warp, lanes in _lanes(agent).items()
            for lane in lanes
        ]
        self._read(readers)
        told: set[str] = set()
        for r in readers:
            role, turns = _role(r.agent), scripts[r.agent.id]
            if role in self.left or role in told:
                continue
            difference = compared(wanted(turns, r.warp == r.agent.first, r.lane == 0), r.run.seen, r.agent.cta)
            if difference is not None and (r.end is None or difference.seen is not None):  # as far as it was followed
                if self._chosen(r.agent, turns, registers):
                    self.left[role] = "what its text does goes by a value of which facts say nothing"
                else:
                    told.add(role)
                    yield role, self._told(r.agent, r.warp, r.lane, difference)
            elif r.end is not None:
                self.left[role] = _located(r.end)

    def shares(self, apart: set[str]) -> Iterator[tuple[str, Diagnostic]]:
        """What the threads of an instance of each role touch together of shared memory; `apart` gets the roles of which that is not known."""
        registers = entry_launch(self.lowered.plan, self.arch).entry_registers
        home = {(_role(a), a.instance if a.role is not None else None): a.cta for a in reversed(self.cluster.agents)}
        asked, shown = {}, {}
        for (role, instance), cta in home.items():
            agents = [a for a in self.cluster.agents if (a.cta, _role(a)) == (cta, role) and instance in (None, a.instance)]
            if agents[0].role is not None or not self.facts.roles:
                scripts = {a: self.scripts[a.id] for a in agents}
                first = min(agents, key=lambda a: a.first)
                acts = wanted(scripts[first], True, True)
                if any(map(shared_out, acts)):
                    asked[role, instance], shown[role, instance] = (acts, scripts), (agents, first.first, sum(a.warps for a in agents))
        some = self._seen({key: (*of, sampled(of[2])) for key, of in shown.items()})
        for key, (acts, scripts) in asked.items():
            (role, _), (agents, first, warps) = key, shown[key]
            seen, found, by_warp = some[key], None, self._by_warp(agents, acts)
            told = None if seen is None else self._each(scripts, first, seen)
            if told is None and seen is not None:
                found = unshared(self.facts, self.base, acts, by_warp, seen, warps, False)
                if found != []:
                    seen = self._seen({key: (*shown[key], every(warps))})[key]
                    found = None if seen is None else unshared(self.facts, self.base, acts, by_warp, seen, warps, True)
                told = self._missed(agents[0], found[0]) if found else None
            if told is None and found is None or told is not None and any(self._chosen(a, scripts[a], registers) for a in agents):
                apart.add(role)
            elif told is not None:
                yield role, told

    def _by_warp(self, agents: list[Agent], acts: list[Wanted]) -> Numbered:
        """What the warps of an instance do where each goes by its number; nothing where they tell each other numbers."""
        if self.messages or not any(shared_out(w) and by_number(w.step) for w in acts):
            return {}
        if self.each is None:
            self.each = cluster_of(self.facts, self.world, tensors=True, apart=True)
        mates = {(a.cta, w) for a in agents for w in range(a.first, a.first + a.warps)}
        return numbered(step for a in self.each.agents if (a.cta, a.first) in mates for step in steps_of(a))

    def _each(self, scripts: Mapping[Agent, list[Turn]], first: int, seen: Mapping[tuple[int, int], list[Seen]]) -> Diagnostic | None:
        """What one of the threads that were run does otherwise."""
        for (warp, lane), acts in seen.items():
            agent = next(a for a in scripts if a.first <= first + warp < a.first + a.warps)
            asked = wanted(scripts[agent], first + warp == agent.first, lane == 0)
            if (difference := compared(asked, acts, agent.cta)) is not None:
                return self._told(agent, first + warp, lane, difference)
        return None

    def _seen(self, of: Mapping[tuple, tuple]) -> dict[tuple, dict[tuple[int, int], list[Seen]] | None]:
        """`of`: agents of an instance, its first warp, how many, and threads (warp of the instance, lane). What each of these does, by instance; None where one
        was not followed."""
        readers: dict[tuple, dict[tuple[int, int], _Reader]] = {}
        for key, (agents, first, _, threads) in of.items():
            by = {w: a for a in agents for w in range(a.first, a.first + a.warps)}
            readers[key] = {(warp, lane): _Reader(by[first + warp], first + warp, lane) for warp, lane in threads}
        all_ = [r for found in readers.values() for r in found.values()]
        if self.messages:  # who tells them
            there = {(r.agent.cta, r.warp, r.lane) for r in all_}
            all_ += [_Reader(a, w, n) for a in self.cluster.agents for w, lanes in _lanes(a).items() for n in lanes if (a.cta, w, n) not in there]
        self._read(all_, allocated=True)
        return {
            key: None if any(r.end is not None for r in found.values()) else {t: r.run.seen for t, r in found.items()}
            for key, found in readers.items()
        }

    def _read(self, readers: list[_Reader], allocated: bool = False) -> None:
        """Run all threads to their ends, those that wait for others again and again; when nobody gets further what is missing is not known. `allocated`: who
        allocates tensor memory is not among them."""
        places = _allocations(self.facts)
        kept = {in_rank(self.base + at, cta): COLUMNS if allocated else None for at in places for cta in range(self.facts.cluster)}
        talks = Talks({(a.cta, w): lanes for a in self.cluster.agents for w, lanes in _lanes(a).items()}, kept=kept)
        pending = readers
        while pending:
            waiting, further = [], False
            for r in pending:
                before = r.run.executed if r.run is not None else -1
                r.run = self._run(r.agent.cta, r.warp, r.lane, talks)
                try:
                    r.run.go()
                except NotFollowed as error:
                    r.end = error
                except Unsaid:
                    waiting.append(r)
                    further = further or r.run.executed > before
                else:
                    further = True
            further = further or len(waiting) < len(pending)
            talks.ended = talks.ended or not further
            pending = waiting

    def _chosen(self, agent: Agent, turns: list[Turn], registers: int) -> bool:
        """Whether the acts of an agent go by values that the event machine chose for want of anything known."""
        if not self.world.asked:
            return False
        acts = [(t.wanted.act, t.by) for t in turns]
        for other in (1, -1):
            world = World(self.world.scenario, _Always(other), self.world.table, {(): 0})
            try:
                again = script(self.facts, _cluster(self.facts, world, self.messages).agents[agent.id], self.base, registers)
            except (MachineError, FaultFound):
                return True
            if [(t.wanted.act, t.by) for t in again] != acts:
                return True
        return False

    def _launch(self) -> None:
        code, params = self.code, self.world.scenario.params
        self.template = [None] * len(code.slots)
        for slot, number in code.constants:
            self.template[slot] = number
        for name in self.entry.symbols:
            self.template[code.slots[name]] = SHARED
        align = self.lowered.plan.base_align
        self.base = -(-SHARED // align) * align
        self.threads = self.entry.threads or 32 * self.facts.warps
        for (name, _), info in zip(self.entry.params, self.lowered.entry_params, strict=True):
            match info.kind:
                case "map":
                    number = MAP + 128 * info.ref
                case "pointer":
                    number = POINTER * (1 + [t.name for t in self.facts.tensors].index(info.ref))
                case _:
                    number = params[info.ref] & 0xFFFFFFFF if info.ref in params else None
            self.template[code.slots[name]] = number
        self.maps = tuple(
            Boxes(m.tensor, m.box, prod(m.box) * ELEMENTS[m.elem].bits // 8, form_of(m.elem, m.swizzle)) for m in self.lowered.tensor_maps
        )

    def _run(self, cta: int, warp: int, lane: int, talks: Talks) -> Run:
        r, s, size = self.template[:], self.world.scenario, self.facts.cluster
        special = {
            "%tid.x": 32 * warp + lane, "%tid.y": 0, "%tid.z": 0, "%ntid.x": self.threads, "%laneid": lane,
            "%ctaid.x": s.cluster * size + cta, "%nctaid.x": s.clusters * size, "%clusterid.x": s.cluster, "%nclusterid.x": s.clusters,
            "%cluster_ctarank": cta, "%cluster_nctarank": size,
        }  # fmt: skip
        for name in SPECIAL:
            r[self.code.slots[name]] = special[name]
        return Run(self.code, r, cta, warp, lane, self.threads, self._load, self._draw, self.maps, talks)

    def _load(self, address: int, size: int) -> int | None:
        """An element of an `in` tensor, which no one writes."""
        number, offset = address // POINTER - 1, address % POINTER
        if not 0 <= number < len(self.facts.tensors):
            return None
        tensor = self.facts.tensors[number]
        if tensor.mode != "in" or tensor.bits != 8 * size or offset % size:
            return None
        shape = [value(d, self.world.scenario.params) for d in tensor.shape]
        index, rest = [], offset // size
        for d in reversed(shape):
            if d <= 0:
                return None
            index.append(rest % d)
            rest //= d
        return None if rest else self.world.load(tensor.name, tuple(reversed(index))) & (1 << 8 * size) - 1

    def _draw(self, address: int, n: int) -> int | None:
        number = address // POINTER - 1
        return self.world.draw_number(self.facts.tensors[number].name, n) if 0 <= number < len(self.facts.tensors) and not address % POINTER else None

    # --- telling

    def _missed(self, agent: Agent, d: Unshared) -> Diagnostic:
        names, step = Names(self.facts, self.base), d.step
        where = names.buffer(d.byte)
        said = f"miss {where}, which its text accesses" if d.missed else f"access {where} too, which its text does not"
        return Diagnostic(
            "reread/missing" if d.missed else "reread/extra",
            f"the threads of '{agent.name}' together {said}",
            step.event.span if step is not None else self.lowered.lines[d.line - 1],
            role=agent.name if agent.role is not None else None,
            why=f"{self._line(d.line)}all threads of an instance, for {self._sizes()}",
            fix=REPORT,
        )

    def _line(self, line: int | None) -> str:
        return f"at line {line} of the PTX: `{self.lowered.ptx.splitlines()[line - 1].strip()}`, " if line is not None else ""

    def _sizes(self) -> str:
        return ", ".join(f"{n} = {v}" for n, v in self.world.scenario.params.items()) or "every launch"

    def _told(self, agent: Agent, warp: int, lane: int, d: Difference) -> Diagnostic:
        names = Names(self.facts, self.base)
        step = d.wanted.step if d.wanted is not None else None
        span = step.event.span if step is not None and step.event is not None else None
        line = d.seen.line if d.seen is not None else None
        place = self.lowered.lines[line - 1] if line is not None else None
        code = "reread/missing" if d.seen is None else "reread/extra" if d.wanted is None else "reread/differs"
        who = f"warp {warp}, lane {lane}" + (f", CTA {agent.cta}" if self.facts.cluster > 1 else "")
        expected = names.said(d.wanted.act) if d.wanted is not None else "does nothing more"
        got = names.said(d.seen.act) if d.seen is not None else "does nothing more"
        resource = names.resource((d.wanted or d.seen).act)
        iteration = ", ".join(f"{n} = {v}" for n, v in zip(step.loops, step.iteration, strict=True)) if step is not None else ""
        return Diagnostic(
            code,
            f"the machine code of '{agent.name}' {got}, its text {expected}",
            place or span,
            role=agent.name if agent.role is not None else None,
            resource=resource[0] if resource else None,
            stage=resource[1] if resource else None,
            iteration=iteration or None,
            why=f"{self._line(line)}{who}, for {self._sizes()}",
            fix=REPORT,
            related=(Related("its text says it here", span),) if span is not None and place is not None and span != place else (),
        )
