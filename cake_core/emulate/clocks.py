"""Who has seen what of whom: vector clocks that know fences.

An agent is a warp, or a place in a pool for jobs of engines. Its accesses carry its number and the count of its clock. A vector has, for each
agent, the count up to which its accesses have happened before. Fences order between the ways to reach memory: for each of `ORDERS` there is a
second vector with what is ordered for accesses of that way too (PTX ISA, Memory Consistency Model: Proxies).

Lanes of a warp that alone have acquired something know it alone, until they meet the others: `Clock.apart`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: What `fence` of a kind adds to: what is known so far becomes ordered for these.
FENCES: dict[str, tuple[str, ...]] = {
    "async": ("async.shared", "async.global"),
    "async.shared": ("async.shared",),
    "async.global": ("async.global",),
    "tensor_before": ("tensor_out",),
}
ORDERS = ("async.shared", "async.global", "tensor_out", "tensor")


def _join(to: np.ndarray, of: np.ndarray) -> np.ndarray:
    if len(of) > len(to):
        to, of = of.copy(), to
    np.maximum(to[: len(of)], of, out=to[: len(of)])
    return to


class Vector:
    """`known`, and what of it each order has. `lanes`: where only some lanes of a warp have told of it, agent to (count, mask): their accesses up to
    that count; those of the other lanes are known up to `known`. `over`: what is known to be over, and whose writes are not seen for that: reads, and
    work of engines, are ordered by it, writes of threads are not (None: nothing). `by`: of a stamp, the agent and the line of the PTX that released it.
    `begun`: initialisations of barrier objects that are known though their agent's accesses may not be."""

    __slots__ = ("begun", "by", "known", "lanes", "ordered", "over", "time")

    def __init__(self, size: int = 0) -> None:
        self.time = 0.0  # when, in instructions, if each started as soon as it could
        self.known = np.zeros(size, np.int64)
        self.ordered = {order: np.zeros(size, np.int64) for order in ORDERS}
        self.lanes: dict[int, tuple[int, int]] = {}
        self.over: Vector | None = None
        self.by = (0, 0)
        self.begun: frozenset[object] = frozenset()

    def told(self) -> Vector:
        """For a stamp: what a fence behind a synchronisation has ordered holds for the thread that executed it alone."""
        new = self.copy()
        new.ordered["tensor"] = np.zeros(0, np.int64)
        return new

    def as_over(self) -> Vector:
        """For who learns that all this is over by an operation whose scope does not hold it. What fences have ordered by themselves holds."""
        new = Vector()
        new.time = self.time
        new.over = Vector()
        for of in (self, self.over):
            if of is not None:
                new.over.known = _join(new.over.known, of.known)
                new.over._tell_lanes(of)
        new.join_fenced(self)
        return new

    def within(self, other: Vector) -> bool:
        """Whether all this is known to the other too."""
        pairs = ((self.known, other.known), *((v, other.ordered[order]) for order, v in self.ordered.items()))
        return not self.lanes and self.over is None and self.begun <= other.begun and all(_within(a, b) for a, b in pairs)

    def join_fenced(self, other: Vector) -> None:
        """What fences in front of a synchronisation have ordered alone: they order with relaxed operations too."""
        self.ordered["tensor_out"] = _join(self.ordered["tensor_out"], other.ordered["tensor_out"])

    def fenced(self) -> np.ndarray:
        """What is known or was ordered by fences in front of a synchronisation."""
        return _join(self.known.copy(), self.ordered["tensor_out"])

    def copy(self) -> Vector:
        new = Vector()
        new.known, new.ordered, new.lanes = self.known.copy(), {k: v.copy() for k, v in self.ordered.items()}, dict(self.lanes)
        new.time, new.by, new.begun = self.time, self.by, self.begun
        new.over = None if self.over is None else self.over.copy()
        return new

    def join(self, other: Vector, order: str = "") -> None:
        """With an order all that the other knows is ordered so too."""
        self.known, self.time = _join(self.known, other.known), max(self.time, other.time)
        for name, vector in other.ordered.items():
            self.ordered[name] = _join(self.ordered[name], vector)
        if order:
            self.ordered[order] = _join(self.ordered[order], other.known)
        self._tell_lanes(other)
        self._prune()
        if other.begun:
            self.begun |= other.begun
        if other.over is not None:
            self.over = self.over or Vector()
            self.over.known = _join(self.over.known, other.over.known)
            self.over._tell_lanes(other.over)

    def _tell_lanes(self, other: Vector) -> None:
        for agent, (count, mask) in other.lanes.items():
            own, before = self.lanes.get(agent, (0, 0))
            self.lanes[agent] = max(own, count), mask | before

    def tell(self, agent: int, count: int) -> None:
        """All accesses of the agent up to `count`."""
        self.known = _grown(self.known, agent)
        self.known[agent] = max(self.known[agent], count)
        self._prune()

    def fence(self, kind: str, agent: int, count: int) -> None:
        """By an agent whose own accesses up to `count` are in front of it. Of a warp all lanes are taken for those that fence; which of their accesses are
        in front of what comes next, `known` and `lanes` say."""
        for order in FENCES.get(kind, ()):
            vector = _grown(_join(self.ordered[order], self.known), agent)
            vector[agent] = max(vector[agent], count)
            self.ordered[order] = vector
        if kind == "tensor_after":
            self.ordered["tensor"] = _join(self.ordered["tensor"], self.ordered["tensor_out"])

    def _prune(self) -> None:
        if self.lanes:
            n = len(self.known)
            self.lanes = {a: x for a, x in self.lanes.items() if a >= n or self.known[a] < x[0]}


