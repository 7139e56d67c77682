"""A global cut: one position for each agent, as a formula of quantifier-free linear arithmetic.

    blocked      no agent can go on, and one is not at its end             satisfiable: the kernel can hang
    consistent   each agent has only passed what the others let it pass    with a bad state beside it: the state is reached

A position is a place of the agent's text and the iterations of the loops around it; all that has been done follows from it in closed form
(`walk.py`). No cut is unfolded and no trip count bounded. Theorems and their hypotheses: docs/proof.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import field

from cake_core import smt
from cake_core.facts.schema import Drain
from cake_core.frozen import thawed
from cake_core.prove.numbers import ZERO
from cake_core.prove.protocol import Barrier, Protocol, Stream
from cake_core.prove.text import Key
from cake_core.prove.walk import Run, Site


@thawed
class Cut:
    """Positions of all agents. A question about few of them may leave the others out: what these have not done then hinders no one,
    so there are more cuts, never fewer, and what has none among them has none at all."""

    protocol: Protocol
    at: dict[str, list[smt.Term]] = field(default_factory=dict)
    counts: dict[tuple[str, Key], smt.Term] = field(default_factory=dict)
    positions: dict[str, list[smt.Term]] = field(default_factory=dict)  # what holds of one agent's position
    applied: dict[str, list[smt.Term]] = field(default_factory=dict)  # opaque values and sums that stand there
    names: dict[str, str] = field(default_factory=dict)  # of agents, inside formulas
    _renaming: dict[str, list] = field(default_factory=dict)
    _walks: dict[tuple, str] = field(default_factory=dict)  # who went this way first

    def __post_init__(self) -> None:
        for key, run in self.protocol.runs.items():
            self._position(key, run)

    # --- positions -------------------------------------------------------------------------------------------------

    def _position(self, key: str, run: Run) -> None:
        name = self.names[key] = f"A{len(self.names)}!"
        self._renaming[key] = renaming(run, f"@{name}")
        like = self._walks.setdefault((*(s.number for s in run.sites), id(run.end.state)), key)
        if like == key:
            self._stands(key, run)
            self.applied[key] = self.protocol.sums.applications.of(self.positions[key])
            return
        # The same walk by another agent: the same formulas, in its own unknowns.
        theirs = self.names[like]
        own = self.at[key] = [smt.Bool(f"at {name} {s.number}") for s in run.places]
        counts = {what: x for (agent, what), x in self.counts.items() if agent == like}
        variables = {x.name: x for x in counts.values()}
        named = {n: smt.Int(n.replace(theirs, name)) for n in variables}
        moved = [*zip(self.at[like], own, strict=True), *((x, named[n]) for n, x in variables.items())]
        moved += [(then, now) for (_, then), (_, now) in zip(self._renaming[like], self._renaming[key], strict=True)]
        self.positions[key] = smt.substitute(smt.And(self.positions[like]), *moved).args
        self.counts |= {(key, what): named[x.name] for what, x in counts.items()}
        self.applied[key] = [smt.substitute(a, *moved) for a in self.applied[like]]

    def _stands(self, key: str, run: Run) -> None:
        name = self.names[key]
        places = [smt.Bool(f"at {name} {s.number}") for s in run.places]
        self.at[key] = places
        holds = self.positions[key] = [smt.one_of(places)]
        for guard, number in grouped(run, lambda s: s.guard):
            if not smt.is_true(guard):
                holds.append(smt.Implies(smt.Or([places[n] for n in number]), self.here(key, guard)))
        alike: dict[tuple[int, ...], smt.Term] = {}  # what is counted alike everywhere has one variable
        for what in dict.fromkeys(k for s in run.sites for k in s.state if k[0] in COUNTED):
            groups = grouped(run, lambda s, what=what: s.count(what))
            terms = tuple(x for term, number in groups for x in (term.ast, number[0]))
            if terms not in alike:
                n = alike[terms] = smt.Int(f"n {name} {len(alike)}")
                for term, number in groups:
                    holds.append(smt.Implies(smt.Or([places[i] for i in number]), n == self.here(key, term)))
            self.counts[key, what] = alike[terms]

    def here(self, agent: str, term: smt.Term) -> smt.Term:
        """A term of a run, at the position of its agent."""
        return smt.substitute(term, *self._renaming[agent]) if self._renaming[agent] else term

    def iterations(self, agent: str) -> list[tuple[smt.Term, smt.Term]]:
        """Iterations as a run writes them, and those of the agent's position."""
        return self._renaming[agent]

    def count(self, agent: str, key: Key) -> smt.Term:
        """How often the agent has done `key` at its position."""
        return self.counts.get((agent, key), ZERO)

    def place(self, stream: Stream) -> smt.Term:
        """That the stream's agent is about to do it."""
        return smt.Or([self.at[stream.agent.key][s.number] for s in stream.sites])

    # --- barriers --------------------------------------------------------------------------------------------------

    def done(self, b: Barrier, s: Stream, ordinal: smt.Term) -> smt.Term:
        """Whether a stream has done its part of the phase of an ordinal, or will without waiting: who waits at a meeting has come."""
        if b.short:
            return smt.BoolVal(False)
        n = self.count(s.agent.key, s.key)
        waits = next((w for w in b.waits if w.agent is s.agent), None) if not b.mbarrier else None
        if waits is None:
            return n >= ordinal + 1
        return smt.Or(n >= ordinal + 1, smt.And(self.place(waits), n == ordinal))

    def complete(self, b: Barrier, ordinal: smt.Term, among: Iterable[str]) -> smt.Term:
        """Whether the phase of an ordinal is complete once what was started is done, as far as the agents `among` are concerned."""
        if not b.arrivals:
            return smt.Or(ordinal < 0)
        return smt.Or(ordinal < 0, smt.And([self.done(b, s, ordinal) for s in (*b.arrivals, *b.copies) if s.agent.key in among]))

    def awaited(self, b: Barrier, wait: Stream, n: smt.Term) -> smt.Term:
        """The ordinal whose phase the n-th wait (from 0) is for."""
        return n - b.credit[wait.agent.key] * b.stages if b.mbarrier else n

    def consistent(self, among: frozenset[str]) -> list[smt.Term]:
        """Each agent has passed only waits whose phases are complete. The last one implies those before it. Of who does not wait at each
        meeting, nothing is known of the last one."""
        out = []
        for b in self.protocol.barriers.values():
            for w in b.waits:
                if (
                    w.agent.key in among
                    and b.waits_always(w.agent.key)
                    and any(s.agent.key in among and s.agent is not w.agent for s in (*b.arrivals, *b.copies))
                ):
                    n = self.count(w.agent.key, w.key)
                    out.append(smt.Implies(n >= 1, self.complete(b, self.awaited(b, w, n - 1), among)))
        for a, other, queue in self.protocol.joint:
            if a in among and other in among:  # what one warp knows to be complete, all warps of the warpgroup have started
                out.append(self.count(a, ("retired", queue)) <= self.count(other, ("commit", queue)))
        return out

    def blocked(self) -> list[smt.Term]:
        """Every agent is at its end or at a wait that does not let it pass, and one is not at its end. Followers are left out: they
        stand where those do that they follow."""
        waits = self._waits(self._leads())
        out, ends = [], []
        for key, stops in self.stops(waits).items():
            run = self.protocol.runs[key]
            out.append(smt.one_of([self.at[key][s.number] for s in stops]))
            used = [k for agent, k in self.counts if agent == key and k[0] in ("wait", "arrive", "issue", "meet", "commit")]
            for site in stops:
                here = [self.here(key, site.guard)] + [self.counts[key, k] == self.here(key, site.count(k)) for k in used]
                if site.event is not None:
                    here.append(smt.Not(smt.And(waits[key, site.number])))
                out.append(smt.Implies(self.at[key][site.number], smt.And(here)))
            ends.append(self.at[key][run.end.number])
        return [*out, smt.Not(smt.And(ends))]

    def _leads(self) -> frozenset[str]:
        return frozenset(k for k in self.protocol.runs if k not in self.protocol.followers)

    def stops(self, waits: Container[tuple[str, int]] | None = None) -> dict[str, list[Site]]:
        """By agent that follows no other, where a blocked cut may have it: its end, and its `waits` (made anew where left out)."""
        leads = self._leads()
        waits = self._waits(leads) if waits is None else waits
        return {k: [s for s in r.places if s.event is None or (k, s.number) in waits] for k, r in self.protocol.runs.items() if k in leads}

    def _waits(self, leads: frozenset[str]) -> dict[tuple[str, int], list[smt.Term]]:
        """By agent and place: what must hold for the agent to pass. Meetings that one agent has with its followers alone hold no one up."""
        out: dict[tuple[str, int], list] = {}
        for b in self.protocol.barriers.values():
            for w in b.waits:
                if w.agent.key not in leads or not b.mbarrier and all(s.agent.key not in leads or s.agent is w.agent for s in b.arrivals):
                    continue
                passes = self.complete(b, self.awaited(b, w, self.count(w.agent.key, w.key)), leads)
                for site in w.sites:
                    out.setdefault((w.agent.key, site.number), []).append(passes)
        for a, other, queue in self.protocol.joint:
            for site in self.protocol.runs[a].sites if a in leads and other in leads else ():
                for act in site.acts:
                    if isinstance(act, Drain) and act.queue == queue:
                        passes = self.count(other, ("commit", queue)) >= self.count(a, ("commit", queue)) - act.pending
                        out.setdefault((a, site.number), []).append(passes)
        return out


