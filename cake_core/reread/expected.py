"""What each thread of a cluster has to do to barriers, by the facts that were proved: the steps of the event machine as acts.

Left out are accesses of memory, but for copies that a barrier counts; where lanes meet without an instruction of its own; and the commit of a
group that its statement makes and closes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cake_core.facts.schema import By, Facts
from cake_core.machine.places import Barrier
from cake_core.machine.steps import Do, Step, Touch
from cake_core.machine.threads import Agent
from cake_core.ptx.acts import (
    Act,
    arrived,
    committed,
    converged,
    copied,
    drained,
    engine_arrived,
    fenced,
    freed,
    in_rank,
    initialised,
    met,
    met_cluster,
    reserved,
    waited,
    worded,
)


class Wanted(NamedTuple):
    """An act and the step that it is part of. `exact`: of a copy, the bytes of its parts are all that it writes, and no more than around it."""

    act: Act
    step: Step | None
    exact: bool = True


def wanted(facts: Facts, agent: Agent, base: int, first: bool, leading: bool, entry_registers: int) -> list[Wanted]:
    """What one thread of an agent does, in order. `base`: where the plan starts in each CTA's shared memory; `first`: whether its warp is
    the first of the agent's; `leading`: whether it is the leading lane of its warp. A word that asks for as many registers as there are at entry
    is no instruction."""
    out: list[Wanted] = []
    number, behind = 0, False
    while (step := agent.step(number)) is not None:
        number += 1
        if step.event is None:
            if not behind:
                out += [Wanted(worded(word, value), None) for word, value in _words(facts, agent) if value != entry_registers]
                behind = True
            continue
        if not step.all and not (leading and (first or step.event.by is By.WARP_LEADERS)):
            continue
        out += [Wanted(act, step, exact) for act, exact in _acts(facts, step, base)]
    return out


def _words(facts: Facts, agent: Agent) -> tuple[tuple[str, int], ...]:
    """The role words that a warp executes: those of the role in whose warps, pads included, it stands."""
    for role in facts.roles:
        if role.plan.entry and role.plan.first <= agent.first < role.plan.end + role.plan.pad:
            return tuple(role.plan.entry.items())
    return ()


def _acts(facts: Facts, s: Step, base: int) -> Iterator[tuple[Act, bool]]:
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
            yield _copy(facts, s, base)
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
        case Do.RESERVE:
            yield reserved(s.a), True
        case Do.FREE:
            yield freed(s.a), True


def _address(facts: Facts, b: Barrier, base: int) -> int:
    return in_rank(base + facts.barriers[b.name].offset + 8 * b.index, b.cta)


def _copy(facts: Facts, s: Step, base: int) -> tuple[Act, bool]:
    parts, size, exact = [], 0, True
    for touched, barrier, count in s.b:
        size = count
        for t in touched:
            lo, hi = t.location.span(t.box)
            exact = exact and _whole_rows(t)
            parts.append((_address(facts, barrier, base), in_rank(base + lo, t.location.cta), in_rank(base + hi, t.location.cta)))
    return copied(parts, size), exact


def _whole_rows(t: Touch) -> bool:
    """Whether a box lies in one piece, from its first byte to its last."""
    if not t.location.unit:
        return False
    inside = [(t.box[2 * d], t.box[2 * d + 1], n) for d, n in enumerate(t.location.shape)]
    while inside and inside[0][1] - inside[0][0] == 1:
        inside = inside[1:]
    return all((lo, hi) == (0, n) for lo, hi, n in inside[1:])
