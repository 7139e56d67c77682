"""Ends: what must be over when a role ends (S17), when a CTA leaves, and when tensor memory is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.machine.outcome import Fault, Kind
from cake_core.machine.steps import Do, Step
from cake_core.machine.threads import Agent

if TYPE_CHECKING:
    from cake_core.machine.schedule import Schedule


def role_end(run: Schedule, agent: Agent, step: Step) -> bool:
    """Nothing that the role has put into a group may still touch shared or tensor memory or fragments."""
    for r in run.unretired[agent.id]:
        x = r.touch.location
        told = f"a group of '{r.order[2]}' that {'writes' if r.touch.write else 'reads'} '{x.name}' is not waited for when the role ends"
        run.report(Fault(Kind.IN_FLIGHT, told, x.name, x.slot, cta=x.cta, second=agent.site(r.step)), agent, step)
    return True


def reserve(run: Schedule, agent: Agent, step: Step) -> bool:
    """Columns of tensor memory are taken, or given back."""
    lane = run.lane(agent, step)
    clock = run.clocks[lane]
    taken = run.columns.get(agent.cta)
    if step.do is Do.RESERVE:
        before = taken[0] if taken else 0
        run.columns[agent.cta] = [before + step.a, lane, clock[lane]]
        return True
    if taken is None or taken[0] < step.a:
        have = taken[0] if taken else 0
        run.report(Fault(Kind.TENSOR, f"{step.a} columns are given back, {have} are taken", cta=agent.cta, second=agent.site(step)), agent, step)
    for r in run.shadow.left(agent.cta, clock, "tensor"):
        x = r.touch.location
        told = f"tensor memory of CTA {agent.cta} is given back while '{x.name}' may be in use"
        run.report(Fault(Kind.TENSOR, told, x.name, x.slot, cta=x.cta, first=r.agent.site(r.step), second=agent.site(step)), agent, step)
    if taken is not None:
        taken[0] = max(0, taken[0] - step.a)
    return True


def cta_exit(run: Schedule, cta: int, agent: Agent, step: Step) -> None:
    """All threads of a CTA have ended: nothing may be on its way to it, and its peers must be done with its memory."""
    clock = run.last_clock[cta]
    for f in run.flights:
        if f.barrier.cta == cta or any(r.touch.location.cta == cta for r in f.records):
            b = f.barrier
            told = f"a copy is on its way to CTA {cta} when its threads have ended"
            run.report(Fault(Kind.IN_FLIGHT, told, b.name, (b.index,), cta=cta, second=f.agent.site(f.step)), agent, step)
    coming = [(a.barrier, a.agent, a.step) for a in run.arrivals]
    coming += [(p.place, *p.last[1:]) for p in run.phases.values() if p.last is not None and p.last[0] >= p.waited]  # it has come, and no one knows that
    for b, who, done in coming:
        if b.cta == cta:
            told = f"an engine's arrival may be on its way to '{b.name}'[{b.index}] of CTA {cta} when its threads have ended"
            run.report(Fault(Kind.IN_FLIGHT, told, b.name, (b.index,), cta=cta, second=who.site(done)), agent, step)
    for r in run.shadow.left(cta, clock):
        x = r.touch.location
        own = r.agent.cta == cta
        kind = Kind.IN_FLIGHT if own or r.order is not None else Kind.EXIT
        told = f"CTA {cta} may leave while '{x.name}' is still {'written' if r.touch.write else 'read'}" + ("" if own else f" from CTA {r.agent.cta}")
        run.report(Fault(kind, told, x.name, x.slot, cta=cta, first=r.agent.site(r.step)), agent, step)
    for lane, at, who, done in run.remote.get(cta, ()):
        if clock[lane] < at:
            b = done.a
            told = f"CTA {cta} may leave before this arrival at its '{b.name}'[{b.index}]"
            run.report(Fault(Kind.EXIT, told, b.name, (b.index,), cta=cta, second=who.site(done)), agent, step)
    taken = run.columns.get(cta)
    if taken and taken[0]:
        run.report(Fault(Kind.TENSOR, f"CTA {cta} ends with {taken[0]} columns of tensor memory taken", cta=cta), agent, step)
