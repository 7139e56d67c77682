"""The entry of a kernel: prologue, the body before the roles, the roles, the body behind them; and what the manifest says."""

from __future__ import annotations

from cake_core.architecture import Architecture, Backend, Launch
from cake_core.artifact import Check, EntryParamInfo, LaunchInfo, ParamInfo, TensorMapInfo
from cake_core.diagnostics import fail
from cake_core.effects import Effect, GridOrder
from cake_core.frozen import frozen
from cake_core.ir.formula import formula
from cake_core.ir.nodes import Block, Declaration, Declare, Expr, Kernel, Let, Op, Require, Role, Stmt
from cake_core.ir.plan import Plan, read_plan
from cake_core.ir.printer import expr_text
from cake_core.lower.context import Context
from cake_core.lower.inputs import Inputs
from cake_core.lower.roles import dispatch
from cake_core.lower.statements import statement
from cake_core.lower.walk import walk
from cake_core.primitive.groups import warps_of
from cake_core.ptx.builder import Builder, Reg, Sym
from cake_core.ptx.module import Module
from cake_core.source import Span

SHARED = "shared_memory"  # the symbol of dynamic shared memory


@frozen
class Lowered:
    """A kernel as PTX. `lines` and `roles_of_lines`: source span and owning role of every PTX line, None where there is none.
    The rest is what the manifest holds."""

    ptx: str
    lines: list[Span | None]
    roles_of_lines: list[str | None]
    params: tuple[ParamInfo, ...]
    entry_params: tuple[EntryParamInfo, ...]
    tensor_maps: tuple[TensorMapInfo, ...]
    launch: LaunchInfo
    requires: tuple[Check, ...]
    plan: Plan
    labels: tuple[dict, ...] = ()  # rows of the source map (`stops`)


def lower(kernel: Kernel, registry, arch: Architecture) -> Lowered:
    """Write the PTX of a kernel in derived form, typed by elaboration. Raises CakeError with the findings of all roles."""
    plan = read_plan(kernel, warps_of(kernel, registry), registry.spaces)
    before, roles, behind = parts(kernel.body)
    backend = arch.backend()
    launch = entry_launch(plan, arch)
    head = Builder()
    body = Builder(counts=head.counts, labels=head.labels)  # two stretches of one entry: one supply of names
    inputs = Inputs(kernel, head)
    cx = prologue(kernel, registry, arch, backend, plan, inputs, body)
    owners: list[str | None] = []  # one an item of the body

    def own(role: str | None, start: int) -> None:
        owners.extend([None] * (start - len(owners)))
        owners.extend([role] * (len(body.body) - len(owners)))

    for s in before:
        statement(cx, s)
    if roles:
        exit_label = body.label("exit")
        dispatch(cx, roles, launch.entry_registers, exit_label, own)
        body.place(exit_label)
    for s in behind:
        statement(cx, s)
    body.emit("ret")
    own(None, len(body.body))

    params, entry_params, tensor_maps = inputs.finish()
    module = Module(
        version=arch.ptx_version,
        target=arch.target,
        entry=kernel.name,
        params=params,
        directives=backend.entry_directives(launch),
        shared_symbol=SHARED if plan.planned_bytes else None,
        shared_align=plan.base_align,
        builder=Builder(body=head.body + body.body, counts=head.counts),
        span=kernel.span,
    )
    ptx, lines = module.print()
    first = len(lines) - len(body.body) - 1
    owners = [None] * first + owners + [None]  # header and prologue, body, closing brace
    labels = tuple({"line": first + x.item + 1, "role": owners[first + x.item], **x.what} for x in cx.labels)
    return Lowered(
        ptx, lines, owners, inputs.param_infos(), entry_params, tensor_maps, launch_info(kernel, plan, registry), requires(kernel), plan, labels
    )


