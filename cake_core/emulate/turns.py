"""Whose turn it is: the order of warps, and when the jobs of engines take effect.

round-robin     warps in order; jobs at the end of each round
random:SEED     warps in any order, by slices of any length; jobs at any time
adversarial     warps go on as long as they can; a job takes effect only when nobody else can go on, the youngest queue first
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.emulate.grid import Grid
    from cake_core.emulate.warps import Warp

NAMES = ("round-robin", "random:SEED", "adversarial")


class Turns:
    def order(self, warps: Sequence[Warp]) -> Sequence[Warp]:
        return warps

    def slice(self, blocks: int) -> int:
        """How many blocks of code a warp may go through in a turn."""
        return blocks

    def perform(self, grid: Grid, went: bool) -> bool:
        """Jobs take effect: whether any did. `went`: a warp went on in this round."""
        keys = list(grid.queues)
        for key in keys:
            while key in grid.queues:
                grid.perform(key)
        return bool(keys)


class Random(Turns):
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def order(self, warps: Sequence[Warp]) -> Sequence[Warp]:
        return self.random.sample(warps, len(warps))

    def slice(self, blocks: int) -> int:
        return self.random.choice((1, 4, 32, blocks))

    def perform(self, grid: Grid, went: bool) -> bool:
        keys = list(grid.queues)
        chosen = [k for k in keys if self.random.random() < 0.5]
        if not chosen and keys and not went:
            chosen = [self.random.choice(keys)]
        self.random.shuffle(chosen)
        for key in chosen:
            if key in grid.queues:
                grid.perform(key)
        return bool(chosen)


class Adversarial(Turns):
    def perform(self, grid: Grid, went: bool) -> bool:
        if went or not grid.queues:
            return False
        grid.perform(next(reversed(grid.queues)))
        return True


def turns_of(name: str) -> Turns | None:
    """The schedule of a name; None where there is none."""
    kind, _, seed = name.partition(":")
    match kind:
        case "round-robin" if not seed:
            return Turns()
        case "adversarial" if not seed:
            return Adversarial()
        case "random" if seed.isdecimal():
            return Random(int(seed))
    return None
