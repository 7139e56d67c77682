"""`ldmatrix f <- x[..]`: a tile of shared memory as matrices of 8 rows by 16 bytes in the registers of each warp.

Lane 8i + r gives the address of row r of matrix i; lane l receives 4 bytes of row l / 4 of each matrix (PTX ISA, ldmatrix). With
`.trans`, which takes elements of 16 bits, it receives the two elements of column l / 4 instead. Which matrices a warp needs, and in which
order, the fragment's layout says: register i is matrix i.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Access, Effect, Mode
from cake_core.frozen import frozen
from cake_core.ir.nodes import Attr, Declaration, Expr, Op
from cake_core.ir.places import root
from cake_core.ir.plan import BufferPlan
from cake_core.ir.tiles import alignment, declared, level, place
from cake_core.ir.types import Level
from cake_core.primitive import CheckContext, Demand, Distribution, Form, LowerContext, Operation, Parameter, SimulateContext
from cake_core.ptx.builder import Addr, Operand, Reg, Vec

ROWS = 8  # of a matrix; also the rows after which a swizzle pattern repeats
ROW_BYTES = 16
SWIZZLES = (128, 64, 32)  # bytes, best first: the wider, the fewer bank conflicts
MOST = 4  # matrices of one instruction


@frozen(kw_only=True)
class LdMatrix(Operation):
    """`ldmatrix f <- x[s][..]`, or `x[s][..].T` for elements of 16 bits, which transposes each matrix on its way.

    The tile has the fragment's shape and element type, or its transpose's; its rows start at multiples of 16 bytes.
    """

    def check(self, op: Op, cx: CheckContext) -> None:
        target, source = op.operands[0], op.value
        t, s = target.type, source.type
        for tile in (t, s):
            if len(tile.groups) != 1 or len(tile.shape) != 2:
                where = target if tile is t else source
                raise fail(
                    "type/shape",
                    f"'ldmatrix' takes tiles of rows and columns, and this is {tile}",
                    where.span,
                    fix="index the slot: `x[s]`",
                )
        if t.elem != s.elem:
            raise fail(
                "type/element", f"'{root(target).id}' holds {t.elem}, '{root(source).id}' {s.elem}", op.span, why="nothing is converted"
            )
        shape = tuple(reversed(s.shape)) if s.transposed else tuple(s.shape)
        if tuple(t.shape) != shape:
            raise fail(
                "type/shape",
                f"the fragment has shape {list(t.shape)}, the tile {list(shape)}",
                op.span,
                fix="is a `.T` missing, or one too many?" if tuple(reversed(shape)) == tuple(t.shape) else None,
            )
        if s.transposed and s.elem.bits != 16:
            raise fail("ptx/ldmatrix-transposed", f"'ldmatrix' transposes elements of 16 bits, not {s.elem}", source.span)
        if level(source) > Level.INSTANCE:
            raise fail("core/one-place", f"this part of '{root(source).id}' is not the same for all warps of the instance", source.span)
        declaration = cx.declaration(root(source).id) if cx.form is Form.DERIVED else None
        if reason := _refusal(source, declaration):
            raise fail("ptx/ldmatrix-tile", f"'ldmatrix' can't read this tile of '{root(source).id}'", source.span, why=reason)

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        whole = declared(op.value)
        rows = BufferPlan(root(op.value).id, whole.elem, whole.slots, whole.shape, 0, 0, op.span)
        fitting = [s for s in SWIZZLES if rows.row_bytes % s == 0 and rows.slot_bytes % (ROWS * s) == 0]
        return (Demand(rows.name, (*fitting, 0), align=ROWS * fitting[0] if fitting else ROW_BYTES),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        read = Access(_bare(op.value), Mode.READ, divided=None if op.value.type.transposed else "warp")
        return (read, Access(op.operands[0], Mode.WRITE), OF_WARP)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.read(op.value))

    def lower(self, op: Op, cx: LowerContext) -> None:
        target, source = op.operands[0], op.value
        d = cx.distribution_of(target)
        corner = d.layout.corner(cx, d.words)
        if corner is None:
            raise fail(
                "ptx/ldmatrix-layout",
                f"'{root(target).id}' does not lie in matrices of 8 rows by 16 bytes",
                op.span,
                why=f"it has the layout '{d.layout.name}'",
            )
        _load(cx, cx.registers(target), _matrices(d, source.type.elem.bits), corner, source)


def _bare(source: Expr) -> Expr:
    while isinstance(source, Attr):
        source = source.base
    return source


def _refusal(source: Expr, declaration: Declaration | None) -> str | None:
    """Why the rows of a tile can't be read in pieces of 16 bytes; None if they can."""
    bare = _bare(source)
    where, whole = place(bare), declared(bare)
    if len(whole.shape) != 2:
        return "its buffer does not have slots of rows and columns"
    columns = where.parts[1].size
    if columns * whole.elem.bytes % ROW_BYTES:
        return f"its rows of {columns * whole.elem.bytes} bytes are not whole pieces of {ROW_BYTES}"
    if (known := alignment(bare, declaration)) % ROW_BYTES:
        return f"its rows are known to start at multiples of {known} bytes only, and a lane reads {ROW_BYTES} at a multiple of {ROW_BYTES}"
    return None


