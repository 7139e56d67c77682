"""`topk(K, f32, i32)`: the K smallest elements of a row and their indices, a sorted list in the registers of each lane.

Of equal keys the one of the smaller index comes first and is the one that stays; NaN is never taken; entries that are none are
(+inf, -1), and +inf is never taken either. Inside a lane the rule holds if indices ascend along the row and from fold to fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Call, Expr, TypeExpr
from cake_core.ir.types import F32, I32, Elem, State, Type, Value
from cake_core.primitive import CheckContext, Elements, FragmentType, LowerContext, SimulateContext
from cake_core.ptx.builder import Builder, Operand, Reg
from cake_reduce.network import List, insert, insert_in_order, merged
from cake_reduce.operands import count, indices, tile, what
from cake_reduce.rows import ALL_LANES, by_row, dealt, distances, from_lane, known, register, slots

#: Elements that one vote decides on. A lane inserts its smallest of them, votes again, and goes on while any lane has one.
GROUP = 8
#: Entries that the registers of a thread have room for, beside the tile that is folded.
MOST = 64


@frozen(kw_only=True)
class TopK(FragmentType):
    """A row has K keys, K indices and a bound: what is not below it can't be among the row's K smallest.

    The bound is the lane's own K-th key, or less: each of the L lanes of a row has ceil(K / L) keys up to T, the largest of
    their ceil(K / L)-th, so K keys of the row are not above T. Insertion stands behind a vote of the warp, so that a fold
    in which nobody gains costs one comparison a row beside the minimum of each row.
    """

    def check(self, args: tuple[int | Elem, ...], at: Expr | TypeExpr) -> None:
        k, *elems = args
        if not isinstance(k, int) or not 1 <= k <= MOST:
            raise fail("type/arguments", f"'topk' of {k} entries", at.span, why=f"1 to {MOST} are possible")
        if elems != [F32, I32]:
            raise fail(
                "type/arguments",
                f"'topk({', '.join(map(str, args))})'",
                at.span,
                why="keys are f32 and indices i32",
                fix=f"write `topk({k}, f32, i32)`",
            )

    def registers(self, args: tuple[int | Elem, ...]) -> tuple[str, ...]:
        return ("f32",) * args[0] + ("b32",) * args[0] + ("f32",)

    def empty(self, args: tuple[int | Elem, ...]) -> tuple[Operand, ...]:
        return (math.inf,) * args[0] + (-1,) * args[0] + (math.inf,)

    def fields(self, args: tuple[int | Elem, ...]) -> dict[str, tuple[Elem, int]]:
        return {"key": (F32, args[0]), "val": (I32, args[0])}

    def field(self, name: str, args: tuple[int | Elem, ...], row: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return row[: args[0]] if name == "key" else row[args[0] : 2 * args[0]]

    def result(self, call: Call, cx: CheckContext) -> Type:
        _, best, x, idx = count(call, 4, "a state, a register tile and the indices of its elements")
        t = best.type
        if not is_register_tile(t) or not isinstance(t.elem, State) or t.elem.type != self.name or t.part is None:
            raise fail(
                "type/operand", f"'{what(call)}' takes a lane-partial `topk`, not a {t}", best.span, fix="declare it `over row part`"
            )
        dealt = is_register_tile(x.type) and len(x.type.shape) == 1 and x.type.axis is None and x.type.elem == F32
        if not dealt:
            tile(call, x)
        rows = 1 if dealt else x.type.shape[0]
        if tuple(t.shape) != (rows,):
            raise fail("type/shape", f"the state has {t.shape[0]} rows, the tile {rows}", x.span)
        indices(call, x, idx, I32)
        return Value(t.elem, tuple(t.shape), "row", self.name)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        _, best, x, idx = call.positional
        state, k = cx.value(best), best.type.elem.args[0]
        keys, places = np.broadcast_arrays(*cx.operands(x, idx))
        rows = state["key"].shape[0]
        keys, places = keys.reshape(rows, -1), places.reshape(rows, -1)
        taken = keys < np.inf
        keys = np.concatenate([state["key"], np.where(taken, keys, np.inf)], axis=1)
        places = np.concatenate([state["val"], np.where(taken, places, -1)], axis=1)
        order = np.lexsort((places, keys), axis=1)[:, :k]
        return {"key": np.take_along_axis(keys, order, axis=1).astype(np.float32), "val": np.take_along_axis(places, order, axis=1).astype(np.int32)}

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        _, best, x, idx = call.positional
        k = best.type.elem.args[0]
        rows = [Row(cx.b, k, cx.registers(best)[at : at + 2 * k + 1]) for at in range(0, (2 * k + 1) * len(slots(cx, best)), 2 * k + 1)]
        if len(x.type.shape) == 1:
            return self._dealt(call, cx, rows[0], x, idx)
        d = known(cx.distribution, x.span)
        steps = distances(cx.distribution_of(best), call.span)
        held, (at_of,) = cx.broadcast(x)[0], cx.elements(idx)
        for (row, numbers), slot in zip(by_row(d).items(), (slots(cx, best)[row] for row in by_row(d)), strict=True):
            rows[slot].fold([register(cx, held[n]) for n in numbers], at_of.pick(numbers), steps)
        return tuple(r for row in rows for r in row.all)

    def _dealt(self, call: Call, cx: LowerContext, row: Row, x: Expr, idx: Expr) -> tuple[Operand, ...]:
        """The elements of one row, dealt out to its lanes: each lane inserts all of its own; there are few."""
        b, count = cx.b, x.type.shape[0]
        d = dealt(cx.distribution_of(call.positional[1]), count, call.span)
        with cx.distributed(d):
            held, (at_of,) = cx.registers(x), cx.elements(idx)
            (first,) = d.layout.origin(cx, d.words)
        lanes = 1 << len(distances(d, call.span))
        for n, (offset,) in enumerate(d.offsets):
            key = register(cx, held[n])
            if offset + lanes > count:  # the last round: what lies behind the end is no element
                key = b.op("selp.f32", key, math.inf, b.compare("<", b.add(first, offset), count))
            insert_in_order(b, row.list, key, at_of.at(n))
        row.bound_by_own()
        return row.all

    def merge(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (x,) = call.positional
        k, out = x.type.elem.args[0], []
        held, steps = cx.registers(x), distances(known(cx.distribution, call.span), call.span)
        for at in range(0, len(held), 2 * k + 1):
            mine = List([register(cx, r) for r in held[at : at + k]], [register(cx, r, "b32") for r in held[at + k : at + 2 * k]])
            for distance in steps:
                other = List([from_lane(cx.b, r, distance) for r in mine.keys], [from_lane(cx.b, r, distance) for r in mine.indices])
                mine = merged(cx.b, mine, other)
            out += [*mine.keys, *mine.indices, mine.keys[-1]]
        return tuple(out)


@dataclass(slots=True)
class Row:
    """One row's list in registers of its own, so that it can change under branches."""

    b: Builder
    k: int
    list: List
    bound: Reg

    def __init__(self, b: Builder, k: int, held: tuple[Operand, ...]):
        self.b, self.k = b, k
        self.list = List([b.mov(r, "f32") for r in held[:k]], [b.mov(r) for r in held[k : 2 * k]])
        self.bound = b.mov(held[2 * k], "f32")

    @property
    def all(self) -> tuple[Reg, ...]:
        return (*self.list.keys, *self.list.indices, self.bound)

    def bound_by_own(self) -> None:
        self.b.emit("min.f32", self.bound, self.bound, self.list.keys[-1])

    def fold(self, keys: list[Reg], at_of: Elements, steps: tuple[int, ...]) -> None:
        """Elements of a lane, columns ascending; steps: the butterfly over the lanes of the row."""
        b = self.b
        groups = [Group(b, keys[i : i + GROUP], at_of.pick(range(i, min(i + GROUP, len(keys))))) for i in range(0, len(keys), GROUP)]
        skip = b.label("none_gains")
        _, gains = self._vote(least(b, [g.smallest for g in groups]))
        b.branch(skip, guard=gains, negate=True)
        for group in groups:
            again, done = b.label("insert"), b.label("inserted")
            b.place(again)
            mine, gains = self._vote(group.smallest)
            b.branch(done, guard=gains, negate=True)
            insert(b, self.list, *group.taken(mine))
            self.bound_by_own()
            b.branch(again)
            b.place(done)
        self._bound_by_lanes(steps)
        b.place(skip)

    def _vote(self, key: Reg) -> tuple[Reg, Reg]:
        """Whether this lane gains by a key, and whether any lane of the warp does."""
        mine, any_ = self.b.op("setp.lt.f32", key, self.bound), self.b.reg("pred")
        self.b.emit("vote.sync.any.pred", any_, mine, ALL_LANES)
        return mine, any_

    def _bound_by_lanes(self, steps: tuple[int, ...]) -> None:
        b, lanes = self.b, 1 << len(steps)
        key: Reg = self.list.keys[-(-self.k // lanes) - 1]
        for distance in steps:
            key = b.op("max.f32", key, from_lane(b, key, distance))
        b.emit("min.f32", self.bound, self.bound, key)


@dataclass(slots=True)
class Group:
    """Some elements of a row and their smallest. What is taken out becomes +inf, in copies: the tile itself stays."""

    b: Builder
    keys: list[Reg]
    at_of: Elements
    smallest: Reg

    def __init__(self, b: Builder, keys: list[Reg], at_of: Elements):
        self.b, self.at_of = b, at_of
        self.keys = [b.mov(k, "f32") for k in keys]
        self.smallest = b.mov(least(b, self.keys), "f32")

    def taken(self, mine: Reg) -> tuple[Reg, Operand]:
        """The smallest element where `mine` holds, the first of several, and its index; +inf elsewhere."""
        b, steps = self.b, self.at_of.steps
        apart = steps is not None and len(set(steps)) == len(steps)  # the distance from the base tells the elements apart
        tags = steps if apart else range(len(self.keys))
        tag = b.mov(-1)
        for t, key in reversed(list(zip(tags, self.keys, strict=True))):
            here = b.reg("pred")
            b.emit("setp.eq.and.f32", here, key, self.smallest, mine)
            b.emit("selp.b32", tag, t, tag, here)
        key = b.op("selp.f32", self.smallest, math.inf, mine)
        index = b.add(tag, self.at_of.base) if apart else b.mov(-1)
        for n, (t, k) in enumerate(zip(tags, self.keys, strict=True)):
            here = b.op("setp.eq.s32", tag, t)
            b.emit("selp.f32", k, math.inf, k, here)
            if not apart:
                b.emit("selp.b32", index, self.at_of.at(n), index, here)
        b.emit("mov.f32", self.smallest, least(b, self.keys))
        return key, index


def least(b: Builder, keys: list[Reg]) -> Reg:
    """The smallest of several, pairwise; NaN only where all are."""
    while len(keys) > 1:
        keys = [b.op("min.f32", *keys[i : i + 2]) if i + 1 < len(keys) else keys[i] for i in range(0, len(keys), 2)]
    return keys[0]


TOPK = TopK(
    name="topk",
    doc="Sorted insertion behind a vote of the warp (PTX ISA, Parallel Synchronization and Communication Instructions, vote.sync; "
    "Comparison and Selection Instructions, setp and selp; Floating Point Instructions, min and max; shfl.sync).",
)
