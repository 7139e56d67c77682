"""Barriers of the threads of a CTA and of a warp, and elections (PTX ISA, bar, barrier, bar.warp.sync, elect.sync)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx.emulated import LANES
from cake_core.ptx.groups import mask_of

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Coder, Lanes, Step, Wait
    from cake_core.ptx.reader import Statement

#: Barriers of a CTA.
BARRIERS = 16


def barrier(s: Statement, c: Coder) -> Step:
    """`bar{.cta}.{sync,arrive,red}` and `barrier{.cta}.{sync,arrive,red}{.aligned}`: `a {, b}`. A warp counts as 32 threads when all its lanes have
    come; without `b` all threads of the CTA take part."""
    words = [w for w in s.words[1:] if w not in ("cta", "aligned")]
    does = words[0] if words else ""
    if does in ("sync", "arrive") and len(words) == 1:
        rest = list(s.operands)
    elif does == "red" and words[1:] in (["popc", "u32"], ["and", "pred"], ["or", "pred"]):
        rest = list(s.operands[1:-1])
    else:
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    if not 1 <= len(rest) <= 2 or does == "arrive" and len(rest) != 2:
        raise c.unsupported("this number of operands")
    c.meets()
    number, count = c.source(rest[0], "u32"), c.source(rest[1], "u32") if len(rest) == 2 else None
    if does == "red":
        return _red(s, c, words[1], number, count)
    waits = does == "sync"

    def step(lanes: Lanes) -> Wait | None:
        which, expected = _which(lanes, number, count)
        meeting = lanes.cta.meeting(which)
        generation = meeting.come(lanes, _threads(lanes, count), expected, whole=count is None)
        if not waits:
            return None
        if meeting.over(generation):
            return meeting.acquire(lanes, generation)
        return lanes.wait(lambda: meeting.over(generation), f"barrier {which} of the CTA", lambda: meeting.acquire(lanes, generation))

    return step


def _which(lanes: Lanes, number, count) -> tuple[int, int]:
    """The barrier, and the threads that take part."""
    which = lanes.uniform(number(lanes))
    if which >= BARRIERS:
        raise lanes.fault("emulate/operand", f"barrier {which} of the CTA; there are {BARRIERS}")
    if count is None:
        return which, lanes.cta.threads
    expected = lanes.uniform(count(lanes))
    if not expected or expected % LANES:
        raise lanes.fault("emulate/operand", f"barrier {which} of the CTA is for {expected} threads; it is a multiple of {LANES} and not 0")
    return which, expected


def _threads(lanes: Lanes, count) -> int:
    """What a warp counts for: where all threads of the CTA take part, its threads that have not ended."""
    return int(lanes.active.sum()) if count is None else LANES


def _red(s: Statement, c: Coder, operation: str, number, count) -> Step:
    """`bar.red.popc.u32 d, a{, b}, {!}c` and `bar.red.{and,or}.pred p, a{, b}, {!}c`, over all threads that take part."""
    to = c.result(s.operands[0], "u32" if operation == "popc" else "pred")
    holds = c.source(s.operands[-1], "pred")

    def step(lanes: Lanes) -> Wait | None:
        which, expected = _which(lanes, number, count)
        meeting = lanes.cta.meeting(which)
        sums = lanes.cta.state(("bar.red", which), dict)
        true = int(holds(lanes)[lanes.active].sum())
        generation = meeting.come(lanes, _threads(lanes, count), expected, whole=count is None)
        before, threads = sums.get(generation, (0, 0))
        sums[generation] = before + true, threads + int(lanes.active.sum())
        sums.pop(generation - 2, None)

        def after() -> None:
            meeting.acquire(lanes, generation)
            total, threads = sums[generation]
            match operation:
                case "popc":
                    to(lanes, np.full(LANES, total, np.uint32))
                case "and":
                    to(lanes, np.full(LANES, total == threads))
                case _:
                    to(lanes, np.full(LANES, total > 0))

        if meeting.over(generation):
            return after()
        return lanes.wait(lambda: meeting.over(generation), f"barrier {which} of the CTA", after)

    return step


def warp(s: Statement, c: Coder) -> Step:
    """`bar.warp.sync membermask`: the lanes of the mask meet, and see what each of them has done."""
    if s.words[2:] != ("sync",):
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    c.meets(s.operands[0])
    return lambda lanes: lanes.met(mask_of(lanes.active))


def elect(s: Statement, c: Coder) -> Step:
    """`elect.sync d|p, membermask`: one lane of the mask gets True, the same one for each mask. The ISA leaves open which one: the lowest of those that
    execute it."""
    if s.words != ("elect", "sync"):
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    pair, mask = s.operands
    c.meets(mask)
    number = None if pair.first == "_" else c.result(pair.first, "b32")
    leads = c.result(pair.second, "pred")

    def step(lanes: Lanes) -> None:
        if number is not None:
            number(lanes, np.full(LANES, lanes.first, np.uint32))
        mine = np.zeros(LANES, bool)
        mine[lanes.first] = True
        leads(lanes, mine)

    return step
