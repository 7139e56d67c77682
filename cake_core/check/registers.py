"""Registers: the fragments of a role fit into what it owns (S20)."""

from __future__ import annotations

from math import ceil, prod

from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.facts import Rows
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Declaration, Declare, Role
from cake_core.ir.plan import RolePlan, layout_words
from cake_core.ir.types import State, element_of

ADDRESSING = 8  # registers that any role needs beside its fragments
#: Findings after which the registers that a role owns are no number to go by.
TOO_MANY = ("threads", "resident-ctas")


def check(subject: Subject, rows: Rows, sink: Sink) -> None:
    if any(d.code.partition("/")[2] in TOO_MANY for d in sink.items):
        return
    for role in subject.kernel.roles:
        _fragments(role, subject.role(role.name), rows.find("role", role.name)["registers"], subject.registry, sink)


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
