"""Block scales: from shared memory to tensor memory, and the products that take them (PTX ISA, tcgen05, Block Scaling; tcgen05.cp).

Every 32 elements of a row along K have one scale, ue8m0; or every 16 of 4 bits, a ue4m3, which is written e4m3. A block holds four a row
for 128 rows: 512 bytes of shared memory, written `ue8m0[32, 16]`, where the scale of row m and piece s of K is byte 4 (m / 32) + s of row
m mod 32. In tensor memory it is `ue8m0[128, 4]`, four columns. It serves 128 elements of K, or 64 where 16 have a scale.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Access, ByCommit, Effect, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Expr, Int, Op
from cake_core.ir.places import place_of, root
from cake_core.ir.types import Tile
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext
from cake_core.primitive.factors import Factor, advanced
from cake_core.primitive.signals import handed
from cake_core.ptx.builder import Addr
from cake_tcgen05.descriptor import VERSION
from cake_tcgen05.engine import CAPABILITIES, COMMIT, LANES, SCALE_LANES, SCALES, cta_group, ctas
from cake_tcgen05.instruction import SCALE_TYPES, Kind

BLOCK = (32, 16)
BLOCK_BYTES = 512
BLOCK_COLUMNS = 4
ALIGN = 128  # bytes: of a box of a copy that fills it; a descriptor needs 16
#: Of 16 bytes a row and 8 rows packed to 128 bytes; without a swizzle, and the other offset is not used for one piece a row.
DESCRIPTOR = VERSION | 128 >> 4 << 32


@frozen(kw_only=True)
class Copy(Operation):
    """`tcgen05.cp t[s] <- x[s]`: block scales of a slot of shared memory into a slot of tensor memory.

    x: ue8m0 [32, 16], or [n, 32, 16] for 128 n rows; t: ue8m0 [128 n, 4]. Both are indexed by the same slot: a slot of x is filled again
    only when the engine has read it, and then it has read that of t too, which may be overwritten. Products behind it see the scales.
    In a pair both CTAs copy their own.
    """

    name: str = "tcgen05.cp"
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", ("tmem",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("source", "tile", ("shared",))
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.cp (.32x128b.warpx4)"

    def check(self, op: Op, cx: CheckContext) -> None:
        to, of = op.operands[0], op.value
        for e in (to, of):
            if e.type.elem.name not in SCALE_TYPES or e.type.elem != of.type.elem:
                raise fail(
                    "type/element",
                    f"'{root(e).id}' holds {e.type.elem}",
                    e.span,
                    why=f"not implemented: copies of other elements than {' or '.join(SCALE_TYPES)}, on both sides",
                )
            if not _whole(e):
                raise fail(
                    "ptx/tcgen05-scales", f"this is no whole slot of '{root(e).id}'", e.span, why="a copy moves whole blocks of scales"
                )
        blocks = to.type.shape[0] // LANES
        if of.type.shape not in ((blocks, *BLOCK), BLOCK if blocks == 1 else None):
            wanted = list(BLOCK) if blocks == 1 else [blocks, *BLOCK]
            raise fail(
                "type/shape", f"'{root(of).id}' is {list(of.type.shape)}, the scales of {to.type.shape[0]} rows are {wanted}", op.span
            )
        if _slots(to) != _slots(of):
            raise fail(
                "ptx/tcgen05-scales",
                f"'{root(to).id}' and '{root(of).id}' are indexed by different slots",
                op.span,
                why="a product may still read the scales that are overwritten",
                fix="give both as many slots, and index them alike",
            )
        if cx.form is Form.DERIVED:
            _check_place(of, cx)

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (Demand(root(op.value).id, (0,), ALIGN),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        name = root(op.value).id
        why, fix = "the engine reads it behind this statement", f"put '{name}' into the pipeline of the factors"
        handed(op, op.value, cx, f"'{name}' may be filled again", fix, why)
        return (by_leader(op),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        done = ByCommit(COMMIT)
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER),
            Access(op.operands[0], Mode.WRITE, Proxy.TENSOR, done, Issuer.LEADER),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        target = op.operands[0]
        for cta in ctas(cx):
            blocks = cx.read(op.value, cta=cta).reshape(-1, SCALE_LANES, LANES // SCALE_LANES, SCALES)
            cx.write(target, blocks.transpose(0, 2, 1, 3).reshape(target.type.shape), cta=cta)

    def lower(self, op: Op, cx: LowerContext) -> None:
        to, b = op.operands[0], cx.b
        start = b.op("or.b64", b.op("cvt.u64.u32", b.op("shr.u32", cx.shared_address(op.value), 4)), DESCRIPTOR)
        variable, column = cx.tensor_address(to)
        for block in range(to.type.shape[0] // LANES):
            at = Addr(b.add(variable, column + block * BLOCK_COLUMNS))
            b.emit(f"tcgen05.cp.{cta_group(cx)}.32x128b.warpx4", at, advanced(cx, start, block * BLOCK_BYTES))


def check_scales(op: Op, kind: Kind, a: Factor, n: int) -> None:
    """The scales of a product: of A's 128 rows, and of all of B's n, in each CTA of a pair too. Raises CakeError."""
    for word, rows in (("scale_a", LANES), ("scale_b", n)):
        e = op.words.get(word)
        t: Tile = e.type
        if t.space != "tmem" or t.elem.name != kind.scale:
            raise fail("type/operand", f"'{word}' is a {t}", e.span, why=f"scales are {kind.scale} in tensor memory")
        if t.slots or not _whole(e):
            raise fail(
                "ptx/tcgen05-scales", f"this is no whole slot of '{root(e).id}'", e.span, why="a product takes whole blocks of scales"
            )
        if t.shape != (rows, SCALES):
            raise fail("type/shape", f"'{word}' is {list(t.shape)}, the scales of {rows} rows are {[rows, SCALES]}", e.span)
    if a.depth * a.elem.bytes != kind.block_bytes:
        what = "pairs" if a.elem.kind == "pack" else "elements"
        why = f"a block of scales covers {kind.block_bytes // a.elem.bytes} {what} of K"
        raise fail("ptx/tcgen05-shape", f"K is {a.depth}", op.value.span, why=why)


def _whole(e: Expr) -> bool:
    parts = place_of(e, root(e).type).parts
    return all(p.lo == Int(0) and p.size == d for p, d in zip(parts, root(e).type.shape, strict=True)) and not e.type.slots


def _slots(e: Expr) -> tuple:
    declared: Tile = root(e).type
    return (*place_of(e, declared).slots, *declared.slots)


def _check_place(of: Expr, cx: CheckContext) -> None:
    declared = cx.declaration(root(of).id)
    at, swizzle = (declared.words.get(w) if declared else None for w in ("at", "swizzle"))
    if swizzle is not None or isinstance(at, Int) and at.value % 16:
        raise fail("ptx/tcgen05-align", f"'{root(of).id}' is swizzled, or does not lie at a multiple of 16", of.span, resource=root(of).id)
