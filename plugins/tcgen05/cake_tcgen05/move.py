"""Loads and stores of tensor memory by the threads of four warps: of 128 rows a row a thread (.32x32b), of 64 rows as an accumulator
lies that a warp's matrix instruction leaves (.16x256b).

Warp w of a warpgroup reaches lanes 32 w to 32 w + 31 (PTX ISA, tcgen05 access restrictions), so that a role that moves whole
tiles is four warps that start at a multiple of four. The lane stands in the address. Both are asynchronous: `tcgen05.wait.ld`
and `tcgen05.wait.st` wait for all that the executing thread started.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Access, CommitGroup, Effect, InGroup, Mode, Proxy, WaitGroup
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Int, Name, Op
from cake_core.ir.places import fragments_in, place_of, root
from cake_core.ir.plan import warp_grid
from cake_core.ir.types import Scalar, Tile
from cake_core.primitive import CheckContext, LowerContext, Operation, Parameter, SimulateContext
from cake_core.ptx.builder import Addr, Operand, Reg, Vec
from cake_tcgen05.engine import CAPABILITIES, LANES
from cake_tcgen05.layout import LAYOUT

WARPS = 4
LOADS, STORES = "tcgen05.ld", "tcgen05.st"


@frozen
class Shape:
    """How an instruction moves, by the rows of the buffer: units of so many registers and columns, `.num` of them, a power of two up to
    `most`. `bits`: of elements."""

    name: str
    layout: str
    registers: int
    columns: int
    most: int
    bits: tuple[int, ...]


#: PTX ISA, tcgen05 data movement shapes. The rows that .16x256b moves from lane 32 w on are those that warp w has of 64.
SHAPES = {
    LANES: Shape("32x32b", LAYOUT.name, 1, 1, 128, (16, 32)),
    64: Shape("16x256b", "mma", 4, 8, 32, (32,)),
}


def shape_of(memory: Expr) -> Shape:
    return SHAPES[root(memory).type.shape[0]]


def check_move(op: Op, memory: Expr, registers: Expr, cx: CheckContext) -> None:
    """What both directions need. Raises CakeError."""
    tile, held = memory.type, registers.type
    if cx.warps != WARPS or cx.aligned % WARPS:
        raise fail(
            "ptx/tcgen05-warps",
            f"'{op.name}' in a role of {cx.warps} warp{'s' if cx.warps != 1 else ''}"
            + (f", the first at a multiple of {cx.aligned}" if cx.warps == WARPS else ""),
            op.span,
            why=f"four warps from a multiple of four on reach the {LANES} lanes of tensor memory, a quarter each",
            fix="write `4 warps aligned 4` on the role",
        )
    if tile.slots:
        raise fail("type/slot", f"'{root(memory).id}' needs an index for its slot", memory.span)
    shape, declared = shape_of(memory), root(memory).type
    rows = place_of(memory, declared).parts[0]
    if rows.lo != Int(0) or rows.size != declared.shape[0]:
        raise fail(
            "ptx/tcgen05-rows",
            f"this part of '{root(memory).id}' is not all of its {declared.shape[0]} rows",
            memory.span,
            why="each thread moves what it holds of all rows",
        )
    if isinstance(held, Scalar) or held.elem != tile.elem:
        raise fail("type/element", f"'{root(memory).id}' holds {tile.elem}, the registers a {held}", op.span, why="a move does not convert")
    if tuple(held.shape) != tuple(tile.shape):
        raise fail("type/shape", f"'{root(memory).id}' is a tile of {list(tile.shape)}, the registers one of {list(held.shape)}", op.span)
    if tile.elem.bits not in shape.bits:
        sizes = " and ".join(map(str, shape.bits))
        raise fail(
            "type/element",
            f"'{op.name}' of {tile.elem} in {declared.shape[0]} rows",
            op.span,
            why=f"not implemented: elements of other sizes than {sizes} bits",
        )
    if shape.registers > 1 and tile.shape[1] % shape.columns:
        raise fail(
            "type/shape", f"{tile.shape[1]} columns of '{root(memory).id}'", memory.span, why=f"they are moved {shape.columns} at a time"
        )
    for name in (f.id for f in fragments_in(registers)):
        found = cx.declaration(name)
        if found is None or (layout := found.words.get("layout")) is None:
            continue
        if layout != Name(shape.layout) or warp_grid(found.words, cx.warps) != (WARPS, 1):
            raise fail(
                "ptx/tcgen05-layout",
                f"'{name}' does not lie as '{op.name}' moves {declared.shape[0]} rows",
                op.span,
                fix=f"declare it with `layout {shape.layout}`" + (", without `grid`" if layout == Name(shape.layout) else ""),
            )


def pieces(count: int, most: int) -> Iterator[tuple[int, int]]:
    """(first unit, number) of each instruction: as few as there are with powers of two."""
    first = 0
    while first < count:
        n = min(most, 1 << (count - first).bit_length() - 1)
        yield first, n
        first += n


def address(cx: LowerContext, memory: Expr) -> tuple[Operand, int]:
    """The address of this warp's lanes, and columns to add: lane in bits 31-16, column in bits 15-0."""
    variable, column = cx.tensor_address(memory)
    return cx.b.add(variable, cx.b.shl(cx.warp, 21)), column


