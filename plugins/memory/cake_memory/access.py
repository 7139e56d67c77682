"""Addresses and guards of accesses to shared and global tiles (PTX ISA, Data Movement Instructions, ld and st)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from cake_core.frozen import thawed
from cake_core.ir.nodes import Expr, Int
from cake_core.ir.places import Place
from cake_core.ir.plan import integer
from cake_core.ir.tiles import declared, inside, place
from cake_core.ir.types import Elem
from cake_core.primitive import LowerContext
from cake_core.ptx.builder import Addr, Operand, Reg, Vec
from cake_memory.holding import Holding

Guard = Reg | bool


@thawed
class SharedTile:
    """Without a swizzle one address, the offsets being immediates; with one each access has its own."""

    cx: LowerContext
    expr: Expr
    holding: Holding
    limits: dict[int, Operand] = field(default_factory=dict)  # of tensors only
    strides: tuple[int, ...] | None = field(init=False)  # bytes along each dimension of the tile; None: swizzled
    base: Operand | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        tile, where = declared(self.expr), place(self.expr)
        if integer(self.cx.declaration(where.name).words, "swizzle"):
            self.strides = None
            return
        stride, strides = tile.elem.bytes, []
        for part, extent in zip(reversed(where.parts), reversed(tile.shape), strict=True):
            if part.size is not None:
                strides.append(stride)
            stride *= extent
        self.strides = tuple(reversed(strides))

    def address(self, offset: tuple[int, ...]) -> Addr:
        if self.strides is None:
            at = tuple(self.cx.b.add(o, d) for o, d in zip(self.holding.origin, offset, strict=True))
            return Addr(self.cx.element_address(self.expr, at))
        if self.base is None:
            self.base = self.cx.element_address(self.expr, self.holding.origin)
        return Addr(self.base, sum(d * s for d, s in zip(offset, self.strides, strict=True)))

    def guard(self, offset: tuple[int, ...], n: int) -> Guard:
        """Shared tiles are not clipped: their sizes are constants that the text must keep to."""
        return True


@thawed
class GlobalTile:
    """Row-major, 64-bit addresses: one base for each row that a thread touches, offsets along the row as immediates.

    Sliced dimensions are clipped at the tensor's extents unless the slice surely lies inside. A coordinate is compared
    unsigned, which sees a negative one as past the end.
    """

    cx: LowerContext
    expr: Expr
    holding: Holding
    limits: dict[int, Operand] = field(default_factory=dict)  # ends that are nearer than the extents, by declared dimension
    where: Place = field(init=False)
    coordinates: tuple[Operand, ...] = field(init=False)  # of the thread's first element, one a declared dimension
    extents: tuple[Operand, ...] = field(init=False)
    kept: tuple[int, ...] = field(init=False)  # declared dimension of each dimension of the tile
    bases: dict[tuple[int, ...], Operand] = field(init=False, default_factory=dict)
    guards: dict[tuple, Guard] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.where = place(self.expr)
        self.kept = tuple(d for d, p in enumerate(self.where.parts) if p.size is not None)
        origin = dict(zip(self.kept, self.holding.origin, strict=True))
        starts = (self.cx.value(p.lo) for p in self.where.parts)
        self.coordinates = tuple(self.cx.b.add(s, origin.get(d, 0)) for d, s in enumerate(starts))
        self.extents = self.cx.extents(self.where.name)

    def _spread(self, offset: tuple[int, ...]) -> list[int]:
        """An offset in the tile, one number a declared dimension."""
        by_dimension = dict(zip(self.kept, offset, strict=True))
        return [by_dimension.get(d, 0) for d in range(len(self.coordinates))]

    def address(self, offset: tuple[int, ...]) -> Addr:
        *rows, column = self._spread(offset)
        if tuple(rows) not in self.bases:
            self.bases[tuple(rows)] = self._base(rows)
        return Addr(self.bases[tuple(rows)], column * declared(self.expr).elem.bytes)

    def _base(self, rows: list[int]) -> Operand:
        """Pointer plus the bytes of one row and of the thread's first column. Products are 64 bits wide (mul.wide)."""
        b, size = self.cx.b, declared(self.expr).elem.bytes
        *outer, column = self.coordinates
        pointer = _add_wide(self.cx, self.cx.global_pointer(self.where.name), column, size)
        if not outer:
            return pointer
        at = [b.add(c, r) for c, r in zip(outer, rows, strict=True)]
        if len(at) == 1 and isinstance(self.extents[1], int):
            return _add_wide(self.cx, pointer, at[0], self.extents[1] * size)
        first = b.mov(at[0]) if isinstance(at[0], int) else at[0]
        row = b.op("mul.wide.s32", first, self.extents[1])
        for c, extent in zip(at[1:], self.extents[2:], strict=True):
            row = b.op("mul.lo.s64", _add_wide(self.cx, row, c, 1), _wide(self.cx, extent))
        return b.op("add.s64", pointer, b.op("shl.b64", row, size.bit_length() - 1))

    def guard(self, offset: tuple[int, ...], n: int) -> Guard:
        """Whether the access at `offset` lies inside: its first element decides, since an access never straddles the edge."""
        spread = self._spread(offset)
        wanted = []
        for d, part in enumerate(self.where.parts):
            if part.size is None or d not in self.limits and inside(part, declared(self.expr).shape[d]):
                continue
            wanted.append((d, spread[d]))
        return self._all(tuple(wanted))

    def _all(self, wanted: tuple[tuple[int, int], ...]) -> Guard:
        if wanted not in self.guards:
            if not wanted:
                self.guards[wanted] = True
            elif len(wanted) == 1:
                self.guards[wanted] = self._below(*wanted[0])
            else:
                self.guards[wanted] = both(self.cx, self._all(wanted[:-1]), self._all(wanted[-1:]))
        return self.guards[wanted]

    def _below(self, d: int, offset: int) -> Guard:
        at = self.cx.b.add(self.coordinates[d], offset)
        if isinstance(at, int) and at < 0:
            return False
        return self.cx.b.compare("<", at, self.limits.get(d, self.extents[d]), "u32")


