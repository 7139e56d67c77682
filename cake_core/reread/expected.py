"""What each thread of a cluster has to do to barriers, by the facts that were proved: the steps of the event machine as acts.

Left out are accesses of memory, but for copies that a barrier counts; where lanes meet without an instruction of its own; and the commit of a
group that its statement makes and closes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cake_core.effects import Issuer
from cake_core.facts.schema import Access, AtOnce, By, Facts
from cake_core.machine.places import Barrier
from cake_core.machine.steps import LANES, Do, Step, Touch
from cake_core.machine.threads import Agent
from cake_core.ptx.acts import (
    USES,
    Act,
    accessed,
    arrived,
    begun,
    committed,
    converged,
    copied,
    drained,
    engine_arrived,
    fenced,
    freed,
    grids_ordered,
    in_rank,
    initialised,
    met,
    met_cluster,
    reserved,
    used,
    waited,
    worded,
)


class Wanted(NamedTuple):
    """An act and the step that it is part of. `exact`: of a copy, the bytes of its parts are all that it writes, and no more than around it; of
    what an asynchronous operation touches, each part is touched by this thread."""

    act: Act
    step: Step | None
    exact: bool = True


class Turn(NamedTuple):
    """One act of an agent. `by`: None: of every thread; otherwise of the leading lane, of each warp or (By.LEADER) of the first."""

    wanted: Wanted
    by: By | None


def script(facts: Facts, agent: Agent, base: int, entry_registers: int) -> list[Turn]:
    """What an agent does, in order. `base`: where the plan starts in each CTA's shared memory. A word that asks for as many registers as there are
    at entry is no instruction."""
    out: list[Turn] = []
    number, behind = 0, False
    while (step := agent.step(number)) is not None:
        number += 1
        if step.event is not None:
            by = None if step.all else By.WARP_LEADERS if step.event.by is By.WARP_LEADERS else By.LEADER
            out += [Turn(Wanted(act, step, exact), by) for act, exact in _acts(facts, step, base, _threads(step, agent.warps))]
        elif not behind:  # in front of the role
            out += [Turn(Wanted(worded(word, value), None), None) for word, value in _words(facts, agent) if value != entry_registers]
            behind = True
    return out


def wanted(turns: list[Turn], first: bool, leading: bool) -> list[Wanted]:
    """What one thread of the agent does. `first`: whether its warp is the first of the agent's; `leading`: whether it is the leading lane. Which elements
    the other warps access the machine does not say: the text may name them by the number of the warp."""
    found = [t.wanted for t in turns if t.by is None or leading and (first or t.by is By.WARP_LEADERS)]
    return found if first else [w if w.act.what != USES or w.exact else w._replace(act=w.act._replace(parts=())) for w in found]


def _words(facts: Facts, agent: Agent) -> tuple[tuple[str, int], ...]:
    """The role words that a warp executes: those of the role in whose warps, pads included, it stands."""
    for role in facts.roles:
        if role.plan.entry and role.plan.first <= agent.first < role.plan.end + role.plan.pad:
            return tuple(role.plan.entry.items())
    return ()


def _threads(s: Step, warps: int) -> int:
    """How many threads of an agent a step stands for."""
    if s.all:
        return LANES * warps
    return warps if s.event.by is By.WARP_LEADERS else 1


def _acts(facts: Facts, s: Step, base: int, threads: int) -> Iterator[tuple[Act, bool]]:
    def at(b: Barrier) -> int:
        return _address(facts, b, base)

    match s.do:
        case Do.INIT:
            for b in s.a:
                yield initialised(at(b), b.count), True
        case Do.WAIT:
            yield waited(at(s.a), int(s.b)), True
        case Do.ARRIVE:
            yield arrived(at(s.a), s.c // s.b), True
        case Do.COPY:
            yield _copy(facts, s, base, threads)
        case Do.GROUP | Do.ENGINE:
            yield from _uses(facts, s, base)
        case Do.ACCESS:
            yield from ((accessed(*_reach(facts, t, base)), False) for t in s.a if t.location.memory == "shared")
        case Do.ENGINE_ARRIVE:
            yield engine_arrived([at(b) for b in s.a], s.b), True
        case Do.COMMIT:
            if not any(getattr(getattr(a, "completion", None), "queue", None) == s.a for a in s.event.acts):
                yield committed(s.a), True
        case Do.DRAIN:
            yield drained(s.a, s.b, s.c), True
        case Do.MEET:
            if s.a[0] < 0:
                yield met_cluster(False), True
                yield met_cluster(True), True
            else:
                yield met(s.a[1], s.b, bool(s.c)), True
        case Do.CONVERGE:
            yield converged(), True
        case Do.FENCE:
            yield fenced(s.a), True
        case Do.TENSOR:
            yield from ((a, False) for a in begun(s.a, s.b))
        case Do.GRID:
            yield grids_ordered(s.a), True
        case Do.RESERVE:
            yield reserved(s.a), True
        case Do.FREE:
            yield freed(s.a), True


def _address(facts: Facts, b: Barrier, base: int) -> int:
    return in_rank(base + facts.barriers[b.name].offset + 8 * b.index, b.cta)


def _copy(facts: Facts, s: Step, base: int, threads: int) -> tuple[Act, bool]:
    parts, size, exact = [], 0, True
    for touched, barrier, count in s.b:
        size = count // threads
        for t in touched:
            lo, hi = t.location.span(t.box)
            exact = exact and _whole_rows(t)
            parts.append((_address(facts, barrier, base), in_rank(base + lo, t.location.cta), in_rank(base + hi, t.location.cta)))
    return copied(parts, size), exact


def _uses(facts: Facts, s: Step, base: int) -> Iterator[tuple[Act, bool]]:
    """Shared memory that an asynchronous operation touches. What a warpgroup issues together the machine ascribes to its first warp, so of the other
    warps nothing is known: the act has no parts. Of a tile that threads copy each has a share, perhaps none."""
    access = next(a for a in s.event.acts if isinstance(a, Access) and not isinstance(a.completion, AtOnce))
    parts = [t for t in s.a if t.location.memory == "shared"]
    if not parts and s.do is Do.GROUP and s.c:
        yield Act(USES, None, 0, s.b), False
    for t in parts:
        yield used(s.b, *_reach(facts, t, base)), access.issuer is not Issuer.WARP


def _reach(facts: Facts, t: Touch, base: int) -> tuple[int, int]:
    """The bytes in which an access stays: of a swizzled buffer, where a row's pieces are permuted, the whole slot."""
    lo, hi = (t.location.lo, t.location.hi) if facts.buffers[t.location.name].swizzle else t.location.span(t.box)
    return in_rank(base + lo, t.location.cta), in_rank(base + hi, t.location.cta)


def _whole_rows(t: Touch) -> bool:
    """Whether a box lies in one piece, from its first byte to its last."""
    if not t.location.unit:
        return False
    inside = [(t.box[2 * d], t.box[2 * d + 1], n) for d, n in enumerate(t.location.shape)]
    while inside and inside[0][1] - inside[0][0] == 1:
        inside = inside[1:]
    return all((lo, hi) == (0, n) for lo, hi, n in inside[1:])
