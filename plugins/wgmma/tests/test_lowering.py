"""The instructions of a product, each text assembled without advisories, and what its descriptors say."""

from __future__ import annotations

from math import prod

import pytest
from cake_core.ir.build import op
from cake_core.ir.types import BF16, F16
from cake_wgmma.groups import Commit, RegisterFence, Wait
from cake_wgmma.product import Wgmma


def text(instructions) -> list[str]:
    return [str(i) for i in instructions]


def test_a_product_over_64_columns(lowered, ir):
    """The GEMM's statement: three instructions a descriptor, one addition a K step and operand."""
    a = ir.at(ir.at(ir.shared("a", (4,), (128, 64)), "s"), ir.part(ir.multiple("r", 64), 64), ir.ALL)
    b = ir.T(ir.at(ir.shared("b", (4,), (8, 64)), "s"))
    assert text(lowered(Wgmma(), ir.wgmma(ir.frag("acc", 64, 8), a, b), swizzles={"a": 128, "b": 128})) == [
        "shr.u32 %r1, %r0, 4;",
        "cvt.u64.u32 %d0, %r1;",
        f"or.b64 %d1, %d0, {1 << 62 | 64 << 32 | 1 << 16};",
        "shr.u32 %r3, %r2, 4;",
        "cvt.u64.u32 %d2, %r3;",
        f"or.b64 %d3, %d2, {1 << 62 | 64 << 32 | 1 << 16};",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d1, %d3, 1, 1, 1, 0, 0;",
        "add.s64 %d4, %d3, 2;",
        "add.s64 %d5, %d1, 2;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d5, %d4, 1, 1, 1, 0, 0;",
        "add.s64 %d6, %d3, 4;",
        "add.s64 %d7, %d1, 4;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d7, %d6, 1, 1, 1, 0, 0;",
        "add.s64 %d8, %d3, 6;",
        "add.s64 %d9, %d1, 6;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d9, %d8, 1, 1, 1, 0, 0;",
    ]


def test_a_part_may_start_at_a_step_inside_of_a_panel(lowered, ir):
    """Two steps of four: the address of the panel, and 32 bytes; under the swizzle nothing else changes."""
    a, b = (ir.at(ir.shared(name, (rows, 64)), ir.ALL, ir.part(16, 32)) for name, rows in (("a", 64), ("b", 8)))
    lines = text(lowered(Wgmma(), ir.wgmma(ir.frag("acc", 64, 8), a, ir.T(b)), swizzles={"a": 128, "b": 128}))
    assert lines[:3] == ["add.s32 %r1, %r0, 32;", "shr.u32 %r2, %r1, 4;", "cvt.u64.u32 %d0, %r2;"]
    assert sum(line.startswith("wgmma.mma_async") for line in lines) == 2


def test_an_assignment_starts_from_zero_in_its_first_step_only(lowered, ir):
    a, b = ir.shared("a", (64, 64)), ir.T(ir.shared("b", (8, 64)))
    out = lowered(Wgmma(), ir.wgmma(ir.frag("s", 64, 8), a, b, "="), swizzles={"a": 128, "b": 128})
    assert [i.operands[3] for i in products(out)] == [0, 1, 1, 1]


