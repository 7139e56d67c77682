"""Bulk copies, reductions and their groups (PTX ISA, Data Movement and Conversion Instructions: Bulk copy; Asynchronous copy completion).

A copy to shared memory is one job: it reads, writes, and completes its bytes on the barrier. A copy to global memory is two on a queue of their own: what
`.read` of a wait is for has happened between them. Each active lane starts a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import places
from cake_core.ptx.groups import BULK, UNAWAITED, Groups, Operation, Unawaited, awaited, mask_of
from cake_core.ptx.reductions import reduction

if TYPE_CHECKING:
    from cake_core.ptx.emulated import Agent, Coder, Lanes, Step, Wait
    from cake_core.ptx.reader import Statement

_COMPLETES, _GROUP = "mbarrier::complete_tx::bytes", "bulk_group"

#: What addresses and sizes are multiples of.
UNIT = 16

#: Element types of each reduction, into global and into shared memory (PTX ISA, cp.reduce.async.bulk).
_GLOBAL = {
    "add": ("f16", "bf16", "f32", "f64", "u32", "s32", "u64"),
    "min": ("f16", "bf16", "u32", "s32", "u64", "s64"),
    "max": ("f16", "bf16", "u32", "s32", "u64", "s64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
_SHARED = {
    "add": ("s32", "u32", "u64"), "min": ("s32", "u32"), "max": ("s32", "u32"), "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


def copy(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.dst.src.completion{.multicast::cluster}{.cp_mask}{.L2::cache_hint} [dst], [src], size {, [mbar]} {, ctaMask} {, cache-policy}
    {, byteMask}`, in all directions."""
    return _copy(s, c, s.words[3:], None)


def reduce(s: Statement, c: Coder) -> Step:
    """`cp.reduce.async.bulk.dst.src.completion{.L2::cache_hint}.op{.noftz}.type [dst], [src], size {, [mbar]} {, cache-policy}`: each element is an
    atomic operation of its own. f16 and bf16 need `.noftz`; f32 keeps subnormal numbers too, of which the ISA says nothing."""
    words = [w for w in s.words[4:] if w != "noftz"]
    operation, type = words[-2:]
    known = _GLOBAL if words[0] == "global" else _SHARED
    floats = type in ("f16", "bf16") and operation == "add"
    if type not in known.get(operation, ()) or floats != ("noftz" in s.words):
        raise c.unsupported(f"'.{'.'.join(s.words[4:])}'")
    return _copy(s, c, tuple(words[:-2]), reduction(operation, type))


def _copy(s: Statement, c: Coder, words: tuple[str, ...], change: Change | None) -> Step:
    to, source, *flags = words
    directions = {
        ("shared::cta", "global"): _COMPLETES,
        ("shared::cluster", "global"): _COMPLETES,
        ("shared::cluster", "shared::cta"): _COMPLETES,
        ("global", "shared::cta"): _GROUP,
    }
    completes = directions.get((to, source))
    if completes is None or completes not in flags or change is not None and source == "global":
        raise c.unsupported(f"'.{'.'.join(words)}'")
    allowed = {completes, "L2::cache_hint"} | ({"multicast::cluster"} if source == "global" and to == "shared::cluster" else set())
    allowed |= {"cp_mask"} if to == "global" and change is None else set()
    if unknown := [w for w in flags if w not in allowed]:
        raise c.unsupported(f"'.{unknown[0]}' of a bulk copy")
    operands = list(s.operands)
    fixed = 3 + (completes == _COMPLETES) + sum(f in flags for f in ("multicast::cluster", "cp_mask", "L2::cache_hint"))
    if len(operands) != fixed:
        raise c.unsupported(f"{len(operands)} operands; this form has {fixed}")
    size = c.source(operands[2], "u32")
    bytes = c.source(operands[-1], "b16") if "cp_mask" in flags else None
    if to == "global":
        return _out(places.shared(c, operands[1], source, align=UNIT), c.address(operands[0]), size, bytes, change)
    mask = c.source(operands[4], "b16") if "multicast::cluster" in flags else None
    into, tells = places.shared(c, operands[0], to, align=UNIT), places.shared(c, operands[3], to, align=8)
    if source == "global":
        return _in(c.address(operands[1]), into, tells, size, mask)
    return _across(places.shared(c, operands[1], source, align=UNIT), into, tells, size, change)


def _sized(lanes: Lanes, size: int, address: int = 0) -> int:
    if size % UNIT:
        raise lanes.fault("emulate/operand", f"a bulk copy of {size} bytes; it is a multiple of {UNIT}")
    if address % UNIT:
        raise lanes.fault("emulate/misaligned", f"a bulk copy at {hex(address)} of global memory, which is no multiple of {UNIT}")
    return size


def _lanes(lanes: Lanes) -> list[int]:
    return [lanes.first] if not lanes.full and int(lanes.active.sum()) == 1 else np.flatnonzero(lanes.active).tolist()


def same_cta(lanes: Lanes, to: int, barrier: int) -> None:
    if to >> places.RANK_AT != barrier >> places.RANK_AT:
        raise lanes.fault(
            "emulate/operand",
            "the barrier is in the shared memory of another CTA than the destination",
            why="PTX ISA, cp.async.bulk: the mbarrier object is in the same CTA's shared memory as the destination",
        )


