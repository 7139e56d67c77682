"""What of shared memory an instruction reads of a factor that a matrix descriptor describes (PTX ISA, Shared Memory Matrix Layout; Strided Dimension Byte
Offset, Leading Dimension Byte Offset), for those who say what an instruction read back reaches. How bits stand in a descriptor is theirs."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.ptx.acts import Act, rows_used

#: Rows of a pattern and of a core matrix; bytes of a core matrix's row, and of K that one instruction takes.
ROWS, CORE, STEP = 8, 16, 32


def matrix_used(
    name: str, first: int, stride: int, leading: int, swizzle: int, size: int, rows: int, turned: bool, form: tuple[str, ...]
) -> Iterator[Act]:
    """Of `rows` rows of M or N and one step of K, from the address `first` on; `size` bytes an element, `stride`, `leading` and `swizzle` in bytes.

    A pattern is eight rows of the bytes of the swizzle. K-major, a row is one of M or N, and the stride goes from one pattern to the next; MN-major (`turned`),
    a row is one of K, the stride goes from one pattern to the next of K, and the leading offset from one column panel of M or N to the next. Without a
    swizzle there are core matrices, whichever way they lie."""
    if not swizzle:
        for k in range(STEP // CORE):
            for n in range(rows // ROWS):
                yield rows_used(name, first + k * leading + n * stride, ROWS, CORE, CORE, form)
    elif not turned:
        yield from _patterns(name, first, rows, swizzle, STEP, stride, form)
    else:
        panel = swizzle // size
        for n in range(0, rows, panel):
            yield from _patterns(name, first + n // panel * leading, STEP // size, swizzle, min(panel, rows - n) * size, stride, form)


def _patterns(name: str, first: int, rows: int, pitch: int, width: int, stride: int, form: tuple[str, ...]) -> Iterator[Act]:
    if stride == ROWS * pitch or rows <= ROWS:
        yield rows_used(name, first, rows, pitch, width, form)
    else:
        for n in range(rows // ROWS):
            yield rows_used(name, first + n * stride, ROWS, pitch, width, form)
