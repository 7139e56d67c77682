"""Guards, and slot names that outlive one (S4).

A slot that is taken under a guard of the item, `if nk > 0 { wait p as s }`, is held wherever `nk > 0` holds later in the
same block. Its name may be used there: under the same condition, alone or as one side of an `and`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import Symbol
from cake_core.elaborate.typing import level_of
from cake_core.ir.flow import conjuncts, walk
from cake_core.ir.nodes import Block, Expr, If, Name, Op, Pipeline, Unary
from cake_core.ir.places import names
from cake_core.ir.printer import expr_text
from cake_core.ir.types import Level
from cake_core.primitive import Form


class Guards:
    """Mixed into the elaborator."""

    guards: tuple[Expr, ...] = ()  # conditions that hold here: those of the `if`s whose first block this is

    def _if(self, s: If) -> If:
        out = replace(s, test=self.condition(s.test, "'if'"))
        before = self.guards
        self.guards = (*before, *conjuncts(out.test))
        try:
            with self.under(out.test):
                out = replace(out, then=self._inner(out, s.then))
        finally:
            self.guards = before
        with self.under(Unary("not", out.test, type=out.test.type)):
            out = replace(out, other=self._inner(out, s.other) if s.other is not None else None)
        if self.form is Form.SCHEDULE and self._is_item_guard(out.test):
            for op in first_slots(out.then):
                self._outlives(op, out.test)
        return out

    def _is_item_guard(self, test: Expr) -> bool:
        """All threads decide alike, and nothing in it changes before the block ends."""
        symbols = (self.scope.find(n.id) for n in names(test))
        return level_of(test) <= Level.CTA and all(s is None or s.kind != "variable" for s in symbols)

    def _outlives(self, op: Op, test: Expr) -> None:
        slot = op.words.get("as")
        old, pipeline = self.scope.find(slot.id), self.scope.find(op.operands[0].id).node
        if isinstance(pipeline, Pipeline) and (old is None or old.kind == "slot"):  # a pipeline in error is no pipeline
            found = tuple((n.id, self.scope.find(n.id)) for n in names(test))
            self.scope.names[slot.id] = Symbol("slot", self.slot_type(pipeline), slot.span, guard=test, guard_names=found)

    def check_guard(self, e: Name, symbol: Symbol) -> None:
        """A slot that was named under a guard is used under it. Raises CakeError."""
        same = all(self.scope.find(n) is old for n, old in symbol.guard_names)
        if same and all(c in self.guards for c in conjuncts(symbol.guard)):
            return
        raise fail(
            "type/guarded-slot",
            f"slot '{e.id}' is held only where `{expr_text(symbol.guard)}`",
            e.span,
            related=self.related(symbol),
            why="its name is bound under that condition",
            fix=f"use it under `if {expr_text(symbol.guard)}`",
        )


def first_slots(block: Block) -> Iterator[Op]:
    """The statements of a block itself that name a slot of their own and are the first of their verb and pipeline in it: which
    slot they name is known before the block."""
    verbs = [x for s in block for x in walk((s,)) if isinstance(x, Op) and len(x.operands) == 1]
    named = [x.words.get("as") for x in verbs]
    for s in block:
        if isinstance(s, Op) and isinstance(slot := s.words.get("as"), Name) and named.count(slot) == 1:
            if s is next(x for x in verbs if (x.name, x.operands) == (s.name, s.operands)):
                yield s
