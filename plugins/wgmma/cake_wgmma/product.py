"""`wgmma`: the asynchronous matrix product of a warpgroup."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARPGROUP, Access, Effect, InGroup, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Block, Name, Op
from cake_core.ir.places import root
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext
from cake_core.primitive.factors import (
    Factor,
    check_agreement,
    check_described,
    check_spaces,
    check_sums,
    demands,
    factors,
    part,
    product,
    swizzle_of,
)
from cake_core.ptx.builder import Operand as PtxOperand
from cake_core.ptx.builder import Vec
from cake_wgmma.descriptor import descriptor
from cake_wgmma.groups import CAPABILITIES, QUEUE

ELEMENTS = ("bf16", "f16")
BLOCK_M = 64  # rows of one instruction
STEP_K = 16  # depth of one instruction for elements of 16 bits
GRANULE_N, MAX_N = 8, 256
WARPS = 4
LAYOUT = "mma"
#: Registers of 32 bits that a thread holds of one block and K step of A.
A_REGISTERS = 4


@frozen(kw_only=True)
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
        d, a, b = op.operands[0], *factors(op)
        _check_shapes(op, a, b)
        if cx.group != "warpgroup" or cx.warps != WARPS:
            why = (
                "all four warps of a warpgroup execute it" if cx.group != "warpgroup" else "not implemented: a product spread over several warpgroups"
            )
            raise fail(
                "ptx/wgmma-warpgroup",
                f"'wgmma' in a role of {cx.warps} warp{'s' if cx.warps != 1 else ''}",
                op.span,
                why=why,
                fix="let each instance be `1 warpgroup`",
            )
        check_described((a, b), cx, "ptx/wgmma-operand", "ptx/wgmma-align")
        if cx.form is Form.DERIVED:
            for name in [root(d).id, *([a.name] if not a.in_shared else [])]:
                declared = cx.declaration(name)
                if declared is None or declared.words.get("layout") != Name(LAYOUT):
                    raise fail(
                        "ptx/wgmma-layout",
                        f"'{name}' does not lie as 'wgmma' leaves its result",
                        op.span,
                        fix=f"declare it with `layout {LAYOUT}`",
                    )

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return demands(factors(op))

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        a, _ = factors(op)
        return {root(op.operands[0]).id: LAYOUT} | ({a.name: LAYOUT} if not a.in_shared else {})

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (statement("wgmma.fence", at=op.span), op, statement("wgmma.commit", at=op.span))

    def effects(self, op: Op) -> tuple[Effect, ...]:
        group = InGroup(QUEUE)
        reads = tuple(Access(x.expr, Mode.READ, Proxy.GENERIC if not x.in_shared else Proxy.ASYNC, group, Issuer.WARPGROUP) for x in factors(op))
        d = op.operands[0]
        accumulates = (Access(d, Mode.READ, Proxy.GENERIC, group, Issuer.WARPGROUP),) if op.arrow == "+=" else ()
        return (*reads, *accumulates, Access(d, Mode.WRITE, Proxy.GENERIC, group, Issuer.WARPGROUP), OF_WARPGROUP)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        d = op.operands[0]
        found = product(op, cx)
        cx.write(d, found + cx.read(d) if op.arrow == "+=" else found)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (m, n), (a, b) = op.operands[0].type.shape, factors(op)
        registers = cx.registers(op.operands[0])
        held = len(registers) * BLOCK_M // m  # registers of one block; blocks are the slowest index of the layout
        opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{STEP_K}.f32.{a.elem}.{b.elem}"
        transposes = (*(() if not a.in_shared else (int(not a.k_major),)), int(not b.k_major))
        a_at, b_at = _steps(cx, a, BLOCK_M), _steps(cx, b, n)
        for depth in range(0, a.depth, STEP_K):
            b_step = b_at(0, depth)
            for block in range(m // BLOCK_M):
                d = Vec(registers[block * held : (block + 1) * held])
                accumulate = int(op.arrow == "+=" or depth > 0)
                cx.b.emit(opcode, d, a_at(block, depth), b_step, accumulate, 1, 1, *transposes)


def _check_shapes(op: Op, a: Factor, b: Factor) -> None:
    d = op.operands[0].type
    if d.slots or len(d.shape) != 2:
        raise fail("type/shape", f"the result is a {d}", op.operands[0].span, why="a product has two dimensions")
    check_sums(op)
    if a.elem != b.elem or a.elem.name not in ELEMENTS:
        raise fail(
            "type/element",
            f"the factors are {a.elem} and {b.elem}",
            op.value.span,
            why=f"not implemented: factors other than two of {' or two of '.join(ELEMENTS)}",
        )
    m, n = d.shape
    check_agreement(op, a, b, n)
    for what, value, fine, rule in (
        ("M", m, m % BLOCK_M == 0, f"a multiple of {BLOCK_M}"),
        ("N", n, n % GRANULE_N == 0 and n <= MAX_N, f"a multiple of {GRANULE_N} up to {MAX_N}"),
        ("K", a.depth, a.depth % STEP_K == 0, f"a multiple of {STEP_K} for elements of 16 bits"),
    ):
        if not fine:
            raise fail("ptx/wgmma-shape", f"{what} is {value}", op.value.span, why=f"it must be {rule} (PTX ISA, wgmma.mma_async)")
    check_spaces(op, a, b, "frag", "registers")


def _steps(cx: LowerContext, factor: Factor, rows: int):
    """A function from (block of M, start in K) to the operand of one instruction, which takes so many `rows`; what it names is emitted once."""
    if not factor.in_shared:
        registers = cx.registers(factor.expr)
        steps = factor.depth // STEP_K

        def held(block: int, depth: int) -> PtxOperand:
            first = A_REGISTERS * (block * steps + depth // STEP_K)
            return Vec(registers[first : first + A_REGISTERS])

        return held
    swizzle = swizzle_of(cx.declaration(factor.name))
    base, said = descriptor(cx, factor, swizzle)
    return lambda block, depth: part(cx, base, said, factor, (BLOCK_M * block, depth), rows)
