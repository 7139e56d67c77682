"""Shuffles as they are executed without a GPU (PTX ISA, Data Movement and Conversion Instructions: shfl.sync), apart from lowering."""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import LANES, Coder, Lanes, Step
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Pair, Statement

_LANE = np.arange(LANES)


def sources(mode: str, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lane that each reads from, whether that is in range). c: clamp in bits 0-4, segment mask in bits 8-12; b: lane or distance in bits 0-4. Out of range a
    lane reads from itself."""
    b, clamp, segment = (v.astype(np.int64) for v in (b & 31, c & 31, c >> 8 & 31))
    most = (_LANE & segment) | (clamp & ~segment)
    least = _LANE & segment
    match mode:
        case "up":
            lane = _LANE - b
            inside = lane >= most
        case "down":
            lane = _LANE + b
            inside = lane <= most
        case "bfly":
            lane = _LANE ^ b
            inside = lane <= most
        case _:
            lane = least | (b & ~segment)
            inside = lane <= most
    return np.where(inside, lane, _LANE), inside


def shfl(s: Statement, c: Coder) -> Step:
    """`d|p, a, b, c, membermask`. A lane that reads from one that does not execute with it gets an unspecified value: a finding."""
    w = Words(s, c)
    w.need("sync")
    mode = w.need("up", "down", "bfly", "idx")
    w.need("b32")
    w.end()
    d, a, b, clamp, mask = s.operands
    c.meets(mask, without_ended=True)
    value, holds = (d.first, d.second) if isinstance(d, Pair) else (d, None)
    to, x, by, limit = c.result(value, "b32"), c.source(a, "b32"), c.source(b, "b32"), c.source(clamp, "b32")
    tells = c.result(holds, "pred") if holds is not None else None
    members = c.source(mask, "b32")
    everybody = c.constant(mask) is not None and c.constant(mask) & 0xFFFFFFFF == 0xFFFFFFFF
    fixed = None
    if (amount := c.constant(b)) is not None and (limits := c.constant(clamp)) is not None:
        fixed = sources(mode, np.full(LANES, amount), np.full(LANES, limits))

    def step(lanes: Lanes) -> None:
        lane, inside = fixed or sources(mode, by(lanes), limit(lanes))
        if not everybody or not lanes.full:
            there = lanes.active & (members(lanes) >> lane.astype(np.uint32) & 1).astype(bool)
            there &= lanes.active[lane]
            if (lanes.active & ~there).any():
                at = int(np.flatnonzero(lanes.active & ~there)[0])
                lanes.finding(
                    "emulate/operand",
                    f"lane {at} reads from lane {int(lane[at])}, which does not execute the shuffle with it",
                    why="PTX ISA, shfl.sync: what is read from a lane that is inactive or outside of the member mask is unspecified",
                )
        given = x(lanes)[lane]
        if tells is not None:
            tells(lanes, inside)
        to(lanes, given)

    return step
