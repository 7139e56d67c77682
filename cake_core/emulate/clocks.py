"""Who has seen what of whom: vector clocks that know fences.

An agent is a warp, or a place in a pool for jobs of engines. Its accesses carry its number and the count of its clock. A vector has, for each
agent, the count up to which its accesses have happened before. Fences order between the ways to reach memory: for each of `ORDERS` there is a
second vector with what is ordered for accesses of that way too (PTX ISA, Memory Consistency Model: Proxies).
"""

from __future__ import annotations

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
    that count; those of the other lanes are known up to `known`."""

    __slots__ = ("known", "lanes", "ordered", "time")

    def __init__(self, size: int = 0) -> None:
        self.time = 0.0  # when, in instructions, if each started as soon as it could
        self.known = np.zeros(size, np.int64)
        self.ordered = {order: np.zeros(size, np.int64) for order in ORDERS}
        self.lanes: dict[int, tuple[int, int]] = {}

    def told(self) -> Vector:
        """For a stamp: what a fence behind a synchronisation has ordered holds for the thread that executed it alone."""
        new = self.copy()
        new.ordered["tensor"] = np.zeros(0, np.int64)
        return new

    def join_fenced(self, other: Vector) -> None:
        """What fences in front of a synchronisation have ordered alone: they order with relaxed operations too."""
        self.ordered["tensor_out"] = _join(self.ordered["tensor_out"], other.ordered["tensor_out"])

    def fenced(self) -> np.ndarray:
        """What is known or was ordered by fences in front of a synchronisation."""
        return _join(self.known.copy(), self.ordered["tensor_out"])

    def copy(self) -> Vector:
        new = Vector()
        new.known, new.ordered, new.lanes = self.known.copy(), {k: v.copy() for k, v in self.ordered.items()}, dict(self.lanes)
        new.time = self.time
        return new

    def join(self, other: Vector, order: str = "") -> None:
        """With an order all that the other knows is ordered so too."""
        self.known, self.time = _join(self.known, other.known), max(self.time, other.time)
        for name, vector in other.ordered.items():
            self.ordered[name] = _join(self.ordered[name], vector)
        if order:
            self.ordered[order] = _join(self.ordered[order], other.known)
        for agent, (count, mask) in other.lanes.items():
            own, before = self.lanes.get(agent, (0, 0))
            self.lanes[agent] = max(own, count), mask | before
        self._prune()

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


def _grown(vector: np.ndarray, agent: int) -> np.ndarray:
    return vector if agent < len(vector) else np.concatenate([vector, np.zeros(agent + 16 - len(vector), np.int64)])


def reach(vector: np.ndarray, agents: np.ndarray) -> np.ndarray:
    """The counts of these agents; 0 of those that the vector is too short for."""
    if not len(vector):
        return np.zeros(agents.shape, np.int64)
    if int(agents.max(initial=0)) < len(vector):
        return vector[agents]
    return np.where(agents < len(vector), vector[np.minimum(agents, len(vector) - 1)], 0)
