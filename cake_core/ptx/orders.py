"""Release and acquire through a location in memory, for those who execute instructions: loads, stores, atomics and fences of several families.

A release pattern on a location and an acquire pattern that reads from it order what stands before the one and behind the other (PTX ISA, Memory
Consistency Model: Release and Acquire Patterns). A release is an instruction with `.release` or a fence and a strong write behind it; an acquire is
an instruction with `.acquire` or a strong read and a fence behind it. Threads are executed one after another, so that a read reads from the
last write: the location keeps the stamp of the pattern that this write belongs to. Stamps are what `Agent.release` gives.

    wrote(lanes, "global", addresses, "release", "gpu")     # st.release.gpu.global
    read(lanes, "global", addresses, "acquire", "gpu")      # ld.acquire.gpu.global
    updated(lanes, "global", addresses, "acq_rel", "gpu")   # atom.acq_rel.gpu.global
    fenced(lanes, "acq_rel", "gpu")                         # fence.acq_rel.gpu

The write and the read, and the first operation of the one pattern and the last of the other, must be of scopes that hold each other's threads (Morally
Strong Operations); else nothing is ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cake_core.ptx.emulated import WINDOWS
from cake_core.ptx.groups import mask_of
from cake_core.ptx.scopes import REACH, held

if TYPE_CHECKING:
    import numpy as np

    from cake_core.ptx.emulated import Barrier, Cta, Lanes

#: Where stamps of locations are kept in a launch's state, and those of fences in a warp's.
LOCATIONS, FENCES = ("orders", "locations"), ("orders", "fences")


class _Release(NamedTuple):
    """`scope`: of the first operation of the pattern, by a thread of `cta`."""

    stamp: Any
    scope: str
    cta: Cta


class _Written(NamedTuple):
    """The last write of a location, and the releases that a read from it acquires."""

    scope: str
    cta: Cta
    releases: tuple[_Release, ...]


class _Fences:
    """`released`: the stamp of the last releasing fence of each scope, the widest first; one that reaches as far as those in front of it stands for them.
    `read`: what strong reads read from and no fence has acquired yet, by the stamp's identity, and the lanes that read it.
    `begun`: barriers that the warp has initialised, and of which `fenced` those with a fence for initialisations behind them."""

    __slots__ = ("begun", "fenced", "read", "released")

    def __init__(self) -> None:
        self.begun: list[Barrier] = []
        self.fenced: list[Barrier] = []
        self.released: dict[str, Any] = {}
        self.read: dict[int, tuple[_Release, int]] = {}


def wrote(lanes: Lanes, space: str, addresses: np.ndarray, order: str, scope: str) -> None:
    """The active lanes wrote there. `order`: `weak`, `relaxed`, `release`; `scope`: "" of a weak one."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    releases = _released(lanes, order, scope)
    if not releases:
        if table:
            for place in _places(lanes, space, addresses):
                table.pop(place, None)
        return
    for place in _places(lanes, space, addresses):
        table[place] = _Written(scope, lanes.cta, releases)


