"""`mma.sync`: the matrix product of each warp, complete with its statement."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Access, Effect, Mode
from cake_core.frozen import frozen
from cake_core.ir.nodes import Attr, Binary, Expr, Name, Op
from cake_core.ir.places import root
from cake_core.ir.plan import warp_grid
from cake_core.ir.types import F32, Tile
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter, SimulateContext
from cake_core.primitive.factors import product
from cake_core.ptx.builder import Reg, Vec

BLOCK_M, BLOCK_N = 16, 8  # rows and columns of one instruction
A_REGISTERS, B_REGISTERS, D_REGISTERS = 4, 2, 4  # of one instruction, in each lane


@frozen
class Kind:
    """One type of factors: depth of an instruction, its type in the opcode, the suffix of the layouts of the factors, the capability that
    it needs beside the operation's own."""

    depth: int
    name: str
    layouts: str = ""
    capability: str | None = None


FP8 = "mma_sync_fp8"
#: By element type of the factors. f32 is taken as tf32: the unit reads the sign, 8 bits of exponent and 10 of mantissa.
KINDS = {
    "bf16": Kind(16, "bf16"),
    "f16": Kind(16, "f16"),
    "f32": Kind(8, "tf32", "32"),
    "e4m3": Kind(32, "e4m3", "8", FP8),
    "e5m2": Kind(32, "e5m2", "8", FP8),
}


@frozen(kw_only=True)
class MmaSync(Operation):
    """`mma.sync d += a @ b.T`, or `d = a @ b.T`, which starts from zero.

    d: f32 [M, N], a: [M, K], b: [N, K], all fragments of the instance; on a grid (r, c) of warps M is a multiple of 16 r, N of 8, or
    of 16 c where c > 1. Factors are bf16 or f16 with K a multiple of 16, f32 with K a multiple of 8, of which the unit reads tf32, or,
    where the target offers `mma_sync_fp8`, e4m3 or e5m2 with K a multiple of 32.
    """

    def check(self, op: Op, cx: CheckContext) -> None:
        d, (a, b) = op.operands[0], _factors(op)
        for tile, what in ((d, "the result"), (a, "the left factor"), (b, "the right factor")):
            _check_fragment(tile, what)
        left, right = op.value.left, op.value.right
        if left.type.transposed or not right.type.transposed:
            raise fail(
                "ptx/mma-transposed",
                "both factors have their rows along K: `a @ b.T`, with a of [M, K] and b of [N, K]",
                op.value.span,
                why="a register holds neighbours in K",
                fix="load the fragment transposed: `ldmatrix f <- x[s][..].T`",
            )
        _check_types(op, d.type, a.type, b.type)
        needed = KINDS[a.type.elem.name].capability
        if needed and cx.arch is not None and needed not in cx.arch.capabilities:
            raise fail(
                "type/missing-capability",
                f"'mma.sync' of {a.type.elem} needs '{needed}', which {cx.arch.name} does not offer",
                op.span,
                resource=needed,
                fix="multiply another type, or build for an architecture that offers it",
            )
        if cx.form is Form.DERIVED:
            self._check_layouts(op, cx)

    def _check_layouts(self, op: Op, cx: CheckContext) -> None:
        """All three lie as the instruction takes them, over one grid."""
        wanted, grids = self.fragments(op, cx), {}
        for tile in (op.operands[0], *_factors(op)):
            name = root(tile).id
            declared = cx.declaration(name)
            layout = declared.words.get("layout") if declared is not None else None
            grids[name] = warp_grid(declared.words, cx.warps) if declared is not None else None
            alike = (wanted[name], "mma") if wanted[name] == "mma_a" and grids[name][1] == 1 else (wanted[name],)
            if layout not in [Name(n) for n in alike]:
                raise fail(
                    "ptx/mma-layout",
                    f"'{name}' does not lie as 'mma.sync' takes it",
                    tile.span,
                    fix=f"declare it with `layout {wanted[name]}`",
                )
        if len(set(grids.values())) > 1:
            listed = ", ".join(f"'{n}' over {g}" for n, g in grids.items())
            raise fail("ptx/mma-layout", "the fragments lie over different grids of warps", op.span, why=listed, fix="give them one `grid`")

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        a, b = _factors(op)
        suffix = KINDS[a.type.elem.name].layouts
        return {root(op.operands[0]).id: "mma", root(a).id: f"mma_a{suffix}", root(b).id: f"mma_b{suffix}"}

    def effects(self, op: Op) -> tuple[Effect, ...]:
        d = op.operands[0]
        reads = (*_factors(op), d) if op.arrow == "+=" else _factors(op)
        return (*(Access(x, Mode.READ) for x in reads), Access(d, Mode.WRITE), OF_WARP)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        d = op.operands[0]
        found = product(op, cx)
        cx.write(d, found + cx.read(d) if op.arrow == "+=" else found)

    def lower(self, op: Op, cx: LowerContext) -> None:
        """Depth outermost, so that no instruction waits for the one before it; a row of blocks goes there and back, so that neighbours
        share a factor's registers."""
        d, (a, b) = op.operands[0], _factors(op)
        kind = KINDS[a.type.elem.name]
        steps = a.type.shape[1] // kind.depth
        acc, left, right = cx.registers(d), _bits(cx, cx.registers(a)), _bits(cx, cx.registers(b))
        blocks, granules = len(left) // (A_REGISTERS * steps), len(right) // (B_REGISTERS * steps)
        opcode = f"mma.sync.aligned.m16n8k{kind.depth}.row.col.f32.{kind.name}.{kind.name}.f32"
        for step in range(steps):
            for i in range(blocks):
                for j in range(granules) if i % 2 == 0 else reversed(range(granules)):
                    at = D_REGISTERS * (i * granules + j)
                    result = Vec(acc[at : at + D_REGISTERS])
                    first = A_REGISTERS * (i * steps + step)
                    second = B_REGISTERS * (j * steps + step)
                    start = result if op.arrow == "+=" or step else Vec((0.0,) * D_REGISTERS)
                    cx.b.emit(opcode, result, Vec(left[first : first + A_REGISTERS]), Vec(right[second : second + B_REGISTERS]), start)


