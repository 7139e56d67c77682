"""`tcgen05.mma`: a product of the tensor engine, accumulated in tensor memory."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.effects import Access, ByCommit, Effect, Issuer, Mode, Proxy
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Int, Name, Op, Unary
from cake_core.ir.places import place_of, root
from cake_core.primitive import CheckContext, Demand, DeriveContext, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.primitive.factors import (
    Factor,
    check_agreement,
    check_described,
    check_spaces,
    check_sums,
    demands,
    factors,
    part,
    swizzle_of,
)
from cake_core.primitive.signals import handed
from cake_core.ptx.builder import Addr
from cake_core.ptx.builder import Operand as PtxOperand
from cake_tcgen05.descriptor import descriptor
from cake_tcgen05.engine import CAPABILITIES, COMMIT, LANES, cta_group
from cake_tcgen05.instruction import KINDS, STEP_BYTES, Kind, instruction_descriptor, kind_of
from cake_tcgen05.scales import check_scales
from cake_tcgen05.simulated import products

MOST_N = 256
#: N in steps that every kind takes at M = 128, and at M = 256 in a pair (PTX ISA, tcgen05.mma, table of shapes; CUTLASS,
#: cute/arch/mma_sm100_umma.hpp, whose assertions are narrower than the table in places; what both admit is admitted here).
STEP_N = {False: 16, True: 32}
#: At M = 64; rows of B along N of 8-bit elements need 16 (the same tables).
STEP_N_64 = 8
SCALE_WORDS = ("scale_a", "scale_b")
COLUMN_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Mma(Operation):
    """`tcgen05.mma d += a @ b [init c]`, or `d = a @ b`, which starts from zero; `init c` does so where the condition c holds.

    d: f32 [M, N] in tensor memory, M = 128 and N of 16 up to 256, or M = 64 and N of 8. A: `[M, K]` in shared or tensor memory, or the
    `.T` of a `[K, M]` in shared memory. B, in shared memory: the `.T` of an `[N, K]`, or a `[K, N]`. K is a multiple of 32 bytes.
    Elements are two of bf16, two of f16, or of e4m3 and e5m2 in any mixture; two of f32 with `kind tf32`, which takes 19 bits of each.

    With `scale_a x scale_b y` every 32 elements of a row along K, e4m3 or e5m2, are multiplied by their scale, ue8m0; or two of e2m1x2,
    pairs of 4 bits, 32 numbers by a ue8m0 or 16 by an e4m3. K is then what a block of scales is for (128 numbers, or 64) and N a
    multiple of 128.

    In a pair each CTA holds 128 rows of A and of d, and half of the N columns of B; the role `on pair[0]` issues the
    product for both.
    """

    name: str = "tcgen05.mma"
    operands: tuple[Parameter, ...] = (Parameter("d", "tile", ("tmem",), writable=True),)
    arrows: tuple[str, ...] = ("+=", "=")
    value: Parameter | None = Parameter("product", "product")
    words: tuple[WordSpec, ...] = (
        WordSpec("init", "condition", help="where it holds the product starts from zero"),
        WordSpec("kind", "name", help="`tf32`: f32 elements are taken as tf32"),
        WordSpec("scale_a", "tile", help="block scales of A in tensor memory: [128, 4]"),
        WordSpec("scale_b", "tile", help="block scales of B in tensor memory: [N, 4]"),
    )
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = (
        "PTX ISA, tcgen05.mma (.kind::f16, .kind::tf32, .kind::f8f6f4, .kind::mxf8f6f4.block_scale.scale_vec::1X, "
        ".kind::mxf4.block_scale.scale_vec::2X, .kind::mxf4nvf4.block_scale.scale_vec::4X); "
        "Instruction Descriptor; Shared Memory Descriptor"
    )

    def check(self, op: Op, cx: CheckContext) -> None:
        a, b = factors(op)
        _check_memory(op, a, b)
        _check_kind(op, a, b)
        _check_shapes(op, a, b, cx)
        if _scaled(op):
            check_scales(op, kind_of(a.elem.name, b.elem.name, _scale(op)), a, op.operands[0].type.shape[1])
        if op.arrow == "=" and op.words.get("init") is not None:
            raise fail(
                "type/word",
                "'init' on a product that starts from zero anyway",
                op.words.get("init").span,
                fix="write `+=`, or leave `init` out",
            )
        if cx.pair and cx.on is None:
            raise fail(
                "ptx/tcgen05-pair",
                "both CTAs of the pair would issue the product",
                op.span,
                why="one CTA issues it for both, and a kernel has one kind of product (PTX ISA, tcgen05, CTA pair)",
                fix="write `on pair[0]` on the role",
            )
        check_described((a, b), cx, "ptx/tcgen05-operand", "ptx/tcgen05-align")

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return demands(factors(op))

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        d = op.operands[0]
        name = root(d).id
        why = "the engine arrives at the full barrier of a pipeline slot that this role has acquired"
        fix = f"put '{name}' into a pipeline of this role, and multiply between `acquire` and `commit`"
        handed(op, d, cx, f"the product in '{name}' is complete", fix, why)
        return (by_leader(op),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        d, done = op.operands[0], ByCommit(COMMIT)
        reads = tuple(Access(x.expr, Mode.READ, Proxy.ASYNC if x.in_shared else Proxy.TENSOR, done, Issuer.LEADER) for x in factors(op))
        scales = tuple(Access(e, Mode.READ, Proxy.TENSOR, done, Issuer.LEADER) for w in SCALE_WORDS if (e := op.words.get(w)) is not None)
        init = op.words.get("init")
        onto = None if init is None else Unary("not", init, span=init.span, type=init.type)
        accumulates = (Access(d, Mode.READ, Proxy.TENSOR, done, Issuer.LEADER, when=onto),) if op.arrow == "+=" else ()
        return (*reads, *scales, *accumulates, Access(d, Mode.WRITE, Proxy.TENSOR, done, Issuer.LEADER))

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        d = op.operands[0]
        init = op.words.get("init")
        fresh = op.arrow == "=" or init is not None and bool(cx.value(init))
        for cta, found in products(op, cx):
            cx.write(d, found if fresh else found + cx.read(d, cta=cta), cta=cta)

    def lower(self, op: Op, cx: LowerContext) -> None:
        b, (a_side, b_side) = cx.b, factors(op)
        kind, n = kind_of(a_side.elem.name, b_side.elem.name, _scale(op)), op.operands[0].type.shape[1]
        rows = op.operands[0].type.shape[0] * (2 if cx.pair else 1)
        turned = not a_side.k_major, not b_side.k_major
        opcode = f"tcgen05.mma.{cta_group(cx)}.{kind.opcode}"
        accumulate = _accumulates(op, cx)
        scales = tuple(Addr(b.add(*cx.tensor_address(op.words.get(w)))) for w in SCALE_WORDS) if kind.scale else ()
        d = Addr(b.add(*cx.tensor_address(op.operands[0])))
        a_at, b_at = _steps(cx, a_side), _steps(cx, b_side)
        step = STEP_BYTES // a_side.elem.bytes
        for number, depth in enumerate(range(0, a_side.depth, step)):
            described = instruction_descriptor(kind, a_side.elem.name, b_side.elem.name, rows, n, *turned, first=number * kind.per_step)
            b.emit(opcode, d, a_at(depth), b_at(depth), described, *scales, accumulate if depth == 0 else 1)


def _scaled(op: Op) -> bool:
    return any(op.words.get(w) is not None for w in SCALE_WORDS)


def _scale(op: Op) -> str | None:
    """Element type of the block scales."""
    return next((e.type.elem.name for w in SCALE_WORDS if (e := op.words.get(w)) is not None), None)


def _accumulates(op: Op, cx: LowerContext) -> PtxOperand:
    """Whether the first step adds to D: the operand `enable-input-d`, a predicate or a number."""
    if op.arrow == "=":
        return 0
    starts = op.words.get("init")
    fresh = False if starts is None else cx.predicate(starts)
    return int(not fresh) if isinstance(fresh, bool) else cx.b.op("not.pred", fresh)


def _steps(cx: LowerContext, factor: Factor):
    """A function from the start in K to the operand of one instruction; what it names is emitted once."""
    if not factor.in_shared:
        variable, column = cx.tensor_address(factor.expr)
        # one instruction reads 32 bytes of each row: 8 columns
        return lambda depth: Addr(cx.b.add(variable, column + depth * factor.elem.bytes // COLUMN_BYTES))
    swizzle = swizzle_of(cx.declaration(factor.name))
    base, said = descriptor(cx, factor, swizzle)
    return lambda depth: part(cx, base, said, factor, (0, depth), factor.extent)


# --- checks --------------------------------------------------------------------------------------------------------


def _check_memory(op: Op, a: Factor, b: Factor) -> None:
    d = op.operands[0]
    if d.type.slots:
        raise fail("type/slot", f"'{root(d).id}' needs an index for its slot", d.span)
    declared = root(d).type
    rows = place_of(d, declared).parts[0]
    if rows.lo != Int(0) or rows.size != declared.shape[0]:
        raise fail(
            "ptx/tcgen05-rows",
            f"this part of '{root(d).id}' is not all of its {declared.shape[0]} rows",
            d.span,
            why="a product fills all rows of a buffer, 128 or 64",
        )
    check_spaces(op, a, b, "tmem", "tensor memory")


def _check_kind(op: Op, a: Factor, b: Factor) -> None:
    check_sums(op)
    if _scaled(op) and any(op.words.get(w) is None for w in SCALE_WORDS):
        raise fail("type/missing-word", "one factor has scales and the other has none", op.span, fix="give both: `scale_a x scale_b y`")
    kind = kind_of(a.elem.name, b.elem.name, _scale(op))
    if kind is None:
        known = "; ".join(
            (" and ".join(k.types) + " in any mixture" if k.mixes else ", ".join(f"two of {t}" for t in k.types))
            + (f" with scales of {k.scale}" if k.scale else "")
            for k in KINDS
            if (k.scale is not None) == _scaled(op)
        )
        raise fail("type/element", f"the factors are {a.elem} and {b.elem}", op.value.span, why=f"not implemented: factors other than {known}")
    _check_word(op, kind)
    for operand in (a, b):
        if not operand.k_major and not kind.mn_major:
            raise fail(
                "ptx/tcgen05-operand",
                f"'{operand.name}' lies M- or N-major",
                operand.expr.span,
                resource=operand.name,
                why="not implemented: factors of 32-bit and 4-bit elements whose rows are not along K",
            )


def _check_word(op: Op, kind: Kind) -> None:
    word = op.words.get("kind")
    named = word.id if isinstance(word, Name) else None
    if word is None and kind.word:
        types = " and ".join(kind.types)
        raise fail(
            "ptx/tcgen05-kind",
            f"the engine takes {types} factors as {kind.name}",
            op.value.span,
            why="it reads the upper 19 bits of each element",
            fix=f"write `kind {kind.name}` to say so",
        )
    if word is not None and (named != kind.name or not kind.word):
        asking = [k.name for k in KINDS if k.word]
        raise fail(
            "ptx/tcgen05-kind",
            f"these factors have no product of kind '{named}'",
            word.span,
            why=f"`kind` is written for {', '.join(asking)} alone",
            fix="leave it out",
        )


def _check_shapes(op: Op, a: Factor, b: Factor, cx: CheckContext) -> None:
    n = op.operands[0].type.shape[1]
    halves = "each CTA of a pair holds half of B's columns" if cx.pair else None
    check_agreement(op, a, b, n // 2 if cx.pair else n, " in each CTA of the pair" if cx.pair else "", halves)
    m = op.operands[0].type.shape[0]
    step, depth = LANES if _scaled(op) else STEP_N[cx.pair], STEP_BYTES // a.elem.bytes
    if m < LANES and (a.elem.bytes > 1 or b.k_major):
        step = STEP_N_64
    for what, value, fine, rule in (
        ("M", m, m == LANES or not (cx.pair or _scaled(op)), f"{LANES}, " + ("in each CTA of a pair" if cx.pair else "with block scales")),
        (
            "N",
            n,
            n % step == 0 and n <= MOST_N,
            f"a multiple of {step} up to {MOST_N}" + (" with block scales" if _scaled(op) else " in a pair" if cx.pair else ""),
        ),
        ("K", a.depth, a.depth % depth == 0, f"a multiple of {depth} for elements of {a.elem.bits} bits"),
    ):
        if not fine:
            raise fail("ptx/tcgen05-shape", f"{what} is {value}", op.value.span, why=f"it must be {rule} (PTX ISA, tcgen05.mma)")
