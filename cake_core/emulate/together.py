"""Instructions that lanes execute together: those of a warp, or those of a mask, wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.ptx.emulated import Step

if TYPE_CHECKING:
    from cake_core.emulate.warps import Lanes

_MEMBERS = "PTX ISA, membermask: each thread that executes the instruction is in its mask, and all threads of a mask execute it with that mask"


def together(step: Step, mask: Callable[[Lanes], np.ndarray] | int | None, without_ended: bool) -> Step:
    """`mask`: one for all lanes, or one that each lane gives: lanes of one mask execute together, those of several, tiles of a warp, one after another."""

    def meet(lanes: Lanes):
        if mask is None:
            if lanes.full or not (missing := lanes.missing(None)):
                return step(lanes)
            passed_over(lanes, missing)
            return lanes.wait(lambda: not lanes.missing(None), "the other lanes of its warp, which execute this together")
        masks = {mask} if isinstance(mask, int) else set(mask(lanes)[lanes.active].tolist())
        if len(masks) == 1:
            (wanted,) = masks
            return (None if lanes.full else absent(lanes, wanted)) or alone(lanes, wanted)
        given, before = mask(lanes).copy(), lanes.active
        groups = [(wanted, before & (given == wanted)) for wanted in sorted(masks)]
        for wanted, _ in groups:
            if wait := absent(lanes, wanted):
                return wait
        try:
            for wanted, members in groups:
                lanes.narrow(members)
                alone(lanes, wanted)
        finally:
            lanes.narrow(before)
        return None

    def absent(lanes: Lanes, wanted: int):
        """A wait for those lanes of the mask that are elsewhere."""
        if not (missing := lanes.missing(wanted)):
            return None
        passed_over(lanes, missing)
        if gone := missing & ~lanes.alive:
            if not without_ended:
                raise lanes.fault("emulate/divergent", f"its mask {wanted:#x} names lanes that have ended: {gone:#x}")
            if gone == missing:
                return None
        return lanes.wait(
            lambda: not lanes.missing(wanted) & (lanes.alive if without_ended else -1),
            f"the lanes {wanted:#x} of its warp, which execute this together",
        )

    def passed_over(lanes: Lanes, missing: int) -> None:
        """Lanes that stand here too and whose guard does not hold never come."""
        if here := missing & lanes.group:
            raise lanes.fault(
                "emulate/divergent",
                f"lanes {here:#x} are missing: they stand here, and a guard keeps them from what lanes of the warp execute together",
                why="the guard holds for some of the lanes alone",
            )

    def alone(lanes: Lanes, wanted: int):
        if wanted != 0xFFFFFFFF or not lanes.full:
            here = sum(1 << n for n in np.flatnonzero(lanes.active).tolist())
            if outside := here & ~wanted:
                first = (outside & -outside).bit_length() - 1
                raise lanes.fault("emulate/operand", f"lane {first} is not in the mask {wanted:#x} that it executes this with", why=_MEMBERS)
            if other := wanted & lanes.alive & ~here:
                first = (other & -other).bit_length() - 1
                raise lanes.fault("emulate/operand", f"lane {first} is in the mask {wanted:#x} and executes this with another one", why=_MEMBERS)
        return step(lanes)

    return meet