def parts(body: Block) -> tuple[Block, dict[str, Role], Block]:
    """The body before the first role, the roles by name, the body behind the last one."""
    at = [i for i, s in enumerate(body) if isinstance(s, Role)]
    if not at:
        return body, {}, ()
    for s in body[at[0] : at[-1]]:
        if not isinstance(s, Role | Declare):
            raise fail(
                "derive/between-roles",
                "a statement stands between two roles",
                s.span,
                fix="put it before the first role or behind the last one",
            )
    declared = tuple(s for s in body[at[0] : at[-1]] if isinstance(s, Declare))
    return body[: at[0]] + declared, {body[i].name: body[i] for i in at if isinstance(body[i], Role)}, body[at[-1] + 1 :]


def entry_launch(plan: Plan, arch: Architecture) -> Launch:
    """Registers a thread at entry are the register file over the threads that must fit, in the granule of a warp's
    allocation, and no more than a thread can have. Role words count from them, so they must be fixed: hence `min_ctas`."""
    ctas = plan.launch.ctas_per_sm or (1 if any(r.entry for r in plan.roles) else None)
    granule = arch.limit("register_granule")
    share = arch.limit("registers_per_sm") // (plan.threads * (ctas or 1)) // granule * granule
    return Launch(plan.threads, plan.cluster, plan.shared_bytes, min(share, arch.limit("registers_per_thread")), ctas)


def prologue(kernel: Kernel, registry, arch: Architecture, backend: Backend, plan: Plan, inputs: Inputs, body: Builder) -> Context:
    """What every thread knows first: its place in the CTA, the CTA's place in the grid, parameters, the base of shared memory."""
    b = inputs.b
    with b.at(kernel.span):
        thread = b.op("mov.u32", Sym("%tid.x"))
        warp, lane = b.shr(thread, 5), b.land(thread, 31)
        base = shared_base(b, plan) if plan.planned_bytes else None
        identity = backend.cluster_identity(b, plan.cluster)
        inputs.load_scalars()
        names = inputs.loaded | {"cluster.id": identity.index, "cluster.count": identity.count, "warp": warp}
        if kernel.cluster:
            names[f"cluster.{kernel.cluster.axis.name}"] = identity.rank
        names |= {"leader": b.compare("==", thread, 0), "warp.leader": b.compare("==", lane, 0)}
    declared = {n.name: n for s in kernel.body for n in walk(s) if isinstance(n, Declaration)}
    return Context(body, arch, registry, plan, inputs, declared, base, names, plan.warps, lane, warp, thread, identity.rank)


def shared_base(b: Builder, plan: Plan) -> Reg:
    """The base of the plan: the symbol, rounded up where more than the guaranteed 16 bytes of alignment are needed (the
    alignment of an external symbol is not a promise of the launch; the slack is part of `plan.shared_bytes`)."""
    base = b.op("mov.u32", Sym(SHARED))
    if plan.base_align > 16:
        base = b.op("and.b32", b.op("add.u32", base, plan.base_align - 1), -plan.base_align)
    return base


# --- manifest ------------------------------------------------------------------------------------------------------


def lets(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    return {b.name: b.value for s in body if isinstance(s, Let) for b in s.bindings}


def scalars_of(kernel: Kernel) -> frozenset[str]:
    return frozenset(p.name for p in kernel.params if p.mode is None)


def launch_info(kernel: Kernel, plan: Plan, registry) -> LaunchInfo:
    items = formula(plan.launch.items, lets(kernel.body), scalars_of(kernel))
    waits = any(isinstance(e, GridOrder) and e.waits for n in walk(kernel) if isinstance(n, Op) for e in effects(n, registry))
    return LaunchInfo(plan.threads, plan.cluster, plan.shared_bytes, items, plan.launch.persistent, plan.launch.ctas_per_sm, waits)


def effects(op: Op, registry) -> tuple[Effect, ...]:
    operation = registry.operations.get(op.name)
    return operation.effects(op) if operation is not None else ()


def requires(kernel: Kernel) -> tuple[Check, ...]:
    exprs = (e for clause in kernel.clause(Require) for e in clause.exprs)
    return tuple(Check(formula(e, {}, scalars_of(kernel)), expr_text(e)) for e in exprs)
