"""Asynchronous operations that threads commit in groups and wait for, for those who execute instructions.

PTX ISA, Completion Mechanisms for Asynchronous Copy Operations, Async-group Mechanism: operations of a thread since its last commit are its next
group; a wait for all but the last N groups of a thread ends when the others are complete. Groups are a thread's: lanes of a warp commit and wait
together or apart, so that each group has the lanes that it is one of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from cake_core.ptx.emulated import Agent, Cta, Lanes, Wait


#: Where families keep the groups of bulk copies of a warp (`Lanes.state`), and what reads shared memory of a CTA (`Cta.state`).
BULK, UNAWAITED = ("groups", "bulk"), ("groups", "unawaited")


class Operation:
    """One operation of the lanes in `mask`. `read` and `done`: (stamp,) of who has read its sources, and of who has completed it; None: not yet.
    `awaited`: its lanes have waited for the reads. `behind`: called with the agent when it is complete."""

    __slots__ = ("awaited", "behind", "done", "mask", "read", "what")

    def __init__(self, mask: int, what: str) -> None:
        self.mask, self.what = mask, what
        self.read: tuple[Any] | None = None
        self.done: tuple[Any] | None = None
        self.awaited = 0
        self.behind: list[Callable[[Agent], None]] = []

    def has_read(self, agent: Agent) -> None:
        self.read = (agent.release(),)

    def completed(self, agent: Agent) -> None:
        self.done = (agent.release(),)
        if self.read is None:
            self.read = self.done
        for call in self.behind:
            call(agent)


class Groups:
    """Of the threads of one warp. `open`: operations that some lanes have not committed, and which lanes; `closed`: groups, oldest first, each with the
    lanes that it is one of and its operations as in `open`."""

    __slots__ = ("closed", "open")

    def __init__(self) -> None:
        self.open: list[tuple[int, Operation]] = []
        self.closed: list[tuple[int, tuple[tuple[int, Operation], ...]]] = []

    def add(self, operation: Operation) -> None:
        self.open.append((operation.mask, operation))

    def commit(self, mask: int) -> None:
        """An empty group counts too."""
        self.closed.append((mask, tuple((own & mask, o) for own, o in self.open if own & mask)))
        self.open = [(own & ~mask, o) for own, o in self.open if own & ~mask]
        first = 0  # what is complete and was waited for need not be counted from the front
        while first < len(self.closed) - 1 and all(o.done is not None and o.awaited == o.mask for _, o in self.closed[first][1]):
            first += 1
        del self.closed[:first]

    def all(self, mask: int) -> list[Operation]:
        """All operations of these lanes, committed or not."""
        return self.older(mask, 0) + [o for own, o in self.open if own & mask]

    def older(self, mask: int, keep: int) -> list[Operation]:
        """The operations of all groups of these lanes but the last `keep` of each lane."""
        seen = [mask] + [0] * min(keep, len(self.closed))  # seen[n]: lanes that have n newer groups
        out: list[Operation] = []
        for group, operations in reversed(self.closed):
            group &= mask
            if keep < len(seen) and group & seen[keep]:
                old = group & seen[keep]
                out += [o for own, o in operations if own & old]
            for n in range(len(seen) - 1, 0, -1):
                seen[n] |= seen[n - 1] & group
        return out


class Unawaited:
    """Operations that read shared memory of a CTA: their threads must have waited for the reads when the CTA ends (kept by `Cta.state`)."""

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def add(self, operation: Operation) -> None:
        if len(self.operations) > 64:
            self.operations = [o for o in self.operations if o.awaited != o.mask]
        self.operations.append(operation)

    def ended(self, cta: Cta) -> list[str]:
        left = [o for o in self.operations if o.awaited != o.mask]
        return [f"{o.what} may still read shared memory when the CTA ends: its thread has not waited for it" for o in left[:1]]


def awaited(lanes: Lanes, operations: Iterable[Operation], mask: int, read: bool, what: str) -> Wait | None:
    """Waits until the operations are complete (`read`: have read their sources); the lanes have seen that from then on."""
    operations = list(operations)
    if not operations:
        return None

    def ready() -> bool:
        return all((o.read if read else o.done) is not None for o in operations)

    def after() -> None:
        for o in operations:
            o.awaited |= mask & o.mask
            lanes.acquire((o.read if read else o.done)[0])

    if ready():
        after()
        return None
    return lanes.wait(ready, what, after)


def mask_of(active: np.ndarray) -> int:
    """The lanes as bits."""
    import numpy as np

    return int.from_bytes(np.packbits(active, bitorder="little").tobytes(), "little")
