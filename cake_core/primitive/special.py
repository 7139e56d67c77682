"""Which special values a function may give: what is followed through a kernel so that no masked row becomes a NaN.

A function declares two things of itself: what its result may be, where its arguments may be something special, and, if it chooses, by
which condition. The default is right for whatever hands its arguments on: casts, sums, largest elements.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_core.ir.nodes import Call, Expr


class Special(StrEnum):
    """What a float may be beside an ordinary number."""

    INFINITY = "inf"
    MINUS_INFINITY = "-inf"
    LOWEST = "lowest"  # a finite number that stands in for minus infinity, such as the least one
    NAN = "nan"
    UNMASKED = "unmasked"  # what stood in for minus infinity, and looks like any number now


#: What is said where it is made, and not handed on: arguments never have it.
WRONG = frozenset({Special.NAN, Special.UNMASKED})


Specials = frozenset[Special]
ORDINARY: Specials = frozenset()

#: A literal at least so far below 0 stands in for minus infinity.
STANDS_IN = -1e30


class SpecialValues:
    """What a `Function` may say of special values; the defaults are those of one that hands its arguments on."""

    __slots__ = ()

    def special(self, call: Call, args: tuple[Specials, ...]) -> Specials:
        """What the result may be, where the positional arguments may be `args`."""
        return ORDINARY.union(*args)

    def arms(self, call: Call) -> tuple[Expr, Expr, Expr] | None:
        """Condition and both values of a function that chooses; None of any other."""
        return None

    def filling(self, call: Call) -> tuple[Expr, Expr] | None:
        """The tile of a function that reads one, and what stands for its elements past the extents of its tensor; None where that is 0, and of any
        other function."""
        return None
