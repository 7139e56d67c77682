"""Copies by threads from global to shared memory (PTX ISA, Data Movement and Conversion Instructions: Non-bulk copy).

They access memory as threads do (generic proxy). Copies are unordered among themselves: those of one instruction are one job, others take effect
before or after it as it comes. Groups are kept for each thread; what a lane has waited for all lanes of its warp are taken to see, while the ISA
lets them see it behind a barrier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import places
from cake_core.ptx.emulated import LANES
from cake_core.ptx.groups import Groups, Operation, awaited, mask_of

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Agent, Coder, Lanes, Step, Wait
    from cake_core.ptx.reader import Statement

#: Where the groups of a warp are kept.
GROUPS = ("groups", "threads")

_HINTS = {"L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"}


def copy(s: Statement, c: Coder) -> Step:
    """`cp.async.{ca,cg}.shared{::cta}.global{.hints} [dst], [src], cp-size {, src-size | ignore-src} {, cache-policy}`: 4, 8 or 16 bytes, of which
    `src-size` are read and the others are zeros; with `ignore-src` all of them. Addresses are multiples of cp-size."""
    words = s.words[2:]
    hints = [w for w in words[3:] if w not in _HINTS]
    if words[1:2] not in (("shared",), ("shared::cta",)) or words[2:3] != ("global",) or hints:
        raise c.unsupported(f"'.{'.'.join(words)}'")
    to, of, count, *rest = s.operands
    if "L2::cache_hint" in words:
        rest = rest[:-1]
    size = c.constant(count)
    if size not in ((4, 8, 16) if words[0] == "ca" else (16,)) or len(rest) > 1:
        raise c.unsupported(f"a copy of {size if size is not None else 'so many'} bytes")
    at, source = places.shared(c, to, words[1], align=size), c.address(of)
    ignores = reads = None
    if rest and isinstance(rest[0], int):
        reads = c.source(rest[0], "u32")
    elif rest:
        ignores, reads = _predicate_or_number(c, rest[0])
    low = np.uint64(size - 1)

    def step(lanes: Lanes) -> None:
        found, addresses, active = at(lanes), source(lanes), lanes.active
        wanted = np.full(LANES, size, np.int64)
        if ignores is not None:
            wanted[ignores(lanes)] = 0
        elif reads is not None:
            wanted = reads(lanes).astype(np.int64)
            if int(wanted[active].max()) > size:
                raise lanes.fault(
                    "emulate/operand", f"src-size is {int(wanted[active].max())} and cp-size {size}", why="PTX ISA: the behaviour is undefined"
                )
        if ((addresses & low != 0) & active & (wanted > 0)).any():
            raise lanes.fault("emulate/misaligned", f"a copy of {size} bytes from an address that is no multiple of {size}")
        operation = Operation(mask_of(active), "cp.async")
        lanes.state(GROUPS, Groups).add(operation)
        if lanes.full:
            offsets = found & np.uint64(places.OFFSET)
        else:
            offsets, addresses, wanted = found[active] & np.uint64(places.OFFSET), addresses[active], wanted[active]
        lanes.start(None, _job(operation, offsets.astype(np.int64), addresses, wanted, size), "cp.async", proxy="generic")

    return step


def _predicate_or_number(c: Coder, operand):
    """`ignore-src` is a predicate, `src-size` a 32-bit register: which one the operand is, its register says."""
    try:
        return c.source(operand, "pred"), None
    except Exception:  # what a coder raises of a register that is no predicate
        return None, c.source(operand, "u32")


def _job(operation: Operation, offsets: np.ndarray, addresses: np.ndarray, wanted: np.ndarray, size: int):
    def work(agent: Agent) -> None:
        data = np.zeros((len(offsets), size), np.uint8)
        for bytes in set(wanted.tolist()) - {0}:
            chosen = np.flatnonzero(wanted == bytes)
            for memory, source, which in places.in_global(agent, addresses[chosen], bytes):
                data[chosen[which], :bytes] = memory.read(agent, source, bytes)
        agent.cta.shared.write(agent, offsets, data)
        operation.completed(agent)

    return work


def commit(s: Statement, c: Coder) -> Step:
    """`cp.async.commit_group`."""
    return lambda lanes: lanes.state(GROUPS, Groups).commit(mask_of(lanes.active))


def wait(s: Statement, c: Coder) -> Step:
    """`cp.async.wait_group N` and `cp.async.wait_all`, which is for all copies of the thread, committed or not."""
    keep = c.constant(s.operands[0]) if s.words[2] == "wait_group" else None
    if s.words[3:] or (keep is None or keep < 0) and s.words[2] == "wait_group":
        raise c.unsupported("a number of groups that is no constant")

    def step(lanes: Lanes) -> Wait | None:
        groups, mask = lanes.state(GROUPS, Groups), mask_of(lanes.active)
        operations = groups.all(mask) if keep is None else groups.older(mask, keep)
        return awaited(lanes, operations, mask, False, "copies by threads (cp.async)")

    return step


def arrive(s: Statement, c: Coder) -> Step:
    """`cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [addr]`: an arrival of each thread when all its copies so far are complete. Without
    `.noinc` the phase waits for one arrival more from now on. The lanes that name one object arrive together, behind the last copy of any."""
    words = [w for w in s.words[4:] if w != "noinc"]
    space = words[0] if words[:1] in (["shared"], ["shared::cta"]) else ""
    if words[1 if space else 0 :] != ["b64"]:
        raise c.unsupported(f"'.{'.'.join(s.words[4:])}'")
    noinc = "noinc" in s.words
    at = places.shared(c, s.operands[0], space, own=True, align=8)

    def step(lanes: Lanes) -> None:
        found = at(lanes)
        for address in dict.fromkeys(found[lanes.active].tolist()):
            mask = mask_of(lanes.active & (found == address))
            barrier, count = lanes.barrier(address), mask.bit_count()
            if not noinc:
                barrier.grow(lanes, count)
            before = [o for o in lanes.state(GROUPS, Groups).all(mask)]
            left = [o for o in before if o.done is None]

            def told(agent: Agent, before=before, barrier=barrier, count=count) -> None:
                if all(o.done is not None for o in before):
                    for o in before:
                        agent.acquire(o.done[0])
                    barrier.arrive(agent, count)

            for o in left:
                o.behind.append(told)
            if not left:
                lanes.start(None, told, "the arrival of copies by threads", proxy="generic")

    return step
