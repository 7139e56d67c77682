"""Loads and stores of tensor memory by the threads of four warps: shape .32x32b, a row a thread.

Warp w of a warpgroup reaches lanes 32 w to 32 w + 31 (PTX ISA, tcgen05 access restrictions), so that a role that moves whole
tiles is four warps that start at a multiple of four. The lane stands in the address. Both are asynchronous: `tcgen05.wait.ld`
and `tcgen05.wait.st` wait for all that the executing thread started.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.effects import Access, CommitGroup, Effect, InGroup, Mode, Proxy, WaitGroup
from cake_core.ir.nodes import Expr, Int, Name, Op
from cake_core.ir.places import fragments_in, place_of, root
from cake_core.ir.types import Scalar, Tile
from cake_core.primitive import CheckContext, LowerContext, Operation, Parameter
from cake_core.ptx.builder import Addr, Operand, Reg, Vec
from cake_tcgen05.engine import CAPABILITIES, LANES
from cake_tcgen05.layout import LAYOUT

#: `.num` of an instruction: a power of two up to this many registers.
MOST_REGISTERS = 128
WARPS = 4
LOADS, STORES = "tcgen05.ld", "tcgen05.st"


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
    rows = place_of(memory, root(memory).type).parts[0]
    if rows.lo != Int(0) or rows.size != LANES:
        raise fail(
            "ptx/tcgen05-rows",
            f"this part of '{root(memory).id}' is not all of its {LANES} rows",
            memory.span,
            why="each thread moves its row",
        )
    if isinstance(held, Scalar) or held.elem != tile.elem:
        raise fail("type/element", f"'{root(memory).id}' holds {tile.elem}, the registers a {held}", op.span, why="a move does not convert")
    if tuple(held.shape) != tuple(tile.shape):
        raise fail("type/shape", f"'{root(memory).id}' is a tile of {list(tile.shape)}, the registers one of {list(held.shape)}", op.span)
    if tile.elem.bits not in (16, 32):
        raise fail(
            "type/element", f"'{op.name}' of {tile.elem}", op.span, why="not implemented: elements of other sizes than 16 and 32 bits"
        )
    for name in (f.id for f in fragments_in(registers)):
        declared = cx.declaration(name)
        if declared is not None and (layout := declared.words.get("layout")) is not None and layout != Name(LAYOUT.name):
            raise fail(
                "ptx/tcgen05-layout", f"'{name}' does not lie a row a thread", op.span, fix=f"declare it with `layout {LAYOUT.name}`"
            )


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """(first register, number) of each instruction: as few as there are with powers of two."""
    first = 0
    while first < count:
        n = min(MOST_REGISTERS, 1 << (count - first).bit_length() - 1)
        yield first, n
        first += n


def address(cx: LowerContext, memory: Expr) -> tuple[Operand, int]:
    """The address of this warp's lanes, and columns to add: lane in bits 31-16, column in bits 15-0."""
    variable, column = cx.tensor_address(memory)
    return cx.b.add(variable, cx.b.shl(cx.warp, 21)), column


@dataclass(frozen=True, kw_only=True)
class Load(Operation):
    """`tcgen05.ld x <- t[s][:, lo +: n]`: rows of tensor memory into registers; x may be touched behind `tcgen05.wait.ld`."""

    name: str = "tcgen05.ld"
    operands: tuple[Parameter, ...] = (Parameter("registers", "tile", ("frag",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("source", "tile", ("tmem",))
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.ld (.32x32b)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check_move(op, op.value, op.operands[0], cx)

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        return {root(op.operands[0]).id: LAYOUT.name}

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (
            Access(op.value, Mode.READ, Proxy.TENSOR, InGroup(LOADS)),
            Access(op.operands[0], Mode.WRITE, Proxy.GENERIC, InGroup(LOADS)),
            CommitGroup(LOADS),
        )

    def lower(self, op: Op, cx: LowerContext) -> None:
        registers = cx.registers(op.operands[0])
        base, column = address(cx, op.value)
        for first, n in pieces(len(registers)):
            cx.b.emit(f"tcgen05.ld.sync.aligned.32x32b.x{n}.b32", Vec(registers[first : first + n]), Addr(base, column + first))


@dataclass(frozen=True, kw_only=True)
class Store(Operation):
    """`tcgen05.st t[s][:, lo +: n] <- value`: registers into rows of tensor memory; complete behind `tcgen05.wait.st`."""

    name: str = "tcgen05.st"
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", ("tmem",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("value", "value")
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.st (.32x32b)"

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
        return {f.id: LAYOUT.name for f in fragments_in(op.value) if isinstance(f.type, Tile) and len(f.type.shape) == 2}

    def effects(self, op: Op) -> tuple[Effect, ...]:
        reads = tuple(Access(f, Mode.READ) for f in fragments_in(op.value))
        return (*reads, Access(op.operands[0], Mode.WRITE, Proxy.TENSOR, InGroup(STORES)), CommitGroup(STORES))

    def lower(self, op: Op, cx: LowerContext) -> None:
        registers = tuple(
            r if isinstance(r, Reg) else cx.b.mov(r, "f32" if isinstance(r, float) else "b32") for r in cx.registers(op.value)
        )
        base, column = address(cx, op.operands[0])
        for first, n in pieces(len(registers)):
            cx.b.emit(f"tcgen05.st.sync.aligned.32x32b.x{n}.b32", Addr(base, column + first), Vec(registers[first : first + n]))


@dataclass(frozen=True, kw_only=True)
class Wait(Operation):
    """`tcgen05.wait.ld`, `tcgen05.wait.st`: all loads, or stores, of tensor memory that each thread started are complete."""

    queue: str
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.wait"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (WaitGroup(self.queue, 0),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"tcgen05.wait::{self.name.rpartition('.')[2]}.sync.aligned")


WAIT_LOADS = Wait(name="tcgen05.wait.ld", queue=LOADS)
WAIT_STORES = Wait(name="tcgen05.wait.st", queue=STORES)
