"""What went wrong in a simulated launch, as findings: in the codes that the rules have for the same mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cake_core.diagnostics import Diagnostic, Related, Witness
from cake_core.effects import Mode
from cake_core.facts.schema import Access, Arrive, EngineArrive, Event, Facts, Meet, Wait, WithBytes, events
from cake_core.machine import Fault, Kind, Site

CODES = {
    Kind.DEADLOCK: "core/deadlock",
    Kind.RACE: "core/slot-race",
    Kind.UNWRITTEN: "core/unwritten-read",
    Kind.ASYNC: "core/async-completion",
    Kind.FENCE: "core/missing-proxy-fence",
    Kind.PHASE: "core/wait-phase",
    Kind.OVERRUN: "core/arrival-phase",
    Kind.ARRIVALS: "core/arrival-count",
    Kind.BYTES: "core/transaction-bytes",
    Kind.INIT: "core/barrier-init-visible",
    Kind.IN_FLIGHT: "core/exit-in-flight",
    Kind.EXIT: "core/cluster-exit",
    Kind.TENSOR: "core/tensor-allocation",
    Kind.NAMED: "core/named-barrier",
    Kind.BOUNDS: "core/index-bounds",
}
FIXES = {
    Kind.DEADLOCK: "follow the waits, and let one of them be served first",
    Kind.RACE: "let one wait for the other's hand-off before it starts",
    Kind.UNWRITTEN: "write, or copy, all of it in front of the hand-off that the read waits for",
    Kind.ASYNC: "wait for the barrier or the group of the asynchronous one first",
    Kind.FENCE: "put the fence between the access and the hand-off",
    Kind.BOUNDS: "keep the index inside, by a `require` or a guard",
}


def code_of(fault: Fault, facts: Facts) -> str:
    """The code of the rule that is about the same."""
    name = fault.resource
    tensor, registers = any(t.name == name for t in facts.tensors), name not in facts.buffers and name not in facts.columns
    match fault.kind:
        case Kind.RACE if tensor:
            return "core/cta-race" if fault.cta is None else "core/agent-race"
        case Kind.RACE | Kind.ASYNC | Kind.FENCE if registers:
            return "core/register-fence"
        case Kind.ASYNC if not _writes(fault.first, name):
            return "core/slot-refill"
        case Kind.FENCE if name in facts.columns:
            return "core/tensor-fence-before" if "in front" in fault.message else "core/tensor-fence-after"
        case Kind.BOUNDS if name in facts.barriers:
            return "core/barrier-bounds"
    return CODES[fault.kind]


def _writes(site: Site | None, name: str) -> bool:
    acts = site.event.acts if site is not None and site.event is not None else ()
    return any(isinstance(a, Access) and a.region.name == name and a.mode is Mode.WRITE for a in acts)


def diagnostic(fault: Fault, facts: Facts, params: Mapping[str, int], schedule: str) -> Diagnostic:
    """One fault. `params`: the sizes at which it happened; `schedule`: under which one."""
    site = fault.second or fault.first
    span = _span(site)
    lines = [(f"{s}: waits for {what}", _span(s)) for s, what in fault.blocked]
    told, related = fault.message, ()
    if fault.kind is Kind.DEADLOCK:
        if ring := waits_for(fault, facts):
            told += f": {' waits for '.join(ring)}"
        related = tuple(Related(f"{s.role} waits here for {what}", _span(s)) for s, what in fault.blocked[1:] if _span(s) is not None)
    elif fault.first is not None and _span(fault.first) is not None:
        related = (Related(f"the other one, by '{fault.first.role}'", _span(fault.first)),)
    sizes = tuple((n, v) for n, v in params.items() if isinstance(v, int))
    at = ", ".join(f"{n} = {v}" for n, v in sizes)
    return Diagnostic(
        code_of(fault, facts),
        told,
        span,
        resource=fault.resource or None,
        role=site.role if site is not None else None,
        stage=", ".join(map(str, fault.slot)) or None,
        iteration=", ".join(f"{n}: {v}" for n, v in site.iteration) or None if site is not None else None,
        why=f"it happened in a run at {at or 'these inputs'}, schedule {schedule}",
        fix=FIXES.get(fault.kind),
        related=related,
        witness=Witness(sizes, tuple(line for line, _ in lines), True, tuple(place for _, place in lines), f"{fault.kind}: {fault.message}"),
    )


def _span(site: Site | None):
    return site.event.span if site is not None and site.event is not None and site.event.span.line else None


# --- who waits for whom ----------------------------------------------------------------------------------------------


def waits_for(fault: Fault, facts: Facts) -> list[str]:
    """A ring of roles, the first one named again at its end, each of which waits for what the next one brings; empty where there is none."""
    stuck = {s.role: s for s, _ in fault.blocked if s.event is not None}
    edges = {role: [other for other in stuck if _brings(other, site.event, facts)] for role, site in stuck.items()}
    for start in edges:
        if (ring := _ring(start, edges)) is not None:
            return ring
    return []


def _ring(start: str, edges: Mapping[str, list[str]]) -> list[str] | None:
    """The shortest way from a role back to itself."""
    paths, seen = [[start]], set()
    while paths:
        path = paths.pop(0)
        for other in edges[path[-1]]:
            if other == start:
                return [*path, start]
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return None


def _brings(role: str, waiting: Event, facts: Facts) -> bool:
    """Whether a role brings something to what an event waits for."""
    wanted = {a.barrier.name for a in waiting.acts if isinstance(a, Wait)}
    meets = any(isinstance(a, Meet) for a in waiting.acts)
    for a in _acts(role, facts):
        match a:
            case Arrive(ref) | EngineArrive(ref) if ref.name in wanted:
                return True
            case Access(completion=WithBytes(ref)) if ref.name in wanted:
                return True
            case Meet() if meets:
                return True
    return False


def _acts(role: str, facts: Facts) -> Iterator:
    bodies = [r.body for r in facts.roles if r.name == role]
    return (a for body in bodies for e in events(body) for a in e.acts)
