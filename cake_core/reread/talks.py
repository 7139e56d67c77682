"""What threads tell each other where control goes by it: integers in shared memory, and what lanes of a warp give to one instruction.

Threads run one after another. One that needs what another has not said yet stops, and is run again from its start when more is known; what it says is the
same each time. The k-th time that a thread reads an element it hears what was stored there the k-th time: so it is with messages that a pipeline hands
over, each slot filled once and read once a turn. Whether it is so is what the proof says of the text.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

#: CTA, warp, lane.
Thread = tuple[int, int, int]


class Unsaid(Exception):
    """What a thread needs next has not been said yet."""


def _lists() -> dict:
    return defaultdict(lambda: defaultdict(list))


@dataclass(slots=True)
class Talks:
    """`kept`: by place in shared memory, the address of tensor memory that an allocation writes there, None before it has. `stored`: of each thread what it stored at an address, in order; `given`: what it gave to the instruction of a line. `ended`: nobody will
    say more, so what is missing is not known. `lanes`: those of each warp that are run."""

    lanes: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    stored: dict[Thread, dict[int, list]] = field(default_factory=_lists)
    given: dict[Thread, dict[int, list]] = field(default_factory=_lists)
    kept: dict[int, int | None] = field(default_factory=dict)
    ended: bool = False

    def begin(self, thread: Thread) -> None:
        """A thread starts over."""
        self.stored.pop(thread, None)
        self.given.pop(thread, None)

    def address(self, place: int) -> int | None:
        """What an allocation has written there."""
        found = self.kept[place]
        return self._missing(True) if found is None else found

    def heard(self, address: int, turn: int) -> int | None:
        """What was stored at an address the `turn`-th time. Of several who store there no one is taken."""
        writers = [said[address] for said in self.stored.values() if address in said]
        if len(writers) == 1 and turn < len(writers[0]):
            return writers[0][turn]
        return self._missing(len(writers) < 2)

    def gathered(self, cta: int, warp: int, line: int, turn: int) -> tuple[int | None, ...] | None:
        """What the lanes of a warp that are run gave to the instruction of a line the `turn`-th time."""
        lists = [self.given[cta, warp, lane][line] for lane in self.lanes.get((cta, warp), ())]
        if lists and all(turn < len(x) for x in lists):
            return tuple(x[turn] for x in lists)
        return self._missing(True)

    def first(self, cta: int, warp: int, line: int, turn: int) -> int | None:
        """What lane 0 of a warp gave to it."""
        said = self.given[cta, warp, 0][line]
        return said[turn] if turn < len(said) else self._missing(True)

    def _missing(self, later: bool) -> None:
        if later and not self.ended:
            raise Unsaid
