"""Asking: a kernel's cuts in solvers, few agents at a time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from enum import StrEnum

from cake_core import smt
from cake_core.effects import Mode
from cake_core.facts.schema import Access, Arrive, AtOnce, Commit, Drain, EngineArrive, Event, Facts, Meet, Wait, events
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Expr
from cake_core.prove.agents import agents_of, told_apart
from cake_core.prove.alike import Alike
from cake_core.prove.cut import Cut
from cake_core.prove.effort import SOLVER, check
from cake_core.prove.numbers import Env, Numbers, solver
from cake_core.prove.protocol import Protocol
from cake_core.prove.runs import runs_of
from cake_core.prove.smallest import FEW, smallest
from cake_core.prove.sums import Sums
from cake_core.prove.text import Unanalysed

#: Steps of one query (z3's `rlimit`): a machine's speed is no reason for another verdict.
RLIMIT = 20_000_000

#: Agents that are told apart, and questions about them, of one kernel; and how often the solver may give up before no more is asked. Not time,
#: which is no reason for another verdict.
MOST_AGENTS, MOST_QUESTIONS, PATIENCE = 256, 20_000, 8
#: Of more than `FEW` agents, so many examples are made small.
MOST_EXAMPLES = 4

_PAST = re.compile(r"it![0-9a-f]+~")  # iterations of past executions (`cut.Moment`)


class TooMany(Unanalysed):
    """More questions than are asked of one kernel."""


class Result(StrEnum):
    NONE = "none"  # there is no such cut
    SOME = "some"
    UNKNOWN = "unknown"


@frozen
class Found:
    """`model`: of a cut that there is; `rests_on`: what of it its sizes do not decide, so that no launch need have it."""

    result: Result
    model: smt.Model | None = None
    reason: str = ""
    rests_on: str = ""


NONE = Found(Result.NONE)


@thawed
class View:
    """A solver that holds the consistent cuts of some agents, and the opaque values that it knows of."""

    solver: smt.Solver
    seen: dict[int, smt.Term]


@thawed
class Cuts:
    """The cuts of one kernel. Raises `Unanalysed` where its text is not in the form that the method speaks of."""

    facts: Facts
    rlimit: int = RLIMIT
    examples: bool = True  # of cuts that there are, small ones; else whichever comes
    context: smt.Context = field(init=False)  # of its own, so that what is found does not depend on other kernels
    sums: Sums = field(init=False)
    protocol: Protocol = field(init=False)
    cut: Cut = field(init=False)
    alike: Alike = field(init=False)
    asked: int = 0
    made: int = 0  # examples
    given_up: int = 0  # questions, of those that were asked one by one
    collecting: list[tuple] | None = None  # questions are only noted (`sweep.py`), and each is answered by none
    _views: dict[frozenset, View] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], tuple[Expr, Env, smt.Term]] = field(default_factory=dict)
    _partners: dict[str, set[str]] | None = None  # who share a barrier
    _talks: dict[str, set[str]] = field(default_factory=dict)  # ... and one where not all meet

    def __post_init__(self) -> None:
        _only_in_roles(self.facts)
        self.context = smt.use(smt.Context())
        self.sums = Sums(Numbers(self.facts))
        agents = agents_of(self.facts)
        if len(agents) > MOST_AGENTS:
            raise Unanalysed(f"it has {len(agents)} agents that are told apart, and no more than {MOST_AGENTS} are asked about: {told_apart(self.facts)}")
        self.protocol = Protocol(self.facts, self.sums, runs_of(agents, self.facts, self.sums))
        self.cut = Cut(self.protocol)
        self.alike = Alike(self.protocol)

    # --- questions -------------------------------------------------------------------------------------------------

    def blocked(self) -> Found:
        """A cut in which no agent can go on."""
        self.asked += 1
        solver = self._fresh()
        terms = [*self.sums.numbers.known, *self.cut.blocked()]
        solver.add(*terms, *self.sums.lemmas(terms))
        found = _checked(solver)
        leads = [k for k in self.protocol.runs if k not in self.protocol.followers]
        return self._small(solver, found, leads, []) if found.result is Result.SOME else found

    def consistent(self, state: Iterable[smt.Term], *agents: str, near: bool = False) -> Found:
        """A consistent cut with `state`, which speaks of `agents`: looked for among these alone, then with those between them, then
        (not if `near`) among all. Without the others there are more cuts, so none stays none."""
        state, found = list(state), NONE
        if self.collecting is not None:
            self.collecting.append((tuple(state), agents, near))
            if len(self.collecting) > MOST_QUESTIONS:
                raise TooMany(f"it has {len(self.protocol.runs)} agents that are told apart, about which there are more than {MOST_QUESTIONS} questions")
            return NONE
        if self.given_up >= PATIENCE:
            return Found(Result.UNKNOWN, reason=f"no more is asked of this kernel: the solver gave up {PATIENCE} times")
        for among in self.ranges(agents, near):
            self.asked += 1
            view = self.view(frozenset(among))
            view.solver.push()
            view.solver.add(*state, *self.sums.lemmas(state, dict(view.seen)))
            found = _checked(view.solver)
            if found.result is Result.SOME and set(among) == set(self.protocol.runs):
                found = self._small(view.solver, found, agents, state)
            view.solver.pop()
            if found.result is Result.NONE:
                return found
        if found.result is Result.UNKNOWN:
            self.given_up += 1
            who = dict.fromkeys(self.protocol.runs[a].agent.text for a in agents)
            return replace(found, reason=f"{found.reason} on where {', '.join(itertools.islice(who, 4))}{' and others' * (len(who) > 4)} can be at once")
        return found

    def _small(self, solver: smt.Solver, found: Found, agents: Iterable[str], state: list[smt.Term]) -> Found:
        if not self.examples:
            return found
        self.made += 1
        if self.made > MOST_EXAMPLES and len(self.protocol.runs) > FEW:
            return replace(found, rests_on="sizes that are not small")
        moments = sorted({n for t in state for n in _PAST.findall(t.sexpr())})
        example = smallest(solver.assertions, found.model, self.sums, self.cut, dict.fromkeys(agents), moments)
        return Found(Result.SOME, example.model, rests_on=example.rests_on)

    def number(self, e: Expr, env: Env) -> smt.Term:
        """An expression of a place as a term of its run."""
        key = id(e), id(env)
        if key not in self._numbers:
            self._numbers[key] = e, env, smt.simplify(self.sums.numbers.number(e, env).term)
        return self._numbers[key][2]

    # --- solvers ---------------------------------------------------------------------------------------------------

    def _fresh(self) -> smt.Solver:
        return solver(self.rlimit)

    def view(self, among: frozenset[str]) -> View:
        if among not in self._views:
            terms = [*self.sums.numbers.known, *self.cut.consistent(among)]
            view = self._views[among] = View(self._fresh(), {})
            lemmas = self.sums.lemmas(terms, view.seen, [a for key in sorted(among) for a in self.cut.applied[key]])
            view.solver.add(*terms, *(t for key in sorted(among) for t in self.cut.positions[key]), *lemmas)
        return self._views[among]

    def ranges(self, agents: tuple[str, ...], near: bool) -> Iterator[tuple[str, ...]]:
        """Among whom a question about `agents` is asked, one after the other. With more of them there are fewer cuts, and each costs more."""
        own = tuple(dict.fromkeys(agents))
        between = self._between(frozenset(own))
        found = [(*own, k) for k in between]
        share = any(b in self._partners[a] for a, b in itertools.pairwise(own))
        talk = any(b in self._talks[a] for a, b in itertools.pairwise(own))
        if not found or len(own) == 1 or share and (talk or not self._talks_with(between[0], own)):
            found.insert(0, own)  # agents that share no barrier, or none but the one where all meet, say nothing of each other
        if not near and all(len(among) < len(self.protocol.runs) for among in found):
            found.append((*own, *(k for k in self.protocol.runs if k not in own)))
        yield from found

    def _between(self, own: frozenset[str]) -> list[str]:
        """Two agents that share a barrier with each of `own`. What agents of one role know of each other comes from another role; what an agent
        of another role knows of a warp, from that warp's sisters: these first, then those that have more to do with them than that all meet, then
        those with most partners."""
        if self._partners is None:
            self._partners, self._talks = ({k: set() for k in self.protocol.runs} for _ in range(2))
            for b in self.protocol.barriers.values():
                here = (*b.arrivals, *b.copies)
                all_meet = {s.agent.key for s in (*b.waits, *here)} == self.protocol.runs.keys()
                for w in b.waits:
                    for s in here:
                        if s.agent is not w.agent:
                            for known in (self._partners,) if all_meet else (self._partners, self._talks):
                                known[w.agent.key].add(s.agent.key)
                                known[s.agent.key].add(w.agent.key)
        found = [k for k in self.protocol.runs if k not in own and all(k in self._partners[o] for o in own)]
        agents = {k: r.agent for k, r in self.protocol.runs.items()}
        roles, places = {agents[o].role.name for o in own}, {agents[o].place for o in own}

        def far(k: str) -> bool:
            return agents[k].role.name in roles if len(roles) == 1 else agents[k].place not in places

        return sorted(found, key=lambda k: (far(k), not self._talks_with(k, own), -len(self._partners[k]), k))[:2]

    def _talks_with(self, k: str, own: Iterable[str]) -> bool:
        return all(k in self._talks[o] for o in own)


def _only_in_roles(facts: Facts) -> None:
    """Runs are those of roles: what is handed over outside of them is not among their counts."""
    for e in events((*facts.before, *facts.after)):
        for a in e.acts:
            pending = isinstance(a, Access) and not isinstance(a.completion, AtOnce)
            if pending or isinstance(a, Wait | Arrive | EngineArrive | Commit | Drain):
                raise Unanalysed(f"'{e.op}' outside of the roles", e.span)
    met = False
    for n in facts.after:  # all warps come here, pads too, each when its role has ended: no run of a role says when
        for e in events((n,)):
            for a in e.acts:
                if isinstance(a, Access) and a.region.memory in ("shared", "tensor") and (a.mode is Mode.WRITE or not met):
                    raise Unanalysed(f"'{e.op}' of '{a.region.name}' behind the roles", e.span)
        met = met or isinstance(n, Event) and any(isinstance(a, Meet) and a.scope in ("cta", "cluster") and a.waits for a in n.acts)


def _checked(solver: smt.Solver) -> Found:
    match check(solver, SOLVER):
        case smt.UNSAT:
            return NONE
        case smt.SAT:
            return Found(Result.SOME, solver.model())
    return Found(Result.UNKNOWN, reason=f"the solver gave up ({solver.reason})")
