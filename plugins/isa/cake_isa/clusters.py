"""Clusters that take over from others which have not begun (PTX ISA, clusterlaunchcontrol.try_cancel, clusterlaunchcontrol.query_cancel).

The response of 16 bytes is opaque; here its first bit says that a cluster was cancelled, and the index of its first CTA stands behind. Which cluster is taken is
open: the next one in order. Whether one is left depends on how many run at once, as on a device.
"""

from __future__ import annotations

import struct

import numpy as np

from cake_core.ptx import places
from cake_core.ptx.emulated import Agent, Coder, Lanes, Step, halves
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Group, Statement

BYTES = 16
_FAILED = ("clusterlaunchcontrol", "failed")


class _Seen:
    """Whether threads of a CTA have seen that a request of theirs failed."""

    failed = False


def try_cancel(s: Statement, c: Coder) -> Step:
    """`[addr], [mbar]`: the response comes through the async proxy, to each CTA of the cluster with `.multicast::cluster::all`, and completes 16
    bytes on the barrier there. A request behind one that was seen to fail is undefined: a fault."""
    w = Words(s, c, skip=2)
    for word in ("async", "mbarrier::complete_tx::bytes", "b128"):
        w.need(word)
    space, all_ = w.one("shared::cta"), w.flag("multicast::cluster::all")
    w.end()
    to, bar = s.operands
    into, tells = places.shared(c, to, space, own=True, align=BYTES), places.shared(c, bar, space, own=True, align=8)

    def step(lanes: Lanes) -> None:
        at, told = into(lanes), tells(lanes)
        if lanes.cta.state(_FAILED, _Seen).failed:
            raise lanes.fault(
                "emulate/operand",
                "a request to cancel a cluster, in a CTA that has seen one fail",
                why="PTX ISA, clusterlaunchcontrol.try_cancel: behind an observed failure a further request is undefined",
            )
        for lane in np.flatnonzero(lanes.active).tolist():
            offset, bars = int(at[lane]) & places.OFFSET, int(told[lane])
            ranks = range(len(lanes.cta.cluster)) if all_ else [lanes.cta.rank]
            targets = [(r, lanes.barrier(places.in_rank(bars, r))) for r in ranks]

            def work(agent: Agent, offset=offset, targets=targets) -> None:
                first = agent.cta.launch.cancel()
                data = struct.pack("<4I", 0, 0, 0, 0) if first is None else struct.pack("<4I", 1, *first)
                for rank, barrier in targets:
                    agent.cta.cluster[rank].shared.write(agent, np.array([offset]), np.frombuffer(data, np.uint8).reshape(1, BYTES))
                    barrier.complete(agent, BYTES)

            lanes.start(None, work, "the response to a request to cancel a cluster")

    return step


def query_cancel(s: Statement, c: Coder) -> Step:
    """`.is_canceled.pred.b128 p, response` and `.get_first_ctaid{::x}{.v4}.b32.b128`; of a request that failed the index is undefined: a fault."""
    w = Words(s, c, skip=2)
    what = w.need("is_canceled", "get_first_ctaid", *(f"get_first_ctaid::{axis}" for axis in "xyz"))
    vector = w.flag("v4")
    w.need("pred" if what == "is_canceled" else "b32"), w.need("b128")
    w.end()
    d, response = s.operands
    if vector != isinstance(d, Group) or (vector and (what != "get_first_ctaid" or len(d.items) != 4)) or (what == "get_first_ctaid" and not vector):
        raise c.unsupported(f"operands of '{s.opcode}'")
    low, high = (c.source(h, "b64") for h in halves(str(response)))
    half = np.uint64(32)
    if what == "is_canceled":
        to = c.result(d, "pred")

        def told(lanes: Lanes) -> None:
            canceled = low(lanes) & np.uint64(1) != 0
            if not canceled[lanes.first]:
                lanes.cta.state(_FAILED, _Seen).failed = True
            to(lanes, canceled)

        return told
    gives = [c.result(o, "b32") for o in (d.items[:3] if vector else (d,))]
    axes = range(3) if vector else ["xyz".index(what[-1])]

    def index(lanes: Lanes) -> None:
        one, two = low(lanes), high(lanes)
        if not (one[lanes.active] & np.uint64(1)).all():
            raise lanes.fault("emulate/operand", "the index of a cluster is asked of a request that failed")
        parts = (one >> half, two, two >> half)
        for give, axis in zip(gives, axes, strict=True):
            give(lanes, parts[axis].astype(np.uint32))

    return index
