"""Which warp and lane of an instance holds which elements of a register tile: layouts, asked on numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.facts.banks import LANES, Thread
from cake_core.frozen import thawed

if TYPE_CHECKING:
    from cake_core.primitive import Distribution


@thawed(eq=False)
class Holding:
    """`elements`: flat numbers of what each lane holds, [warps, 32, count]. `warp`, `lane`: one that holds each element, shaped as the tile."""

    elements: np.ndarray
    warp: np.ndarray
    lane: np.ndarray

    def of(self, lo: int, hi: int) -> np.ndarray:
        """Whether warps `lo` to `hi` hold each element."""
        found = np.zeros(self.warp.size, np.bool_)
        found[self.elements[lo:hi].ravel()] = True
        return found.reshape(self.warp.shape)


def holding_of(d: Distribution) -> Holding:
    """Raises AttributeError where a layout asks more than the place of a thread."""
    thread = Thread(np.arange(d.warps)[:, None], np.arange(LANES)[None, :])
    origin = [np.broadcast_to(np.asarray(x), (d.warps, LANES)) for x in d.layout.origin(thread, d.words)]
    flat = np.zeros((d.warps, LANES, len(d.offsets)), np.int64)
    for at, size, steps in zip(origin, d.shape, np.array(d.offsets).reshape(len(d.offsets), -1).T, strict=True):
        flat = flat * size + at[:, :, None] + steps[None, None, :]
    places = np.arange(d.warps * LANES).reshape(d.warps, LANES)[:, :, None]
    thread_of = np.zeros(int(np.prod(d.shape)), np.int64)
    thread_of[flat.ravel()] = np.broadcast_to(places, flat.shape).ravel()
    thread_of = thread_of.reshape(d.shape)
    return Holding(flat, thread_of // LANES, thread_of % LANES)
