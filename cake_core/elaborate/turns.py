"""Typing of `turn` and of its two verbs: one token that the instances of a role take one after another (S8)."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import Symbol, suggestion
from cake_core.elaborate.typing import described, named
from cake_core.ir.nodes import Name, Op, Turn
from cake_core.ir.types import Named, Unknown
from cake_core.primitive import Form

TURN_VERBS = ("take", "pass")


class Turns:
    """Mixed into the elaborator."""

    def _turn(self, s: Turn) -> Turn:
        role = s.words.get("over")
        if len(s.words.items) != 1 or s.words.flag is not None or not isinstance(role, Name):
            raise fail("type/turn", f"'turn {s.name}' names no role", s.span, fix=f"write `turn {s.name} over ROLE`")
        if role.id not in self.role_names:
            raise fail("type/unknown-name", f"unknown role '{role.id}'", role.span, fix=suggestion(role.id, self.role_names, "roles"))
        self.scope.bind(s.name, Symbol("turn", Named("turn", s.name), s.span, node=s))
        return s

    def _turn_verb(self, s: Op) -> Op:
        self.check_form(Form.SCHEDULE, f"'{s.name}'", s)
        if len(s.operands) != 1 or s.arrow is not None or s.words.items or s.words.flag is not None:
            raise fail("type/operands", f"'{s.name}' takes one turn and nothing else", s.span, fix=f"write `{s.name} NAME`")
        t = self.expr(s.operands[0])
        if isinstance(t.type, Unknown):
            return replace(s, operands=(t,))
        if not named(t.type, "turn"):
            raise fail("type/operand", f"'{s.name}' takes a turn, not {described(t.type)}", s.operands[0].span)
        declared: Turn = self.scope.find(t.id).node
        owner = declared.words.get("over").id
        if self.role.name != owner:
            raise fail(
                "type/wrong-side",
                f"role '{self.role.name}' has no part in turn '{t.id}'",
                s.span,
                resource=t.id,
                why=f"it goes round the instances of '{owner}'",
                related=self.at("declared here", declared.span),
            )
        return replace(s, operands=(t,))
