"""Who touches what: the effects of every statement of a role, and the operation that has a wanted effect.

Derivation asks primitives for effects and never for their names.
"""

from __future__ import annotations

from collections.abc import Callable

from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect
from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Kernel, Op, Stmt
from cake_core.ir.places import root
from cake_core.primitive.asking import effects_of
from cake_core.source import Span


@frozen
class Touch:
    """One access of a declared buffer by a role; `by` is the statement."""

    role: str
    buffer: str
    access: Access
    by: Stmt


def touches(kernel: Kernel, registry) -> list[Touch]:
    """Every access of a shared buffer, in text order."""
    out = []
    for role in kernel.roles:
        for s in walk(role.body):
            for e in effects_of(s, registry):
                if isinstance(e, Access) and (name := root(e.place)) is not None:
                    out.append(Touch(role.name, name.id, e, s))
    return out


def operation_with(registry, arch, effect: type[Effect], wanted: Callable[[Effect], bool], what: str, at: Span) -> Op:
    """The operation without operands, offered for this target, that has an effect of this class that is wanted."""
    for operation in registry.alone(effect):
        op = Op(operation.name, span=at)
        if not operation.capabilities - arch.capabilities and any(isinstance(e, effect) and wanted(e) for e in operation.effects(op)):
            return op
    raise fail("derive/no-operation", f"no installed plugin offers {what} for {arch.name}", at, why="the derived form of this text needs it", fix="install the plugin that has it")
