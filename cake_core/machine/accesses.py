"""Steps of one schedule that touch memory, and what says when they are complete: groups, engines, copies, fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.machine.arrivals import converged, known_phases, started
from cake_core.machine.barriers import Flight
from cake_core.machine.clocks import join
from cake_core.machine.outcome import Fault, Kind
from cake_core.machine.places import Location, overlap
from cake_core.machine.shadow import NEVER, Record
from cake_core.machine.steps import Step, Touch
from cake_core.machine.threads import Agent

if TYPE_CHECKING:
    from cake_core.machine.schedule import Schedule


def touched(run: Schedule, agent: Agent, step: Step, touch: Touch, by: int | None = None, at: int = NEVER, order: tuple | None = None) -> Record:
    """Note an access, complete for whose clock has `at` in component `by` (None: when the step is), and look for what conflicts with it."""
    lane = run.lane(agent, step)
    own = run.clocks[lane][lane]
    made = Record(lane if by is None else by, own if by is None else at, lane, own, own if by is None else NEVER, touch, agent, step, order)
    where = touch.location
    if where.cta in run.gone:
        message = f"'{where.name}' of CTA {where.cta}, whose threads have all ended"
        run.fatal(Kind.EXIT, message, agent, step, resource=where.name, slot=where.slot, cta=where.cta)
    if where.memory == "tensor":
        allocated(run, where, agent, step)
    run.shadow.access(made, run.clocks[lane])
    if touch.write:
        leave(run, touch, by is None)
    return made


def leave(run: Schedule, touch: Touch, complete: bool) -> None:
    """What a write leaves in memory for who reads a message there: its value, once it is complete and if it is known."""
    held = run.cluster.messages.setdefault(touch.location.id, {})
    for box in [b for b in held if overlap(b, touch.box)]:
        del held[box]
    if complete and touch.value is not None:
        held[touch.box] = touch.value


def allocated(run: Schedule, where: Location, agent: Agent, step: Step) -> None:
    """Tensor memory is used inside of an allocation that the user knows of."""
    taken = run.columns.get(where.cta)
    clock = run.clocks[run.lane(agent, step)]
    if taken is None or where.hi > taken[0]:
        why = "no columns are taken" if not taken or not taken[0] else f"{taken[0]} columns are taken, it ends at {where.hi}"
    elif clock[taken[1]] < taken[2]:
        why = "nothing orders this behind the allocation"
    else:
        return
    found = Fault(Kind.TENSOR, f"use of '{where.name}' in CTA {where.cta}: {why}", where.name, where.slot, cta=where.cta, second=agent.site(step))
    run.report(found, agent, step)


def access(run: Schedule, agent: Agent, step: Step) -> bool:
    for t in step.a:
        touched(run, agent, step, t)
    return True


def group(run: Schedule, agent: Agent, step: Step) -> bool:
    """Asynchronous accesses of the open group of a queue."""
    queue, together = step.b, step.c
    lane = run.lane(agent, step)
    owner = (agent.cta, agent.name, agent.instance) if together else lane
    index = run.closed.get((lane, queue), 0) + 1
    for t in step.a:
        by = run.layout.numbers["writes" if t.write else "reads", owner, queue]
        run.unretired[agent.id].append(touched(run, agent, step, t, by, index, ("group", owner, queue)))
    return True


def engine(run: Schedule, agent: Agent, step: Step) -> bool:
    """An operation of an engine, which serves what one thread gives it in order."""
    key = (agent.id, step.b)
    index = run.issued[key] = run.issued.get(key, 0) + 1
    by = run.layout.numbers["engine", agent.id, step.b]
    for t in step.a:
        touched(run, agent, step, t, by, index, ("engine", *key))
    return True


def commit(run: Schedule, agent: Agent, step: Step) -> bool:
    """The open group is closed. Where all warps of an instance issue together, the group starts when the last of them has."""
    queue = step.a
    lane = run.lane(agent, step)
    for i in {lane & ~1, lane}:
        run.closed[i, queue] = run.closed.get((i, queue), 0) + 1
    if queue in agent.collective:
        key = (agent.cta, agent.name, agent.instance, queue)
        clocks, n = run.group_clocks.setdefault(key, []), run.closed[lane, queue]
        clock = run.publish(agent, step)
        if len(clocks) < n:
            clocks.append([clock, agent.warps])
        else:
            clocks[n - 1] = [join(clocks[n - 1][0], clock), clocks[n - 1][1] + agent.warps]
        run.wake(key)
    return True


def drain(run: Schedule, agent: Agent, step: Step) -> bool:
    """At most so many groups stay in flight. Groups that warps issue together are over for none before all have issued them."""
    queue, pending, reads_only = step.a, step.b, step.c
    lane = run.lane(agent, step)
    lanes = sorted({lane & ~1, lane})
    if queue in agent.collective:
        done = run.closed.get((lane, queue), 0) - pending
        key = (agent.cta, agent.name, agent.instance, queue)
        if done > 0:
            clock, warps = run.group_clocks[key][done - 1]
            if warps < agent.role.plan.warps:
                return run.block(agent, key)
            run.learn(agent, step, clock)
        retired = {(agent.cta, agent.name, agent.instance): done}
    else:
        retired = {i: run.closed.get((i, queue), 0) - pending for i in lanes}
    for owner, done in retired.items():
        for what in ("reads",) if reads_only else ("reads", "writes"):
            by = run.layout.numbers[what, owner, queue]
            for i in lanes:
                if i == owner or not isinstance(owner, int):
                    clock = run.clocks[i]
                    clock[by] = max(clock[by], done)
    own = run.clocks
    kept = []
    for r in run.unretired[agent.id]:
        if own[r.lane][r.by] >= r.at:
            r.seen = own[r.lane][r.lane]
        else:
            kept.append(r)
    run.unretired[agent.id] = kept
    return True


def fence(run: Schedule, agent: Agent, step: Step) -> bool:
    """What the lanes have done up to here is fenced."""
    lane = run.lane(agent, step)
    for i in {lane & ~1, lane}:
        clock = run.clocks[i]
        by = run.layout.numbers["fence", step.a, i]
        clock[by] = clock[i]
        if step.a == "proxy_async":
            run.shadow.fences.append((by, clock[i], clock[:]))
        clock[i] += 1
        if step.a == "tensor_after":
            run.shadow.after[i] = clock[:]
    return True


def converge(run: Schedule, agent: Agent, step: Step) -> bool:
    """The lanes of each warp meet."""
    converged(run, agent, step, "the meeting of its warp")
    a, b = 2 * agent.id, 2 * agent.id + 1
    run.clocks[a] = join(run.clocks[a], run.clocks[b])
    run.clocks[b] = run.clocks[a][:]
    run.clocks[a][a] += 1
    run.clocks[b][b] += 1
    return True


def copy(run: Schedule, agent: Agent, step: Step) -> bool:
    """An asynchronous copy sets out: its bytes arrive at each barrier on their own."""
    lane = run.lane(agent, step)
    order = ("copy",)
    reads = [touched(run, agent, step, t, 0, NEVER, order) for t in step.a]
    whole = [len(step.b), reads]
    made = []
    for touches, b, size in step.b:
        p = started(run, b, agent, step, run.clocks[lane], True)
        known = known_phases(run, p, lane, run.clocks[lane])
        records = [touched(run, agent, step, t, 0, NEVER, order) for t in touches]
        made.append((b, size, records, known))
    clock = run.publish(agent, step)
    run.flights += [Flight(agent, step, b, size, records, whole, clock, known) for b, size, records, known in made]
    return True
