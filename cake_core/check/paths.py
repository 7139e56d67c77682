"""What a role has done at each statement, whatever the path: checks that follow a state through loops and branches start from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from cake_core.ir.flow import Loops, Positions, decide
from cake_core.ir.nodes import Block, For, If, Name, Stmt, While

State = TypeVar("State")


class Paths(Generic[State]):
    """Follows statements. `join`: what holds where two paths meet; `widen`: the end of a chain of loop heads that does not settle.

    A subclass says what a statement does (`effects`), and may look at conditions (`asks`). What the leader alone does is the instance's
    path; positions in loops decide guards.
    """

    def __init__(self, join: Callable[[State, State], State], widen: Callable[[State, State], State]) -> None:
        self.join = join
        self.loops: Loops[State] = Loops(self.block, join, widen)

    def effects(self, s: Stmt, state: State) -> State:
        """The state behind a statement that is no control."""
        raise NotImplementedError

    def asks(self, s: If, state: State) -> None:
        """A condition that all threads ask."""

    def block(self, block: Block, state: State, positions: Positions) -> State:
        for s in block:
            state = self._stmt(s, state, positions)
        return state

    def _stmt(self, s: Stmt, state: State, positions: Positions) -> State:
        match s:
            case For() | While():
                return self.loops.over(s, state, positions)
            case If(Name("leader" | "warp.leader"), then, None):
                return self.block(then, state, positions)
            case If(test, then, other):
                self.asks(s, state)
                decided = decide(test, positions)
                if decided is not None:
                    return self.block(then if decided else other or (), state, positions)
                return self.join(self.block(then, state, positions), self.block(other or (), state, positions))
        return self.effects(s, state)
