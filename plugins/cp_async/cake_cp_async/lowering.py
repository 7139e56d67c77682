"""The copies of one statement: which thread copies which pieces, and what of their addresses is the same for all of them.

A piece is `by` bytes of a row. Pieces go round the threads in row-major order, so that neighbouring threads read neighbouring bytes.
Where a whole number of rows fits into a round, a thread stays in its column, and its pieces are a fixed number of rows apart: one
address on each side, then a constant step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr
from cake_core.ir.places import Part, Place
from cake_core.ir.plan import integer
from cake_core.ir.tiles import declared, inside, place
from cake_core.primitive import LowerContext
from cake_core.ptx.builder import Addr, Operand, Reg

PATTERN_ROWS = 8  # after which every swizzle repeats


@frozen
class Piece:
    """Where a piece starts in the tile: flattened row and column, each an operand and a constant. `exists`: whether the executing
    thread has such a piece."""

    row: Operand
    down: int
    column: Operand
    right: int
    exists: Reg | bool = True


def pieces(cx: LowerContext, shape: tuple[int, ...], width: int) -> tuple[Piece, ...]:
    """The executing thread's pieces of `width` elements of a tile."""
    b, threads = cx.b, 32 * cx.warps
    a_row, rows = shape[-1] // width, prod(shape[:-1])
    total = a_row * rows
    rounds = -(-total // threads)
    exists = [True if (i + 1) * threads <= total else b.compare("<", cx.thread, total - i * threads) for i in range(rounds)]
    if threads % a_row == 0:
        row = b.floordiv(cx.thread, a_row, nonneg=True)
        column = b.mul(b.mod(cx.thread, a_row, nonneg=True), width)
        return tuple(Piece(row, i * (threads // a_row), column, 0, e) for i, e in enumerate(exists))
    if a_row % threads == 0:
        column, each = b.mul(cx.thread, width), a_row // threads
        return tuple(Piece(0, i // each, column, i % each * threads * width, e) for i, e in enumerate(exists))
    found = []
    for i, e in enumerate(exists):
        at = b.add(cx.thread, i * threads)
        row, column = b.floordiv(at, a_row, nonneg=True), b.mul(b.mod(at, a_row, nonneg=True), width)
        found.append(Piece(row, 0, column, 0, e))
    return tuple(found)


def unravelled(cx: LowerContext, shape: tuple[int, ...], row: Operand, down: int) -> tuple[Operand, ...]:
    """The coordinates of a flattened row, one a dimension of `shape`."""
    if not shape:
        return ()
    rest, found = cx.b.add(row, down), []
    for size in reversed(shape[1:]):
        found.append(cx.b.mod(rest, size, nonneg=True))
        rest = cx.b.floordiv(rest, size, nonneg=True)
    return (rest, *reversed(found))


def kept_dimensions(where: Place) -> tuple[int, ...]:
    return tuple(d for d, p in enumerate(where.parts) if p.size is not None)


# --- shared memory -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Destination:
    """Addresses in the buffer. Pieces of one column whose rows differ by whole swizzle patterns share a base."""

    cx: LowerContext
    tile: Expr
    pitch: int | None  # bytes from row to row of the tile; None: rows are not evenly spaced
    pattern: int  # rows after which the place of a column repeats
    bases: dict[tuple, Operand]

    @staticmethod
    def of(cx: LowerContext, tile: Expr) -> Destination:
        whole, where = declared(tile), place(tile)
        kept = kept_dimensions(where)
        columns, _ = cx.panel(tile)
        even = len(kept) == 1 or kept == (len(whole.shape) - 2, len(whole.shape) - 1)
        swizzled = integer(cx.declaration(where.name).words, "swizzle")
        return Destination(cx, tile, columns * whole.elem.bytes if even else None, PATTERN_ROWS if swizzled else 1, {})

    def address(self, p: Piece) -> Addr:
        whole = p.down if self.pitch is None else p.down % self.pattern
        key = (p.row, whole, p.column, p.right)
        if key not in self.bases:
            outer = unravelled(self.cx, self.tile.type.shape[:-1], p.row, whole)
            self.bases[key] = self.cx.element_address(self.tile, (*outer, self.cx.b.add(p.column, p.right)))
        return Addr(self.bases[key], (p.down - whole) * (self.pitch or 0))


# --- global memory -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Source:
    """Addresses in the tensor, and whether a piece lies inside. The first of a run of evenly spaced pieces has an address of its own, the
    others are steps from it; rows are multiplied out before the column is added, so that a loop over columns keeps them."""

    cx: LowerContext
    tile: Expr
    where: Place
    kept: tuple[int, ...]
    starts: tuple[Operand, ...]
    extents: tuple[Operand, ...]
    last: tuple[Piece, Operand] | None = None
    steps: dict[int, Operand] | None = None

    @staticmethod
    def of(cx: LowerContext, tile: Expr) -> Source:
        where = place(tile)
        starts = tuple(cx.value(p.lo) for p in where.parts)
        return Source(cx, tile, where, kept_dimensions(where), starts, cx.extents(where.name), None, {})

    @property
    def size(self) -> int:
        return self.tile.type.elem.bytes

    def coordinates(self, p: Piece) -> tuple[Operand, ...]:
        """One a declared dimension."""
        outer = unravelled(self.cx, self.tile.type.shape[:-1], p.row, p.down)
        of = dict(zip(self.kept, (*outer, self.cx.b.add(p.column, p.right)), strict=True))
        return tuple(self.cx.b.add(start, of.get(d, 0)) for d, start in enumerate(self.starts))

    def address(self, p: Piece) -> Addr:
        if self.last is not None and self._steps_on(self.last[0], p):
            before, pointer = self.last
            pointer = self._stepped(pointer, p.down - before.down)
        else:
            pointer = self._absolute(self.coordinates(p))
        self.last = (p, pointer)
        return Addr(pointer)

    def _steps_on(self, before: Piece, p: Piece) -> bool:
        """Whether both lie in one column of the two innermost dimensions, which are the tile's only ones."""
        dims = len(self.starts)
        return self.kept == (dims - 2, dims - 1) and (before.row, before.column, before.right) == (p.row, p.column, p.right)

    def _stepped(self, pointer: Operand, rows: int) -> Operand:
        b, extent = self.cx.b, self.extents[-1]
        if isinstance(extent, int):
            return b.op("add.s64", pointer, rows * extent * self.size)
        if rows not in self.steps:
            self.steps[rows] = b.op("mul.wide.s32", extent, rows * self.size)
        return b.op("add.s64", pointer, self.steps[rows])

    def _absolute(self, at: tuple[Operand, ...]) -> Operand:
        """Pointer, rows, column, in this order; products are 64 bits wide."""
        b, pointer = self.cx.b, self.cx.global_pointer(self.where.name)
        *outer, column = at
        row: Operand = 0  # flattened, 64 bits from the second dimension on
        for n, (x, extent) in enumerate(zip(outer, self.extents[1:], strict=True)):
            if n:
                x = self._plus(row, x)
            row = self._times(x, extent, wide=n > 0)
        if not isinstance(row, int):
            pointer = b.op("add.s64", pointer, b.op("shl.b64", row, self.size.bit_length() - 1))
        elif row:
            pointer = b.op("add.s64", pointer, row * self.size)
        if isinstance(column, int):
            return b.op("add.s64", pointer, column * self.size) if column else pointer
        return b.op("mad.wide.s32", column, self.size, pointer)

    def _times(self, x: Operand, extent: Operand, wide: bool) -> Operand:
        b = self.cx.b
        if isinstance(x, int) and isinstance(extent, int):
            return x * extent
        if wide:
            factor = extent if isinstance(extent, int) else b.op("cvt.s64.s32", extent)
            return b.op("mul.lo.s64", x if isinstance(x, Reg) else b.mov(x, "b64"), factor)
        return b.op("mul.wide.s32", *((extent, x) if isinstance(x, int) else (x, extent)))

    def _plus(self, row: Operand, x: Operand) -> Operand:
        b = self.cx.b
        if isinstance(row, int) and isinstance(x, int):
            return row + x
        if isinstance(x, int):
            return b.op("add.s64", row, x) if x else row
        wide = b.op("cvt.s64.s32", x)
        return b.op("add.s64", wide, row) if row != 0 else wide

    def outside(self, p: Piece) -> Reg | bool:
        """Whether the piece lies outside the tensor: its first element decides, since no piece straddles an edge. Compared unsigned, so
        that a negative coordinate lies outside too."""
        b, shape = self.cx.b, declared(self.tile).shape
        found: Reg | bool = False
        at = None
        for d, part in enumerate(self.where.parts):
            if not self._clipped(part, shape[d]):
                continue
            at = at or self.coordinates(p)
            beyond = True if isinstance(at[d], int) and at[d] < 0 else b.compare(">=", at[d], self.extents[d], "u32")
            if found is False or beyond is True:
                found = beyond
            elif beyond is not False and found is not True:
                found = b.op("or.pred", found, beyond)
        return found

    @staticmethod
    def _clipped(part: Part, extent: Expr | int) -> bool:
        return part.size is not None and not inside(part, extent)


# --- the statement -------------------------------------------------------------------------------------------------


def emit(cx: LowerContext, shared: Expr, tensor: Expr, by: int, prefetch: int | None) -> None:
    """`.cg` passes the L1 cache by, which only 16-byte copies can; a piece outside the tensor reads nothing and writes zeros."""
    to, source = Destination.of(cx, shared), Source.of(cx, tensor)
    opcode = f"cp.async.{'cg' if by == 16 else 'ca'}.shared.global" + (f".L2::{prefetch}B" if prefetch else "")
    for p in pieces(cx, tuple(shared.type.shape), by // shared.type.elem.bytes):
        outside = source.outside(p)
        tail = () if outside is False else (0,) if outside is True else (outside,)
        cx.b.emit(opcode, to.address(p), source.address(p), by, *tail, guard=None if p.exists is True else p.exists)
