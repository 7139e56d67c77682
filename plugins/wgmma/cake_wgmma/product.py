"""`wgmma`: the asynchronous matrix product of a warpgroup."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import CakeError, fail
from cake_core.effects import Access, Effect, InGroup, Issuer, Mode, Proxy
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Binary, Block, Int, Name, Op
from cake_core.ir.places import root
from cake_core.ir.types import F32
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter
from cake_core.ptx.builder import Operand as PtxOperand
from cake_core.ptx.builder import Vec
from cake_wgmma.descriptor import advanced, descriptor, offset
from cake_wgmma.groups import CAPABILITIES, QUEUE
from cake_wgmma.operand import PATTERN, SWIZZLES, Operand, left, right

ELEMENTS = ("bf16", "f16")
BLOCK_M = 64  # rows of one instruction
STEP_K = 16  # depth of one instruction for elements of 16 bits
GRANULE_N, MAX_N = 8, 256
WARPS = 4
LAYOUT = "mma"
#: Registers of 32 bits that a thread holds of one block and K step of A.
A_REGISTERS = 4


@dataclass(frozen=True, kw_only=True)
class Wgmma(Operation):
    """`wgmma d += a @ b`, or `d = a @ b`, which starts from zero.

    d: f32 [M, N] in registers, M a multiple of 64, N of 8 up to 256. A: `[M, K]` in shared memory or registers, or the `.T` of
    a `[K, M]` in shared memory. B, in shared memory: the `.T` of an `[N, K]`, or a `[K, N]`. K is a multiple of 16; elements
    are bf16 or f16.
    One statement of the schedule form is one group; it derives to its fence, itself and its commit.
    """

    name: str = "wgmma"
    operands: tuple[Parameter, ...] = (Parameter("d", "tile", ("frag",), writable=True),)
    arrows: tuple[str, ...] = ("+=", "=")
    value: Parameter | None = Parameter("product", "product")
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, wgmma.mma_async (.m64nNk16.f32.bf16.bf16, .f32.f16.f16); Asynchronous Warpgroup Level Matrix Shared Memory Layout"

    def check(self, op: Op, cx: CheckContext) -> None:
        d, a, b = op.operands[0], *_factors(op)
        _check_shapes(op, a, b)
        if cx.group != "warpgroup" or cx.warps != WARPS:
            why = (
                "all four warps of a warpgroup execute it"
                if cx.group != "warpgroup"
                else "not implemented: a product spread over several warpgroups"
            )
            raise fail(
                "ptx/wgmma-warpgroup", f"'wgmma' in a role of {cx.warps} warp{'s' if cx.warps != 1 else ''}", op.span, why=why, fix="let each instance be `1 warpgroup`"
            )
        for operand in (a, b):
            if not operand.in_registers:
                _check_shared(operand, cx)
        if cx.form is Form.DERIVED:
            for name in [root(d).id, *([a.name] if a.in_registers else [])]:
                declared = cx.declaration(name)
                if declared is None or declared.words.get("layout") != Name(LAYOUT):
                    raise fail(
                        "ptx/wgmma-layout",
                        f"'{name}' does not lie as 'wgmma' leaves its result",
                        op.span,
                        fix=f"declare it with `layout {LAYOUT}`",
                    )

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        shared = [x for x in _factors(op) if not x.in_registers]
        return tuple(Demand(x.name, fits, PATTERN * max(fits, default=0) or 16) for x in shared for fits in [_fitting(x)])

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        a, _ = _factors(op)
        return {root(op.operands[0]).id: LAYOUT} | ({a.name: LAYOUT} if a.in_registers else {})

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (statement("wgmma.fence", at=op.span), op, statement("wgmma.commit", at=op.span))

    def effects(self, op: Op) -> tuple[Effect, ...]:
        group = InGroup(QUEUE)
        reads = tuple(
            Access(x.expr, Mode.READ, Proxy.GENERIC if x.in_registers else Proxy.ASYNC, group, Issuer.WARPGROUP) for x in _factors(op)
        )
        d = op.operands[0]
        accumulates = (Access(d, Mode.READ, Proxy.GENERIC, group, Issuer.WARPGROUP),) if op.arrow == "+=" else ()
        return (*reads, *accumulates, Access(d, Mode.WRITE, Proxy.GENERIC, group, Issuer.WARPGROUP))

    def lower(self, op: Op, cx: LowerContext) -> None:
        (m, n), (a, b) = op.operands[0].type.shape, _factors(op)
        registers = cx.registers(op.operands[0])
        held = len(registers) * BLOCK_M // m  # registers of one block; blocks are the slowest index of the layout
        opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{STEP_K}.f32.{a.elem}.{b.elem}"
        transposes = (*(() if a.in_registers else (int(not a.k_major),)), int(not b.k_major))
        a_at, b_at = _steps(cx, a), _steps(cx, b)
        for depth in range(0, a.depth, STEP_K):
            b_step = b_at(0, depth)
            for block in range(m // BLOCK_M):
                d = Vec(registers[block * held : (block + 1) * held])
                accumulate = int(op.arrow == "+=" or depth > 0)
                cx.b.emit(opcode, d, a_at(block, depth), b_step, accumulate, 1, 1, *transposes)


def _factors(op: Op) -> tuple[Operand, Operand]:
    product: Binary = op.value
    return left(product.left), right(product.right)


def _check_shapes(op: Op, a: Operand, b: Operand) -> None:
    d = op.operands[0].type
    if d.slots or len(d.shape) != 2:
        raise fail("type/shape", f"the result is a {d}", op.operands[0].span, why="a product has two dimensions")
    if d.elem != F32:
        raise fail(
            "type/element",
            f"the result is {d.elem}",
            op.operands[0].span,
            why="not implemented: products that accumulate in another type than f32",
        )
    if a.elem != b.elem or a.elem.name not in ELEMENTS:
        raise fail(
            "type/element",
            f"the factors are {a.elem} and {b.elem}",
            op.value.span,
            why=f"not implemented: factors other than two of {' or two of '.join(ELEMENTS)}",
        )
    m, n = d.shape
    for what, mine, theirs, whose in (("rows", m, a.extent, a), ("columns", n, b.extent, b), ("depth", a.depth, b.depth, b)):
        if mine != theirs:
            owner = "the left factor" if what == "depth" else "the result"
            raise fail(
                "type/shape",
                f"{what} of {owner} {'is' if what == 'depth' else 'are'} {mine}, of '{whose.name}' {theirs}",
                op.value.span,
                fix="is a `.T` missing, or one too many?" if theirs in (m, n, a.depth) else None,
            )
    for what, value, fine, rule in (
        ("M", m, m % BLOCK_M == 0, f"a multiple of {BLOCK_M}"),
        ("N", n, n % GRANULE_N == 0 and n <= MAX_N, f"a multiple of {GRANULE_N} up to {MAX_N}"),
        ("K", a.depth, a.depth % STEP_K == 0, f"a multiple of {STEP_K} for elements of 16 bits"),
    ):
        if not fine:
            raise fail("ptx/wgmma-shape", f"{what} is {value}", op.value.span, why=f"it must be {rule} (PTX ISA, wgmma.mma_async)")
    for side, operand in (("left", a), ("right", b)):
        allowed = ("shared", "frag") if side == "left" else ("shared",)
        if operand.tile.space not in allowed:
            raise fail(
                "type/operand",
                f"the {side} factor '{operand.name}' lies in '{operand.tile.space}'",
                op.value.span,
                why=f"it is read from {' or '.join(allowed)}",
            )
    if a.in_registers and not a.k_major:
        raise fail("type/transposed", f"'{a.name}' lies in registers and can't be transposed", op.value.span, fix="leave `.T` out")


def _check_shared(operand: Operand, cx: CheckContext) -> None:
    if cx.form is Form.SCHEDULE:
        if not _fitting(operand):
            raise _unreachable(operand, operand.why_not(SWIZZLES[-1]))
        return
    declared = cx.declaration(operand.name)
    swizzle = _width(declared)
    if reason := operand.why_not(swizzle):
        raise _unreachable(operand, reason)
    at = declared.words.get("at")
    if isinstance(at, Int) and at.value % (PATTERN * swizzle):
        raise fail(
            "ptx/wgmma-align", f"'{operand.name}' lies at {at.value}, not a multiple of {PATTERN * swizzle}", at.span, resource=operand.name
        )


def _unreachable(operand: Operand, why: str | None) -> CakeError:
    return fail(
        "ptx/wgmma-operand",
        f"no matrix descriptor reaches this tile of '{operand.name}'",
        operand.expr.span,
        why=why,
        resource=operand.name,
    )


def _fitting(operand: Operand) -> tuple[int, ...]:
    return tuple(s for s in SWIZZLES if operand.why_not(s) is None)


def _width(declared) -> int:
    value = declared.words.get("swizzle") if declared else None
    return value.value if isinstance(value, Int) else 0


def _steps(cx: LowerContext, operand: Operand):
    """A function from (block of M, start in K) to the operand of one instruction; what it names is emitted once."""
    if operand.in_registers:
        registers = cx.registers(operand.expr)
        steps = operand.depth // STEP_K

        def held(block: int, depth: int) -> PtxOperand:
            first = A_REGISTERS * (block * steps + depth // STEP_K)
            return Vec(registers[first : first + A_REGISTERS])

        return held
    swizzle = _width(cx.declaration(operand.name))
    base = descriptor(cx, operand, swizzle)
    return lambda block, depth: advanced(cx, base, offset(cx, operand, swizzle, BLOCK_M * block, depth))
