"""Facts as rows: `rows_of` writes a kernel's facts in the relations of `relations.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from functools import reduce
from math import prod
from typing import Any

from cake_core.architecture import Architecture
from cake_core.effects import Fence, Free, GridOrder, Mode, Reserve
from cake_core.facts.handoffs import by_rank, hand_offs, level, named_meetings, threads, uniform
from cake_core.facts.loaded import Loaded
from cake_core.facts.masked import made
from cake_core.facts.relations import APART, RELATIONS
from cake_core.facts.schema import (
    Access,
    Act,
    Arrive,
    BarrierRef,
    Block,
    Branch,
    Commit,
    Drain,
    EngineArrive,
    Event,
    Facts,
    Init,
    Loop,
    Meet,
    Region,
    RoleFacts,
    Wait,
    While,
    WithBytes,
    WithCommit,
    WithGroup,
)
from cake_core.facts.sectors import run
from cake_core.frozen import frozen, thawed
from cake_core.ir.build import lift, mul
from cake_core.ir.nodes import Int
from cake_core.ir.plan import Placed, Plan, RolePlan
from cake_core.source import NOWHERE, Span

@frozen
class Site:
    """Where in the facts an act stands: what a prover asks about. `role` None: outside of the roles."""

    role: RoleFacts | None
    part: str
    event: Event
    act: Act | None


@frozen(eq=False)
class Row:
    """One fact. `values` by column: int, bool, str, an `Expr`, the id of another row, a tuple of these, or None. Rows are
    themselves: two are equal if they are one. `site`: of what happens."""

    relation: str
    id: str
    span: Span
    values: Mapping[str, object]
    site: Site | None = None

    def __getitem__(self, column: str):
        return self.values[column]

    @property
    def loc(self) -> str:
        return f"{self.span.line}:{self.span.column}" if self.span.line else ""


@thawed
class Rows:
    """All rows of one kernel; a relation's in the order of the text. `facts`: what they were written from."""

    facts: Facts
    arch: Architecture
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in RELATIONS})
    index: dict[tuple[str, str], Row] = field(default_factory=dict)
    remembered: dict[tuple, Any] = field(default_factory=dict)  # what readers of the text have found out about its parts, by their names and ids

    def __getitem__(self, relation: str) -> list[Row]:
        return self.tables[relation]

    def find(self, relation: str, id: str) -> Row:
        return self.index[relation, id]

    def add(self, relation: str, id: object, span: Span | None, site: Site | None = None, **values) -> Row:
        row = Row(relation, str(id), span or NOWHERE, values, site)
        missing = {c.name for c in RELATIONS[relation].columns} - {"id", "loc"} ^ values.keys()
        assert not missing, f"{relation}: {sorted(missing)}"
        self.tables[relation].append(row)
        self.index[relation, row.id] = row
        return row


def rows_of(facts: Facts, arch: Architecture, registry) -> Rows:
    """The rows of a kernel's facts, with the limits of its target and the role words that `registry` has."""
    rows = Rows(facts, arch)
    _kernel(rows)
    _roles(rows, registry)
    _memory(rows)
    order = _Order(rows)
    everyone = tuple(range(facts.cluster))
    order.block(facts.before, None, "before", _Around(ctas=everyone))
    for role in facts.roles:
        order.block(role.body, role, "role", _Around(ctas=facts.ctas(role), names=Loaded.of(role.body)))
    order.block(facts.after, None, "after", _Around(ctas=everyone))
    _hand_offs(rows)
    return rows


# --- the kernel and its target -----------------------------------------------------------------------------------


def _kernel(rows: Rows) -> None:
    f, arch = rows.facts, rows.arch
    plan = Plan(tuple(r.plan for r in f.roles), f.buffers, f.barriers, f.launch, f.cluster, f.columns, f.pair)
    rows.add(
        "kernel",
        f.kernel,
        f.launch.span,
        arch=f.arch,
        cluster=f.cluster,
        pair=f.pair,
        warps=f.warps,
        threads=32 * f.warps,
        persistent=f.launch.persistent,
        items=f.launch.items,
        resident=f.launch.ctas_per_sm,
        planned_bytes=plan.planned_bytes,
        shared_bytes=plan.shared_bytes,
    )
    for name, limit in sorted(arch.limits.items()):
        rows.add("limit", name, None, value=limit.value, source=limit.source)
    for name in sorted(arch.capabilities):
        rows.add("capability", name, None)
    for name in f.scalars:
        rows.add("param", name, None, mode="scalar", bits=None, shape=())
    for t in f.tensors:
        rows.add("param", t.name, t.span, mode=t.mode, bits=t.bits, shape=t.shape)
    for n, e in enumerate((*f.requires, *f.assumes)):
        rows.add("require", n, e.span, expr=e, believed=n >= len(f.requires))
    for r in range(f.cluster):
        rows.add("rank", r, None, number=r)


