"""Calls of functions: where lanes come from, and what they find when they return.

A function is made once, as blocks behind those of the kernel, with registers of its own. A call copies what it passes into the frame of the function, in
each thread's local memory behind the caller's, and what the function gives back from there (PTX ISA, Function Declarations and Definitions; call). A
function that may call itself has its registers kept at each call. Lanes in one function go on together where they were called from the same places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cake_core.emulate.layout import DEPTH
from cake_core.emulate.outcome import Unsupported
from cake_core.ptx.declared import Variable
from cake_core.ptx.emulated import LANES, TYPES, Step, bytes_of
from cake_core.ptx.reader import Function, Statement, called

if TYPE_CHECKING:
    from cake_core.emulate.code import Coder
    from cake_core.emulate.warps import Lanes

#: Where lanes go that are at no block: to their end, back to where they were called from, or, from CALL downwards, into a function.
END, RETURN, CALL = -1, -2, -3


@dataclass(slots=True)
class Call:
    """`start`: the function's first block; `back`: where it returns to; `size`: bytes of the caller's frame; `kept`: rows of the function's registers, by
    width, where it may be called while it runs."""

    function: str
    size: int
    back: int
    kept: Mapping[int, slice]
    start: int = 0


class Frame(NamedTuple):
    back: int
    base: int
    kept: dict[int, np.ndarray]
    rows: Mapping[int, slice]


def go(lanes: Lanes) -> None:
    """Lanes whose place is no block and not the end go on in a function, or behind the call."""
    if lanes.block == RETURN:
        frame = lanes.frames[-1]
        for width, rows in frame.rows.items():
            np.copyto(lanes.own.store[width][rows], frame.kept[width], where=lanes.active)
        lanes.frames, lanes.base, lanes.block = lanes.frames[:-1], frame.base, frame.back
        return
    call = lanes.own.code.calls[CALL - lanes.block]
    if len(lanes.frames) == DEPTH:
        raise lanes.fault("emulate/unsupported", f"'{call.function}' is called {DEPTH + 1} calls deep; {DEPTH} is the limit here")
    kept = {width: lanes.own.store[width][rows].copy() for width, rows in call.kept.items()}
    lanes.frames = (*lanes.frames, Frame(call.back, lanes.base, kept, call.kept))
    lanes.base += call.size
    lanes.block = call.start


def alike(one: Lanes, other: Lanes) -> bool:
    """Whether both were called from the same places; then the one gets what the other had kept."""
    if one.frames is other.frames:
        return True
    if [f.back for f in one.frames] != [f.back for f in other.frames]:
        return False
    for mine, theirs in zip(one.frames, other.frames, strict=True):
        if mine.kept is not theirs.kept:
            for width, values in mine.kept.items():
                np.copyto(values, theirs.kept[width], where=other.active)
    return True


# --- how a call is made ---------------------------------------------------------------------------------------------------


def recursive(functions: Sequence[Function]) -> set[str]:
    """Those that may be called while they run."""
    calls = {f.name: {called(s.text)[1] for s in f.code.body if isinstance(s, Statement) and s.words[0] == "call"} for f in functions}
    found = set()
    for name in calls:
        reached, fresh = set(), {name}
        while fresh:
            fresh = {n for one in fresh for n in calls.get(one, ())} - reached
            reached |= fresh
        if name in reached:
            found.add(name)
    return found


def passed(s: Statement, caller: Coder, function: Function, callee: Coder) -> Step:
    """What is passed goes into the function's frame, or its registers. Raises Unsupported."""
    caller.statement = callee.statement = s
    _, _, given = called(s.text)
    if len(given) != len(function.formals):
        raise caller.unsupported(f"'{function.name}' takes {len(function.formals)} parameters, and is given {len(given)}")
    moves = [_move(caller, actual, callee, formal, True) for actual, formal in zip(given, function.formals, strict=True)]
    return lambda lanes: _all(lanes, moves)


def given_back(s: Statement, caller: Coder, function: Function, callee: Coder) -> Step:
    caller.statement = callee.statement = s
    results, _, _ = called(s.text)
    if len(results) > len(function.results):
        raise caller.unsupported(f"'{function.name}' gives {len(function.results)} results, and {len(results)} are taken")
    moves = [_move(caller, actual, callee, formal, False) for actual, formal in zip(results, function.results, strict=False) if actual != "_"]
    return lambda lanes: _all(lanes, moves)


def _all(lanes: Lanes, moves: Sequence[Step]) -> None:
    for move in moves:
        move(lanes)


def _move(caller: Coder, actual: str | int | float, callee: Coder, formal: Variable, there: bool) -> Step:
    """Between what a call names and what the function names: `there`, or back. Bytes that nobody has written stay so."""
    if actual in caller.locals and formal.space == "param":
        size, own, far = formal.size or 0, caller.locals[actual], caller.local_bytes + callee.locals[formal.name]

        def copy(lanes: Lanes) -> None:
            of, to = (own, far) if there else (far, own)
            memory = lanes.own.local(lanes.own.code.local_bytes)
            rows = _rows(lanes, size)
            for bytes in (memory.data, memory.written):
                bytes[rows + to] = bytes[rows + of]

        return copy
    kind = formal.type
    if kind not in TYPES or formal.size != np.dtype(TYPES[kind]).itemsize:
        raise Unsupported(caller.statement.line, "call", f"'{formal.name}' of the type .{kind} in a register is not covered")
    if formal.space == "reg":
        at = callee if there else caller
        of = (caller if there else callee).source(actual if there else formal.name, kind)
        return _into(at.result(formal.name if there else actual, kind), of)
    offset, dtype = caller.local_bytes + callee.locals[formal.name], np.dtype(TYPES[kind])
    if there:
        of = caller.source(actual, kind)

        def store(lanes: Lanes) -> None:
            memory = lanes.own.local(lanes.own.code.local_bytes)
            rows = _rows(lanes, dtype.itemsize) + offset
            memory.data[rows], memory.written[rows] = bytes_of(np.broadcast_to(of(lanes), LANES))[lanes.active], 1

        return store
    to = caller.result(actual, kind)

    def load(lanes: Lanes) -> None:
        found = np.zeros((LANES, dtype.itemsize), np.uint8)
        found[lanes.active] = lanes.own.local(lanes.own.code.local_bytes).data[_rows(lanes, dtype.itemsize) + offset]
        to(lanes, found.view(dtype)[:, 0])

    return load


def _into(to, of) -> Step:
    return lambda lanes: to(lanes, of(lanes))


def _rows(lanes: Lanes, size: int) -> np.ndarray:
    """Places of `size` bytes at the start of the frame of each active lane."""
    return (np.flatnonzero(lanes.active) * lanes.own.code.local_bytes + lanes.base)[:, None] + np.arange(size)
