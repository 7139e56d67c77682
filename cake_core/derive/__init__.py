"""Derivation: the schedule form becomes the derived form of the same language, readable top to bottom in `derive`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cake_core.architecture import Architecture
from cake_core.derive.accesses import Touch, operation_with, touches
from cake_core.derive.body import CURSORS, Frame, body_of
from cake_core.derive.dynamic import free_warps, on_demand, waits_for_grids
from cake_core.derive.expand import bound_names, unroll
from cake_core.derive.held import HeldSlots
from cake_core.derive.memory import Asked, unify
from cake_core.derive.memory import plan as plan_memory
from cake_core.derive.outside import known_at_launch, reads
from cake_core.derive.pipelines import Planner
from cake_core.derive.received import received
from cake_core.derive.schedules import Schedule
from cake_core.derive.tensor import TensorMemory, by_first_warp, plan_tensor
from cake_core.derive.tiles import contracted, expanded, on_demand_of, prologue, same_order
from cake_core.derive.turns import turns_of
from cake_core.derive.warps import NamedBarriers, Placed, place
from cake_core.diagnostics import Related, Sink, fail
from cake_core.effects import Access, ByCommit, BySignal, Fence, Proxy, Rendezvous
from cake_core.ir.aliases import declared_mates
from cake_core.ir.build import by_leader, lift
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Block, Declare, Int, Kernel, Op, Param, Pipeline, Role, Stmt, Tiles, Turn, Word
from cake_core.ir.plan import pair_rank, paired, warp_grid
from cake_core.ir.schedule import read_schedule
from cake_core.ir.types import ELEMENTS, Tile
from cake_core.primitive import Demand, Form, PipelinePlan, Protocol
from cake_core.primitive.asking import all_of, answering, effects_of, one_of
from cake_core.primitive.groups import Groups

__all__ = ["derive"]


def derive(kernel: Kernel, registry, arch: Architecture) -> Kernel:
    """The derived form of an elaborated schedule-form kernel, as untyped nodes. Raises CakeError with all findings."""
    sink = Sink()
    fresh = Fresh(kernel)
    kernel = replace(kernel, body=_unrolled(kernel, fresh))
    axis, cluster = (kernel.cluster.axis.name, kernel.cluster.axis.value.value) if kernel.cluster else (None, 1)
    groups = Groups(registry.groups)

    placed = place(kernel, registry, groups)
    schedules = expanded(kernel, axis, cluster, fresh)
    touched = touches(kernel, registry)
    demanded, asked = _demands(kernel, registry, arch, axis, cluster, placed, groups, sink)
    swizzles = unify(asked, sink)
    held = _held(kernel, received(kernel, registry, touched, sink).agreed, frozenset(id(t.by) for t in touched), sink)
    _touched_when_held(kernel, touched, held)
    plans = Planner(kernel, registry, placed, touched, cluster, sink).plans()
    sink.stop_if_errors()

    drawn = on_demand_of(kernel)
    same_order(kernel)
    protocol = _protocol(registry, arch, kernel) if plans or drawn else None
    plans = {name: _named(plan, protocol, fresh) for name, plan in plans.items()}
    static = dict(schedules)
    for name, tiles in drawn.items():
        schedule = on_demand(kernel, tiles, static[name], registry, arch, placed, touched, protocol, (axis, cluster), fresh)
        schedules[name] = replace(schedule, plan=_named(schedule.plan, protocol, fresh))
        plans[name] = schedules[name].plan
    barriers = tuple(s for p in plans.values() for s in protocol.declare(p)) if plans else ()
    tensor = plan_tensor(kernel, registry, arch, fresh)
    words = ((tensor.word,) if tensor is not None else ()) + tuple(schedules[name].declared() for name in drawn)
    memory = plan_memory(replace(kernel, body=(*kernel.body, *words)), barriers, asked, swizzles)
    turns, following = turns_of(kernel, registry, arch, placed, first=1)
    tensors = {p.name for p in kernel.params}  # the fence between proxies is of shared memory
    named = NamedBarriers(following=following)
    frame = Frame(
        registry=registry,
        arch=arch,
        cluster_axis=axis,
        cluster_size=cluster,
        pair=paired(kernel),
        declarations={d.name: d for s in (*memory, *(tensor.declared if tensor is not None else ())) for d in s.declarations},
        types=_types(kernel),
        swizzles=swizzles,
        plans=plans,
        protocol=protocol,
        schedules=schedules,
        counters={name: fresh(f"{name}_n") for name in schedules},
        barriers=named,
        turns=turns,
        mates=declared_mates(kernel.body),
        other_proxies=_with_mates(kernel, {t.buffer for t in touched if t.access.proxy is not Proxy.GENERIC} - tensors),
        by_engine=frozenset((t.role, t.buffer) for t in touched if t.access.proxy is Proxy.TENSOR or isinstance(t.access.completion, ByCommit)),
        sink=sink,
        fresh=fresh,
    )
    with sink.collecting():
        read = reads(kernel, frame)
    roles = []
    for role in kernel.roles:
        with sink.collecting(role=role.name):
            p = placed[role.name]
            roles.append(_header(body_of(role, frame, p.warps, p.instances, demanded[role.name], held[role.name]), p))
    for (name, tiles), warp in zip(drawn.items(), free_warps(placed), strict=False):
        roles.append(schedules[name].scheduler(warp, waits_for_grids(kernel, registry, arch, tiles.span), tiles.span))
    named.check(kernel, arch, sink)
    sink.stop_if_errors()
    return replace(contracted(kernel, static), body=_assemble(kernel, static, memory, tensor, plans, protocol, read, roles, registry, arch, cluster))


# --- parts ---------------------------------------------------------------------------------------------------------


class Fresh:
    """Names that the text does not use yet."""

    def __init__(self, kernel: Kernel):
        self.used = {p.name for p in kernel.params} | {r.name for r in kernel.roles} | set(bound_names(kernel.body))

    def __call__(self, name: str) -> str:
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name


def _unrolled(kernel: Kernel, fresh: Fresh) -> Block:
    opened = any(isinstance(s, Tiles) and not read_schedule(s).persistent for s in kernel.body)
    around = frozenset({p.name for p in kernel.params} | set(bound_names(tuple(s for s in kernel.body if not isinstance(s, Role)))))
    return tuple(replace(s, body=unroll(s.body, fresh, around, opened)) if isinstance(s, Role) else s for s in kernel.body)


def _with_mates(kernel: Kernel, buffers: set[str]) -> frozenset[str]:
    """Buffers, and those that share bytes with them."""
    shared = declared_mates(kernel.body)
    return frozenset(buffers).union(*(shared.get(b, ()) for b in buffers))


def _types(kernel: Kernel) -> dict[str, Tile]:
    types = {}
    for p in kernel.params:
        if p.mode is not None:
            types[p.name] = _tensor_type(p)
    for s in kernel.body:
        if isinstance(s, Declare):
            for d in s.declarations:
                types[d.name] = Tile(s.space, ELEMENTS[d.declared.name], tuple(tuple(e.value for e in g) for g in d.declared.groups))
    return types


def _tensor_type(p: Param) -> Tile:
    return Tile("global", ELEMENTS[p.declared.name], (tuple(e.value if isinstance(e, Int) else e for e in p.declared.groups[0]),))


class Asking:
    """The CheckContext for `demands` and `fragments`."""

    def __init__(self, kernel: Kernel, arch, axis, cluster: int):
        self.form, self.arch, self.cluster_axis, self.cluster_size = Form.SCHEDULE, arch, axis, cluster
        self.warps, self.group, self.grid, self.aligned, self.on = 0, None, (0, 1), 0, None
        self.pair = paired(kernel)
        self.shared = {d.name: d for s in kernel.body if isinstance(s, Declare) for d in s.declarations}
        self.known = self.shared

    def enter(self, role: Role) -> None:
        self.known = self.shared | {d.name: d for s in walk(role.body) if isinstance(s, Declare) for d in s.declarations}

    def declaration(self, name: str):
        return self.known.get(name)


def _demands(kernel: Kernel, registry, arch, axis, cluster, placed: dict[str, Placed], groups, sink: Sink):
    """Layouts that operations demand of the fragments of each role, and what they ask of shared buffers."""
    layouts: dict[str, dict[str, tuple[str, object]]] = {}
    asked: list[Asked] = []
    cx = Asking(kernel, arch, axis, cluster)
    for role in kernel.roles:
        mine = layouts.setdefault(role.name, {})
        cx.enter(role)
        cx.warps, cx.group = placed[role.name].warps, groups[role.group].name
        cx.grid, cx.on = warp_grid(role.words, cx.warps), pair_rank(role.words)
        cx.aligned = placed[role.name].first & -placed[role.name].first or 32
        for s in walk(role.body):
            if not isinstance(s, Op) or (operation := registry.operations.get(s.name)) is None:
                continue
            with sink.collecting(role=role.name, span=s.span):
                with answering(operation, "demands", s.span):
                    demands = all_of(operation.demands(s, cx), Demand, "demand")
                with answering(operation, "fragments", s.span):
                    fragments = one_of(operation.fragments(s, cx), Mapping, "table of layouts")
                asked += [Asked(d, s.name, s.span) for d in demands]
                for name, layout in fragments.items():
                    have, span = mine.setdefault(name, (layout, s.span))
                    if have != layout:
                        related = (Related(f"as layout '{have}' here", span),)
                        raise fail("derive/layout-mismatch", f"fragment '{name}' is used as layout '{have}' and as '{layout}'", s.span, resource=name, related=related, why="a fragment lies in one way over the threads")
    return layouts, asked


def _touched_when_held(kernel: Kernel, touched: list[Touch], held: dict[str, HeldSlots]) -> None:
    """The slots of a pipeline are touched between its verbs. Copies that announce bytes are told of where those are counted."""
    for p in (s for s in kernel.body if isinstance(s, Pipeline)):
        for t in touched:
            if t.buffer in p.buffers and p.name in held[t.role].slots and not isinstance(t.access.completion, BySignal):
                held[t.role].touched(p.name, t.by, t.buffer)


def _held(kernel: Kernel, agreed: frozenset[int], watched: frozenset[int], sink: Sink) -> dict[str, HeldSlots]:
    slots = {s.name: s.slots.value for s in kernel.body if isinstance(s, Pipeline)}
    out = {}
    for role in kernel.roles:
        ends = {s.name for s in kernel.body if isinstance(s, Pipeline) and role.name in [e.name for e in (*s.producers, *s.consumers)]}
        tokens = {s.name: 1 for s in kernel.body if isinstance(s, Turn) and s.words.get("over").id == role.name}
        out[role.name] = HeldSlots(role, {p: n for p, n in slots.items() if p in ends} | tokens, sink, watched, agreed=agreed)
        out[role.name].analyse()
    return out


def _protocol(registry, arch: Architecture, kernel: Kernel) -> Protocol:
    for protocol in registry.protocols.values():
        if protocol.capabilities <= arch.capabilities:
            return protocol
    first = next(s for kind in (Pipeline, Tiles) for s in kernel.body if isinstance(s, kind))
    if isinstance(first, Tiles):
        raise fail("derive/no-protocol", f"no installed plugin offers a pipeline protocol for {arch.name}", first.span, resource=first.name, why="items on demand reach the roles through a pipeline", fix="leave `dynamic` out, or build for another target")
    raise fail("derive/no-protocol", f"no installed plugin offers a pipeline protocol for {arch.name}", first.span, resource=first.name, why="a protocol says how a slot is handed over", fix="let one role fill and read a ring, or build for another target")


def _named(plan: PipelinePlan, protocol: Protocol, fresh: Fresh) -> PipelinePlan:
    """The plan with a name from which no name of the text can be made: its barriers and cursors are called after it."""
    while True:
        barriers = [d.name for s in protocol.declare(plan) for d in s.declarations]
        made = {*barriers, *(f"{plan.name}_{x}" for x in CURSORS), *(f"{plan.name}_{x}_slot" for x in CURSORS)}
        if not made & fresh.used:
            fresh.used |= made
            return plan
        plan = replace(plan, name=f"{plan.name}_")


def _header(role: Role, p: Placed) -> Role:
    words = tuple(w for w in role.words.items if w.name not in ("over", "aligned"))  # the warp grid stands on the fragments now, `at` is aligned
    placed = (Word("at", lift(p.first)), *words, *((Word("pad", lift(p.pad)),) if p.pad else ()))
    return replace(role, words=replace(role.words, items=placed))


def _assemble(
    kernel: Kernel, schedules: dict[str, Schedule], memory, tensor: TensorMemory | None, plans, protocol, read: Block, roles: list[Role], registry, arch, cluster: int
) -> Block:
    """The kernel's body: lets, launch, memory, barrier initialisation, tensor memory, what is read, roles, exit (S18)."""
    lets = known_at_launch(kernel, registry)
    find = lambda effect, wanted, what: operation_with(registry, arch, effect, wanted, what, kernel.span)  # noqa: E731
    meet = lambda scope: find(Rendezvous, lambda e: e.scope == scope, f"a barrier of the {scope}")  # noqa: E731
    together = "cluster" if cluster > 1 else "cta"
    setup: list[Stmt] = []
    leave: list[Stmt] = []
    if plans:
        inits = tuple(s for p in plans.values() for s in protocol.initialise(p))
        setup.append(by_leader(*inits, *protocol.publish(cluster)))
    if tensor is not None:
        setup.append(by_first_warp((meet("warp"), *tensor.take)))  # one lane of this warp was busy with the barriers
    # A CTA's shared memory may be reached from the cluster once it has started (PTX ISA, cluster of CTAs).
    reaches = any(isinstance(e, Access) and e.cta is not None for r in kernel.roles for s in walk(r.body) for e in effects_of(s, registry))
    if setup or reaches and cluster > 1:
        setup.append(meet(together))
    if cluster > 1:
        leave.append(meet("cluster"))
    if tensor is not None:
        setup += [tensor.address, *tensor.declared]
        if cluster == 1:
            leave += [meet("warp"), meet("cta")]  # the leader of a role may come alone
        after = find(Fence, lambda e: e.kind == "tensor_after", "a fence of the tensor engine")
        leave.append(by_first_warp((meet("warp"), after, *tensor.free)))
    return (*lets, *prologue(kernel, schedules), *memory, *setup, *read, *roles, *leave)
