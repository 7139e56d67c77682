"""tcgen05.commit and the fences, and what is refused."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cake_core.ptx.emulated import RANK_AT, WINDOWS, Agent, Barrier, Coder, Lanes, Step
from cake_core.ptx.reader import Statement
from cake_tcgen05.emulate.columns import group_of, members


def queue(lanes: Lanes, lane: int) -> Hashable:
    """What one thread gives the engine is done in order: products of one accumulator, and copies in front of products (PTX ISA, tcgen05 Memory
    Consistency Model, pipelined instructions). The ISA promises no more; here all of one thread is in order."""
    return "tcgen05", lanes.warp, lane


def commit(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.commit: arrives at a barrier, once, when all that the thread has given the engine is complete; with multicast at the barrier of
    the same offset of each CTA of a mask. It implies tcgen05.fence::before_thread_sync."""
    words = {w for w in s.words[2:] if not w.startswith("cta_group::")}
    if not {"mbarrier::arrive::one", "b64"} <= words or words - {"mbarrier::arrive::one", "b64", "shared::cluster", "multicast::cluster"}:
        raise c.unsupported(f"the words of '{s.opcode}'")
    group = group_of(s, c)
    generic = "shared::cluster" not in words
    at = c.address(s.operands[0], generic)
    mask = c.source(s.operands[1], "b16") if "multicast::cluster" in words else None
    if len(s.operands) != (1 if mask is None else 2):
        raise c.unsupported(f"{len(s.operands)} operands")

    def step(lanes: Lanes) -> None:
        members(lanes, group)
        addresses, masks = at(lanes), None if mask is None else mask(lanes)
        for lane in np.flatnonzero(lanes.active).tolist():
            address = int(addresses[lane]) - (WINDOWS["shared"] if generic else 0)
            targets = [lanes.barrier(address)] if masks is None else _targets(lanes, address, int(masks[lane]))

            def work(agent: Agent, targets: list[Barrier] = targets) -> None:
                agent.fence("tensor_before")
                for barrier in targets:
                    barrier.arrive(agent)

            lanes.start(queue(lanes, lane), work, f"tcgen05.commit of line {s.line}")

    return step


def _targets(lanes: Lanes, address: int, mask: int) -> list[Barrier]:
    ranks = [r for r in range(16) if mask >> r & 1]
    if not ranks or ranks[-1] >= len(lanes.cta.cluster):
        raise lanes.fault(
            "emulate/operand",
            f"tcgen05.commit to the CTAs of mask {mask:#x} in a cluster of {len(lanes.cta.cluster)}",
            why="each bit is the rank of a CTA of the cluster (PTX ISA, tcgen05.commit)",
        )
    offset = address & (1 << RANK_AT) - 1
    return [lanes.barrier(rank << RANK_AT | offset) for rank in ranks]


def fence(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.fence: orders what the engine does around a synchronisation of threads. A kernel that has such fences is held against them; in
    one without any an acquiring wait is enough, as kernels that run on such devices show (CUTLASS, Triton)."""
    if len(s.words) != 2:
        raise c.unsupported(f"the words of '{s.opcode}'")
    c.orders("tensor")
    kind = "tensor_before" if s.words[1] == "fence::before_thread_sync" else "tensor_after"

    def step(lanes: Lanes) -> None:
        lanes.fence(kind)

    return step


def shift(s: Statement, c: Coder) -> Step:
    """PTX ISA, tcgen05.shift: rows of 32 bytes go down by one, which only a figure shows."""
    raise c.unsupported("shifting rows of tensor memory: no text says which way")
