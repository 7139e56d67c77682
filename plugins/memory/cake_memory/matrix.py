"""The store of an accumulator by `stmatrix`: four 8x8 matrices of 16-bit elements a warp and instruction.

The matrices of one instruction are 16 rows by 16 columns. Lane l gives the address of 8 elements: row l mod 16, columns
8 * (l / 16) and on. Its registers are the packed accumulator of two neighbouring granules as it lies: rows l/4 and
l/4 + 8 of the first, then of the second (PTX ISA, Warp-level Matrix Instructions, stmatrix; the layout `mma`).
"""

from __future__ import annotations

from cake_core.architecture import Architecture
from cake_core.diagnostics import fail
from cake_core.ir.nodes import Declaration, Expr, Name, Op
from cake_core.ir.plan import integer
from cake_core.ir.tiles import alignment, declared, place, range_of
from cake_core.ir.types import Elem
from cake_core.primitive import LowerContext
from cake_core.ptx.builder import Addr, Operand, Vec
from cake_memory.access import in_register

WORD = Name("stmatrix")
CAPABILITY = "stmatrix"
LAYOUT = "mma"
TILE = 16  # rows and columns of one x4 instruction
CHUNK = 16  # bytes of one row of a matrix, and of what a swizzle keeps together
#: Swizzle to (row bits shifted out, rows in the pattern - 1): chunk ^= (row >> shift) & mask (PTX ISA, Tensors, Swizzling Modes).
PATTERN = {128: (0, 7), 64: (1, 3), 32: (2, 1)}
ATOM_ROWS = 8


def swizzle_of(declaration: Declaration) -> int:
    return integer(declaration.words, "swizzle")


def refusal(target: Expr, swizzle: int | None, arch: Architecture | None, declaration: Declaration | None = None) -> str | None:
    """Why a tile can't be written by stmatrix, as far as the tile and the target decide; None if it can.

    `swizzle`: of the buffer in bytes, 0 for none; None for a tile that is not in shared memory.
    """
    t, where, whole = target.type, place(target), declared(target)
    if arch is not None and CAPABILITY not in arch.capabilities:
        return f"{arch.name} does not offer '{CAPABILITY}'"
    if swizzle is None or t.space != "shared":
        return "it writes shared memory only"
    if t.elem.bits != 16:
        return "it writes elements of 16 bits"
    if len(whole.shape) != 2 or len(t.shape) != 2:
        return "it writes tiles of rows and columns"
    if t.shape[0] % TILE or t.shape[1] % TILE:
        return f"it writes {TILE} rows by {TILE} columns, and the tile has {t.shape[0]} by {t.shape[1]}"
    if alignment(target, declaration) % CHUNK:
        return f"rows must start at multiples of {CHUNK} bytes"
    if swizzle:
        if swizzle not in PATTERN or whole.shape[1] * t.elem.bytes % swizzle:
            return f"rows of {whole.shape[1] * t.elem.bytes} bytes do not fit a swizzle of {swizzle}"
        row, column = (range_of(p.lo) for p in where.parts)
        if not row.multiple_of(ATOM_ROWS) or not column.multiple_of(swizzle // t.elem.bytes):
            return "the tile does not start on a whole swizzle atom"
    return None


def lower(op: Op, target: Expr, registers: tuple[Operand, ...], cx: LowerContext) -> None:
    """Four registers an instruction. The lane's part of the address is one sum; each column then costs one XOR at most."""
    d, elem = cx.distribution, target.type.elem
    if d is None or d.layout.name != LAYOUT:
        raise fail(
            "ptx/access-width",
            f"'{WORD.id}' needs the layout '{LAYOUT}'",
            op.span,
            why="it moves 8x8 matrices, which other layouts do not hold",
        )
    columns, panel_bytes = cx.panel(target)
    pitch = columns * elem.bytes
    if d.words.get("grid", (0, 1))[1] > 1:
        _lower_on_grid(target, registers, pitch, cx)
        return
    swizzle = swizzle_of(cx.declaration(place(target).name))
    lane = _lane_address(cx, pitch, swizzle)
    base = cx.b.add(cx.shared_address(target), lane)
    flipped: dict[int, Operand] = {0: base}
    for i in range(0, len(registers), 4):
        row, column = d.offsets[2 * i]
        panel, inside = divmod(column, columns)
        if swizzle:
            # Bits above the chunk's are clear in a row's start, so the column is XORed into the permuted chunk.
            flip = inside * elem.bytes
            if flip not in flipped:
                flipped[flip] = cx.b.xor(base, flip)
            address = Addr(flipped[flip], row * pitch + panel * panel_bytes)
        else:
            address = Addr(base, row * pitch + inside * elem.bytes)
        _emit(cx, address, registers[i : i + 4], elem)


def _emit(cx: LowerContext, address: Addr, four: tuple[Operand, ...], elem: Elem) -> None:
    cx.b.emit("stmatrix.sync.aligned.m8n8.x4.shared.b16", address, Vec(tuple(in_register(cx, r, elem) for r in four)))


def _lower_on_grid(target: Expr, registers: tuple[Operand, ...], pitch: int, cx: LowerContext) -> None:
    """Over several columns of warps a warp's columns are pairs of granules apart: one address for each pair, rows as immediates."""
    b, d = cx.b, cx.distribution
    row, column = d.layout.corner(cx, d.words)
    row = b.add(row, b.land(cx.lane, TILE - 1))
    column = b.add(column, b.mul(b.shr(cx.lane, 4), ATOM_ROWS))
    bases: dict[int, Operand] = {}
    for i in range(0, len(registers), 4):
        down, right = d.offsets[2 * i]
        if right not in bases:
            bases[right] = cx.element_address(target, (row, b.add(column, right)))
        _emit(cx, Addr(bases[right], down * pitch), registers[i : i + 4], target.type.elem)


def _lane_address(cx: LowerContext, pitch: int, swizzle: int) -> Operand:
    """Bytes from the tile's start to the lane's 8 elements of the first two granules, swizzle applied."""
    b = cx.b
    row = b.add(b.mul(cx.warp, TILE), b.land(cx.lane, TILE - 1))
    chunk = b.shr(cx.lane, 4)
    if swizzle:
        shift, mask = PATTERN[swizzle]
        chunk = b.xor(b.land(b.shr(cx.lane, shift), mask), chunk)  # row mod 8 is lane mod 8
    return b.add(b.mul(row, pitch), b.mul(chunk, CHUNK))