class Clock:
    """The number and the count of an agent, and what it has seen. `synced`: accesses up to this count are ordered among all lanes;
    `pairs[i, j]`: those of lane j up to it in front of what lane i does next, where some lanes have met since. `apart`: masks of lanes that know
    more than the warp does, no lane in two of them, and all that these know."""

    __slots__ = ("apart", "count", "id", "pairs", "synced", "vector")

    def __init__(self, id: int) -> None:
        self.id, self.count, self.synced, self.vector = id, 1, 0, Vector()
        self.pairs: np.ndarray | None = None
        self.apart: list[tuple[int, Vector]] = []

    def vectors(self, mask: int) -> Iterator[Vector]:
        """What lanes of the mask know: those apart, and the warp's where it is that of any."""
        for members, vector in self.apart:
            if members & mask:
                mask &= ~members
                yield vector
        if mask:
            yield self.vector

    def seen(self, mask: int) -> Vector:
        """What lanes of the mask know together. Not to be written into."""
        first, *others = self.vectors(mask)
        if not others:
            return first
        first = first.copy()
        for vector in others:
            first.join(vector)
        return first

    def common(self, mask: int) -> Vector:
        """What each of these lanes knows. Not to be written into."""
        first, *others = self.vectors(mask)
        if not others:
            return first
        new = first.copy()
        new.known = _meet(new.known, *(v.known for v in others))
        new.ordered = {order: _meet(vector, *(v.ordered[order] for v in others)) for order, vector in new.ordered.items()}
        new.begun = first.begun.intersection(*(v.begun for v in others))
        new.lanes, new.over = dict(self.vector.lanes), None if self.vector.over is None else self.vector.over.copy()
        return new

    def part(self, mask: int) -> list[Vector]:
        """What these lanes know, apart from what the others know."""
        kept, out = [], []
        for members, vector in self.apart:
            if both := members & mask:
                own = vector.copy() if members != both else vector
                out.append(own)
                kept.append((both, own))
                mask &= ~both
            if members & ~both:
                kept.append((members & ~both, vector))
        if mask:
            out.append(self.vector.copy())
            kept.append((mask, out[-1]))
        self.apart = kept
        return out

    def meet(self, mask: int, alive: int) -> None:
        """These lanes tell each other what they know."""
        if not self.apart:
            return
        seen = self.seen(mask & alive)
        if not alive & ~mask:
            if seen is not self.vector:
                self.vector.join(seen)
            self.apart = []
            return
        if seen is not self.vector:
            kept = [(members & ~mask, vector) for members, vector in self.apart if members & ~mask]
            self.apart = [*kept, (mask, seen.copy())]

    def together(self, alive: int) -> None:
        """Those whom the warp knows as much as are apart no more."""
        self.apart = [(members, v) for members, v in self.apart if members & alive and not v.within(self.vector)]


def _meet(*vectors: np.ndarray) -> np.ndarray:
    n = min(map(len, vectors))
    return np.minimum.reduce([v[:n] for v in vectors])


def _within(one: np.ndarray, other: np.ndarray) -> bool:
    n = min(len(one), len(other))
    return bool((one[:n] <= other[:n]).all()) and not one[n:].any()


def _grown(vector: np.ndarray, agent: int) -> np.ndarray:
    return vector if agent < len(vector) else np.concatenate([vector, np.zeros(agent + 16 - len(vector), np.int64)])


def reach(vector: np.ndarray, agents: np.ndarray) -> np.ndarray:
    """The counts of these agents; 0 of those that the vector is too short for."""
    if not len(vector):
        return np.zeros(agents.shape, np.int64)
    if int(agents.max(initial=0)) < len(vector):
        return vector[agents]
    return np.where(agents < len(vector), vector[np.minimum(agents, len(vector) - 1)], 0)
