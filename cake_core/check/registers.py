"""Registers: what the roles own fits into the register file, and fragments fit into what their role owns (S20)."""

from __future__ import annotations

from math import ceil, prod

from cake_core.check.subject import Subject
from cake_core.check.warps import together
from cake_core.diagnostics import Sink
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Declaration, Declare, Role
from cake_core.ir.plan import Plan, RolePlan, layout_words
from cake_core.ir.types import State, element_of

ADDRESSING = 8  # registers that any role needs beside its fragments


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    if plan.threads > arch.limit("threads_per_block") or together(subject) is not None:
        return  # reported among the warps; the shares would be nothing
    ctas = plan.launch.ctas_per_sm or 1
    whole = arch.limit("registers_per_sm") // ctas
    granule = arch.limit("register_granule")
    entry = min(whole // plan.threads // granule * granule, arch.limit("registers_per_thread"))
    owned = {r.name: _owned(r, subject, entry) for r in plan.roles}
    shares = _shares(plan, owned, entry)
    total = sum(registers * 32 * warps for _, registers, warps in shares)
    if total > whole:
        parts = ", ".join(f"{who} {registers} x {32 * warps}" for who, registers, warps in shares)
        of = f"{arch.name} has {whole}" if ctas == 1 else f"{arch.name} has {arch.limit('registers_per_sm')} for {ctas} CTAs"
        biggest = max(plan.roles, key=lambda r: owned[r.name] * r.instances * r.warps)
        sink.error("core/register-budget", f"the roles own {total} registers, {total - whole} more than there are", biggest.span, why=f"{parts} (registers a thread x threads, pads included); {of}", fix="lower a role's registers")
    for role in subject.kernel.roles:
        _fragments(role, subject.role(role.name), owned[role.name], subject.registry, sink)


def _owned(role: RolePlan, subject: Subject, entry: int) -> int:
    """Registers a thread: what a word on its header sets, or on that of the role in whose pad warps it lives (S20)."""
    words = subject.registry.role_words
    host = next((r for r in subject.plan.roles if r.end <= role.first < r.end + r.pad), role)
    return next((n for w, n in (*role.entry.items(), *host.entry.items()) if w in words and words[w].sets_registers), entry)


def _shares(plan: Plan, owned: dict[str, int], entry: int) -> list[tuple[str, int, int]]:
    """(who, registers a thread, warps): each role with the pad warps that no other role lives in, then warps of nobody."""
    lived = {w for r in plan.roles for w in range(r.first, r.end)}
    pads = {r.name: set(range(r.end, r.end + r.pad)) - lived for r in plan.roles}
    shares = [(f"'{r.name}'", owned[r.name], r.instances * r.warps + len(pads[r.name])) for r in plan.roles]
    idle = plan.warps - len(lived.union(*pads.values()))
    return [*shares, ("idle warps", entry, idle)] if idle else shares


def _registers(d: Declaration, plan: RolePlan, registry) -> int:
    """Registers of each thread for one fragment: by its layout, or, where that has no answer, an even share."""
    elem, (*slots, shape) = element_of(d.declared), (tuple(e.value for e in g) for g in d.declared.groups)
    layout = registry.layouts.get(getattr(d.words.get("layout"), "id", None))
    held = layout.elements(shape, plan.warps, layout_words(d), elem) if layout is not None else None
    if held is None:
        held = -(-prod(shape) // (32 * plan.warps))
    each = len(registry.reductions[elem.type].registers(elem.args)) if isinstance(elem, State) else elem.bits / 32
    return ceil(held * each) * prod(n for g in slots for n in g)


def _fragments(role: Role, plan: RolePlan, owned: int, registry, sink: Sink) -> None:
    sizes = {}
    for s in walk(role.body):
        if isinstance(s, Declare):
            for d in s.declarations:
                sizes[d.name] = _registers(d, plan, registry)
    if sum(sizes.values()) + ADDRESSING > owned:
        listed = ", ".join(f"'{n}' {k}" for n, k in sizes.items())
        sink.error(
            "core/fragment-registers",
            f"the fragments of role '{role.name}' take {sum(sizes.values())} of {owned} registers a thread",
            role.span,
            role=role.name,
            why=f"{listed}; at least {ADDRESSING} more are needed for addresses",
            fix="smaller fragments, more warps, or more registers for the role",
        )