# --- lowering ------------------------------------------------------------------------------------------------------

Corner = tuple[int, int]


def _matrices(d: Distribution, bits: int) -> tuple[Corner, ...]:
    """Where the matrix of each register starts, from the warp's corner."""
    return tuple(d.offsets[i] for i in range(0, len(d.offsets), 32 // bits))


def _load(cx: LowerContext, registers: tuple[Reg, ...], matrices: tuple[Corner, ...], corner: tuple[Operand, ...], source: Expr) -> None:
    """As many matrices an instruction as there are. Lanes of one instruction differ as its matrices do, so instructions whose matrices
    stand alike, whole swizzle patterns apart, share an address."""
    size = source.type.elem.bytes
    columns, _ = cx.panel(_bare(source))
    pitch = columns * size
    transposed = ".trans" if source.type.transposed else ""
    addresses: dict[tuple, Operand] = {}
    start = 0
    while start < len(matrices):
        count = next(n for n in (4, 2, 1) if start + n <= len(matrices))
        group = matrices[start : start + count]
        first = group[0]
        apart = tuple((row - first[0], column - first[1]) for row, column in group)
        if not _by_bits(apart):
            count, apart = 1, apart[:1]
        if source.type.transposed:  # the tile's rows are the fragment's columns
            first, apart = first[::-1], tuple(a[::-1] for a in apart)
        down = first[0] - first[0] % ROWS
        key = (first[0] - down, first[1], apart)
        if key not in addresses:
            addresses[key] = _address(cx, source, corner, key)
        address = Addr(addresses[key], down * pitch)
        operand = Vec(registers[start : start + count])
        cx.b.emit(f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16", operand, address)
        start += count


def _by_bits(apart: tuple[Corner, ...]) -> bool:
    """Whether the place of matrix i is the sum of the places of its bits: then lanes find theirs without a table."""
    return len(apart) < MOST or all(apart[3][n] == apart[1][n] + apart[2][n] for n in range(2))


def _address(cx: LowerContext, source: Expr, corner: tuple[Operand, ...], key: tuple) -> Operand:
    """The lane's address for a group of matrices: (row in its pattern, column, place of each from the first)."""
    row, column, apart = key
    b = cx.b
    if source.type.transposed:
        corner = corner[::-1]
    at = [b.add(corner[0], row), b.add(corner[1], column)]
    at[0] = b.add(at[0], b.land(cx.lane, ROWS - 1))
    for bit in range((len(apart) - 1).bit_length()):
        set_ = b.land(b.shr(cx.lane, 3 + bit), 1)
        for n, offset in enumerate(apart[1 << bit]):
            at[n] = b.add(at[n], b.mul(set_, offset))
    return cx.element_address(_bare(source), at)


LDMATRIX = LdMatrix(
    name="ldmatrix",
    capabilities=frozenset({"ldmatrix"}),
    operands=(Parameter("fragment", "tile", ("frag",), writable=True),),
    arrows=("<-",),
    value=Parameter("tile", "tile", ("shared",)),
    doc="PTX ISA, Warp-level Matrix Load Instruction: ldmatrix (.m8n8, .x1, .x2, .x4, .trans, .b16)",
)
