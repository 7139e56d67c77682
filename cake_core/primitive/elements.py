"""Register tiles taken one element at a time.

Masks and indices are handed on like this: the instruction that makes an element stands where the element is used, so a
predicate lives for an instruction or two, and an index that is a constant away from another costs no register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cake_core.frozen import frozen

if TYPE_CHECKING:
    from cake_core.ptx.builder import Builder, Operand


@frozen
class Elements:
    """What a thread holds of a register tile: `at(n)` emits what element n takes and returns it.

    `base`, `steps`: where it is known that element n is `base + steps[n]`; all steps are 0 where the elements are one operand.
    """

    count: int
    at: Callable[[int], Operand]
    base: Operand | None = None
    steps: tuple[int, ...] | None = None

    @property
    def single(self) -> Operand | None:
        """The operand that every element is; None if they may differ."""
        return self.base if self.steps is not None and not any(self.steps) else None

    def pick(self, numbers: Iterable[int]) -> Elements:
        """The elements of these numbers, in this order; one may stand several times."""
        numbers = tuple(numbers)
        steps = tuple(self.steps[n] for n in numbers) if self.steps is not None else None
        return Elements(len(numbers), lambda n: self.at(numbers[n]), self.base, steps)


def one(x: Operand) -> Elements:
    """A scalar."""
    return Elements(1, lambda _: x, x, (0,))


def given(registers: Iterable[Operand]) -> Elements:
    """Elements that lie in registers already."""
    registers = tuple(registers)
    return Elements(len(registers), lambda n: registers[n])


def counted(b: Builder, base: Operand, steps: Iterable[int]) -> Elements:
    """Integers at constant distances from one."""
    steps = tuple(steps)
    return Elements(len(steps), lambda n: b.add(base, steps[n]), base, steps)