TILES: dict[str, Callable] = {"shared": SharedTile, "global": GlobalTile}


def both(cx: LowerContext, p: Guard, q: Guard) -> Guard:
    if isinstance(p, bool):
        return q if p else False
    if isinstance(q, bool):
        return p if q else False
    return cx.b.op("and.pred", p, q)


def _add_wide(cx: LowerContext, base: Operand, index: Operand, scale: int) -> Operand:
    """base + index * scale, the base and the product in 64 bits."""
    if isinstance(index, int):
        return cx.b.op("add.s64", base, index * scale) if index else base
    return cx.b.op("mad.wide.s32", index, scale, base)


def _wide(cx: LowerContext, x: Operand) -> Operand:
    return x if isinstance(x, int) else cx.b.op("cvt.s64.s32", x)


def vector(registers: tuple[Reg, ...]) -> tuple[str, Operand]:
    """(suffix of the opcode, operand) of an access of whole registers (PTX ISA, Vectors)."""
    return (".b32", registers[0]) if len(registers) == 1 else (f".v{len(registers)}.b32", Vec(registers))


def in_register(cx: LowerContext, x: Operand, elem: Elem) -> Reg:
    """A stored value: ld and st take registers only. An immediate of a packed pair is an integer of 32 bits."""
    if isinstance(x, Reg):
        return x
    kind = "f32" if elem.name == "f32" else "b32"
    return cx.b.mov(float(x) if kind == "f32" else x, kind)


def literal(e: Expr, elem: Elem) -> int | float:
    """A literal as an element: an integer stands for a float where a float is meant."""
    return float(e.value) if elem.kind == "float" else int(e.value) if isinstance(e, Int) else e.value
