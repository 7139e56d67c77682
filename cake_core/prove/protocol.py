"""Barriers as rings: which agents arrive at, wait for and copy to each barrier, and that the n-th of each does so at stage n mod S.

The cut method (`cut.py`) speaks of *ordinals*: the n-th arrival and the n-th wait. This file checks, once a place and for all iterations,
that the text's stage and parity are those of the ordinal. What is not in this form is no proof's to have: `Unanalysed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from cake_core import smt
from cake_core.effects import Issuer, Mode, Proxy
from cake_core.facts.schema import Access, Arrive, BarrierRef, EngineArrive, Facts, Meet, Wait, WithBytes, WithGroup
from cake_core.frozen import thawed
from cake_core.ir.nodes import Int
from cake_core.prove.agents import Agent
from cake_core.prove.numbers import literal
from cake_core.prove.sums import Sums
from cake_core.prove.text import Key, Unanalysed, arrival, copied, meeting, rank, reached
from cake_core.prove.walk import Run, Site


@thawed
class Stream:
    """What one agent does to one barrier, counted by `key`. `weight`: arrivals a time; of a copy: bytes."""

    agent: Agent
    key: Key
    weight: int
    sites: list[Site] = field(default_factory=list)
    engine: str | None = None  # arrives when that engine is done
    expects: int = 0  # bytes announced with an arrival


@thawed
class Barrier:
    """One barrier array of one CTA, or a named barrier, or a meeting of all. `credit`: by waiter, how many phases behind its
    ordinal the phase lies that it waits for, in units of stages."""

    name: str
    cta: int
    stages: int
    count: int
    arrivals: list[Stream] = field(default_factory=list)
    waits: list[Stream] = field(default_factory=list)
    copies: list[Stream] = field(default_factory=list)
    credit: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, set[bool]] = field(default_factory=dict)  # at a meeting: whether the agent waits there, at each of its places
    threads: set = field(default_factory=set)  # how many a meeting waits for, as its places say
    mbarrier: bool = True

    @property
    def short(self) -> bool:
        """Whether its phases get less than they count, so that none is ever complete."""
        return self.mbarrier and (
            sum(s.weight for s in self.arrivals) < self.count or sum(s.expects for s in self.arrivals) > sum(s.weight for s in self.copies)
        )

    def waits_always(self, agent: str) -> bool:
        """Whether an agent waits for each phase that it counts. At a meeting it may come and go on."""
        return self.mbarrier or self.waiting.get(agent) == {True}

    @property
    def text(self) -> str:
        return f"'{self.name}'"


@thawed
class Protocol:
    facts: Facts
    sums: Sums
    runs: dict[str, Run]
    barriers: dict[tuple, Barrier] = field(default_factory=dict)
    joint: list[tuple[str, str, str]] = field(default_factory=list)  # two warps and a queue whose groups they start together
    followers: dict[str, str] = field(default_factory=dict)  # agents that are held up where another one is, by that one

    def __post_init__(self) -> None:
        self._joined()
        for run in self.runs.values():
            for site in run.sites:
                for number, act in enumerate(site.acts):
                    self._act(run.agent, site, number, act)
        self._told_apart()
        self._follow()

    def _act(self, agent: Agent, site: Site, number: int, act) -> None:
        match act:
            case Wait(ref, parity):
                b = self._barrier(ref.name, agent.cta)
                s = self._stream(b.waits, agent, ("wait", ref.name), 0, site)
                self._in_ring(site, ref, ("wait", ref.name), b)
                credit = self._credit(site, parity, s.key, b)
                if b.credit.setdefault(agent.key, credit) != credit:
                    raise Unanalysed(f"waits for '{b.name}' start at different phases", site.event.span)
            case Arrive(ref) | EngineArrive(ref):
                for cta in reached(act, agent):
                    b = self._barrier(ref.name, cta)
                    key = arrival(site.event.acts[number], self.runs[agent.key].counting.turns[site.event.id, number])
                    engine = act.engine if isinstance(act, EngineArrive) else None
                    s = self._stream(b.arrivals, agent, key, agent.arrivals(site.event), site)
                    s.engine = s.engine or engine
                    expects = act.expect * s.weight if isinstance(act, Arrive) else 0  # each thread announces
                    s.expects = self._same(s, s.expects if len(s.sites) > 1 else None, expects, site)
                    self._in_ring(site, ref, key, b)
            case Access(mode=Mode.WRITE, completion=WithBytes() as done):
                for cta in destinations(done, agent):
                    b = self._barrier(done.barrier.name, cta)
                    key = copied(site.event.acts[number].completion, self.runs[agent.key].counting.turns[site.event.id, number])
                    many = 1 if act.proxy is Proxy.GENERIC else agent.arrivals(site.event)  # an engine gets one from each thread
                    self._stream(b.copies, agent, key, many * done.bytes, site)
                    self._in_ring(site, done.barrier, key, b)
            case Meet(scope, _, threads, waits) if scope != "warp" or agent.apart:
                name = meeting_name(act, agent)
                cta = agent.cta if scope != "cluster" else -1
                b = self.barriers.setdefault((name, cta), Barrier(name, cta, 1, threads or 0, mbarrier=False))
                key = meeting(site.event.acts[number], self.runs[site.agent.key].counting.ids)
                b.threads.add(threads)
                self._stream(b.arrivals, agent, key, agent.arrivals(site.event), site)
                if waits:
                    self._stream(b.waits, agent, key, 0, site)
                b.waiting.setdefault(agent.key, set()).add(waits)

    def uncovered(self) -> Iterator[tuple[Barrier, str]]:
        """Barriers whose phases get more than they count, or meetings that some do not come to. (Less is a wait that never ends: `short`.)"""
        for b in self.barriers.values():
            came = sum(s.weight for s in b.arrivals)
            if b.mbarrier and (b.arrivals or b.waits):
                if came > b.count:
                    yield b, f"counts {b.count} arrivals a phase, and gets {came}"
                expected, brought = sum(s.expects for s in b.arrivals), sum(s.weight for s in b.copies)
                if expected < brought:
                    yield b, f"expects {expected} bytes a phase, and gets {brought}"
            elif not b.mbarrier and b.name.startswith("barrier "):
                if b.threads != {came}:
                    yield b, f"is met by {came} threads, and waits for {' or '.join(map(str, sorted(b.threads, key=str)))}"
            elif not b.mbarrier and b.cta >= -1 and not b.name.endswith("lanes"):
                missing = [r.agent.text for r in self.runs.values() if b.cta in (-1, r.agent.cta) and all(s.agent is not r.agent for s in b.arrivals)]
                if missing:
                    yield b, f"is not met by {missing[0]}"

    def _told_apart(self) -> None:
        """What one agent does to a barrier is one stream."""
        for b in self.barriers.values():
            for streams in (b.arrivals, b.waits):
                for s in streams:
                    if (other := next((t for t in streams if t.agent is s.agent and t.key[:3] != s.key[:3]), None)) is not None:
                        raise Unanalysed(f"{b.text} is named in two ways by one role", other.sites[0].event.span)

    def _follow(self) -> None:
        """An agent follows another of its CTA if it waits for the same barriers at the same places under the same counts: what
        lets one pass lets the other. Meetings of an instance with itself are places too, for its warps come to them alike."""
        own = {name: {s.agent.role.name + str(s.agent.instance) for s in b.arrivals} for name, b in self.barriers.items()}
        leads: dict[tuple, str] = {}
        for key, run in self.runs.items():
            stops = []
            for site in run.sites:
                for number, act in enumerate(site.acts):
                    match act:
                        case Wait(ref):
                            stops.append((ref.name, site.guard.ast, site.count(("wait", ref.name)).ast, str(act)))
                        case Meet(scope) if act.waits and (scope != "warp" or run.agent.apart):
                            k = meeting(site.event.acts[number], self.runs[site.agent.key].counting.ids)
                            name = meeting_name(act, run.agent)
                            alone = len(own[name, run.agent.cta if scope != "cluster" else -1]) == 1
                            stops.append(("alone" if alone else name, site.guard.ast, site.count(k).ast))
            way = (run.agent.cta, run.agent.role.name, *stops)
            lead = leads.setdefault(way, key)
            if lead != key:
                self.followers[key] = lead

    def _joined(self) -> None:
        """Operations of a whole warpgroup are started when all its warps have come to them."""
        for a in self.runs.values():
            acts = [
                x for s in a.sites for x in s.acts if isinstance(x, Access) and x.issuer is Issuer.WARPGROUP and isinstance(x.completion, WithGroup)
            ]
            for queue in dict.fromkeys(x.completion.queue for x in acts):
                for b in self.runs.values():
                    x, y = a.agent, b.agent
                    if x is not y and (x.role, x.cta, x.instance) == (y.role, y.cta, y.instance):
                        self.joint.append((x.key, y.key, queue))

    def _barrier(self, name: str, cta: int) -> Barrier:
        plan = self.facts.barriers[name]
        return self.barriers.setdefault((name, cta), Barrier(name, cta, plan.slots, plan.count))

    def _stream(self, of: list[Stream], agent: Agent, key: Key, weight: int, site: Site) -> Stream:
        s = next((s for s in of if s.agent is agent and s.key == key), None)
        if s is None:
            s = Stream(agent, key, weight)
            of.append(s)
        self._same(s, s.weight, weight, site)
        s.sites.append(site)
        return s

    @staticmethod
    def _same(s: Stream, before: int | None, now: int, site: Site) -> int:
        """What a stream brings each time, in arrivals or bytes: no proof adds up what differs from place to place."""
        if before not in (None, now):
            raise Unanalysed(f"'{s.key[1]}' gets {before} at one place of {s.agent.text} and {now} at another", site.event.span)
        return now

    # --- stage and parity ------------------------------------------------------------------------------------------

    def _in_ring(self, site: Site, ref: BarrierRef, key: Key, b: Barrier) -> None:
        """The stage that the text names is the ordinal's."""
        if b.stages == 1:
            return
        index, ordinal = self.sums.numbers.number(ref.index, site.env).term, site.count(key)
        if _same_residue(index, ordinal, b.stages):
            return
        if self.sums.holds(index == ordinal % b.stages, site.guard):
            return
        whole = self.sums.divide(2 * b.stages)  # stages and parities start anew where each turn of a loop makes whole rounds
        if not whole or not self.sums.holds(index == self.sums.residue(ordinal, 2 * b.stages) % b.stages, site.guard):
            raise Unanalysed(f"the stage of '{ref.name}' here is not the number of times so far, modulo {b.stages}", site.event.span)

    def _credit(self, site: Site, parity, key: Key, b: Barrier) -> int:
        """0: the n-th wait is for the n-th phase of its stage; 1: for the one before, which has none at first."""
        p, ordinal = self.sums.numbers.number(parity, site.env).term, self.sums.residue(site.count(key), 2 * b.stages)
        for credit in (0, 1):
            expected = (ordinal / b.stages + credit) % 2
            if smt.is_true(smt.simplify(p == expected)) or self.sums.holds(p == expected, site.guard):
                return credit
        raise Unanalysed(f"the parity that '{b.name}' is waited for with does not follow the number of waits", site.event.span)


def meeting_name(act: Meet, agent: Agent) -> str:
    if act.id is not None:
        if not isinstance(act.id, Int):
            raise Unanalysed("the id of a named barrier is not a constant")
        return f"barrier {act.id.value}"
    return f"the meeting of {agent.role.name}[{agent.instance}]'s lanes" if act.scope == "warp" else f"the {act.scope}'s meeting"


def destinations(done: WithBytes, agent: Agent) -> tuple[int, ...]:
    """Ranks of the CTAs whose barrier counts the bytes."""
    if done.cta is not None:
        return (rank(done.cta, agent, "that bytes go to"),)
    return (agent.cta,) if done.mask is None else tuple(r for r in range(done.mask.bit_length()) if done.mask >> r & 1)


def _same_residue(a: smt.Term, b: smt.Term, modulus: int) -> bool:
    """Whether a and b mod `modulus` are seen to be equal, without a solver."""
    if a.kind == smt.MOD and literal(a.args[1]) == modulus:
        apart = literal(smt.simplify(a.args[0] - b))
        return apart is not None and apart % modulus == 0
    return False
