"""One thread after another through the slice of a kernel: registers, branches, and what each does to barriers, in order.

Nothing is simulated that a thread could notice of others but messages (`talks`): a wait passes, a copy has no data. So a thread's acts are a
function of parameters, of its place in the launch, of elements of `in` tensors and of what counters give; whatever else a register is
made from is not known, and what would need it is not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from cake_core.ptx.acts import Act, Boxes, in_rank, rank_of
from cake_core.ptx.reader import At, Operand, Pair, Statement
from cake_core.reread.flow import NotFollowed
from cake_core.reread.numbers import GENERIC
from cake_core.reread.talks import Talks, Thread

#: Statements of the slice that one thread may execute.
MOST = 20_000
#: Addresses that the launch gives out: of tensors, and of tensor maps.
POINTER, MAP = 1 << 40, 1 << 56
#: The address that an allocation of tensor memory gives: no lane, and a column that shows where it is left out of a sum.
COLUMNS = 1 << 13


class Seen(NamedTuple):
    """An act and the line of the text that does it."""

    act: Act
    line: int


@dataclass(slots=True)
class Code:
    """A slice ready to run. `blocks`: (steps, guard, negated, taken, next, meets, decides, line). `slots`: number of each name; `constants`: values
    of slots that never change; `unread`: opcodes that nobody reads; `unwritten`: a statement that reads a register which nothing may have written."""

    blocks: list[tuple]
    slots: dict[str | tuple[str, int], int]
    constants: list[tuple[int, int]]
    unread: dict[str, int]
    unwritten: tuple[Statement, str] | None = None


@dataclass(slots=True)
class Run:
    """One thread. `r`: values by slot. `load(address, bytes)`: an element of a tensor, `draw(address, n)`: what a counter gives the n-th time; None
    where it is not known. Implements `acts.Moment`."""

    code: Code
    r: list
    rank: int
    warp: int
    lane: int
    threads: int
    load: Callable[[int, int], int | None]
    draw: Callable[[int, int], int | None]
    maps: tuple[Boxes, ...]
    talks: Talks
    line: int = 0
    seen: list[Seen] = field(default_factory=list)
    turns: dict = field(default_factory=dict)  # how often it has read an element, drawn a number, or given to an instruction
    executed: int = 0

    @property
    def thread(self) -> Thread:
        return self.rank, self.warp, self.lane

    def turn(self, what: tuple) -> int:
        """How often this was asked before."""
        n = self.turns.get(what, 0)
        self.turns[what] = n + 1
        return n

    # --- Moment

    def known(self, operand: Operand) -> int | None:
        kind = operand.__class__
        if kind is str:
            return self.r[self.code.slots[operand]]
        if kind is int:
            return operand
        if kind is At:
            at = operand.base if operand.base.__class__ is int else self.r[self.code.slots[operand.base]]
            return None if at is None else at + operand.offset
        raise NotFollowed("an operand of a form that is not read", self.line)

    def value(self, operand: Operand) -> int:
        if (found := self.known(operand)) is None:
            raise NotFollowed("what an instruction for barriers goes by is not known", self.line)
        return found

    def shared(self, operand: Operand) -> int:
        address = self.value(operand)
        return in_rank(address, self.rank) if rank_of(address) is None else address

    def give(self, register: Operand, value: int | None) -> None:
        if isinstance(register, Pair):
            register = register.second
        if isinstance(register, str) and register != "_":
            self.r[self.code.slots[register]] = value

    def keep(self, address: Operand, amount: int) -> None:
        self.talks.kept[self.shared(address)] = COLUMNS

    def map(self, map: Operand) -> Boxes:
        address = self.value(At(map.base) if isinstance(map, At) else map)
        number = (address - MAP - GENERIC) >> 7
        if not 0 <= number < len(self.maps):
            raise NotFollowed("a tensor map that is no parameter", self.line)
        return self.maps[number]

    def gathered(self, operand: Operand) -> tuple[int | None, ...] | None:
        line = self.line
        self.talks.given[self.thread][line].append(self.known(operand))
        return self.talks.gathered(self.rank, self.warp, line, self.turn(("given", line)))

    def drawn(self, address: Operand) -> int | None:
        at = self.known(address)
        return None if at is None else self.draw(at, self.turn(("drawn", self.line)))

    # --- the run

    def go(self) -> list[Seen]:
        """All acts, to the end. Raises NotFollowed, and Unsaid where it has to wait for others."""
        self.talks.begin(self.thread)
        blocks, r, at = self.code.blocks, self.r, 0
        while at >= 0:
            steps, guard, negated, taken, after, meets, decides, line = blocks[at]
            for step in steps:
                step(self)
            self.executed += len(steps) + 1
            if self.executed > MOST:
                raise NotFollowed(f"a thread runs through more than {MOST} instructions", line)
            if taken is None:
                at = after
            elif guard is None:
                at = taken
            elif not decides:
                at = meets
            else:
                holds = r[guard]
                if holds is None:
                    raise NotFollowed("what a branch goes by is not known", line)
                at = after if bool(holds) is negated else taken
        return self.seen