def moves(cx: LowerContext, memory: Expr, registers: tuple[Operand, ...]) -> Iterator[tuple[str, Vec, Addr]]:
    """(shape and number, registers, address) of each instruction."""
    shape = shape_of(memory)
    base, column = address(cx, memory)
    for first, n in pieces(len(registers) // shape.registers, shape.most):
        held = registers[first * shape.registers : (first + n) * shape.registers]
        yield f"{shape.name}.x{n}", Vec(held), Addr(base, column + first * shape.columns)


@dataclass(frozen=True, kw_only=True)
class Load(Operation):
    """`tcgen05.ld x <- t[s][:, lo +: n]`: rows of tensor memory into registers; x may be touched behind `tcgen05.wait.ld`."""

    name: str = "tcgen05.ld"
    operands: tuple[Parameter, ...] = (Parameter("registers", "tile", ("frag",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("source", "tile", ("tmem",))
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.ld (.32x32b, .16x256b)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check_move(op, op.value, op.operands[0], cx)

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        return {root(op.operands[0]).id: shape_of(op.value).layout}

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (
            Access(op.value, Mode.READ, Proxy.TENSOR, InGroup(LOADS)),
            Access(op.operands[0], Mode.WRITE, Proxy.GENERIC, InGroup(LOADS)),
            CommitGroup(LOADS),
            OF_WARP,
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.read(op.value))

    def lower(self, op: Op, cx: LowerContext) -> None:
        registers = cx.registers(op.operands[0])
        for what, vector, at in moves(cx, op.value, registers):
            cx.b.emit(f"tcgen05.ld.sync.aligned.{what}.b32", vector, at)


@dataclass(frozen=True, kw_only=True)
class Store(Operation):
    """`tcgen05.st t[s][:, lo +: n] <- value`: registers into rows of tensor memory; complete behind `tcgen05.wait.st`."""

    name: str = "tcgen05.st"
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", ("tmem",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("value", "value")
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.st (.32x32b, .16x256b)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check_move(op, op.operands[0], op.value, cx)
        if not fragments_in(op.value):
            raise fail(
                "core/undistributed",
                "no fragment says which thread holds which row",
                op.value.span,
                fix="assign it to a `frag` and store that",
            )

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        layout = shape_of(op.operands[0]).layout
        return {f.id: layout for f in fragments_in(op.value) if isinstance(f.type, Tile) and len(f.type.shape) == 2}

    def effects(self, op: Op) -> tuple[Effect, ...]:
        reads = tuple(Access(f, Mode.READ) for f in fragments_in(op.value))
        return (*reads, Access(op.operands[0], Mode.WRITE, Proxy.TENSOR, InGroup(STORES)), CommitGroup(STORES), OF_WARP)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.value(op.value))

    def lower(self, op: Op, cx: LowerContext) -> None:
        registers = tuple(
            r if isinstance(r, Reg) else cx.b.mov(r, "f32" if isinstance(r, float) else "b32") for r in cx.registers(op.value)
        )
        for what, vector, at in moves(cx, op.operands[0], registers):
            cx.b.emit(f"tcgen05.st.sync.aligned.{what}.b32", at, vector)


@dataclass(frozen=True, kw_only=True)
class Wait(Operation):
    """`tcgen05.wait.ld`, `tcgen05.wait.st`: all loads, or stores, of tensor memory that each thread started are complete."""

    queue: str
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.wait"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (WaitGroup(self.queue, 0), OF_WARP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"tcgen05.wait::{self.name.rpartition('.')[2]}.sync.aligned")


WAIT_LOADS = Wait(name="tcgen05.wait.ld", queue=LOADS)
WAIT_STORES = Wait(name="tcgen05.wait.st", queue=STORES)
