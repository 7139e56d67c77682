"""Votes, matches and reductions over a warp as they are executed without a GPU, apart from lowering (PTX ISA, Parallel Synchronization and
Communication Instructions: vote.sync, activemask, match.sync, redux.sync)."""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import LANES, TYPES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Pair, Statement

_BIT = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def mask_of(lanes: np.ndarray) -> int:
    """The lanes of a bool array as bits."""
    return int(_BIT[lanes].sum(dtype=np.uint64))


def vote(s: Statement, c: Coder) -> Step:
    """vote.sync: `d, {!}a, membermask`, over the lanes that execute it together."""
    w = Words(s, c)
    w.need("sync")
    mode = w.need("all", "any", "uni", "ballot")
    w.need("b32" if mode == "ballot" else "pred")
    w.end()
    d, a, mask = s.operands
    c.meets(mask, without_ended=True)
    to, x = c.result(d, "b32" if mode == "ballot" else "pred"), c.source(a, "pred")

    def step(lanes: Lanes) -> None:
        told = x(lanes) & lanes.active
        if mode == "ballot":
            value = np.uint32(mask_of(told))
        elif mode == "any":
            value = told.any()
        elif mode == "all":
            value = (told == lanes.active).all()
        else:
            value = not told.any() or (told == lanes.active).all()
        to(lanes, np.full(LANES, value))

    return step


def activemask(s: Statement, c: Coder) -> Step:
    """activemask: the lanes that execute it together; which those are after a divergence is the machine's choice, here the schedule's."""
    w = Words(s, c)
    w.need("b32")
    w.end()
    to = c.result(s.operands[0], "b32")
    return lambda lanes: to(lanes, np.full(LANES, mask_of(lanes.active), np.uint32))


def match(s: Statement, c: Coder) -> Step:
    """match.any: the lanes that hold the same value; match.all: the mask where all hold the same, else 0, and whether they do."""
    w = Words(s, c)
    mode = w.need("any", "all")
    w.need("sync")
    kind = w.type("b32", "b64")
    w.end()
    d, a, mask = s.operands
    c.meets(mask, without_ended=True)
    value, holds = (d.first, d.second) if isinstance(d, Pair) else (d, None)
    if mode == "any" and holds is not None:
        raise c.unsupported("match.any with a predicate")
    to, x = c.result(value, "b32"), c.source(a, kind)
    tells = c.result(holds, "pred") if holds is not None else None

    def step(lanes: Lanes) -> None:
        given, active = x(lanes), lanes.active
        if mode == "any":
            same = (given[:, None] == given) & active
            to(lanes, (same * _BIT).sum(1, dtype=np.uint32))
            return
        all_ = bool((given[active] == given[lanes.first]).all())
        if tells is not None:
            tells(lanes, np.full(LANES, all_))
        to(lanes, np.full(LANES, mask_of(active) if all_ else 0, np.uint32))

    return step


_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_WHOLE = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def redux(s: Statement, c: Coder) -> Step:
    """redux.sync: `dst, src, membermask`. `add` of 32 bits wraps. min and max of f32: a NaN is left out, or is the result with `.NaN`; -0 is less than +0."""
    w = Words(s, c)
    w.need("sync")
    op = w.need(*_WHOLE)
    size, nan = w.flag("abs"), w.flag("NaN")
    kind = w.type(*{"add": ("u32", "s32"), "min": ("u32", "s32", "f32"), "max": ("u32", "s32", "f32")}.get(op, ("b32",)))
    w.end()
    if (size or nan) and kind != "f32":
        raise c.unsupported(f"'{s.opcode}'")
    d, a, mask = s.operands
    c.meets(mask, without_ended=True)
    to, x, dtype = c.result(d, kind), c.source(a, kind), np.dtype(TYPES[kind])
    if kind != "f32":
        over = _WHOLE[op]
        return lambda lanes: to(lanes, np.full(LANES, over.reduce(x(lanes)[lanes.active], dtype=dtype)))

    def step(lanes: Lanes) -> None:
        given = x(lanes)[lanes.active]
        given = np.abs(given) if size else given
        numbers = given[~np.isnan(given)]
        if len(numbers) == 0 or (nan and len(numbers) < len(given)):
            value = _NAN
        else:
            value = numbers.min() if op == "min" else numbers.max()
            if value == 0:  # zeros of both signs are equal to numpy
                signs = np.signbit(numbers[numbers == 0])
                value = np.float32(-0.0) if (signs.any() if op == "min" else signs.all()) else np.float32(0)
        to(lanes, np.full(LANES, value, np.float32))

    return step
