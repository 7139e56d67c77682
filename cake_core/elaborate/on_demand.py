"""Typing of the words `dynamic` and `ahead` of a tile schedule: items on demand, drawn from a counter in a workspace."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import Scope, reported
from cake_core.elaborate.typing import described
from cake_core.ir.nodes import Expr, Name, Word, Words
from cake_core.ir.types import I32, Tile, Unknown
from cake_core.primitive import Form, WordSpec

AHEAD = WordSpec("ahead", "constant", Form.SCHEDULE, help="items on demand that may be drawn before they are begun; 1 without it")
#: More would only be taken away from other CTAs.
MOST_AHEAD = 16


class OnDemand:
    """Mixed into the elaborator."""

    scope: Scope

    def drawn_from(self, word: Word, kinds: list[str]) -> Word:
        """The word with the name of its counter typed. `kinds`: the schedules that it stands behind. Raises CakeError."""
        if kinds == ["grid"]:
            raise fail(
                "type/schedule",
                "'dynamic' on a grid, of which each CTA has one item",
                word.span,
                fix="write `persistent(..)`: its CTAs take one item after another",
            )
        return replace(word, value=self._counter(word.value))

    def drawn_ahead(self, words: Words) -> None:
        """Raises CakeError where `ahead` is no number of items that makes sense."""
        ahead = words.get("ahead")
        if ahead is not None and not 1 <= ahead.value <= MOST_AHEAD:
            raise fail(
                "type/schedule",
                f"{ahead.value} items drawn ahead",
                ahead.span,
                why=f"it is 1 to {MOST_AHEAD}: what one CTA has drawn no other can take",
            )

    def _counter(self, e: Expr) -> Expr:
        out = self.expr(e)
        if isinstance(out.type, Unknown):
            raise reported()
        symbol = self.scope.find(out.id) if isinstance(out, Name) else None
        if symbol is None or symbol.kind != "tensor" or symbol.node.mode != "workspace":
            what = f"'{out.id}'" if isinstance(out, Name) else described(out.type)
            raise fail(
                "type/schedule",
                f"items are drawn from {what}, which is no workspace",
                e.span,
                why="the counter must hold 0 before each launch, and holds 0 again behind it",
                fix="add a parameter `COUNTER: workspace i32[1]`",
            )
        t: Tile = out.type
        if t.elem != I32 or len(t.shape) != 1:
            raise fail(
                "type/schedule",
                f"a counter is one i32, and '{out.id}' is {described(t)}",
                e.span,
                fix=f"declare it `{out.id}: workspace i32[1]`",
            )
        return out
