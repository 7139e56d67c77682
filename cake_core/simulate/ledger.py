"""Who wrote and who read each element of the tensors that a launch changes: races in global memory, between agents and between clusters.

An access is known to be over for whose vector clock has reached its count in its component, as in the machine's shadow of shared memory; here
the counts stand in arrays, one element each. Nothing orders two clusters of one launch but flags in memory: where a kernel acquires or releases,
what clusters do to each other is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.frozen import frozen, thawed

if TYPE_CHECKING:
    from cake_core.simulate.context import Context

#: Of an element that no one has touched.
NOBODY = -1


@frozen
class When:
    """An access is over when a clock has `at` in component `by`; `clock`: what its issuer knows."""

    by: int
    at: int
    clock: list


@thawed(eq=False)
class Marks:
    """The last access of one kind of each element: number of the cluster, component, count, whether it was atomic, number of who did it."""

    cluster: np.ndarray
    by: np.ndarray
    at: np.ndarray
    atomic: np.ndarray
    who: np.ndarray

    @staticmethod
    def of(shape: tuple[int, ...]) -> Marks:
        fresh = lambda kind, value: np.full(shape, value, kind)
        return Marks(fresh(np.int32, NOBODY), fresh(np.int32, 0), fresh(np.int32, 0), fresh(np.bool_, False), fresh(np.int32, NOBODY))


class Ledger:
    """For one launch. `tensors`: those that it may change; `between`: whether accesses of two clusters are held against each other."""

    def __init__(self, tensors: frozenset[str], between: bool) -> None:
        self.tensors, self.between = tensors, between
        self.writes: dict[str, Marks] = {}
        self.reads: dict[str, Marks] = {}
        self.sites: list[Any] = []  # places in the text, by number
        self.numbers: dict[tuple, int] = {}

    def access(self, cx: Context, name: str, shape: tuple[int, ...], there: tuple, mask: np.ndarray | None, write: bool, atomic: bool) -> None:
        """One access of part of a tensor, told of where it races with an earlier one."""
        if name not in self.writes:
            self.writes[name], self.reads[name] = Marks.of(shape), Marks.of(shape)
        when, cluster = cx.when(), cx.actor.agent.run.cluster.scenario.cluster
        clock = np.asarray(when.clock)
        for marks, earlier in ((self.writes[name], "write"), *([(self.reads[name], "read")] if write else [])):
            found = marks.cluster[there]
            wrong = (found >= 0) & ~(marks.atomic[there] & atomic)
            same = found == cluster
            by = np.where(same, marks.by[there], 0)
            over = (clock[by] >= marks.at[there]) | (by >> 1 == cx.actor.agent.id)  # lanes of one agent are not told apart here
            wrong &= np.where(same, ~over, self.between)
            if mask is not None:
                wrong &= mask
            if wrong.any():
                first = np.argwhere(wrong)[0] if np.ndim(wrong) else ()
                self._tell(cx, name, earlier, write, marks.who[there][tuple(first)], bool(np.asarray(same)[tuple(first)]))
        marks = (self.writes if write else self.reads)[name]
        number = self._number(cx)
        for array, value in ((marks.cluster, cluster), (marks.by, when.by), (marks.at, when.at), (marks.atomic, atomic), (marks.who, number)):
            if mask is None:
                array[there] = value
            else:
                np.copyto(array[there], value, where=mask)

    def _number(self, cx: Context) -> int:
        key = (cx.site.event.id, cx.actor.agent.id, cx.actor.agent.run.cluster.scenario.cluster)
        if key not in self.numbers:
            self.numbers[key] = len(self.sites)
            self.sites.append(cx.place())
        return self.numbers[key]

    def _tell(self, cx: Context, name: str, earlier: str, write: bool, who: int, same: bool) -> None:
        now = "write" if write else "read"
        if same:
            told = f"{now} of '{name}' after a {earlier} by another agent: nothing orders the two"
        else:
            told = f"{now} of '{name}' by one cluster where another one has a {earlier}: nothing orders the two"
        cx.race(name, told, self.sites[who], same)
