"""`argmin`: the smallest element of a row and its index.

Of equal elements the one of the smaller index wins, and NaN never does; where no element is below +inf the pair stays what it was
filled with. Inside a lane the rule holds if indices ascend along the row and from fold to fold: a later element wins only if it is smaller.
"""

from __future__ import annotations

from collections.abc import Callable

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Effect
from cake_core.frozen import frozen
from cake_core.ir.elementwise import PART
from cake_core.ir.nodes import Call, Expr, Tuple
from cake_core.ir.types import F32, I32, Type, Values
from cake_core.primitive import CheckContext, Distribution, Function, LowerContext, Reduction, SimulateContext
from cake_core.ptx.builder import Operand, Reg
from cake_reduce.fold import rows_of
from cake_reduce.network import in_order
from cake_reduce.operands import along, count, indices, tile, what
from cake_reduce.rows import by_row, distances, from_lane, known, register, row_tile, slots


@frozen(kw_only=True)
class ArgMin(Reduction):
    """`(best, at) = fold(argmin, (best, at), x, idx)`: best is `part min`, at is `part`."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        _, pair, x, idx = count(call, 4, "a pair, a register tile and the indices of its elements")
        tile(call, x)
        if not isinstance(pair, Tuple) or len(pair.items) != 2:
            raise fail(
                "type/operand", f"'{what(call)}' takes a pair: the smallest so far and its index", pair.span, fix="write `(best, at)`"
            )
        rows = x.type.shape[0]
        along(call, pair.items[0], rows, F32, "min")
        along(call, pair.items[1], rows, I32, PART)
        indices(call, x, idx, I32)
        return Values((row_tile(F32, rows, "min"), row_tile(I32, rows, PART)))

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        _, pair, x, idx = call.positional
        best, at = cx.value(pair)
        keys, places = np.broadcast_arrays(*cx.operands(x, idx))
        keys = np.where(np.isnan(keys), np.inf, keys)
        order = np.lexsort((places, keys), axis=1)[:, :1]
        key, place = (np.take_along_axis(v, order, axis=1)[:, 0] for v in (keys, places))
        wins = key < best
        return np.where(wins, key, best).astype(np.float32), np.where(wins, place, at).astype(np.int32)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        """Three instructions an element. Where indices are constants away from one base, what is kept meanwhile is the distance.

        A move under a predicate would become a selection, on the pipe of the comparisons and minima, which decides how long a fold takes.
        A multiply-add by a zero that the assembler does not know is done beside them.
        """
        b, (_, pair, x, idx) = cx.b, call.positional
        rows = by_row(known(cx.distribution, x.span))
        held, (at_of,) = cx.broadcast(x)[0], cx.elements(idx)
        best, at = (dict(zip(slots(cx, e), cx.registers(e), strict=True)) for e in pair.items)
        base = at_of.base if at_of.steps is not None else 0
        best = {row: b.mov(r, "f32") for row, r in best.items()}
        at = {row: b.mov(b.sub(r, base)) for row, r in at.items()}
        zero = cx.zero()
        for numbers in zip(*rows.values(), strict=True):  # the rows side by side: their chains do not wait for each other
            for row, n in zip(rows, numbers, strict=True):
                smaller = b.op("setp.lt.f32", held[n], best[row])
                b.emit("mad.lo.s32", at[row], at[row], zero, at_of.at(n) if at_of.steps is None else at_of.steps[n], guard=smaller)
                b.emit("min.f32", best[row], best[row], held[n])
        return (*best.values(), *(b.add(r, base) for r in at.values()))


@frozen(kw_only=True)
class RowArgMin(Function):
    """The index that the lanes of a row agree on."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        best, at = count(call, 2, "the lanes' smallest elements and their indices")
        rows = best.type.shape[0] if getattr(best.type, "axis", None) == "row" else 0
        along(call, best, rows, F32, "min")
        along(call, at, rows, I32, PART)
        return row_tile(I32, rows)

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (OF_WARP,)

    def lies(self, call: Call, of: Callable[[Expr], Distribution | None]) -> Distribution | None:
        return rows_of([of(e) for e in call.positional])

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return cx.value(call.positional[1])

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        best, at = call.positional
        d = known(cx.distribution, call.span)
        pairs = zip(cx.registers(best), cx.registers(at), strict=True)
        return tuple(self._row(cx, register(cx, x), register(cx, i, "b32"), distances(d, call.span)) for x, i in pairs)

    def _row(self, cx: LowerContext, x: Reg, i: Reg, steps: tuple[int, ...]) -> Reg:
        b = cx.b
        for distance in steps:
            other, at = from_lane(b, x, distance), from_lane(b, i, distance)
            wins = in_order(b, other, at, x, i)
            x, i = b.op("selp.f32", other, x, wins), b.op("selp.b32", at, i, wins)
        return i


ARGMIN = ArgMin(
    name="argmin",
    partial=False,
    doc="A comparison, a multiply-add under it and a minimum an element (PTX ISA, Comparison and Selection Instructions, setp; Integer "
    "Arithmetic Instructions, mad; Floating Point Instructions, min).",
)
ROW_ARGMIN = RowArgMin(
    name="rowargmin",
    arguments="own",
    capabilities=frozenset({"shuffle"}),
    doc="Butterfly over the lanes of a row (PTX ISA, Data Movement Instructions, shfl.sync, mode .bfly; setp, selp).",
)
