"""Which warps run which role, and which roles are written once an instance.

Warps of a CTA fall into *bands*: a role with its pad warps. All warps of a band run the role words (`regs`) and then go to
the role that they belong to, the band's own or one that lives in its pad warps; idle warps go to the common exit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cake_core.diagnostics import CakeError, Related, Sink, fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Binding, Block, Expr, For, Let, Name, Op, Role, Var
from cake_core.ir.plan import ONCE, RolePlan
from cake_core.lower.context import Context
from cake_core.lower.faults import blamed
from cake_core.lower.statements import block
from cake_core.lower.walk import walk
from cake_core.ptx.builder import Operand, Reg


@frozen
class Band:
    """A role's warps and pads: [first, end). `members`: the roles that live there, the owner among them, by first warp."""

    owner: RolePlan
    members: tuple[RolePlan, ...]

    @property
    def first(self) -> int:
        return self.owner.first

    @property
    def end(self) -> int:
        return self.owner.end + self.owner.pad


@frozen
class Unit:
    """Code that is written once: a role (`instance` None) or one instance of it, for the warps [first, end)."""

    role: RolePlan
    instance: int | None
    first: int
    end: int


def bands(roles: tuple[RolePlan, ...]) -> tuple[Band, ...]:
    """Roles by band, in order of warps. Raises CakeError where a warp would belong to two roles."""
    ordered = sorted(roles, key=lambda r: (r.first, -(r.end + r.pad)))
    for before, after in zip(ordered, ordered[1:], strict=False):
        if after.first < before.end:
            raise _overlap(before, after)
    found: list[Band] = []
    for role in ordered:
        if found and role.first < found[-1].end:
            band = found[-1]
            if role.end + role.pad > band.end or role.entry:
                raise _overlap(band.owner, role)
            found[-1] = replace(band, members=(*band.members, role))
        else:
            found.append(Band(role, (role,)))
    return tuple(found)


def _overlap(a: RolePlan, b: RolePlan) -> CakeError:
    related = (Related(f"role '{a.name}' has warps {a.first} to {a.end + a.pad - 1}, pads included", a.span),)
    return fail("derive/overlapping-roles", f"roles '{a.name}' and '{b.name}' share warps", b.span, role=b.name, related=related)


def units(plan: RolePlan, body: Block, operations: dict, once: bool = False) -> tuple[Unit, ...]:
    """One unit, or one an instance where an operand that must be a constant depends on the instance; `once`: one all the same."""
    if plan.instances > 1 and not once and needs_constant_instance(plan.name, body, operations):
        starts = [plan.first + i * plan.warps for i in range(plan.instances)]
        return tuple(Unit(plan, i, start, start + plan.warps) for i, start in enumerate(starts))
    return (Unit(plan, 0 if plan.instances == 1 else None, plan.first, plan.end),)


def needs_constant_instance(role: str, body: Block, operations: dict) -> bool:
    """Whether an `immediate` operand depends on `role.i`, directly or by way of names."""
    dependent = {f"{role}.i"}
    depends = lambda e: any(isinstance(n, Name) and n.id in dependent for n in walk(e))  # noqa: E731
    for node in (n for s in body for n in walk(s)):
        match node:
            case Let(bindings) | Var(bindings):
                dependent.update(_dependent(bindings, depends))
            case For(pattern, lo, hi) if hi is not None and (depends(lo) or depends(hi)):
                dependent.update(pattern)
            case Op(name, operands) if name in operations:
                immediate = operations[name].immediate
                if any(i < len(operands) and depends(operands[i]) for i in immediate):
                    return True
    return False


def _dependent(bindings: tuple[Binding, ...], depends: Callable[[Expr], bool]) -> set[str]:
    return {b.name for b in bindings if depends(b.value)}


# --- emission ------------------------------------------------------------------------------------------------------


