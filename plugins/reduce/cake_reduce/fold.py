"""`fold(NAME, ..)`: what a lane holds is combined, lane by lane; `merge(x)`: the lanes of a state."""

from __future__ import annotations

from collections.abc import Callable

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Effect
from cake_core.frozen import frozen
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import State, Type, Value
from cake_core.primitive import CheckContext, Distribution, Function, LowerContext, Reduction, SimulateContext
from cake_core.primitive.distributions import along
from cake_core.ptx.builder import Operand


def rows_of(found: list[Distribution | None]) -> Distribution | None:
    """How one value a row lies, beside these tiles."""
    known = [d for d in found if d is not None]
    rows = next((d for d in known if len(d.shape) == 1 and d.words.get("over") == "row"), None)
    whole = next((d for d in known if len(d.shape) == 2), None)
    return rows or (along(whole, "row") if whole is not None else None)


@frozen(kw_only=True)
class Fold(Function):
    """The operation's own matter; no lane sees another one."""

    def _reduction(self, call: Call, cx: CheckContext | LowerContext) -> Reduction:
        if not call.positional:
            raise fail("type/arguments", "'fold' takes an operation and what it combines", call.span, fix="such as `fold(sum, x)`")
        name = call.positional[0]
        found = cx.reduction(name.id)
        if found is None:
            raise fail(
                "type/unknown-function",
                f"unknown operation '{name.id}' of 'fold'",
                name.span,
                why="no plugin that loaded offers a reduction of that name",
            )
        return found

    def result(self, call: Call, cx: CheckContext) -> Type:
        return self._reduction(call, cx).result(call, cx)

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        return rows_of([of(e) for e in call.positional])

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return cx.reduction(call.positional[0].id).simulate(call, cx)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return self._reduction(call, cx).lower(call, cx)


@frozen(kw_only=True)
class Merge(Function):
    """All lanes of a row get the same state. All lanes of the warp must be there."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        if len(call.args) != 1 or len(call.positional) != 1:
            raise fail("type/arguments", "'merge' takes one state", call.span)
        (x,) = call.positional
        t = x.type
        if not is_register_tile(t) or not isinstance(t.elem, State):
            raise fail("type/operand", f"'merge' takes a state, such as a `topk`, not a {t}", x.span)
        if t.part is None:
            raise fail("type/partial", "the lanes of this state are one already", x.span, why="its entries would be counted once a lane")
        return Value(t.elem, tuple(t.shape), "row")

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (OF_WARP,)

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        return of(call.positional[0])

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return cx.value(call.positional[0])

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return cx.reduction(call.positional[0].type.elem.type).merge(call, cx)


FOLD = Fold(name="fold", symbols=1, arguments="own", doc="Instructions of the operation that it names; see there for the PTX ISA section.")
MERGE = Merge(
    name="merge",
    arguments="own",
    capabilities=frozenset({"shuffle"}),
    doc="Butterfly over the lanes of a row (PTX ISA, Data Movement Instructions, shfl.sync, mode .bfly).",
)