def _in(source, into, tells, sizes, masks) -> Step:
    def step(lanes: Lanes) -> None:
        first, to, told, size = source(lanes), into(lanes), tells(lanes), sizes(lanes)
        mask = None if masks is None else masks(lanes)
        for lane in _lanes(lanes):
            count, address = _sized(lanes, int(size[lane]), int(first[lane])), int(first[lane])
            same_cta(lanes, int(to[lane]), int(told[lane]))
            ranks = [int(to[lane]) >> places.RANK_AT] if mask is None else members(lanes, int(mask[lane]))
            offset = int(to[lane]) & places.OFFSET
            targets = [(r, lanes.barrier(places.in_rank(int(told[lane]), r))) for r in ranks]

            def work(agent: Agent, address=address, count=count, offset=offset, targets=targets) -> None:
                if count:
                    ((memory, at, _),) = places.in_global(agent, np.array([address], np.uint64), count)
                    data = memory.read(agent, at, count)
                for rank, barrier in targets:
                    if count:
                        agent.cta.shared_of(agent, rank).write(agent, np.array([offset]), data)
                    barrier.complete(agent, count)

            lanes.start(None, work, "a bulk copy to shared memory")

    return step


def members(lanes: Lanes, mask: int) -> list[int]:
    """The CTAs of a mask of a cluster."""
    ranks = [r for r in range(16) if mask >> r & 1]
    if not ranks or ranks[-1] >= len(lanes.cta.cluster):
        raise lanes.fault("emulate/operand", f"the mask {hex(mask)} of CTAs in a cluster of {len(lanes.cta.cluster)}")
    return ranks


def _across(source, into, tells, sizes, change: Change | None) -> Step:
    def step(lanes: Lanes) -> None:
        first, to, told, size = source(lanes), into(lanes), tells(lanes), sizes(lanes)
        for lane in _lanes(lanes):
            count, offset = _sized(lanes, int(size[lane])), int(first[lane]) & places.OFFSET
            same_cta(lanes, int(to[lane]), int(told[lane]))
            rank, target = places.split(int(to[lane]))
            barrier = lanes.barrier(int(told[lane]))

            def work(agent: Agent, offset=offset, count=count, rank=rank, target=target, barrier=barrier) -> None:
                if count:
                    memory = agent.cta.shared_of(agent, rank)
                    data, at = agent.cta.shared.read(agent, np.array([offset]), count), np.array([target])
                    if change is None:
                        memory.write(agent, at, data)
                    else:
                        memory.write(agent, at, change(memory.read(agent, at, count, scope="cluster"), data), scope="cluster")
                barrier.complete(agent, count)

            lanes.start(None, work, "a bulk copy between CTAs")

    return step


def _out(source, to, sizes, bytes, change: Change | None) -> Step:
    def step(lanes: Lanes) -> None:
        first, address, size = source(lanes), to(lanes), sizes(lanes)
        kept = None if bytes is None else bytes(lanes)
        for lane in _lanes(lanes):
            count = _sized(lanes, int(size[lane]), int(address[lane]))
            chosen = None if kept is None else np.flatnonzero(np.tile(int(kept[lane]) >> np.arange(UNIT) & 1, count // UNIT))
            _started(lanes, lane, int(first[lane]) & places.OFFSET, int(address[lane]), count, chosen, change)

    return step


def _started(lanes: Lanes, lane: int, offset: int, address: int, count: int, chosen: np.ndarray | None, change: Change | None) -> None:
    """Two jobs: the reads of shared memory, and the writes to global memory. `chosen`: the bytes that are written; None: all."""
    operation = Operation(1 << lane, "a bulk copy to global memory")
    lanes.state(BULK, Groups).add(operation)
    lanes.cta.state(UNAWAITED, Unawaited).add(operation)
    data: list[np.ndarray] = []

    def reads(agent: Agent) -> None:
        if count:
            data.append(agent.cta.shared.read(agent, np.array([offset]), count))
        operation.has_read(agent)

    def writes(agent: Agent) -> None:
        if count:
            ((memory, at, _),) = places.in_global(agent, np.array([address], np.uint64), count)
            if change is not None:
                memory.write(agent, at, change(memory.read(agent, at, count, scope="gpu"), data[0]), scope="gpu")
            elif chosen is None:
                memory.write(agent, at, data[0])
            else:
                memory.write(agent, at + chosen, data[0][0, chosen][:, None])
        operation.completed(agent)

    lanes.start(operation, reads, operation.what)
    lanes.start(operation, writes, operation.what, outlives=True)


def prefetch(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [src], size {, cache-policy}`: a hint; its operands are checked."""
    if s.words[5:6] != ("global",) or len(s.operands) not in (2, 3):
        raise c.unsupported(f"'.{'.'.join(s.words[3:])}'")
    of, size = c.address(s.operands[0]), c.source(s.operands[1], "u32")

    def step(lanes: Lanes) -> None:
        for lane in _lanes(lanes):
            _sized(lanes, int(size(lanes)[lane]), int(of(lanes)[lane]))

    return step


def commit(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.commit_group`."""
    return lambda lanes: lanes.state(BULK, Groups).commit(mask_of(lanes.active))


def wait(s: Statement, c: Coder) -> Step:
    """`cp.async.bulk.wait_group{.read} N`: all bulk groups of the thread but the last N are complete; with `.read` they have read their sources."""
    keep, read = c.constant(s.operands[0]), s.words[4:] == ("read",)
    if keep is None or keep < 0 or s.words[4:] not in ((), ("read",)):
        raise c.unsupported("a number of groups that is no constant")

    def step(lanes: Lanes) -> Wait | None:
        mask = mask_of(lanes.active)
        return awaited(lanes, lanes.state(BULK, Groups).older(mask, keep), mask, read, "bulk copies to global memory")

    return step
