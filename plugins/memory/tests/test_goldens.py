"""The instructions of each form, as text."""

from __future__ import annotations

import re

TEXT = """cake 1 derived
kernel k(R: i32, C: i32, X: in bf16[R, C], Y: inout bf16[R, C])
  require 1 <= R, R <= 4096, 1 <= C, C <= 8192, C % 8 == 0
  target sm90
{{
  launch 1
  shared d: bf16[64, 32] at 0 swizzle 64, part: f32[2][4] at 4096
  role main: 4 warps at 0 {{
    frag x: bf16[1024] vec 8 layout vector, m: f32[64, 32] layout mma
    {statement}
  }}
}}
"""


def numbered(lines):
    """The same text with registers numbered as they first appear: numbers are no part of what is tested."""
    names = {}
    return [re.sub(r"%([rfdp])\d+", lambda m: names.setdefault(m[0], f"%{m[1]}{len(names)}"), line) for line in lines]


def body(ptx, start):
    lines = [line.strip() for line in ptx.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith(start))
    return numbered(lines[first : lines.index("bra $exit_0;")])


def test_stmatrix(ptx_of):
    assert body(ptx_of(TEXT.format(statement="store d <- bf16(m) by stmatrix")), "cvt.rn.bf16x2") == numbered(
        [
            *(f"cvt.rn.bf16x2.f32 %r{12 + i}, %f{2 * i + 1}, %f{2 * i};" for i in range(8)),
            "shl.b32 %r20, %r1, 4;",
            "and.b32 %r21, %r2, 15;",
            "add.s32 %r22, %r20, %r21;",
            "shr.u32 %r23, %r2, 4;",
            "shr.u32 %r24, %r2, 1;",
            "and.b32 %r25, %r24, 3;",
            "xor.b32 %r26, %r25, %r23;",
            "shl.b32 %r27, %r22, 6;",
            "shl.b32 %r28, %r26, 4;",
            "add.s32 %r29, %r27, %r28;",
            "add.s32 %r30, %r5, %r29;",
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r30], {%r12, %r13, %r14, %r15};",
            "xor.b32 %r31, %r30, 32;",
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r31], {%r16, %r17, %r18, %r19};",
        ]
    )


def test_a_row_in_and_out(ptx_of):
    ptx = ptx_of(TEXT.format(statement="x = load(X[R - 1, 0 +: 1024], by = 16); store Y[R - 1, 0 +: 1024] <- x by 16"))
    loads, stores = ([line.strip() for line in ptx.splitlines() if opcode in line] for opcode in ("ld.global", "st.global"))
    assert len(loads) == len(stores) == 1
    assert loads[0].split(" ", 1)[1].startswith("ld.global.nc.v4.b32 {")
    assert stores[0].split(" ", 1)[1].startswith("st.global.v4.b32 [")
    assert "setp.lt.u32" in ptx and "mul.wide.s32" in ptx


def test_only_inputs_are_read_without_coherence(ptx_of):
    ptx = ptx_of(TEXT.format(statement="x = load(Y[0, 0 +: 1024], by = 16)"))
    assert "ld.global.v4.b32" in ptx and "ld.global.nc" not in ptx


def test_scalars_go_by_their_leader(ptx_of):
    ptx = ptx_of(TEXT.format(statement="store part[0][warp] <- f32(R) by 4; store part[1][0] <- 1 by 4"))
    guards = [line.split()[0] for line in ptx.splitlines() if "st.shared" in line]
    lane = re.search(r"elect\.sync _\|(%p\d+), -1;", ptx)[1]
    first = re.search(rf"and\.pred (%p\d+), %p\d+, {lane};", ptx)[1]
    assert guards == [f"@{lane}", f"@{first}"]
    assert "mov.f32" in ptx and "0f3F800000" in ptx  # an integer literal is a float where one is stored
