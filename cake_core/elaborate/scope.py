"""Names in scope: what each one is, where it was declared, and suggestions for those that are not there."""

from __future__ import annotations

from dataclasses import field

from cake_core.diagnostics import CakeError, Related, fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Expr, Node
from cake_core.ir.types import Type, Unknown
from cake_core.source import Span

#: Names that a suggestion lists, where none is like the one that was written.
LISTED = 12
#: Names that the language gives a meaning, in one form of a text or in both.
RESERVED = ("leader", "warp", "cluster")


@frozen
class Symbol:
    """`kind`: const, parameter, tensor, let, variable, loop variable, slot, buffer, pipeline, role, tile schedule.

    `value` is the literal of a const. `node` is the declaring node. `guard`: of a slot, the condition under which it is held,
    and what the names in that condition were. `formula`: the value of a let, or a loop's variable under a name of its own, of
    names that keep their meaning (`reach.py`).
    """

    kind: str
    type: Type
    span: Span
    value: Expr | None = None
    node: Node | None = None
    guard: Expr | None = None
    guard_names: tuple[tuple[str, Symbol | None], ...] = ()
    formula: Expr | None = None


@thawed
class Scope:
    parent: Scope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def change(self, name: str, symbol: Symbol) -> None:
        """Say something else of a name, where it is bound."""
        scope = self
        while name not in scope.names:
            scope = scope.parent
        scope.names[name] = symbol

    def visible(self) -> list[str]:
        seen: dict[str, None] = {}
        scope: Scope | None = self
        while scope is not None:
            seen.update(dict.fromkeys(scope.names))
            scope = scope.parent
        return list(seen)

    def bind(self, name: str, symbol: Symbol, *, shadows: tuple[str, ...] = ()) -> None:
        """Add `name`; a name that is visible already is an error unless its kind is one of `shadows`."""
        if name in RESERVED:
            raise fail("type/redefined", f"'{name}' is a name of the language", symbol.span, fix="choose another name")
        old = self.find(name)
        if old is not None and not isinstance(old.type, Unknown) and old.kind not in shadows:
            raise fail(
                "type/redefined",
                f"'{name}' is already a {old.kind}",
                symbol.span,
                related=(Related("declared here", old.span),),
                fix="choose another name",
            )
        self.names[name] = symbol


def reported() -> CakeError:
    """Ends a statement that hangs on an error which was reported already: no finding of its own."""
    return CakeError()


def suggestion(name: str, known, what: str = "") -> str | None:
    """A "did you mean" line, or None."""
    known = sorted(set(known))
    same = [k for k in known if sorted(k) == sorted(name)]  # letters in another order
    close = same or get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known {what}: {', '.join(known)}" if what and 0 < len(known) <= LISTED else None


