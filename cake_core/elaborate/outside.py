"""Typing of the `let`s of a kernel's body: values that all roles share, made of parameters, and of elements of inputs (S11).

A read of an input at such indices is the same for every thread, whenever it comes, so that each thread makes it for itself in front of
the roles. What anybody writes is not: threads that read it at different times may see different values.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Access, Mode
from cake_core.elaborate.typing import described
from cake_core.ir.nodes import Binding, Expr
from cake_core.ir.places import names, root
from cake_core.ir.types import Scalar, Unknown
from cake_core.ir.visit import calls
from cake_core.primitive import Form


class Outside:
    """Mixed into the elaborator."""

    form: Form
    read_outside: frozenset[str] = frozenset()  # `let`s of the kernel's body that are read from memory, or made of such

    def shared_by_roles(self, b: Binding, value: Expr) -> None:
        """A typed `let` of the kernel's body, schedule form. Raises CakeError for what is not one value for all roles."""
        reads = [c for c in calls(value) if self.effects_of(c)]
        for c in reads:
            for e in self.effects_of(c):
                name = root(e.place) if isinstance(e, Access) else None
                if name is None or e.mode is not Mode.READ or self.mode(name.id) != "in":
                    raise fail(
                        "type/read-outside",
                        f"'{c.name}' outside of the roles, of what is no input",
                        c.span,
                        why="each thread reads for itself in front of the roles, and inputs alone are the same for all of them (S11)",
                        fix="let one role read it and hand it on, or declare it `in`",
                    )
        if reads and not isinstance(value.type, Scalar | Unknown):
            raise fail(
                "type/let",
                f"'{b.name}' would name {described(value.type)}",
                b.value.span,
                why="outside of the roles a `let` names a scalar",
                fix="read it in the roles",
            )
        if reads or any(n.id in self.read_outside for n in names(value)):
            self.read_outside |= {b.name}

    def read_in(self, e: Expr) -> Expr | None:
        """The part of a typed expression that is read from memory while the kernel runs; None: it is known before."""
        read = next((c for c in calls(e) if self.effects_of(c)), None)
        return read or next((n for n in names(e) if n.id in self.read_outside), None)