def dispatch(cx: Context, roles: dict[str, Role], entry_registers: int, exit_label: str, own: Callable[[str, int], None]) -> None:
    """Write all roles; every warp arrives at `exit_label`, which the caller places behind.

    `own(role, start)` is told that the body from item `start` on belongs to a role. Findings of all roles are raised together.
    """
    b, sink = cx.b, Sink()
    gone = 0  # warps below this one have left
    for band in bands(cx.plan.roles):
        owner, start = band.owner, len(b.body)
        with b.at(owner.span):
            b.comment(f"role {owner.name}: warps {owner.first} to {owner.end - 1}" + (f", pads to {band.end - 1}" if owner.pad else ""))
            behind = _only(cx, band.first, band.end, gone, cx.plan.warps, exit_label)
            with sink.collecting(role=owner.name):
                _entry_words(cx, band, roles[owner.name], entry_registers)
            own(owner.name, start)
            gone = band.first
            for unit in (u for m in band.members for u in units(m, roles[m.name].body, cx.registry.operations, roles[m.name].words.flag == ONCE)):
                start = len(b.body)
                skip = _only(cx, unit.first, unit.end, gone, band.end, exit_label)
                with b.at(unit.role.span), sink.collecting(role=unit.role.name):
                    if unit.role is not owner or unit.role.instances > 1:
                        b.comment(
                            f"role {unit.role.name}: warps {unit.first} to {unit.end - 1}"
                            + (f", instance {unit.instance}" if unit.instance is not None else "")
                        )
                    _only_on(cx, unit.role, exit_label)
                    _unit(cx, unit, roles[unit.role.name])
                b.branch(exit_label)
                if skip:
                    b.place(skip)
                own(unit.role.name, start)
                gone = unit.end
            if gone < band.end:
                b.branch(exit_label)
            if behind:
                b.place(behind)
            own(None, len(b.body))
            gone = band.end
    sink.stop_if_errors()


def _only(cx: Context, first: int, end: int, gone: int, all_warps: int, exit_label: str) -> str | None:
    """Let the warps [first, end) pass, of those from `gone` to `all_warps` that are still here: idle ones below go to the
    exit, later ones to the label that is returned (None: there are none)."""
    if first > gone:
        cx.b.branch(exit_label, guard=cx.b.compare("<", cx.warp, first))
    if end >= all_warps:
        return None
    later = cx.b.label("later")
    cx.b.branch(later, guard=cx.b.compare(">=", cx.warp, end))
    return later


def _only_on(cx: Context, role: RolePlan, exit_label: str) -> None:
    """Warps of a CTA that does not have the role go to the exit: those of the cluster's other CTAs."""
    if role.on is not None:
        cx.b.branch(exit_label, guard=cx.b.compare("!=", cx.rank, role.on))


def _entry_words(cx: Context, band: Band, role: Role, entry_registers: int) -> None:
    for name, value in band.owner.entry.items():
        word = cx.registry.role_words.get(name)
        span = role.words.word(name).span
        if word is None:
            raise fail("plugin/no-role-word", f"no plugin offers the role word '{name}'", span)
        with cx.b.at(span), blamed(word, span):
            word.lower(value, entry_registers, cx)


def _unit(cx: Context, unit: Unit, of: Role) -> None:
    """A role's body, with the registers that place a thread in its instance."""
    b, role = cx.b, unit.role
    instance: Operand
    if unit.instance is None:
        in_role = b.sub(cx.warp, unit.first)
        if of.words.flag == ONCE:  # said to be the same in a warp, so that what depends on it needs no test a lane
            in_role = b.op("shfl.sync.idx.b32", in_role, 0, 31, -1)
        instance, warp = b.floordiv(in_role, role.warps, nonneg=True), b.mod(in_role, role.warps, nonneg=True)
    else:
        instance, warp = unit.instance, 0 if role.warps == 1 else b.sub(cx.warp, unit.first)
    thread = cx.lane if role.warps == 1 else b.add(b.shl(warp, 5), cx.lane) if unit.instance is None else b.sub(cx.thread, 32 * unit.first)
    warp_leader = leader_lane(cx)
    leader = warp_leader if role.warps == 1 else _first(cx, warp, thread, warp_leader)
    names = {**cx.names, "leader": leader, "warp.leader": warp_leader, "warp": warp, f"{role.name}.i": instance}
    block(replace(cx, names=names, warps=role.warps, warp=warp, thread=thread), of.body)


def leader_lane(cx: Context) -> Reg:
    """Whether this is the leading lane of its converged warp: lane 0, or the one that the target prefers (`Backend`)."""
    chosen = getattr(cx.arch.backend(), "leader_lane", None)
    return chosen(cx.b) if chosen is not None else cx.b.compare("==", cx.lane, 0)


def _first(cx: Context, warp: Operand, thread: Operand, leads: Reg) -> Reg:
    """The leading lane of an instance's first warp."""
    if not hasattr(cx.arch.backend(), "leader_lane"):
        return cx.b.compare("==", thread, 0)
    return cx.b.op("and.pred", cx.b.compare("==", warp, 0), leads)
