"""Steps of one schedule at barriers: starts, waits, arrivals of threads and engines, deliveries of bytes, meetings."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from cake_core.machine.barriers import TX, EngineArrival, Flight, Meeting, Phases
from cake_core.machine.clocks import Clock, includes, join
from cake_core.machine.outcome import Fault, Kind
from cake_core.machine.places import Barrier
from cake_core.machine.steps import LANES, Step
from cake_core.machine.threads import Agent

if TYPE_CHECKING:
    from cake_core.machine.schedule import Schedule


def init(run: Schedule, agent: Agent, step: Step) -> bool:
    """The barriers of an array start their phase 0."""
    lane = run.lane(agent, step)
    for b in step.a:
        p = phases(run, b)
        if p.start is not None:
            run.fatal(Kind.INIT, f"{named(b)} is initialised twice", agent, step, **at(b))
        p.start = lane, run.clocks[lane][lane], run.layout.get("fence", "barrier_init", lane)
        p.pending = b.count
    return True


def phases(run: Schedule, b: Barrier) -> Phases:
    """The state of a barrier in this schedule."""
    if (p := run.phases.get(b.id)) is None:
        p = run.phases[b.id] = Phases(b, bytes=run.layout.get("bytes", b.cta, b.name, b.index))
    return p


def started(run: Schedule, b: Barrier, agent: Agent, step: Step, clock: Clock, outside: bool) -> Phases:
    """The barrier, which must be known to be initialised, and if it is used from outside of its CTA's threads, fenced."""
    p = phases(run, b)
    if b.cta in run.gone:
        run.fatal(Kind.EXIT, f"{named(b)}, whose threads have all ended", agent, step, **at(b))
    key = (run.lane(agent, step), b.id, outside)
    if key in run.seen_start:
        return p
    run.seen_start.add(key)
    if p.start is None:
        run.fatal(Kind.INIT, f"{named(b)} is used and may not be initialised yet", agent, step, **at(b))
    lane, when, fence = p.start
    if clock[lane] < when:
        told = f"nothing orders this use of {named(b)} behind its initialisation"
    elif outside and (fence is None or clock[fence] < when):
        told = f"no fence makes the initialisation of {named(b)} visible to the asynchronous proxy and the cluster"
    else:
        return p
    run.report(Fault(Kind.INIT, told, second=agent.site(step), **at(b)), agent, step)
    return p


def known_phases(run: Schedule, p: Phases, lane: int, clock: Clock) -> int:
    """How many phases are over in the past of a lane group."""
    key = (lane, p.place.id)
    known = run.least[key] = p.known(clock, run.least.get(key, 0))
    return known


def wait(run: Schedule, agent: Agent, step: Step) -> bool:
    """Passes when the last completed phase has the parity; learns of the first such phase that is not in its past."""
    b, parity = step.a, int(step.b)
    lane = run.lane(agent, step)
    leading = lane & ~1
    p = started(run, b, agent, step, run.clocks[leading], False)
    if not p.passes(parity):
        return run.block(agent, b.id)
    known = known_phases(run, p, leading, run.clocks[leading])
    if (known - 1) % 2 != parity:
        known += 1
        run.learn(agent, step, p.done[known - 1])
    own = run.clocks[leading]
    if known < p.phase:
        missed(run, p, known, agent, step)
    else:
        p.passed.append((leading, own[leading], (agent, step)))
    p.waited = max(p.waited, known)
    return True


def missed(run: Schedule, p: Phases, phase: int, agent: Agent, step: Step) -> None:
    """A wait that holds for the phase before may come when the next one is over."""
    b = p.place
    told = f"phase {phase} of {named(b)} may be over before this wait for phase {phase - 1} is done; its parity then lies"
    run.report(Fault(Kind.PHASE, told, second=agent.site(step), phase=phase, **at(b)), agent, step)


def arrived(run: Schedule, p: Phases, n: int, clock: Clock, mark: tuple[int, int], known: int, agent: Agent, step: Step) -> None:
    """`n` arrivals and what comes with them, by who knows `known` phases to be complete."""
    b = p.place
    if known < p.phase:
        told = f"nothing orders this arrival, in phase {p.phase} of {named(b)}, behind the end of phase {known}"
        run.report(Fault(Kind.OVERRUN, told, second=agent.site(step), phase=p.phase, **at(b)), agent, step)
    if n > p.pending:
        run.fatal(Kind.ARRIVALS, f"{named(b)} is short of {p.pending} arrivals in phase {p.phase}, {n} come", agent, step, phase=p.phase, **at(b))
    p.pending -= n
    p.add(clock, mark)
    flip(run, p)


def flip(run: Schedule, p: Phases) -> None:
    """Complete the phase if nothing is missing, and let go on who waits."""
    if not p.completes():
        return
    clock = p.done[-1]
    for lane, when, (agent, step) in p.passed:
        if clock[lane] < when:
            missed(run, p, p.phase - 1, agent, step)
    p.passed.clear()
    run.wake(p.place.id)


def arrive(run: Schedule, agent: Agent, step: Step) -> bool:
    """Threads arrive, and announce bytes with it."""
    b, n, announced = step.a, step.b, step.c
    lane = run.lane(agent, step)
    outside = b.cta != agent.cta
    p = started(run, b, agent, step, run.clocks[lane], outside)
    known = known_phases(run, p, lane, run.clocks[lane])
    mark = lane, run.clocks[lane][lane]
    clock = run.publish(agent, step)
    if outside:
        run.remote.setdefault(b.cta, []).append((*mark, agent, step))
    p.tx += announced
    if p.tx > TX:
        run.fatal(Kind.BYTES, f"{named(b)} would count {p.tx} bytes, over {TX}", agent, step, **at(b))
    arrived(run, p, n, clock, mark, known, agent, step)
    return True


