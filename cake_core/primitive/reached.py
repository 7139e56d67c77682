"""What a descriptor reaches, beside what its buffer holds: the two are computed apart, and a product that would read elsewhere is not built.

An engine that is given a descriptor goes through shared memory by its fields alone (PTX ISA, shared memory layouts of matrix operands). The
buffer's layout is that of its declaration, which copies and stores follow too. A swizzle permutes bits of the absolute address, alike on both
sides, so linear places are compared.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.frozen import frozen

if TYPE_CHECKING:
    from cake_core.primitive.factors import Factor

#: Rows of a pattern, and bytes of K that one instruction takes, as the ISA has them: not by what descriptors are made from.
ROWS, STEP = 8, 32


@frozen
class Described:
    """The fields of a descriptor, read back from its bits; in bytes."""

    swizzle: int
    leading: int
    stride: int


def check_reached(factor: Factor, swizzle: int, said: Described, offset: int, first: tuple[int, int], rows: int) -> None:
    """One instruction's part of a factor: `rows` of M or N and one step of K from element `first` on, `offset` bytes behind the start of the
    factor; `swizzle` of its declaration. Raises CakeError with `derive/descriptor-reach` where the engine would read another element."""
    if said.swizzle != swizzle:
        raise _wrong(factor, f"its rows are swizzled by {swizzle} bytes, the descriptor says {said.swizzle}")
    size, panel = factor.elem.bytes, prod(factor.declared.shape[:-1]) * swizzle
    wrong = _differs(swizzle, said, size, panel, factor.inside(swizzle), factor.k_major, offset, first, rows)
    if wrong is not None:
        at, here, there = wrong
        raise _wrong(factor, f"element {list(at)} lies {here} bytes behind the tile's first, and would be read {there} behind it")


@cache
def _differs(
    swizzle: int, said: Described, size: int, panel: int, behind: int, k_major: bool, offset: int, first: tuple[int, int], rows: int
) -> tuple[tuple[int, int], int, int] | None:
    """The first element that is read elsewhere, where it lies and where it would be read. `panel`: bytes from one column panel of the buffer to the
    next; `behind`: columns of a panel in front of the tile."""
    columns = swizzle // size

    def row(n: int) -> int:
        return n * swizzle

    def column(n: int) -> int:
        return (n + behind) // columns * panel + (n + behind) % columns * size - behind * size

    # Where an element lies, and where it is read, is a sum of what M or N says and what K says.
    if k_major:
        lies_e, lies_k = row, column
        read_e = [e // ROWS * said.stride + e % ROWS * swizzle for e in range(rows)]
        read_k = [k * size for k in range(STEP // size)]
    else:
        lies_e, lies_k = column, row
        read_e = [e * size // swizzle * said.leading + e * size % swizzle for e in range(rows)]
        read_k = [k // ROWS * said.stride + k % ROWS * swizzle for k in range(STEP // size)]
    by_e = [(lies_e(first[0] + e), offset + read) for e, read in enumerate(read_e)]
    by_k = [(lies_k(first[1] + k), read) for k, read in enumerate(read_k)]
    if {read - lies for lies, read in by_e} == {by_e[0][1] - by_e[0][0]} and {lies - read for lies, read in by_k} == {by_e[0][1] - by_e[0][0]}:
        return None
    for e, (lies, read) in enumerate(by_e):
        for k, (more, further) in enumerate(by_k):
            if lies + more != read + further:
                return (first[0] + e, first[1] + k), lies + more, read + further
    return None


def _wrong(factor: Factor, why: str):
    fix = "this is a fault of the compiler or of a plugin, not of the text: report it"
    return fail(
        "derive/descriptor-reach", f"the descriptor of '{factor.name}' does not reach it", factor.expr.span, why=why, fix=fix, resource=factor.name
    )
