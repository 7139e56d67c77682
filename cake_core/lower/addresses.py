"""Addresses in shared memory: slots, dimensions, column panels and the XOR swizzle.

A slot without a swizzle is row-major. With a swizzle of B bytes (32, 64 or 128) it is cut into panels of B-byte rows, one
behind the other; in a panel the 16-byte chunks of each row are permuted. The pattern is a function of the address alone: for
rows of B bytes on a base that is a multiple of 8 * B, chunk bits are XORed with row bits (PTX ISA, Tensors, "Swizzling modes"):

    128: chunk ^= row % 8        64: chunk ^= (row / 2) % 4        32: chunk ^= (row / 4) % 2
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr
from cake_core.ir.places import Place, place_of, root
from cake_core.ir.plan import BarrierPlan, BufferPlan
from cake_core.ir.swizzle import CHUNK, ROWS, SWIZZLES
from cake_core.ir.types import Barriers, Scalar, Tile
from cake_core.ptx.builder import Operand

if TYPE_CHECKING:
    from cake_core.lower.context import Context


def place(expr: Expr) -> Place:
    """A tile expression taken apart. Raises CakeError for an expression that is no part of a named tile."""
    name = root(expr)
    if name is None or not isinstance(name.type, Tile):
        raise fail("derive/not-a-place", "a part of a named buffer, fragment or tensor is needed here", expr.span)
    return place_of(expr, name.type)


def buffer_of(cx: Context, where: Place, span) -> BufferPlan:
    buffer = cx.plan.buffers.get(where.name)
    if buffer is None:
        raise fail("derive/not-shared", f"'{where.name}' is no shared buffer", span)
    if len(where.slots) != len(buffer.slots):
        raise fail("derive/slot-missing", f"'{where.name}' has {len(buffer.slots)} slot dimensions, {len(where.slots)} are indexed", span)
    if buffer.swizzle:
        _check_swizzle(buffer)
    return buffer


def _check_swizzle(buffer: BufferPlan) -> None:
    name, swizzle = buffer.name, buffer.swizzle
    if swizzle not in SWIZZLES:
        raise fail("derive/swizzle", f"'{name}' has a swizzle of {swizzle} bytes", buffer.span, fix="use 32, 64 or 128, or leave it out")
    if buffer.row_bytes % swizzle:
        raise fail(
            "derive/swizzle", f"rows of '{name}' have {buffer.row_bytes} bytes, not a multiple of its swizzle of {swizzle}", buffer.span
        )
    pattern = ROWS * swizzle
    if buffer.offset % pattern or (buffer.slots and buffer.slot_bytes % pattern):
        raise fail(
            "derive/swizzle-alignment",
            f"'{name}' at {buffer.offset} with slots of {buffer.slot_bytes} bytes does not keep its swizzle aligned",
            buffer.span,
            why=f"a swizzle of {swizzle} bytes repeats every {pattern} bytes of address",
        )


def flat(cx: Context, sizes: Sequence[int], indices: Sequence[Operand]) -> Operand:
    """Row-major number of an element."""
    number: Operand = 0
    for size, index in zip(sizes, indices, strict=True):
        number = cx.b.add(cx.b.mul(number, size), index)
    return number


def slot_address(cx: Context, where: Place, buffer: BufferPlan) -> Operand:
    slot = flat(cx, buffer.slots, [cx.value(s) for s in where.slots])
    return _from_base(cx, cx.b.mul(slot, buffer.slot_bytes), buffer.offset)


def _from_base(cx: Context, variable: Operand, offset: int) -> Operand:
    """base + variable + offset, the constant part last: there the assembler folds it into the access."""
    if isinstance(variable, int):
        return cx.b.add(cx.shared_base(), variable + offset)
    return cx.b.add(cx.b.add(cx.shared_base(), variable), offset)


def barrier(cx: Context, expr: Expr) -> Operand:
    """The address of one barrier of an array: 8 bytes each (PTX ISA, mbarrier)."""
    name = root(expr)
    if name is None or not isinstance(name.type, Barriers) or name.id not in cx.plan.barriers:
        raise fail("derive/not-a-barrier", "a declared barrier is needed here", expr.span)
    declared: BarrierPlan = cx.plan.barriers[name.id]
    if expr is name:
        if declared.slots != 1:
            raise fail(
                "derive/slot-missing", f"'{name.id}' is an array of {declared.slots} barriers, one of them is needed here", expr.span
            )
        index: Operand = 0
    else:
        (position,) = expr.indices
        index = cx.value(position)
    return _from_base(cx, cx.b.mul(index, declared.bytes // declared.slots), declared.offset)


def panel(cx: Context, expr: Expr) -> tuple[int, int]:
    where = place(expr)
    buffer = buffer_of(cx, where, expr.span)
    if not buffer.swizzle:
        return buffer.shape[-1], prod(buffer.shape) * buffer.elem.bytes
    return buffer.swizzle // buffer.elem.bytes, prod(buffer.shape[:-1]) * buffer.swizzle


def shared_address(cx: Context, expr: Expr) -> Operand:
    """The first element of a tile; with a swizzle it must start on whole atoms, where the permutation is the identity."""
    where = place(expr)
    buffer = buffer_of(cx, where, expr.span)
    if not buffer.swizzle:
        return cx.b.add(slot_address(cx, where, buffer), _linear(cx, buffer, [cx.value(p.lo) for p in where.parts]))
    *rows, column = ((p.lo, cx.value(p.lo)) for p in where.parts)
    per_panel, panel_bytes = panel(cx, expr)
    if not _multiple(*column, per_panel):
        raise _off_atom(where, expr, f"columns in steps of {per_panel}")
    if not _whole_atoms(buffer.shape[:-1], rows):
        raise _off_atom(where, expr, f"rows in steps of {ROWS}")
    row = flat(cx, buffer.shape[:-1], [lo for _, lo in rows])
    address = cx.b.add(slot_address(cx, where, buffer), cx.b.mul(row, buffer.swizzle))
    return cx.b.add(address, cx.b.mul(cx.b.floordiv(column[1], per_panel, nonneg=True), panel_bytes))


def element_address(cx: Context, expr: Expr, coordinates: Sequence[Operand]) -> Operand:
    """One element of a tile, wherever it lies in the swizzle."""
    where = place(expr)
    buffer = buffer_of(cx, where, expr.span)
    kept = [p for p in where.parts if p.size is not None]
    if len(coordinates) != len(kept):
        raise fail("derive/coordinates", f"the tile has {len(kept)} dimensions, {len(coordinates)} coordinates were given", expr.span)
    inside = list(coordinates)
    if where.transposed:
        inside[-2:] = inside[:-3:-1]
    given = iter(inside)
    at = [cx.b.add(cx.value(p.lo), next(given)) if p.size is not None else cx.value(p.lo) for p in where.parts]
    if not buffer.swizzle:
        return cx.b.add(slot_address(cx, where, buffer), _linear(cx, buffer, at))
    b, (shift, mask) = cx.b, SWIZZLES[buffer.swizzle]
    row, column = flat(cx, buffer.shape[:-1], at[:-1]), at[-1]
    address = b.add(slot_address(cx, where, buffer), b.mul(row, buffer.swizzle))
    per_panel, panel_bytes = panel(cx, expr)
    if buffer.row_bytes > buffer.swizzle:
        address = b.add(address, b.mul(b.shr(column, per_panel.bit_length() - 1), panel_bytes))
        column = b.land(column, per_panel - 1)
    permuted = b.mul(b.land(b.shr(row, shift), mask), CHUNK)
    return b.add(address, b.xor(b.mul(column, buffer.elem.bytes), permuted))


def tensor_address(cx: Context, expr: Expr) -> tuple[Operand, int]:
    """See `LowerContext.tensor_address`."""
    where = place(expr)
    buffer = cx.plan.tensors.get(where.name)
    if buffer is None:
        raise fail("derive/not-tensor", f"'{where.name}' is no buffer in tensor memory", expr.span)
    if len(where.slots) != len(buffer.slots):
        raise fail(
            "derive/slot-missing", f"'{where.name}' has {len(buffer.slots)} slot dimensions, {len(where.slots)} are indexed", expr.span
        )
    b, width, columns = cx.b, buffer.shape[-1], buffer.slot_columns
    start = cx.value(where.parts[-1].lo)
    if columns % width == 0:
        start = b.mul(start, columns // width)
    elif isinstance(start, int) and start * columns % width == 0:
        start = start * columns // width
    else:
        raise fail(
            "derive/tensor-column",
            f"this part of '{where.name}' does not surely start on a whole column",
            expr.span,
            why="a column holds 32 bits of a row",
        )
    variable, constant = cx.value(buffer.base), buffer.column
    for part in (b.mul(flat(cx, buffer.slots, [cx.value(s) for s in where.slots]), columns), start):
        if isinstance(part, int):
            constant += part
        else:
            variable = b.add(variable, part)
    return variable, constant


def global_address(cx: Context, expr: Expr) -> Operand:
    """Row-major in the declared extents, from the tensor's pointer on."""
    where, size = place(expr), expr.type.elem.bytes
    first, *others = (cx.value(p.lo) for p in where.parts)
    pointer, extents = cx.global_pointer(where.name), cx.extents(where.name)
    if not others:
        return _plus(cx, pointer, first, size)
    number = cx.b.op("cvt.s64.s32", cx.b.mov(first) if isinstance(first, int) else first)
    for index, extent in zip(others, extents[1:], strict=True):
        wide = extent if isinstance(extent, int) else cx.b.op("cvt.s64.s32", extent)
        number = _plus(cx, cx.b.op("mul.lo.s64", number, wide), index, 1)
    return cx.b.op("mad.lo.s64", number, size, pointer)


