"""Registers: what the roles own fits into the register file, and fragments fit into what their role owns (S20)."""

from __future__ import annotations

from math import prod

from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Declare, Role
from cake_core.ir.plan import RolePlan
from cake_core.ir.types import ELEMENTS

GRANULE = 8  # registers are given out in eights a thread
ADDRESSING = 8  # registers that any role needs beside its fragments


def check(subject: Subject, sink: Sink) -> None:
    plan, arch = subject.plan, subject.arch
    whole = arch.limit("registers_per_sm")
    entry = min(whole // plan.threads // GRANULE * GRANULE, arch.limit("registers_per_thread"))
    owned = {r.name: _owned(r, subject, entry) for r in plan.roles}
    total = sum(owned[r.name] * 32 * (r.instances * r.warps + r.pad) for r in plan.roles)
    if total > whole:
        parts = ", ".join(f"'{r.name}' {owned[r.name]} x {32 * (r.instances * r.warps + r.pad)}" for r in plan.roles)
        sink.error("core/register-budget", f"the roles own {total} registers, {total - whole} more than there are", plan.roles[-1].span, why=f"{parts} (registers a thread x threads, pads included); {arch.name} has {whole}", fix="lower a role's registers")
    for role in subject.kernel.roles:
        _fragments(role, subject.role(role.name), owned[role.name], sink)


def _owned(role: RolePlan, subject: Subject, entry: int) -> int:
    words = subject.registry.role_words
    return next((n for w, n in role.entry.items() if w in words and words[w].sets_registers), entry)


def _fragments(role: Role, plan: RolePlan, owned: int, sink: Sink) -> None:
    sizes = {}
    for s in walk(role.body):
        if isinstance(s, Declare):
            for d in s.declarations:
                elements = prod(e.value for g in d.declared.groups for e in g)
                sizes[d.name] = -(-elements * ELEMENTS[d.declared.name].bits // 32 // (32 * plan.warps))
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