def engine_arrive(run: Schedule, agent: Agent, step: Step) -> bool:
    """An arrival is on its way that comes when all that the thread gave to the engine before is complete."""
    barriers, engine, n = step.a, step.b, step.c
    lane = run.lane(agent, step)
    for b in barriers:
        started(run, b, agent, step, run.clocks[lane], True)
    by = run.layout.numbers["engine", agent.id, engine]
    done = run.issued.get((agent.id, engine), 0)
    clock = run.publish(agent, step)
    clock[by] = max(clock[by], done)
    mark = (by, done) if done else (lane, clock[lane])
    run.arrivals += [EngineArrival(agent, step, b, n, clock, mark) for b in barriers]
    return True


def complete(run: Schedule, draw: Random | None) -> None:
    """One delivery or one arrival of an engine: copies complete in any order, and so do arrivals, once what they speak for is over."""
    choices = len(run.flights) + len(run.arrivals)
    land(run, draw.randrange(choices) if draw else choices - 1 if run.order.last else 0)


def land(run: Schedule, i: int) -> None:
    """The i-th of the deliveries and arrivals of engines that are on their way comes."""
    if i < len(run.flights):
        delivered(run, run.flights.pop(i))
        return
    a = run.arrivals.pop(i - len(run.flights))
    run.log.append((a.agent, a.step))
    p = phases(run, a.barrier)
    gone(run, p, "an engine's arrival", a.agent, a.step)
    run.carrier.arrived(run, a)
    p.last = p.phase, a.agent, a.step
    arrived(run, p, a.arrivals, a.clock, a.mark, p.known(a.clock), a.agent, a.step)


def delivered(run: Schedule, f: Flight) -> None:
    """Bytes arrive."""
    b, p = f.barrier, phases(run, f.barrier)
    run.log.append((f.agent, f.step))
    gone(run, p, "bytes", f.agent, f.step)
    run.carrier.delivered(run, f)
    if f.phase != p.phase:
        told = f"bytes count in phase {p.phase} of {named(b)}, and may as well come in phase {f.phase}"
        run.report(Fault(Kind.OVERRUN, told, second=f.agent.site(f.step), phase=p.phase, **at(b)), f.agent, f.step)
    p.tx -= f.bytes
    p.received = True
    if p.tx < -TX:
        run.fatal(Kind.BYTES, f"{named(b)} would count {p.tx} bytes", f.agent, f.step, **at(b))
    f.whole[0] -= 1
    for r in (*f.records, *(f.whole[1] if not f.whole[0] else ())):
        r.by, r.at = p.bytes, p.phase + 1
        if r.touch.value is not None:
            run.cluster.messages.setdefault(r.touch.location.id, {})[r.touch.box] = r.touch.value
    p.add(f.clock, p.mark)
    flip(run, p)


def gone(run: Schedule, p: Phases, what: str, agent: Agent, step: Step) -> None:
    """Nothing may come when a CTA has ended."""
    b = p.place
    if b.cta in run.gone:
        run.fatal(Kind.IN_FLIGHT, f"{what} for {named(b)} when its threads have ended", agent, step, **at(b))


def named(b: Barrier) -> str:
    return f"'{b.name}'[{b.index}] of CTA {b.cta}"


def at(b: Barrier) -> dict:
    """Where it is, as a fault says it."""
    return {"resource": b.name, "slot": (b.index,), "cta": b.cta}


def converged(run: Schedule, agent: Agent, step: Step, what: str, **place) -> None:
    """A fault unless whole warps come: one lane alone waits for lanes that never do (PTX ISA, barrier and bar.warp.sync)."""
    if step.event is not None and not step.all:
        run.fatal(Kind.NAMED, f"one lane of a warp comes to {what} alone", agent, step, **place)


def meet(run: Schedule, agent: Agent, step: Step) -> bool:
    """Threads come to a barrier that counts them; the last one lets all go on that wait there."""
    key, wanted, waits = step.a, step.b, step.c
    m = run.meetings.get(key)
    if m is None:
        m = run.meetings[key] = Meeting(key)
    place = {"resource": m.describe(), "cta": key[0] if key[0] >= 0 else None}
    converged(run, agent, step, m.describe(), **place)
    if any(x[0] is agent for x in m.members):
        run.fatal(Kind.NAMED, f"these threads come to {m.describe()} twice in one generation", agent, step, **place)
    if m.members and m.wanted != wanted:
        run.fatal(Kind.NAMED, f"{m.describe()} is to collect {m.wanted} threads for some, {wanted} for others", agent, step, **place)
    clock = run.publish(agent, step, together=True)
    if m.last is not None and not includes(clock, m.last):
        told = f"nothing orders this arrival at {m.describe()} behind the generation before"
        run.report(Fault(Kind.NAMED, told, second=agent.site(step), **place), agent, step)
    m.clock = clock if m.clock is None else join(m.clock, clock)
    m.wanted = wanted
    m.come += LANES * agent.warps
    m.members.append((agent, waits, step))
    if m.come > m.wanted:
        run.fatal(Kind.NAMED, f"{m.come} threads come to {m.describe()}, which collects {m.wanted}", agent, step, **place)
    if m.come < m.wanted:
        return not waits or run.block(agent, ("meet", key))
    for other, waited, done in m.members:
        if waited:
            for lane in (2 * other.id, 2 * other.id + 1):  # all that they knew was in what they brought
                own = run.clocks[lane][lane]
                run.clocks[lane] = m.clock[:]
                run.clocks[lane][lane] = own
            if other is not agent:
                run.at[other.id] += 1
                run.log.append((other, done))
    m.last, m.clock, m.come = m.clock, None, 0
    m.members.clear()
    run.wake(("meet", key))
    return True
