"""Clusters: addresses in other CTAs, the barrier of the cluster, and stores and reductions that tell a barrier there (PTX ISA, mapa,
barrier.cluster, st.async, red.async).

`ld` and `st` of `.shared::cluster` are what they are in any space. The ISA names `st.async` and `red.async` nowhere among the operations of the async
proxy, so that they access memory as threads do; when they take effect is open until their barrier has their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx import orders, places
from cake_core.ptx.emulated import LANES, TYPES, bytes_of, joined
from cake_core.ptx.reader import Group
from cake_core.ptx.reductions import reduction

if TYPE_CHECKING:
    from collections.abc import Callable

    from cake_core.ptx.emulated import Agent, Barrier, Coder, Lanes, Step, Wait
    from cake_core.ptx.reader import Operand, Statement


def mapa(s: Statement, c: Coder) -> Step:
    """`mapa{.shared::cluster}.{u32,u64} d, a, b`: the address that `a` has in CTA `b` of the cluster. A generic address has rank and offset at the
    same bits."""
    words = s.words[1:]
    type = words[-1]
    if type not in ("u32", "u64") or words[:-1] not in ((), ("shared::cluster",)):
        raise c.unsupported(f"'.{'.'.join(words)}'")
    d, a, b = s.operands
    to, of, ranks = c.result(d, type), c.source(a, type), c.source(b, "u32")
    kind = np.dtype(TYPES[type]).type
    keep = kind(~(0xFF << places.RANK_AT) & (1 << 8 * kind().itemsize) - 1)

    def step(lanes: Lanes) -> None:
        rank = ranks(lanes)
        most = int(rank.max() if lanes.full else rank[lanes.active].max())
        if most >= len(lanes.cta.cluster):
            raise lanes.fault("emulate/operand", f"an address in CTA {most} of a cluster of {len(lanes.cta.cluster)}")
        to(lanes, of(lanes) & keep | rank.astype(kind) << kind(places.RANK_AT))

    return step


class _Arrivals:
    """Of a warp: the generation that each lane has come to and not waited for; -1: none."""

    __slots__ = ("generation",)

    def __init__(self) -> None:
        self.generation = np.full(LANES, -1, np.int64)


def barrier(s: Statement, c: Coder) -> Step:
    """`barrier.cluster.arrive{.release|.relaxed}{.aligned}` and `barrier.cluster.wait{.acquire}{.aligned}`: all threads of the cluster that have not
    ended. A thread arrives once and then waits; two arrivals without a wait, and a wait without an arrival, have no defined behaviour."""
    words = [w for w in s.words[2:] if w != "aligned"]
    aligned, does, order = "aligned" in s.words, words[0] if words else "", words[1:]
    if (
        does not in ("arrive", "wait")
        or order not in ([], ["release"], ["relaxed"], ["acquire"])
        or (order == ["acquire"]) != (does == "wait")
        and order
    ):
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    if aligned:
        c.meets()
    return _wait if does == "wait" else _arrive(order == ["relaxed"])


def _arrive(relaxed: bool) -> Step:
    def step(lanes: Lanes) -> None:
        kept = lanes.state("barrier.cluster", _Arrivals).generation
        if (kept[lanes.active] >= 0).any():
            raise lanes.fault(
                "emulate/barrier",
                "a thread arrives at the barrier of the cluster again, and has not waited since it arrived",
                why="PTX ISA, barrier.cluster: each arrival of a thread is followed by its wait",
            )
        meeting, threads = lanes.cta.together(), int(lanes.active.sum())
        expected = sum(cta.threads for cta in lanes.cta.cluster)
        agent = orders.Relaxed(lanes, "cluster" if len(lanes.cta.cluster) > 1 else "cta") if relaxed else lanes
        kept[lanes.active] = meeting.come(agent, threads, expected, whole=True)

    return step


def _wait(lanes: Lanes) -> Wait | None:
    kept = lanes.state("barrier.cluster", _Arrivals).generation
    active = lanes.active.copy()
    generation = int(kept[active].max())
    if (kept[active] < 0).any():
        raise lanes.fault("emulate/barrier", "a thread waits at the barrier of the cluster, and has not arrived there")
    meeting = lanes.cta.together()

    def after() -> None:
        meeting.acquire(lanes, generation)
        kept[active] = -1

    if meeting.over(generation):
        return after()
    return lanes.wait(lambda: meeting.over(generation), "the barrier of the cluster", after)


# --- stores and reductions that tell a barrier ----------------------------------------------------------------------------

_COMPLETES = "mbarrier::complete_tx::bytes"


def _parts(s: Statement, c: Coder, leading: tuple[str, ...]) -> list[str]:
    """The words behind space and completion."""
    words = list(s.words[2:])
    for word in leading:
        if words[:1] == [word]:
            words.pop(0)
    if words[:1] == ["shared::cluster"]:
        words.pop(0)
    if words[:1] != [_COMPLETES]:
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}': only completion on an mbarrier object of '.shared::cluster' is covered")
    return words[1:]


def _aims(s: Statement, c: Coder, address: Operand, barrier: Operand, align: int) -> Callable[[Lanes], tuple[np.ndarray, np.ndarray]]:
    """Where each lane stores, and its barrier, both in one CTA."""
    space = "shared::cluster" if "shared::cluster" in s.words else ""
    to, tells = places.shared(c, address, space, align=align), places.shared(c, barrier, space, align=8)
    at = np.uint64(places.RANK_AT)

    def both(lanes: Lanes) -> tuple[np.ndarray, np.ndarray]:
        found, told = to(lanes), tells(lanes)
        if ((found >> at != told >> at) & lanes.active).any():
            raise lanes.fault(
                "emulate/operand",
                "the barrier is in the shared memory of another CTA than what is stored",
                why=f"PTX ISA, {s.words[0]}.async: the mbarrier object is in the same CTA as the destination",
            )
        return found, told

    return both


def store(s: Statement, c: Coder) -> Step:
    """`st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2,.v4}.type [a], b, [mbar]`."""
    words = _parts(s, c, ("weak",))
    count = int(words.pop(0)[1:]) if words and words[0] in ("v2", "v4") else 1
    if len(words) != 1 or words[0][1:] not in ("32", "64") or words[0][0] not in "busf" or len(s.operands) != 3:
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    address, value, barrier = s.operands
    items = value.items if isinstance(value, Group) else (value,)
    if len(items) != count:
        raise c.unsupported(f"{len(items)} values for {count}")
    size = count * int(words[0][1:]) // 8
    aims, values = _aims(s, c, address, barrier, size), [c.source(v, words[0]) for v in items]

    def step(lanes: Lanes) -> None:
        data = joined(bytes_of(np.broadcast_to(v(lanes), LANES)) for v in values)
        _sent(lanes, aims(lanes), lambda agent, memory, offsets, chosen: memory.write(agent, offsets, data[chosen]), size, "st.async")

    return step


def reduce(s: Statement, c: Coder) -> Step:
    """`red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b, [mbar]`: `inc`, `dec` of u32; `min`, `max` of u32, s32;
    `and`, `or`, `xor` of b32; `add` of u32, s32, u64."""
    words = _parts(s, c, ("relaxed", "cluster"))
    known = {"inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32"), "max": ("u32", "s32"), "add": ("u32", "s32", "u64")}
    known |= dict.fromkeys(("and", "or", "xor"), ("b32",))
    if len(words) != 2 or words[1] not in known.get(words[0], ()) or len(s.operands) != 3:
        raise c.unsupported(f"'.{'.'.join(s.words[1:])}'")
    address, value, barrier = s.operands
    size, change = int(words[1][1:]) // 8, reduction(*words)
    aims, of = _aims(s, c, address, barrier, size), c.source(value, words[1])

    def step(lanes: Lanes) -> None:
        data = bytes_of(np.broadcast_to(of(lanes), LANES))

        def work(agent: Agent, memory, offsets: np.ndarray, chosen: np.ndarray) -> None:
            for n, lane in enumerate(chosen.tolist()):  # two lanes may name one place
                old = memory.read(agent, offsets[n : n + 1], size, scope="cluster")
                memory.write(agent, offsets[n : n + 1], change(old, data[lane : lane + 1]), scope="cluster")

        _sent(lanes, aims(lanes), work, size, "red.async")

    return step


def _sent(lanes: Lanes, aims: tuple[np.ndarray, np.ndarray], does: Callable, size: int, what: str) -> None:
    """One job for each barrier that lanes tell."""
    found, told = aims
    for address in dict.fromkeys(told[lanes.active].tolist()):
        chosen = np.flatnonzero(lanes.active & (told == address))
        rank, _ = places.split(address)
        offsets = (found[chosen] & np.uint64(places.OFFSET)).astype(np.int64)
        lanes.start(None, _job(lanes.barrier(address), rank, offsets, chosen, does, size), what, proxy="generic")


def _job(barrier: Barrier, rank: int, offsets: np.ndarray, chosen: np.ndarray, does: Callable, size: int) -> Callable[[Agent], None]:
    def work(agent: Agent) -> None:
        does(agent, agent.cta.shared_of(agent, rank), offsets, chosen)
        barrier.complete(agent, size * len(chosen))

    return work
