"""`sum`, `max` and `min` of f32: `fold(sum, x)` a lane, `rowsum(x)` a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Effect
from cake_core.frozen import frozen
from cake_core.ir.contraction import factors
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import F32, Type
from cake_core.primitive import CheckContext, Distribution, Function, LowerContext, Reduction, SimulateContext
from cake_core.ptx.builder import Operand, Reg
from cake_reduce.fold import rows_of
from cake_reduce.operands import count, tile
from cake_reduce.rows import by_row, distances, from_lane, known, register, row_tile

if TYPE_CHECKING:
    import numpy

#: Chains that a lane combines a row in: its 1st, 3rd, .. and its 2nd, 4th, .. element, then the two.
CHAINS = 2


@frozen(kw_only=True)
class Simple(Reduction):
    """One instruction an element. `opcode` has two operands, in any order."""

    opcode: str

    def result(self, call: Call, cx: CheckContext) -> Type:
        _, x = count(call, 2, "one register tile")
        tile(call, x)
        return row_tile(F32, x.type.shape[0], self.name)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return self.of_rows(cx.value(call.positional[1]))

    def of_rows(self, x: numpy.ndarray) -> numpy.ndarray:
        """Each row's elements combined, in whichever order."""
        import numpy as np

        return {"sum": np.sum, "max": np.fmax.reduce, "min": np.fmin.reduce}[self.name](x, axis=1).astype(np.float32)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        return self.of_lane(call.positional[1], cx)

    def of_lane(self, x: Expr, cx: LowerContext) -> tuple[Operand, ...]:
        """The lane's own elements of each row, rows in the order of a tile along them. A product under a sum is fused by the
        contraction rule of `+`: the first of a chain is rounded by itself."""
        rows = by_row(known(cx.distribution, x.span))
        product = factors(x) if self.name == "sum" else None
        if product is None:
            held = cx.broadcast(x)[0]
            first, following = (lambda n: held[n]), (lambda n, so_far: cx.b.op(self.opcode, so_far, held[n]))
        else:
            left, right = cx.broadcast(*product)
            first = lambda n: cx.b.op("mul.rn.f32", left[n], right[n])  # noqa: E731
            following = lambda n, so_far: cx.b.op("fma.rn.f32", left[n], right[n], so_far)  # noqa: E731
        return tuple(self._chained(cx, numbers, first, following) for numbers in rows.values())

    def _chained(self, cx: LowerContext, numbers: list[int], first: Callable, following: Callable) -> Operand:
        ends: list[Operand] = []
        for start in range(min(CHAINS, len(numbers))):
            head, *rest = numbers[start::CHAINS]
            so_far = first(head)
            for n in rest:
                so_far = following(n, so_far)
            ends.append(so_far)
        result, *others = ends
        for other in others:
            result = cx.b.op(self.opcode, result, other)
        return result

    def over_lanes(self, cx: LowerContext, values: tuple[Operand, ...], steps: tuple[int, ...]) -> tuple[Reg, ...]:
        """Each value combined over the lanes of its row: both lanes of a step combine the same two, so all end with the same bits."""
        out = [register(cx, x) for x in values]
        for distance in steps:
            out = [cx.b.op(self.opcode, x, from_lane(cx.b, x, distance)) for x in out]
        return tuple(out)


@frozen(kw_only=True)
class OfRow(Function):
    """Of a tile of rows and columns; or of a tile along the rows whose lanes are still to be combined by the same operation."""

    of: Simple

    def result(self, call: Call, cx: CheckContext) -> Type:
        (x,) = count(call, 1, "one register tile")
        t = x.type
        if is_register_tile(t) and t.axis == "row" and t.elem == F32:
            if t.part != self.of.name:
                whole = "is whole already" if t.part is None else f"is `part {t.part}`"
                raise fail("type/partial", f"'{self.name}' of a tile that {whole}", x.span, why=f"it combines lanes by '{self.of.name}'")
            return row_tile(F32, t.shape[0])
        tile(call, x)
        return row_tile(F32, t.shape[0])

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (OF_WARP,)

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        return rows_of([of(call.positional[0])])

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        x = cx.value(call.positional[0])
        return x if x.ndim == 1 else self.of.of_rows(x)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (x,) = call.positional
        d = known(cx.distribution, x.span)
        values = self.of.of_lane(x, cx) if len(d.shape) == 2 else cx.registers(x)
        return self.of.over_lanes(cx, values, distances(d, call.span))


_ISA = "PTX ISA, Floating Point Instructions"
SIMPLE = (
    Simple(name="sum", opcode="add.rn.f32", doc=f"f32 sum, rounded to nearest even at each step ({_ISA}, add and fma)."),
    Simple(name="max", opcode="max.f32", doc=f"Largest; of a number and NaN the number ({_ISA}, max)."),
    Simple(name="min", opcode="min.f32", doc=f"Smallest; of a number and NaN the number ({_ISA}, min)."),
)
OF_ROWS = tuple(
    OfRow(
        name=f"row{of.name}",
        of=of,
        arguments="own",
        capabilities=frozenset({"shuffle"}),
        doc=f"The lane's elements, then the lanes of the row by a butterfly ({_ISA}; Data Movement Instructions, shfl.sync, mode .bfly).",
    )
    for of in SIMPLE
)
