"""Release and acquire through a location in memory, for those who execute instructions: loads, stores, atomics and fences of several families.

A release pattern on a location and an acquire pattern that reads from it order what stands before the one and behind the other (PTX ISA, Memory
Consistency Model: Release and Acquire Patterns). A release is an instruction with `.release` or a fence and a strong write behind it; an acquire is
an instruction with `.acquire` or a strong read and a fence behind it. Threads are executed one after another, so that a read reads from the
last write: the location keeps the stamp of the pattern that this write belongs to. Stamps are what `Agent.release` gives.

    wrote(lanes, "global", addresses, "release")     # st.release.gpu.global
    read(lanes, "global", addresses, "acquire")      # ld.acquire.gpu.global
    updated(lanes, "global", addresses, "acq_rel")   # atom.acq_rel.gpu.global
    fenced(lanes, "acq_rel")                         # fence.acq_rel.gpu

Scopes are not looked at here: a pair whose scopes do not hold each other is a race of the accesses themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cake_core.ptx.emulated import WINDOWS

if TYPE_CHECKING:
    import numpy as np

    from cake_core.ptx.emulated import Barrier, Lanes

#: Where stamps of locations are kept in a launch's state, and those of fences in a warp's.
LOCATIONS, FENCES = ("orders", "locations"), ("orders", "fences")


class _Fences:
    """`released`: the stamp of the last releasing fence; `read`: stamps of locations that strong reads read from and no fence has acquired yet.
    `begun`: barriers that the warp has initialised, and of which `fenced` those with a fence for initialisations behind them."""

    __slots__ = ("begun", "fenced", "read", "released")

    def __init__(self) -> None:
        self.begun: list[Barrier] = []
        self.fenced: list[Barrier] = []
        self.released: Any = None
        self.read: list[Any] = []


def wrote(lanes: Lanes, space: str, addresses: np.ndarray, order: str) -> None:
    """The active lanes wrote there. `order`: `weak`, `relaxed`, `release`."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    stamp = _released(lanes, order)
    if stamp is None:
        if table:
            for place in _places(lanes, space, addresses):
                table.pop(place, None)
        return
    for place in _places(lanes, space, addresses):
        table[place] = (stamp,)


def read(lanes: Lanes, space: str, addresses: np.ndarray, order: str) -> None:
    """The active lanes read there. `order`: `weak`, `relaxed`, `acquire`."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    if order == "weak" or not table:
        return
    _acquired(lanes, [s for place in _places(lanes, space, addresses) for s in table.get(place, ())], order)


def updated(lanes: Lanes, space: str, addresses: np.ndarray, order: str) -> None:
    """The active lanes read and wrote there atomically. `order`: `relaxed`, `acquire`, `release`, `acq_rel`. A release sequence goes on through it:
    who reads from it synchronises with the releases in front of it too."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    stamp = _released(lanes, order)
    if stamp is None and not table:
        return
    places = _places(lanes, space, addresses)
    _acquired(lanes, [s for place in places for s in table.get(place, ())], order)
    if stamp is not None:
        for place in places:
            table[place] = (*table.get(place, ()), stamp)


def fenced(lanes: Lanes, order: str) -> None:
    """A fence between threads. `order`: `acquire`, `release`, `acq_rel`, `sc`."""
    fences = lanes.state(FENCES, _Fences)
    if order != "release":
        for stamp in fences.read:
            lanes.acquire(stamp)
        fences.read.clear()
    if order != "acquire":
        fences.released = lanes.release()


def initialised(lanes: Lanes, barrier: Barrier) -> None:
    """These lanes have initialised it."""
    lanes.state(FENCES, _Fences).begun.append(barrier)


def initialisations_fenced(lanes: Lanes) -> None:
    """A fence that releases initialisations of barriers alone: they are seen behind what the warp releases next, be it relaxed."""
    fences = lanes.state(FENCES, _Fences)
    fences.fenced += fences.begun
    fences.begun.clear()


class Relaxed:
    """An agent that takes part in a relaxed operation on a barrier: it releases what its last releasing fence has released, and what it would acquire
    is acquired by its next acquiring fence. In all else it is the lanes themselves."""

    __slots__ = ("_lanes",)

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lanes, name)

    def release(self) -> Any:
        self._lanes.release()
        fences = self._lanes.state(FENCES, _Fences)
        for barrier in fences.fenced:
            barrier.publish()
        fences.fenced.clear()
        return self._lanes.relaxed(fences.released)

    def acquire(self, stamp: Any) -> None:
        self._lanes.state(FENCES, _Fences).read.append(stamp)
        self._lanes.acquire_fenced(stamp)


def _released(lanes: Lanes, order: str) -> Any:
    """The stamp that a write carries; None: none."""
    if order in ("release", "acq_rel"):
        return lanes.release()
    return None if order == "weak" else lanes.state(FENCES, _Fences).released


def _acquired(lanes: Lanes, stamps: list[Any], order: str) -> None:
    if order in ("acquire", "acq_rel"):
        for stamp in stamps:
            lanes.acquire(stamp)
    elif stamps:
        lanes.state(FENCES, _Fences).read += stamps


def _places(lanes: Lanes, space: str, addresses: np.ndarray) -> set[tuple[int, int]]:
    """Locations, one name each whatever the space they were addressed through: shared memory is its cluster's."""
    window = WINDOWS["shared"]
    out = set()
    for address in addresses[lanes.active].tolist():
        if space == "shared" or window <= address < window << 1:
            out.add((id(lanes.cta.cluster[0]), address & window - 1))
        else:
            out.add((0, address))
    return out