def _roles(rows: Rows, registry) -> None:
    f, words = rows.facts, registry.role_words
    plans = [r.plan for r in f.roles]
    entry = entry_registers(rows)
    owned = {p.name: _owned(p, plans, words, entry) for p in plans}
    for role, p in zip(f.roles, plans, strict=True):
        rows.add(
            "role",
            p.name,
            p.span,
            instances=p.instances,
            warps=p.warps,
            threads=32 * p.warps,
            first=p.first,
            end=p.end,
            pad=p.pad,
            ctas=f.ctas(role),
            registers=owned[p.name],
            words=sum(w in words for w in p.entry),
        )
        for w, value in p.entry.items():
            if w in words:
                rows.add("role_word", f"{p.name}.{w}", p.span, role=p.name, word=w, value=value, groups_of=words[w].groups_of)
        for i in range(p.instances):
            rows.add("instance", f"{p.name}[{i}]", p.span, role=p.name, number=i)
    lived = {w for p in plans for w in range(p.first, p.end)}
    pads = {p.name: set(range(p.end, p.end + p.pad)) - lived for p in plans}
    for p in plans:
        rows.add("share", p.name, p.span, holder=p.name, registers=owned[p.name], threads=32 * (p.instances * p.warps + len(pads[p.name])))
    if idle := f.warps - len(lived.union(*pads.values())):
        rows.add("share", "idle", None, holder="idle", registers=entry, threads=32 * idle)


