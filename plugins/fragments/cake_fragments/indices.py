"""`rows(x)` and `cols(x)`: where the elements of a tile stand in it."""

from __future__ import annotations

from collections.abc import Callable

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import I32, Type, Value
from cake_core.primitive import CheckContext, Distribution, Elements, Function, LowerContext, SimulateContext
from cake_core.primitive.distributions import AXES, along
from cake_core.primitive.elements import counted


@frozen(kw_only=True)
class Index(Function):
    """An i32 tile along an axis of x, a constant away from what the thread knows: it costs no registers. x itself is not read."""

    axis: str

    def result(self, call: Call, cx: CheckContext) -> Type:
        if len(call.args) != 1 or len(call.positional) != 1:
            raise fail("type/arguments", f"'{self.name}' takes one register tile", call.span)
        (x,) = call.positional
        t = x.type
        if not is_register_tile(t):
            raise fail("type/operand", f"'{self.name}' takes a register tile, not a {t}", x.span, fix="name a fragment")
        if len(t.shape) == 2:
            return Value(I32, (t.shape[AXES.index(self.axis)],), self.axis)
        if len(t.shape) != 1 or t.axis not in (None, self.axis) or t.axis is None and self.axis == "row":
            raise fail(
                "type/shape",
                f"this tile has no {self.axis}s",
                x.span,
                why="rows and columns are those of a two-dimensional tile, or of a tile along them",
            )
        return Value(I32, tuple(t.shape), t.axis)

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        d = of(call.positional[0])
        return along(d, self.axis) if d is not None and len(d.shape) == 2 else d

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        return np.arange(call.type.shape[0], dtype=np.int32)

    def each(self, call: Call, cx: LowerContext) -> Elements:
        d = cx.distribution
        if d is None:
            raise fail("core/undistributed", f"every thread holds all of what '{self.name}' counts", call.span, fix="name a fragment")
        n = AXES.index(self.axis) if len(d.shape) == 2 else 0
        steps = along(d, self.axis).offsets if len(d.shape) == 2 else d.offsets
        return counted(cx.b, d.layout.origin(cx, d.words)[n], (step for (step,) in steps))


INDICES = tuple(
    Index(
        name=name,
        axis=axis,
        arguments="own",
        reads=False,
        doc=f"The {word} of each element, from the place of the thread (PTX ISA, Special Registers, %tid).",
    )
    for name, axis, word in (("rows", "row", "row"), ("cols", "col", "column"))
)