def _bits(cx: LowerContext, registers: tuple[Reg, ...]) -> tuple[Reg, ...]:
    """Factors as untyped registers, which is how the instruction takes f32: the moves are none in machine code."""
    return tuple(r if r.kind == "b32" else cx.b.mov(r) for r in registers)


def _factors(op: Op) -> tuple[Expr, Expr]:
    """The two fragments, without `.T`."""
    product: Binary = op.value
    return _bare(product.left), _bare(product.right)


def _bare(e: Expr) -> Expr:
    while isinstance(e, Attr):
        e = e.base
    return e


def _check_fragment(tile: Expr, what: str) -> None:
    t = tile.type
    if not isinstance(t, Tile) or t.space != "frag":
        raise fail(
            "type/operand",
            f"{what} is {t}",
            tile.span,
            why="'mma.sync' takes fragments",
            fix="load it first: `ldmatrix f <- ..`" if isinstance(t, Tile) and t.space == "shared" else None,
        )
    if t.slots or len(t.shape) != 2:
        raise fail("type/shape", f"{what} is {t}", tile.span, why="a product has two dimensions")


def _check_types(op: Op, d: Tile, a: Tile, b: Tile) -> None:
    if d.elem != F32:
        raise fail("type/element", f"the result is {d.elem}", op.operands[0].span, why="not implemented: sums in another type than f32")
    if a.elem != b.elem or a.elem.name not in KINDS:
        listed = ", ".join(KINDS)
        raise fail(
            "type/element",
            f"the factors are {a.elem} and {b.elem}",
            op.value.span,
            why=f"not implemented: factors other than two of one of {listed}",
        )
    (m, n), (rows, depth), (columns, other) = d.shape, a.shape, b.shape
    for what, mine, theirs in (
        ("rows of the result and of the left factor", m, rows),
        ("columns of the result and rows of the right factor", n, columns),
        ("depths of the factors", depth, other),
    ):
        if mine != theirs:
            raise fail("type/shape", f"the {what} are {mine} and {theirs}", op.value.span)
    step = KINDS[a.elem.name].depth
    if depth % step:
        raise fail("ptx/mma-shape", f"K is {depth}", op.value.span, why=f"it must be a multiple of {step} for {a.elem} (PTX ISA, mma.sync)")


MMA_SYNC = MmaSync(
    name="mma.sync",
    capabilities=frozenset({"mma_sync"}),
    operands=(Parameter("d", "tile", ("frag",), writable=True),),
    arrows=("+=", "="),
    value=Parameter("product", "product"),
    doc="PTX ISA, Multiply-and-Accumulate Instruction: mma (.m16n8k16.f32.bf16.bf16.f32, .f32.f16.f16.f32, .m16n8k8.f32.tf32.tf32.f32, "
    ".m16n8k32.f32.e4m3.e4m3.f32, .f32.e5m2.e5m2.f32)",
)
