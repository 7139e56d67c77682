"""Which elements of a tile the executing thread reads or writes, and cut into accesses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import frozen
from cake_core.primitive import Distribution, LowerContext
from cake_core.ptx.builder import Operand
from cake_core.source import Span

#: Registers that a value which every thread holds whole may take: it is a handful of partial results, not a tile.
WHOLE_LIMIT = 128


@frozen
class Holding:
    """`origin`: coordinates in the tile of the thread's first element. `offsets`: constant offset of each element from it."""

    origin: tuple[Operand, ...]
    offsets: tuple[tuple[int, ...], ...]

    def pieces(self, n: int, span: Span) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(number of the first element, its offset) of each access of `n` elements. Raises CakeError where they are no neighbours."""
        for first in range(0, len(self.offsets), n):
            at = self.offsets[first]
            if n > 1 and self.offsets[first : first + n] != tuple((*at[:-1], at[-1] + i) for i in range(n)):
                raise fail(
                    "ptx/access-width",
                    f"an access takes {n} elements, and a thread does not hold {n} neighbours",
                    span,
                    why="the layout decides which elements lie side by side in one thread",
                    fix="write a smaller 'by'",
                )
            yield first, at


#: A single element: no dimension is left.
ONE = Holding((), ((),))


def run_of(distribution: Distribution | None, shape: tuple[int, ...]) -> int:
    """How many neighbours of the last dimension a thread holds side by side."""
    if distribution is None:
        return shape[-1] if shape else 1
    return distribution.layout.run(distribution.words)


def held(cx: LowerContext, shape: tuple[int, ...]) -> Holding:
    """What the executing thread holds of a tile of `shape` under the distribution at hand."""
    d = cx.distribution
    if d is None:
        return Holding((0,) * len(shape), tuple(product(*map(range, shape))))
    return Holding(d.layout.origin(cx, d.words), d.offsets)


def too_large(shape: tuple[int, ...], elem_bits: int, span: Span) -> CakeError | None:
    """The error of a value that every thread would hold whole, if it is too large for that."""
    if prod(shape) * elem_bits <= 32 * WHOLE_LIMIT:
        return None
    return fail(
        "core/whole-value",
        f"every thread would hold all {prod(shape)} elements",
        span,
        why="no fragment says how the value lies over the threads",
        fix="assign it to a `frag`, or read a smaller tile",
    )
