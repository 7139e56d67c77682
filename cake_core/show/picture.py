"""What there is to show of a kernel, as data: roles, maps of memory, barriers and who uses them where, findings, one run. Faces draw it; none asks further."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from math import prod

from cake_core.diagnostics import Diagnostic
from cake_core.effects import Mode
from cake_core.facts.schema import Access, Arrive, Block, EngineArrive, Event, Facts, Init, Wait, WithBytes, events
from cake_core.frozen import frozen
from cake_core.ir.plan import BarrierPlan, Placed, Plan
from cake_core.machine.timeline import Timeline
from cake_core.source import Source
from cake_core.trace import Kind


@frozen
class Use:
    """`who` does `what` ("writes", "reads", "waits", "arrives", "sends bytes", "initialises") to a place, at these lines of the text."""

    who: str
    what: str
    lines: tuple[int, ...]


@frozen
class Place:
    """A buffer or an array of barriers in a memory. `start`, `size`: in the strip's unit; `slots`: how many equal parts; `row`: of the strip, 0 unless it lies
    in the bytes of another one, `alias`. `holds`: its type, in words. `swizzle`: in bytes, 0 without one."""

    name: str
    start: int
    size: int
    slots: int
    holds: str
    row: int = 0
    alias: str | None = None
    swizzle: int = 0
    uses: tuple[Use, ...] = ()
    kind: str = "buffer"  # or "barrier"

    @property
    def end(self) -> int:
        return self.start + self.size


@frozen
class Strip:
    """One memory of a CTA from 0 to `limit`. `planned`: where the last place ends; `slack`: what aligning takes beside it."""

    memory: str
    unit: str
    limit: int
    planned: int
    slack: int
    places: tuple[Place, ...]


@frozen
class BarrierInfo:
    """`pipeline`: whose it is, None of a barrier that the text declares itself."""

    name: str
    slots: int
    count: int
    pipeline: str | None
    uses: tuple[Use, ...]


@frozen
class RoleInfo:
    """`first`: warp of the CTA, None of a text that could not be derived; `on`: the rank of the one CTA in its cluster that has the role, None: all."""

    name: str
    instances: int
    warps: int
    first: int | None
    pads: int
    words: dict[str, int]
    line: int
    on: int | None = None


@frozen
class Picture:
    """A text, what is found of it, and as far as it has a meaning what it becomes. `proof`: of a kernel without errors, as `cake check --json` says it.
    `missing`: why there is no timeline, where there is none."""

    source: Source
    kernel: str | None
    arch: str | None
    findings: tuple[Diagnostic, ...]
    roles: tuple[RoleInfo, ...] = ()
    strips: tuple[Strip, ...] = ()
    barriers: tuple[BarrierInfo, ...] = ()
    pipelines: tuple[dict, ...] = ()
    threads: int = 0
    cluster: int = 1
    shared_bytes: int = 0
    proof: dict | None = None
    timeline: Timeline | None = None
    missing: dict[str, str] = field(default_factory=dict)


def outlined(source: Source, findings: Iterable[Diagnostic], kernel: str, arch: str, plan: Plan, pipelines: tuple[dict, ...], why: str) -> Picture:
    """The picture of a text that has a meaning and could not be derived: what it declares, which has no places yet. `why`: there is no more."""
    found = tuple(findings)
    return Picture(source, kernel, arch, found, _roles(plan, False), pipelines=pipelines, cluster=plan.cluster, missing={"timeline": why})


def _roles(plan: Plan, placed: bool = True) -> tuple[RoleInfo, ...]:
    return tuple(
        RoleInfo(r.name, r.instances, r.warps, r.first if placed else None, r.pad, dict(sorted(r.entry.items())), r.span.line, r.on)
        for r in plan.roles
    )


def gathered(
    source: Source,
    findings: Iterable[Diagnostic],
    plan: Plan,
    facts: Facts,
    limits: tuple[int, int],
    pipelines: tuple[dict, ...],
    timeline: Timeline | None,
    proof: dict | None = None,
    missing: dict[str, str] | None = None,
) -> Picture:
    """The picture of a kernel that has facts. `limits`: bytes of shared memory of a CTA, columns of tensor memory (0: the target has none)."""
    used = _uses(facts)
    slack = plan.shared_bytes - plan.planned_bytes
    strips = [_strip("shared memory", "bytes", limits[0], slack, plan.buffers.values(), plan.barriers.values(), used)]
    strips += [_strip("tensor memory", "columns", limits[1], 0, plan.tensors.values(), (), used)] if plan.tensors else []
    owner = {b["name"]: p["name"] for p in pipelines for b in p["barriers"]}
    return Picture(
        source,
        facts.kernel,
        facts.arch,
        tuple(findings),
        _roles(plan),
        tuple(s for s in strips if s.places),
        tuple(BarrierInfo(b.name, b.slots, b.count, owner.get(b.name), used.get(("barrier", b.name), ())) for b in plan.barriers.values()),
        pipelines,
        plan.threads,
        plan.cluster,
        plan.shared_bytes,
        proof,
        timeline,
        missing or {},
    )


def _strip(memory: str, unit: str, limit: int, slack: int, buffers: Iterable[Placed], barriers: Iterable[BarrierPlan], used: dict) -> Strip:
    kind, places = memory.partition(" ")[0], []
    for b in sorted(buffers, key=lambda b: (b.alias is not None, b.cells.start, b.name)):
        start, end = b.cells.start, b.cells.stop
        row = next(n for n in range(len(places) + 1) if all(p.row != n or p.end <= start or end <= p.start for p in places))
        holds = f"{b.elem}{''.join(f'[{n}]' for n in b.slots)}[{', '.join(map(str, b.shape))}]"
        more = {"swizzle": getattr(b, "swizzle", 0), "uses": used.get((kind, b.name), ())}
        places.append(Place(b.name, start, end - start, prod(b.slots), holds, row, b.alias, **more))
    for b in barriers:
        holds = f"{b.kind}[{b.slots}], {b.count} arrival{'s' if b.count != 1 else ''} a phase"
        places.append(Place(b.name, b.offset, b.bytes, b.slots, holds, uses=used.get(("barrier", b.name), ()), kind="barrier"))
    places.sort(key=lambda p: (p.start, p.row))
    return Strip(memory, unit, limit, max((p.end for p in places), default=0), slack, tuple(places))


# --- who uses what where -----------------------------------------------------------------------------------------


def _uses(facts: Facts) -> dict[tuple[str, str], tuple[Use, ...]]:
    """By memory and name (of a barrier: "barrier"), who does what at which lines."""
    found: dict[tuple[str, str], dict[tuple[str, str], set[int]]] = {}
    blocks: list[tuple[str, Block]] = [("all warps", facts.before), *((r.name, r.body) for r in facts.roles), ("all warps", facts.after)]
    for who, block in blocks:
        for e in events(block):
            for memory, name, what in _done(e):
                found.setdefault((memory, name), {}).setdefault((who, what), set()).add(e.span.line)
    return {key: tuple(Use(who, what, tuple(sorted(n for n in lines if n))) for (who, what), lines in by.items()) for key, by in found.items()}


def _done(e: Event) -> Iterator[tuple[str, str, str]]:
    for a in e.acts:
        match a:
            case Access(region=r, mode=mode, completion=completion):
                if r.memory in ("shared", "tensor"):
                    yield r.memory, r.name, "writes" if mode is Mode.WRITE else "reads"
                if isinstance(completion, WithBytes):
                    yield "barrier", completion.barrier.name, "sends bytes"
            case Wait(ref):
                yield "barrier", ref.name, "waits"
            case Arrive(ref) | EngineArrive(ref):
                yield "barrier", ref.name, "arrives"
            case Init(name):
                yield "barrier", name, "initialises"


# --- for a program -----------------------------------------------------------------------------------------------


def picture_object(p: Picture) -> dict:
    """The picture as JSON values, findings left out: they stand in the document around it."""
    return {
        "kernel": p.kernel,
        "arch": p.arch,
        "file": p.source.name,
        "threads": p.threads,
        "cluster": p.cluster,
        "shared_bytes": p.shared_bytes,
        "roles": [asdict(r) for r in p.roles],
        "memory": [asdict(s) for s in p.strips],
        "barriers": [asdict(b) for b in p.barriers],
        "pipelines": list(p.pipelines),
        "proof": p.proof,
        "timeline": _timeline_object(p.timeline) if p.timeline is not None else None,
        "missing": p.missing,
    }


def _timeline_object(t: Timeline) -> dict:
    at = lambda s: {"line": s.line, "column": s.column} if s is not None and s.line else None
    trace = t.trace
    return {
        "sizes": dict(t.scenario.params),
        "unit": trace.unit,
        "end": trace.end,
        "cut": t.cut,
        "faults": [{"kind": str(f.kind), "message": f.message} for f in t.faults],
        "tracks": [{"group": k.group, "name": k.name, "kind": str(k.kind), "detail": k.detail} for k in trace.tracks],
        "slices": [
            {
                "track": s.track,
                "name": s.name,
                "start": s.start,
                "end": s.end,
                "waited": s.waited,
                "what": s.what,
                "at": at(s.span),
                "details": dict(s.details),
            }
            for s in trace.slices
        ],
        "arrows": [{"from": a.source, "to": a.target, "name": a.name, "last": a.last} for a in trace.arrows],
    }


def roles_of(t: Timeline) -> list[tuple[str, str, int, float, float, str]]:
    """A row a role's track: CTA, name, statements, units of work, units of waiting, and at which statement it waited longest."""
    rows = []
    for n, track in enumerate(t.trace.tracks):
        if track.kind is Kind.ROLE:
            slices = [s for s in t.trace.slices if s.track == n]
            waited = sum(s.waited for s in slices)
            worst = max(slices, key=lambda s: s.waited, default=None)
            where = f"{worst.name} ({worst.waited})" if worst is not None and worst.waited else ""
            rows.append((track.group, track.name, len(slices), sum(s.end - s.start for s in slices) - waited, waited, where))
    return rows
