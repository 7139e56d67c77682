"""Moves between shared memory and registers or global memory (PTX ISA, ldmatrix, stmatrix, movmatrix, ld, st, cp.async, prefetch apart).

Shared memory is filled from A; what an instruction reads, or what it leaves there, goes to D, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry

SIZE = 4096


def cases() -> Iterator[Case]:
    for trans in ("", ".trans"):
        for count in (1, 2, 4):
            yield ldmatrix(count, trans)
            yield stmatrix(count, trans)
    yield movmatrix()
    yield given()
    for space in ("shared", "global"):
        for bits, width in (("b8", 1), ("b16", 1), ("b32", 1), ("b64", 1), ("b16", 2), ("b32", 2), ("b64", 2), ("b8", 4), ("b16", 4), ("b32", 4)):
            yield moved(space, bits, width)
            if space == "global":
                yield moved(space, bits, width, ".nc")
        for kind in ("s8", "u8", "s16"):
            yield extended(space, kind)
    for size, cache in ((4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")):
        yield copied(size, cache, None)
        for source in (0, size // 4, size // 2, size):
            yield copied(size, cache, source)
        yield copied(size, cache, "ignored")
    # Not with L2::cache_hint: what ptxas before 13.4 makes of it is an illegal instruction (triton-lang/triton, pull requests 11660 and 11848; H200).
    for word in ("L2::64B", "L2::128B", "L2::256B"):
        yield copied(16, f"cg.{word}", None)
        yield copied(8, f"ca.{word}", 4)
    yield copied(16, "cg", "%size")
    yield copied(4, "ca", "%size")
    for size, cache in ((4, "ca"), (16, "cg")):
        yield copied(size, cache, None, "@%odd ")
        yield copied(size, cache, "%size", "@!%odd ")
    yield groups()


def pattern() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, SIZE, np.uint8)


HEAD = f".shared .align 128 .b8 buffer[{SIZE}];"
#: 32 lanes copy the buffer in or out by words; %s: its address, %l: the lane.
FILL = f"""
.reg .u32 %l, %s, %t, %k; .reg .u64 %g, %w; .reg .b32 %v; .reg .pred %more;
mov.u32 %l, %tid.x; mov.u32 %s, buffer; mov.u32 %k, %l;
FILL: mul.wide.u32 %w, %k, 4; add.u64 %g, %A, %w; ld.global.b32 %v, [%g]; mad.lo.u32 %t, %k, 4, %s; st.shared.b32 [%t], %v;
add.u32 %k, %k, 32; setp.lt.u32 %more, %k, {SIZE // 4}; @%more bra FILL; bar.warp.sync 0xffffffff;"""
DRAIN = f"""
bar.warp.sync 0xffffffff; mov.u32 %k, %l;
DRAIN: mad.lo.u32 %t, %k, 4, %s; ld.shared.b32 %v, [%t]; mul.wide.u32 %w, %k, 4; add.u64 %g, %D, %w; st.global.b32 [%g], %v;
add.u32 %k, %k, 32; setp.lt.u32 %more, %k, {SIZE // 4}; @%more bra DRAIN;"""


def _rows() -> np.ndarray:
    """An address in the buffer for each lane: rows of 16 bytes, in no order."""
    return (np.random.default_rng(9).permutation(SIZE // 16)[:32] * 16).astype(np.uint32)


OWN = "mul.wide.u32 %w, %l, 4; add.u64 %g, %P, %w; ld.global.u32 %t, [%g]; add.u32 %t, %t, %s;"


def _registers(count: int) -> str:
    return "{" + ", ".join(f"%r{n}" for n in range(count)) + "}"


def ldmatrix(count: int, trans: str) -> Case:
    out = "".join(f"st.global.b32 [%g+{128 * n}], %r{n};" for n in range(count))
    body = f"{HEAD}{FILL} .reg .b32 %r<4>; {OWN} ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {_registers(count)}, [%t];"
    body += f"mul.wide.u32 %w, %l, 4; add.u64 %g, %D, %w; {out}"
    params = {"A": pattern(), "P": _rows(), "D": np.zeros(32 * count, np.uint32)}
    return Case("ldmatrix", f"ldmatrix.x{count}{trans}", entry("A P D", body), params, {"D": Exact()})


def stmatrix(count: int, trans: str) -> Case:
    load = "".join(f"ld.global.b32 %r{n}, [%g+{128 * n}];" for n in range(count))
    body = f"{HEAD}{FILL} .reg .b32 %r<4>; mul.wide.u32 %w, %l, 4; add.u64 %g, %R, %w; {load} {OWN}"
    body += f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%t], {_registers(count)}; {DRAIN}"
    registers = np.random.default_rng(count).integers(0, 2**32, 128, np.uint32)
    params = {"A": pattern(), "P": _rows(), "R": registers, "D": np.zeros(SIZE, np.uint8)}
    return Case("ldmatrix", f"stmatrix.x{count}{trans}", entry("A P R D", body), params, {"D": Exact()})


def movmatrix() -> Case:
    body = """.reg .u32 %l; .reg .u64 %g, %w; .reg .b32 %r<2>; mov.u32 %l, %tid.x; mul.wide.u32 %w, %l, 4; add.u64 %g, %A, %w; ld.global.b32 %r0, [%g];
movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0; add.u64 %g, %D, %w; st.global.b32 [%g], %r1;"""
    params = {"A": np.random.default_rng(1).integers(0, 2**32, 32, np.uint32), "D": np.zeros(32, np.uint32)}
    return Case("ldmatrix", "movmatrix.trans", entry("A D", body), params, {"D": Exact()})


def moved(space: str, bits: str, width: int, cached: str = "") -> Case:
    """A vector from one place of the space to another."""
    size, register = int(bits[1:]) // 8 * width, "b16" if bits == "b8" else bits
    names = ", ".join(f"%x{n}" for n in range(width))
    names, vector = (f"{{{names}}}", f".v{width}") if width > 1 else (names, "")
    mine = f"mad.lo.u32 %t, %l, {size}, %s;" if space == "shared" else f"mul.wide.u32 %w, %l, {size}; add.u64 %g, %A, %w;"
    at = "%t" if space == "shared" else "%g"
    there = f"[{at}+{32 * size}]"
    body = f"{HEAD}{FILL} .reg .{register} %x<4>; {mine} ld.{space}{cached}{vector}.{bits} {names}, [{at}];"
    if space == "shared":
        body += f"bar.warp.sync 0xffffffff; st.shared{vector}.{bits} {there}, {names}; {DRAIN}"
    else:
        body += f"add.u64 %g, %D, %w; cvta.to.global.u64 %g, %g; st.global{vector}.{bits} {there}, {names};"
    params = {"A": pattern(), "D": np.zeros(SIZE, np.uint8)}
    return Case("memory", f"ld{cached} st {space}{vector}.{bits}", entry("A D", body), params, {"D": Exact()})


def given() -> Case:
    """Parameters of every size."""
    params = {"n": np.uint16(0xBEEF), "m": np.uint32(0xDEADBEEF), "o": np.uint64(0x0123456789ABCDEF), "x": np.float32(-1.5), "y": np.float64(2.5)}
    body = "st.global.b16 [%D], %n; st.global.b32 [%D+8], %m; st.global.b64 [%D+16], %o; st.global.b32 [%D+24], %x; st.global.b64 [%D+32], %y;"
    text = entry("D n:b16 m:b32 o:b64 x:f32 y:f64", body)
    return Case("memory", "ld.param", text, {"D": np.zeros(64, np.uint8), **params}, {"D": Exact()}, 1)


def extended(space: str, kind: str) -> Case:
    """A narrow load into a wider register, by the type's sign."""
    size = int(kind[1:]) // 8
    at = f"mad.lo.u32 %t, %l, {size}, %s;" if space == "shared" else f"mul.wide.u32 %w, %l, {size}; add.u64 %g, %A, %w;"
    body = f"{HEAD}{FILL} .reg .{kind[0]}32 %x; .reg .{kind[0]}64 %y; {at} ld.{space}.{kind} %x, [{'%t' if space == 'shared' else '%g'}];"
    body += f"ld.{space}.{kind} %y, [{'%t' if space == 'shared' else '%g'}];"
    body += "mul.wide.u32 %w, %l, 4; add.u64 %g, %D, %w; st.global.b32 [%g], %x; mul.wide.u32 %w, %l, 8; add.u64 %g, %E, %w; st.global.b64 [%g], %y;"
    params = {"A": pattern(), "D": np.zeros(32, np.uint32), "E": np.zeros(32, np.uint64)}
    return Case("memory", f"ld.{space}.{kind} into wider", entry("A D E", body), params, {"D": Exact(), "E": Exact()})


def copied(size: int, cache: str, source: int | str | None, guard: str = "") -> Case:
    """cp.async of each lane, whole, with fewer bytes of the source, or with the source ignored: what is missing becomes zero."""
    at = f"mul.lo.u32 %t, %l, {size}; cvt.u64.u32 %w, %t; add.u64 %g, %B, %w; add.u32 %t, %t, %s;"
    more = "" if source is None else ", %odd" if source == "ignored" else f", {source}"
    before = ".reg .pred %odd; and.b32 %k, %l, 1; setp.eq.u32 %odd, %k, 1;"
    if source == "%size":
        before += f".reg .u32 %size; rem.u32 %size, %l, {size + 1};"
    name, _, hint = cache.partition(".")
    word = f"cp.async.{name}.shared.global{f'.{hint}' if hint else ''}"
    body = f"{HEAD}{FILL} {at} {before} {guard}{word} [%t+64], [%g], {size}{more}; cp.async.commit_group; cp.async.wait_group 0; {DRAIN}"
    params = {"A": pattern(), "B": pattern()[::-1].copy(), "D": np.zeros(SIZE, np.uint8)}
    form = f"cp.async.{cache} {size}{'' if source is None else f' of {source}'}{' of some lanes' if guard else ''}"
    return Case("cp.async", form, entry("A B D", body), params, {"D": Exact()})


def groups() -> Case:
    """Groups in order: of three that were committed two are waited for, then all."""
    at = "mul.lo.u32 %t, %l, 16; cvt.u64.u32 %w, %t; add.u64 %g, %B, %w; add.u32 %t, %t, %s;"
    copies = "".join(f"cp.async.cg.shared.global [%t+{512 * n}], [%g+{512 * n}], 16; cp.async.commit_group;" for n in range(3))
    body = f"{HEAD}{FILL} {at} {copies} cp.async.wait_group 1; .reg .b32 %r<4>; ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%t];"
    body += f"cp.async.wait_all; st.shared.v4.b32 [%t+2048], {{%r0, %r1, %r2, %r3}}; {DRAIN}"
    params = {"A": pattern(), "B": pattern()[::-1].copy(), "D": np.zeros(SIZE, np.uint8)}
    return Case("cp.async", "groups", entry("A B D", body), params, {"D": Exact()})