def entry_registers(rows: Rows) -> int:
    """Registers a thread at entry: the file's equal share, in whole granules, up to what a thread can own."""
    arch = rows.arch
    whole = arch.limit("registers_per_sm") // (rows.facts.launch.ctas_per_sm or 1)
    granule = arch.limit("register_granule")
    return min(whole // (32 * rows.facts.warps) // granule * granule, arch.limit("registers_per_thread"))


def _owned(role: RolePlan, plans: list[RolePlan], words, entry: int) -> int:
    """Registers a thread: what a word on its header sets, or on that of the role in whose pad warps it lives (S20)."""
    host = next((p for p in plans if p.end <= role.first < p.end + p.pad), role)
    return next((n for w, n in (*role.entry.items(), *host.entry.items()) if w in words and words[w].sets_registers), entry)


def _memory(rows: Rows) -> None:
    f = rows.facts
    nothing = dict.fromkeys(("mode", "bits", "slots", "offset", "size", "slot_bytes", "swizzle", "alias"))
    for b in f.barriers.values():
        rows.add("barrier", b.name, b.span, kind=b.kind, slots=b.slots, count=b.count, offset=b.offset, bytes=b.bytes)
    for b in f.buffers.values():
        shape = tuple(lift(d) for d in b.shape)
        sizes = {"offset": b.offset, "size": b.bytes, "slot_bytes": b.slot_bytes, "swizzle": b.swizzle} | _lies(b)
        rows.add("buffer", b.name, b.span, space="shared", shape=shape, **(nothing | {"bits": b.elem.bits, "slots": prod(b.slots)} | sizes))
    for t in f.columns.values():
        sizes = {"bits": t.elem.bits, "slots": prod(t.slots), "offset": t.column, "size": t.columns} | _lies(t)
        rows.add("buffer", t.name, t.span, space="tensor", shape=tuple(lift(d) for d in t.shape), **(nothing | sizes))
    for kind, things in (("buffer", f.buffers), ("barrier", f.barriers)):
        for x in things.values():
            home = getattr(x, "alias", None) or x.name
            rows.add("place", x.name, x.span, kind=kind, number=len(rows["place"]), offset=x.offset, end=x.offset + x.bytes, home=home)
    for p in f.tensors:
        rows.add("buffer", p.name, p.span, space="global", shape=p.shape, **(nothing | {"bits": p.bits, "mode": p.mode, "home": p.name}))
        for n, size in enumerate(p.shape):
            stride = reduce(mul, p.shape[n + 1 :], Int(p.bits // 8))
            rows.add("dimension", f"{p.name}.{n}", p.span, buffer=p.name, number=n, inner=n == len(p.shape) - 1, size=size, stride=stride)


def _lies(b: Placed) -> dict[str, str | None]:
    return {"alias": b.alias, "home": b.alias or b.name}


# --- what happens ------------------------------------------------------------------------------------------------


@frozen
class _Around:
    """What stands around a statement. `counted`: how many threads come there can be counted; `apart`: index in APART. `names`: of numbers
    from memory; `loaded`: such a one decides whether the statement runs. `ctas`: ranks of those that may come there."""

    loop: Row | None = None
    guarded: bool = False
    counted: bool = True
    apart: int = 0
    names: Loaded = Loaded(frozenset())
    loaded: bool = False
    ctas: tuple[int, ...] = ()


@thawed
class _Order:
    """Walks blocks in text order."""

    rows: Rows
    count: int = 0

    def block(self, block: Block, role: RoleFacts | None, part: str, around: _Around) -> None:
        owner, loop = role.name if role else None, around.loop
        for node in block:
            match node:
                case Event():
                    self.event(node, role, part, around)
                case Loop() | While():
                    over = isinstance(node, Loop)
                    row = self.rows.add(
                        "loop",
                        node.id,
                        node.span,
                        role=owner,
                        parent=loop.id if loop else None,
                        depth=loop["depth"] + 1 if loop else 0,
                        var=node.var if over else None,
                        lo=node.lo if over else None,
                        hi=node.hi if over else None,
                        step=node.step if over else None,
                        test=None if over else node.test,
                    )
                    bounds = (node.lo, node.hi, node.step) if over else (node.test,)
                    loaded = around.loaded or around.names.holds(*bounds)
                    self.block(node.body, role, part, replace(around, loop=row, apart=max(around.apart, level(*bounds)), loaded=loaded))
                case Branch():
                    same = uniform(node.test)
                    self.rows.add("branch", node.id, node.span, role=owner, loop=loop.id if loop else None, test=node.test, uniform=same)
                    loaded = around.loaded or around.names.holds(node.test)
                    inside = _Around(loop, True, around.counted and same, max(around.apart, level(node.test)), around.names, loaded)
                    for arm, other in ((node.then, False), (node.other, True)):
                        there = tuple(c for c in around.ctas if by_rank(node.test, self.rows.facts, c) is not other)
                        self.block(arm, role, part, replace(inside, ctas=there))

    def event(self, e: Event, role: RoleFacts | None, part: str, around: _Around) -> None:
        self.count += 1
        common = {
            "event": str(e.id),
            "role": role.name if role else None,
            "part": part,
            "op": e.op,
            "by": str(e.by),
            "warp": e.warp,
            "threads": threads(e, role.plan.warps if role else self.rows.facts.warps) if around.counted else None,
            "order": self.count,
            "loop": around.loop.id if around.loop else None,
            "guarded": around.guarded,
            "apart": APART[around.apart],
            "ctas": around.ctas,
            "loaded": around.loaded or around.names.event(e),
        }
        remote = any(_remote(act) for act in e.acts)
        self.rows.add("event", e.id, e.span, Site(role, part, e, None), **common, remote=remote)
        for n, act in enumerate(e.acts):
            relation, values = self.act(act)
            site = Site(role, part, e, act)
            mine = common | {"loaded": around.names.act(act)}
            self.rows.add(relation, f"{e.id}.{n}", e.span, site, **mine, **values)
            if (use := _barrier_use(act)) is not None:
                barrier, how = use
                where = {"barrier": barrier.name, "index": barrier.index, "how": how, "remote": _remote(act)}
                self.rows.add("barrier_use", f"{e.id}.{n}", e.span, site, **mine, **where)
        for n, a in enumerate(e.attributes, len(e.acts) + len(e.sets)):
            number = a.value if isinstance(a.value, int) else None
            self.rows.add("attribute", f"{e.id}.{n}", e.span, Site(role, part, e, None), **common, name=a.name, word=str(a.value), number=number)
        for n, m in enumerate(e.specials, len(e.acts) + len(e.sets) + len(e.attributes)):
            relation, values = made(m, self.rows.facts)
            self.rows.add(relation, f"{e.id}.{n}", e.span, Site(role, part, e, None), **common, **values)
        for n, s in enumerate(e.sets, len(e.acts)):
            self.rows.add("assign", f"{e.id}.{n}", e.span, Site(role, part, e, None), **common, name=s.name, value=s.value)

    def act(self, act: Act) -> tuple[str, dict]:
        match act:
            case Access():
                return "access", self.access(act)
            case Init(barrier):
                return "init", {"barrier": barrier}
            case Wait(barrier, parity):
                return "wait", {"barrier": barrier.name, "index": barrier.index, "parity": parity}
            case Arrive(barrier, cta, expect):
                return "arrive", {"barrier": barrier.name, "index": barrier.index, "cta": cta, "expect": expect}
            case EngineArrive(barrier, engine, mask):
                return "engine_arrive", {"barrier": barrier.name, "index": barrier.index, "engine": engine, "mask": mask}
            case Commit(queue):
                return "commit", {"queue": queue}
            case Drain(queue, pending, reads_only):
                return "drain", {"queue": queue, "pending": pending, "reads_only": reads_only}
            case Meet(scope, number, count, waits):
                return "meet", {"scope": scope, "number": number, "count": count, "waits": waits}
            case Fence(kind, scope):
                return "fence", {"kind": kind, "scope": scope}
            case Reserve(amount):
                return "reserve", {"amount": amount}
            case Free(amount):
                return "free", {"amount": amount}
            case GridOrder(waits):
                return "grid_order", {"waits": waits}
        raise AssertionError(f"no relation for {type(act).__name__}")

    def access(self, a: Access) -> dict:
        where = a.region
        if ("buffer", where.name) not in self.rows.index:  # registers are not declared among the buffers
            nothing = dict.fromkeys(("mode", "bits", "slots", "offset", "size", "slot_bytes", "swizzle", "alias"))
            self.rows.add("buffer", where.name, None, space=where.memory, shape=(), **(nothing | {"home": where.name}))
        values = dict.fromkeys(("queue", "engine", "barrier", "index", "bytes", "mask"))
        how = "now"
        match a.completion:
            case WithGroup(queue):
                how, values["queue"] = "group", queue
            case WithCommit(engine):
                how, values["engine"] = "commit", engine
            case WithBytes(barrier, count, mask):
                how = "bytes"
                values |= {"barrier": barrier.name, "index": barrier.index, "bytes": count, "mask": mask}
        return values | {
            "buffer": where.name,
            "space": where.memory,
            "mode": str(a.mode),
            "proxy": str(a.proxy),
            "issuer": str(a.issuer),
            "completes": how,
            "slot": where.slot,
            "lo": tuple(x.lo for x in where.box),
            "size": tuple(x.size for x in where.box),
            "atomic": a.atomic,
            "clips": a.clips,
            "width": a.width,
            "turns": a.turns,
            "sectors": a.moved and a.moved.sectors,
            "useful": a.moved and a.moved.useful,
            "piece": a.moved and a.moved.piece,
            "run": self.run(where),
            "sem": a.order,
            "scope": a.scope,
            "cta": a.cta,
        }

    def run(self, where: Region) -> int | None:
        tensor = next((t for t in self.rows.facts.tensors if where.memory == "global" and t.name == where.name), None)
        return None if tensor is None else run(where, tensor.shape, tensor.bits // 8)


def _barrier_use(act: Act) -> tuple[BarrierRef, str] | None:
    match act:
        case Wait(barrier):
            return barrier, "wait"
        case Arrive(barrier):
            return barrier, "arrive"
        case EngineArrive(barrier):
            return barrier, "engine"
        case Access(mode=Mode.WRITE, completion=WithBytes(barrier)):
            return barrier, "bytes"
    return None


def _remote(act: Act) -> bool:
    """Whether it touches another CTA of the cluster."""
    match act:
        case Access(cta=cta, completion=completion):
            return cta is not None or isinstance(completion, WithBytes) and (completion.mask is not None or completion.cta is not None)
        case Arrive(cta=cta):
            return cta is not None
        case EngineArrive(mask=mask):
            return mask is not None
    return False


# --- what is counted ---------------------------------------------------------------------------------------------


def _hand_offs(rows: Rows) -> None:
    stretch = 0
    for role in rows.facts.roles:
        for h in hand_offs(rows.facts, role):
            for rank in range(rows.facts.cluster):
                expected, brought = h.received(rank)
                rows.add(
                    "handoff",
                    f"{stretch}.{rank}",
                    h.span,
                    barrier=h.barrier,
                    role=h.role,
                    stretch=stretch,
                    rank=rank,
                    arrivals=None if h.arrivals is None else h.arrivals[rank],
                    expected=expected,
                    bytes=brought,
                    arrives=h.arrivals != Counter(),
                    announces=bool(h.expected),
                    brings=bool(h.bytes),
                    uniform=h.uniform,
                )
            stretch += 1
        for i in range(role.plan.instances):
            for n, (e, meet, number) in enumerate(named_meetings(role, i)):
                instance = f"{role.name}[{i}]"
                mine = {"role": role.name, "number": number, "count": meet.threads, "threads": 32 * role.plan.warps, "waits": meet.waits}
                rows.add("rendezvous", f"{instance}.{e.id}.{n}", e.span, instance=instance, **mine, order=rows.find("event", str(e.id))["order"])