def _plus(cx: Context, base: Operand, index: Operand, scale: int) -> Operand:
    if isinstance(index, int):
        return cx.b.op("add.s64", base, index * scale) if index else base
    return cx.b.op("mad.wide.s32", index, scale, base)


def _linear(cx: Context, buffer: BufferPlan, at: Sequence[Operand]) -> Operand:
    """Byte offset in a row-major slot."""
    offset: Operand = 0
    stride = buffer.elem.bytes
    for size, index in zip(reversed(buffer.shape), reversed(at), strict=True):
        offset = cx.b.add(cx.b.mul(index, stride), offset)
        stride *= size
    return offset


def _multiple(expr: Expr, value: Operand, n: int) -> bool:
    """Whether a start is surely a multiple of `n`: by its value where that is known, by its range otherwise."""
    if isinstance(value, int):
        return value % n == 0
    return n == 1 or (isinstance(expr.type, Scalar) and expr.type.range.multiple_of(n))


def _whole_atoms(shape: Sequence[int], rows: Sequence[tuple[Expr, Operand]]) -> bool:
    """Whether the flattened number of the first row is surely a multiple of a pattern's rows."""
    stride = 1
    for size, (expr, lo) in zip(reversed(shape), reversed(rows), strict=True):
        if not _multiple(expr, lo, ROWS // gcd(ROWS, stride)):
            return False
        stride *= size
    return True


def _off_atom(where: Place, expr: Expr, steps: str):
    return fail(
        "derive/swizzle-offset",
        f"this part of '{where.name}' does not start on a whole swizzle atom",
        expr.span,
        why=f"a swizzled tile can be addressed as a whole in {steps} only",
    )