#: Streams whose counts a cut speaks of; accesses are counted only to know whether one was issued.
COUNTED = ("wait", "arrive", "issue", "meet", "commit", "read", "retired", "access")


def grouped(run: Run, term_of) -> list[tuple[smt.Term, list[int]]]:
    """Places in a row that share a term."""
    out: list[tuple[smt.Term, list[int]]] = []
    for site in run.places:
        term = term_of(site)
        if out and out[-1][0].eq(term):
            out[-1][1].append(site.number)
        else:
            out.append((term, [site.number]))
    return out


def renaming(run: Run, suffix: str) -> list:
    """Iterations of a run, and those of one of its positions."""
    return [(i, smt.Int(n + suffix)) for n, i in run.iterations.items()]


@thawed
class Moment:
    """One past execution of a place, for what it started: its own iterations, and what was counted in front of it."""

    site: Site
    suffix: str
    run: Run

    def __post_init__(self) -> None:
        self._names = renaming(self.run, self.suffix)

    _names: list = field(init=False)

    def here(self, term: smt.Term) -> smt.Term:
        return smt.substitute(term, *self._names) if self._names else term

    def count(self, key: Key) -> smt.Term:
        return self.here(self.site.state.get(key, ZERO))

    @property
    def guard(self) -> smt.Term:
        return self.here(self.site.guard)
