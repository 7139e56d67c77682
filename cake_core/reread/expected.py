"""What each thread of a cluster has to do to barriers, by the facts that were proved: the steps of the event machine as acts.

Left out are accesses of memory, but for copies that a barrier counts; where lanes meet without an instruction of its own; and the commit of a
group that its statement makes and closes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cake_core.effects import Issuer, Mode
from cake_core.facts.schema import Access, AtOnce, By, Facts
from cake_core.machine.places import Barrier
from cake_core.machine.steps import LANES, Do, Step, Touch
from cake_core.machine.threads import Agent
from cake_core.ptx.acts import (
    ADDED,
    COORDINATE,
    READ,
    THREADS,
    USES,
    WRITTEN,
    Act,
    arrived,
    committed,
    converged,
    copied,
    drained,
    engine_arrived,
    fenced,
    form_of,
    freed,
    grids_ordered,
    in_rank,
    initialised,
    met,
    met_cluster,
    reserved,
    rows_used,
    waited,
    worded,
)
from cake_core.reread.areas import Area, in_buffer, in_tensor_memory, whole_rows
from cake_core.reread.threads import COLUMNS


class Wanted(NamedTuple):
    """An act and the step that it is part of. `exact`: of a copy, the bytes of its parts are all that it writes, and no more than around it; of
    what an asynchronous operation touches, this thread has all of it touched."""

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
    behind = False
    for step in steps_of(agent):
        if step.event is not None:
            by = None if step.all else By.WARP_LEADERS if step.event.by is By.WARP_LEADERS else By.LEADER
            out += [Turn(Wanted(act, step, exact), by) for act, exact in _acts(facts, step, base, _threads(step, agent.warps))]
        elif not behind:  # in front of the role
            out += [Turn(Wanted(worded(word, value), None), None) for word, value in _words(facts, agent) if value != entry_registers]
            behind = True
    return out


def steps_of(agent: Agent) -> Iterator[Step]:
    """All that an agent does."""
    number = 0
    while (step := agent.step(number)) is not None:
        yield step
        number += 1


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
            yield from ((act, False) for t in s.a if t.location.memory == "shared" for act in _reach(facts, t, base))
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
            yield from (
                (Act(USES, None, 0, f"{COORDINATE} {d} of '{s.a}'", ((0, x, x + n),)), True) for d, (x, n) in enumerate(zip(s.b, s.c, strict=True))
            )
        case Do.GRID:
            yield grids_ordered(s.a), True
        case Do.RESERVE:
            yield reserved(s.a), True
        case Do.FREE:
            yield freed(s.a), True


def _address(facts: Facts, b: Barrier, base: int) -> int:
    return in_rank(base + facts.barriers[b.name].offset + 8 * b.index, b.cta)


def _copy(facts: Facts, s: Step, base: int, threads: int) -> tuple[Act, bool]:
    parts, size, exact, forms = [], 0, True, set()
    for touched, barrier, count in s.b:
        size = count // threads
        for t in touched:
            plan = facts.buffers[t.location.name]
            areas = in_buffer(plan, t.location.lo, t.box)
            if areas is None or len(areas) != 1 or areas[0][1] > 1:
                exact, areas = False, (_slot(t),)
            lo, _, _, width = areas[0]
            forms |= set(form_of(plan.elem.name, plan.swizzle))
            parts.append((_address(facts, barrier, base), in_rank(base + lo, t.location.cta), in_rank(base + lo + width, t.location.cta)))
    return copied(parts, size, tuple(sorted(forms))), exact


def _slot(t: Touch) -> Area:
    lo, hi = t.location.lo, t.location.hi
    return lo, 1, hi - lo, hi - lo


def _uses(facts: Facts, s: Step, base: int) -> Iterator[tuple[Act, bool]]:
    """Memory that an asynchronous operation touches. What a warpgroup issues together the machine ascribes to its first warp, so of the other
    warps nothing is known: the act has no parts. Of a tile that threads copy each has a share, perhaps none; of tensor memory each warp has its own lanes."""
    access = next(a for a in s.event.acts if isinstance(a, Access) and not isinstance(a.completion, AtOnce))
    by_warp = access.issuer is Issuer.WARP
    if not s.a and s.do is Do.GROUP and s.c:
        yield Act(USES, None, 0, s.b), False
    for t in s.a:
        match t.location.memory:
            case "shared":
                plan = facts.buffers[t.location.name]
                areas = in_buffer(plan, t.location.lo, t.box)
                for area in areas if areas is not None else (_slot(t),):
                    yield _touching(s.b, area, base, t, form_of(plan.elem.name, plan.swizzle)), areas is not None and not by_warp
            case "tensor":
                plan = facts.columns[t.location.name]
                onto = any(a.mode is Mode.WRITE and a.region.name == t.location.name for a in s.event.acts if isinstance(a, Access))
                how = WRITTEN if t.write else ADDED if onto else READ
                name, area = f"{how} by '{s.b}'", in_tensor_memory(plan, t.location.lo, t.box, by_warp)
                if area is None:
                    yield Act(USES, None, 0, name), False
                else:
                    yield _touching(name, area, COLUMNS, t, form_of(plan.elem.name)), True


def _touching(name: str, area: Area, base: int, t: Touch, form: tuple[str, ...]) -> Act:
    first, *rest = area
    return rows_used(name, in_rank(base + first, t.location.cta), *rest, form)


def _reach(facts: Facts, t: Touch, base: int) -> Iterator[Act]:
    """The bytes in which a thread's access stays."""
    plan = facts.buffers[t.location.name]
    areas = in_buffer(plan, t.location.lo, t.box)
    for area in whole_rows(plan, areas) if areas is not None else (_slot(t),):
        yield _touching(THREADS, area, base, t, ("aligned",))