@pytest.mark.parametrize("n", [8, 96, 256])
@pytest.mark.parametrize("elem", [BF16, F16], ids=str)
def test_widths_and_types(lowered, ir, n, elem):
    a, b = ir.shared("a", (64, 64), elem=elem), ir.T(ir.shared("b", (n, 64), elem=elem))
    out = products(lowered(Wgmma(), ir.wgmma(ir.frag("acc", 64, n), a, b), swizzles={"a": 128, "b": 128}))
    assert {i.opcode for i in out} == {f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{elem}.{elem}"}
    assert {len(i.operands[0].items) for i in out} == {n // 2}


def test_rows_beyond_64_are_blocks_of_the_layout(lowered, ir):
    a, b = ir.shared("a", (128, 32)), ir.T(ir.shared("b", (16, 32)))
    out = products(lowered(Wgmma(), ir.wgmma(ir.frag("acc", 128, 16), a, b), swizzles={"a": 64, "b": 64}))
    assert [str(i.operands[0].items[0]) for i in out] == ["%f0", "%f8"] * 2


def test_left_factor_in_registers(lowered, ir):
    """Register r of A is the packed pair (2r, 2r + 1) of the accumulator's layout; one transpose bit is left, B's."""
    p, v = ir.frag("p", 64, 32, elem=BF16), ir.shared("v", (32, 16))
    out = products(lowered(Wgmma(), ir.wgmma(ir.frag("o", 64, 16), p, v), swizzles={"v": 32}))
    assert [str(i.operands[1]) for i in out] == ["{%r0, %r1, %r2, %r3}", "{%r4, %r5, %r6, %r7}"]
    assert {i.operands[3:] for i in out} == {(1, 1, 1, 1)}


@pytest.mark.parametrize("swizzle", [128, 64, 32])
@pytest.mark.parametrize(
    ("shape", "extent", "depth", "turned"),
    [
        ((64, 64), 64, 64, False),  # A, K-major: one panel or several
        ((64, 192), 64, 192, False),
        ((192, 64), 64, 192, True),  # A, MN-major
        ((32, 128), 128, 32, True),  # two blocks of rows
    ],
)
def test_the_descriptors_of_a_reach_every_element(lowered, ir, shape, extent, depth, turned, swizzle):
    a = ir.shared("a", shape)
    b = ir.T(ir.shared("b", (8, depth)))
    product = ir.wgmma(ir.frag("acc", extent, 8), ir.T(a) if turned else a, b)
    out = lowered(Wgmma(), product, swizzles={"a": swizzle, "b": 32})
    values = evaluate(out, {"%r0": 0x4000})
    steps = [values[str(i.operands[1])] for i in products(out)]
    for number, (step, block) in enumerate((k, m) for k in range(0, depth, 16) for m in range(0, extent, 64)):
        reach(steps[number], shape, swizzle, block, 64, step, major_k=not turned)
    assert {i.operands[-2:] for i in products(out)} == {(int(turned), 0)}


@pytest.mark.parametrize("swizzle", [128, 64, 32])
@pytest.mark.parametrize(
    ("shape", "n", "depth", "turned"),
    [((136, 64), 136, 64, True), ((16, 192), 16, 192, True), ((48, 128), 128, 48, False), ((16, 256), 200, 16, False)],
)
def test_the_descriptors_of_b_reach_every_element(lowered, ir, shape, n, depth, turned, swizzle):
    b = ir.shared("b", shape)
    used = b if turned or n == shape[1] else ir.at(b, ir.ALL, ir.part(0, n))
    product = ir.wgmma(ir.frag("acc", 64, n), ir.shared("a", (64, depth)), ir.T(b) if turned else used)
    out = lowered(Wgmma(), product, swizzles={"a": 32, "b": swizzle})
    values = evaluate(out, {"%r2": 0x8000, "%r0": 0})
    for number, step in enumerate(range(0, depth, 16)):
        reach(values[str(products(out)[number].operands[2])], shape, swizzle, 0, n, step, major_k=turned, base=0x8000)
    assert {i.operands[-2:] for i in products(out)} == {(0, int(not turned))}


@pytest.mark.parametrize(
    ("primitive", "statement", "line"),
    [
        (RegisterFence(), op("wgmma.fence"), "wgmma.fence.sync.aligned;"),
        (Commit(), op("wgmma.commit"), "wgmma.commit_group.sync.aligned;"),
        (Wait(), op("wgmma.wait", 1), "wgmma.wait_group.sync.aligned 1;"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_groups(lowered, primitive, statement, line):
    assert text(lowered(primitive, statement)) == [line]


def products(instructions):
    return [i for i in instructions if i.opcode.startswith("wgmma.mma_async")]


def evaluate(instructions, registers: dict[str, int]) -> dict[str, int]:
    """The values of the address arithmetic for given addresses."""
    run = {"shr.u32": lambda a, b: a >> b, "cvt.u64.u32": lambda a: a, "or.b64": lambda a, b: a | b, "add.s64": lambda a, b: a + b}
    values = dict(registers)
    for i in instructions:
        if i.opcode in run:
            values[str(i.operands[0])] = run[i.opcode](*(x if isinstance(x, int) else values.get(str(x), 0) for x in i.operands[1:]))
    return values


def reach(descriptor: int, shape, swizzle: int, start: int, extent: int, step: int, major_k: bool, base: int = 0x4000) -> None:
    """The descriptor's address of every element of one K step is where the buffer holds it.

    Hardware's side: PTX ISA, Strides; a swizzle permutes absolute addresses, alike on both sides, so it is left out.
    """
    field = lambda bit, width: descriptor >> bit & (1 << width) - 1  # noqa: E731
    first, leading, stride = field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4
    assert {1: 128, 2: 64, 3: 32}[field(62, 2)] == swizzle and field(49, 3) == 0 and field(46, 3) == 0
    columns, rows = swizzle // 2, prod(shape[:-1])
    for e in range(extent):
        for k in range(16):
            if major_k:
                hardware = first + e // 8 * stride + e % 8 * swizzle + 2 * k
                row, column = start + e, step + k
            else:
                hardware = first + e // columns * leading + k // 8 * stride + k % 8 * swizzle + e % columns * 2
                row, column = step + k, start + e
            assert hardware == base + column // columns * rows * swizzle + row * swizzle + column % columns * 2