def read(lanes: Lanes, space: str, addresses: np.ndarray, order: str, scope: str) -> None:
    """The active lanes read there. `order`: `weak`, `relaxed`, `acquire`."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    if order == "weak" or not table:
        return
    for place, mask in _places(lanes, space, addresses).items():
        if (written := table.get(place)) is not None:
            _acquired(lanes, written, order, scope, mask)


def updated(lanes: Lanes, space: str, addresses: np.ndarray, order: str, scope: str) -> None:
    """The active lanes read and wrote there atomically. `order`: `relaxed`, `acquire`, `release`, `acq_rel`. A release sequence goes on through it:
    who reads from it synchronises with the releases in front of it too."""
    table = lanes.cta.launch.state(LOCATIONS, dict)
    releases = _released(lanes, order, scope)
    if not releases and not table:
        return
    for place, mask in _places(lanes, space, addresses).items():
        written, before = table.get(place), ()
        if written is not None and _acquired(lanes, written, order, scope, mask):
            before = written.releases
        if before or releases:
            table[place] = _Written(scope, lanes.cta, (*before, *releases))
        else:
            table.pop(place, None)


def fenced(lanes: Lanes, order: str, scope: str) -> None:
    """A fence between threads. `order`: `acquire`, `release`, `acq_rel`, `sc`."""
    fences = lanes.state(FENCES, _Fences)
    if order != "release" and fences.read:
        active = mask_of(lanes.active)
        for key, (release, mask) in list(fences.read.items()):
            if not mask & active:
                continue
            if not _holds(lanes, release, scope):
                continue
            lanes.acquire(release.stamp, mask=mask & active)
            if mask & ~active:
                fences.read[key] = release, mask & ~active
            else:
                del fences.read[key]
    if order != "acquire":
        stamp = lanes.release()
        fences.released = {s: old for s, old in fences.released.items() if REACH[s] > REACH[scope]}
        if stamp is not None:
            fences.released[scope] = stamp


def initialised(lanes: Lanes, barrier: Barrier) -> None:
    """These lanes have initialised it."""
    lanes.state(FENCES, _Fences).begun.append(barrier)


def initialisations_fenced(lanes: Lanes) -> None:
    """A fence that releases initialisations of barriers alone: they are seen behind what the warp releases next, be it relaxed."""
    fences = lanes.state(FENCES, _Fences)
    fences.fenced += fences.begun
    fences.begun.clear()


class Relaxed:
    """An agent that takes part in a relaxed operation on a barrier: it releases what its last releasing fence has released whose scope reaches as far as
    `scope`, and what it would acquire is acquired by its next acquiring fence. In all else it is the lanes themselves."""

    __slots__ = ("_lanes", "_scope")

    def __init__(self, lanes: Lanes, scope: str = "cta") -> None:
        self._lanes, self._scope = lanes, scope

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lanes, name)

    def release(self) -> Any:
        self._lanes.release()
        fences = self._lanes.state(FENCES, _Fences)
        reaching = [stamp for scope, stamp in fences.released.items() if REACH[scope] >= REACH[self._scope]]
        stamp = self._lanes.relaxed(reaching[-1] if reaching else None)
        if stamp is not None:
            for barrier in fences.fenced:
                barrier.publish(stamp)
        return stamp

    def acquire(self, stamp: Any, order: str = "", mask: int | None = None) -> None:
        if stamp is not None:
            release = _Release(stamp, "sys", self._lanes.cta)
            _remember(self._lanes, release, mask_of(self._lanes.active) if mask is None else mask)
        self._lanes.acquire_fenced(stamp)


def _released(lanes: Lanes, order: str, scope: str) -> tuple[_Release, ...]:
    """What a write carries."""
    if order in ("release", "acq_rel"):
        stamp = lanes.release()
        return () if stamp is None else (_Release(stamp, scope, lanes.cta),)
    if order == "weak":
        return ()
    return tuple(_Release(stamp, s, lanes.cta) for s, stamp in lanes.state(FENCES, _Fences).released.items())


def _acquired(lanes: Lanes, written: _Written, order: str, scope: str, mask: int) -> bool:
    """These lanes read what was written: whether its scope and theirs hold each other's threads."""
    if not held(written.cta, written.scope, lanes.cta, scope):
        for release in written.releases:
            lanes.unheld(release.stamp)
        return False
    for release in written.releases:
        if order not in ("acquire", "acq_rel"):
            _remember(lanes, release, mask)
        elif _holds(lanes, release, scope):
            lanes.acquire(release.stamp, mask=mask)
    return True


def _holds(lanes: Lanes, release: _Release, scope: str) -> bool:
    if held(release.cta, release.scope, lanes.cta, scope):
        return True
    lanes.unheld(release.stamp)
    return False


def _remember(lanes: Lanes, release: _Release, mask: int) -> None:
    """A fence of these lanes acquires it."""
    kept = lanes.state(FENCES, _Fences).read
    before = kept.get(id(release.stamp))
    kept[id(release.stamp)] = release, mask | (before[1] if before is not None else 0)


def _places(lanes: Lanes, space: str, addresses: np.ndarray) -> dict[tuple[int, int], int]:
    """Locations, one name each whatever the space they were addressed through, and the lanes that access each: shared memory is its cluster's."""
    window = WINDOWS["shared"]
    out: dict[tuple[int, int], int] = {}
    for lane, address in enumerate(addresses.tolist()):
        if not lanes.active[lane]:
            continue
        if space == "shared" or window <= address < window << 1:
            place = id(lanes.cta.cluster[0]), address & window - 1
        else:
            place = 0, address
        out[place] = out.get(place, 0) | 1 << lane
    return out
