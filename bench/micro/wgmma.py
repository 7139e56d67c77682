"""wgmma.mma_async (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions): every type, every n, every layout of the factors, A in registers.

Shared memory holds elements at random, wherever a descriptor may look, so what a layout takes from another place shows. Data as of `mma`; of factors of 8
bits a unit keeps fewer bits of a sum (from 2**-13 of the largest term on they may differ), and the largest difference is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, Within, entry
from .mma import BITS, accumulator, finite, numbers

THREADS = 128
#: Where the factors lie, and how many bytes are filled.
A_AT, B_AT, BYTES = 0, 16384, 16384 + 49152
SPANS = {0: 0, 128: 1, 64: 2, 32: 3}


def cases() -> Iterator[Case]:
    for n in range(8, 257, 8):
        yield product("bf16", "bf16", "f32", n)
    for a, b, accs, sizes in (
        ("f16", "f16", ("f16", "f32"), (64, 136)),
        ("bf16", "bf16", ("f32",), (64,)),
        ("tf32", "tf32", ("f32",), (64, 40)),
        *((x, y, ("f16", "f32"), (64,)) for x in ("e4m3", "e5m2") for y in ("e4m3", "e5m2")),
        *((x, y, ("s32",), (8, 24, 64, 256)) for x in ("s8", "u8") for y in ("s8", "u8")),
        ("b1", "b1", ("s32",), (8, 64, 224)),
    ):
        for acc in accs:
            for n in sizes:
                if a != "bf16":  # of which every size is above
                    yield product(a, b, acc, n)
                if acc != "s32":
                    yield product(a, b, acc, n, what="random")
                    yield product(a, b, acc, n, what="special")
    for kind in ("bf16", "f16"):
        for span in SPANS:
            for turned in ((0, 0), (0, 1), (1, 0), (1, 1)):
                if (kind, span, turned) == ("bf16", 128, (0, 0)):
                    continue  # is above, of every size
                for n in (64, 256) if kind == "bf16" else (24,):
                    yield product(kind, kind, "f32", n, span=span, turned=turned)
    for kind, acc in (("tf32", "f32"), ("e4m3", "f32"), ("s8", "s32"), ("b1", "s32")):
        for span in SPANS:
            yield product(kind, kind, acc, 32, span=span)
    for kind, acc in (("f16", "f16"), ("bf16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("e5m2", "f16"), ("s8", "s32"), ("b1", "s32")):
        yield product(kind, kind, acc, 64, registers=True)
    for span in SPANS:
        yield product("bf16", "bf16", "f32", 64, span=span, turned=(0, 1), registers=True)
    for negated in ((-1, 1), (1, -1), (-1, -1)):
        yield product("bf16", "bf16", "f32", 64, negated=negated)
        yield product("f16", "f16", "f16", 32, negated=negated)
    yield product("bf16", "bf16", "f32", 64, add=False)
    yield product("s8", "u8", "s32", 64, satfinite=True)
    for kind, acc in (("bf16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("s8", "s32")):
        yield product(kind, kind, acc, 128, steps=4)
    yield product("bf16", "bf16", "f32", 128, steps=4, what="random")
    yield product("e4m3", "e4m3", "f32", 128, steps=4, what="random")


def strides(span: int, turned: int) -> tuple[int, int]:
    """Leading and stride offsets in bytes: patterns of 8 rows, packed (PTX ISA, Strides; canonical layouts)."""
    if not turned:
        return (128, 256) if span == 0 else (16, 8 * span)
    return (128, 256) if span == 0 else (2 * 8 * span, 8 * span)


def descriptor(at: int, span: int, turned: int) -> int:
    """The constant part, to which the window's address is added."""
    leading, stride = strides(span, turned)
    return SPANS[span] << 62 | stride >> 4 << 32 | leading >> 4 << 16 | at >> 4


def product(
    a: str,
    b: str,
    acc: str,
    n: int,
    what: str = "whole",
    span: int = 128,
    turned: tuple[int, int] = (0, 0),
    registers: bool = False,
    negated: tuple[int, int] = (1, 1),
    add: bool = True,
    satfinite: bool = False,
    steps: int = 1,
) -> Case:
    k = 256 // BITS[a]
    marks = [f"m64n{n}k{k}.{acc}.{a}.{b}", f"{'MN' if turned[0] else 'K'} {'MN' if turned[1] else 'K'}", f"swizzle {span}"]
    marks += [m for m, there in (("A in registers", registers), ("-A", negated[0] < 0), ("-B", negated[1] < 0), ("scale-d 0", not add)) if there]
    marks += [m for m, there in (("satfinite", satfinite), (f"{steps} steps", steps > 1)) if there]
    form = ", ".join([*marks, what])
    rng = np.random.default_rng(sum(map(ord, form)))
    left, right = (numbers(x, what, size * 8 // BITS[x], rng) for x, size in ((a, B_AT), (b, BYTES - B_AT)))
    sums = n // 4 if acc == "f16" else n // 2
    word = "f32" if acc == "f32" else "b32"
    c = accumulator(acc, what, 64 * n, rng)
    fragment = numbers(a, what, 64 * k, rng)
    lines = [".reg .u32 %t, %s, %k, %at; .reg .u64 %g, %o, %da, %db, %w; .reg .b32 %v<4>; .reg .pred %p;"]
    lines += [f".reg .{word} %c<{sums}>; .reg .b32 %a<4>; mov.u32 %t, %tid.x; mov.u32 %s, buffer; mul.lo.u32 %k, %t, 16;"]
    lines += ["FILL: cvt.u64.u32 %o, %k; add.u64 %g, %S, %o; ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%g]; add.u32 %at, %s, %k;"]
    lines += ["st.shared.v4.b32 [%at], {%v0, %v1, %v2, %v3};", f"add.u32 %k, %k, {16 * THREADS}; setp.lt.u32 %p, %k, {BYTES}; @%p bra FILL;"]
    lines += ["fence.proxy.async.shared::cta; bar.sync 0;", f"mul.wide.u32 %o, %t, {4 * sums}; add.u64 %g, %C, %o;"]
    lines += [f"ld.global.{word} %c{i}, [%g+{4 * i}];" for i in range(sums)]
    lines += ["mul.wide.u32 %o, %t, 16; add.u64 %g, %A, %o; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%g];"]
    lines += ["cvt.u64.u32 %w, %s; shr.u64 %w, %w, 4;", f"setp.ne.b32 %p, {int(add)}, 0;", "wgmma.fence.sync.aligned;"]
    op = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{acc}.{a}.{b}{'.and.popc' if a == 'b1' else ''}{'.satfinite' if satfinite else ''}"
    group = "{" + ", ".join(f"%c{i}" for i in range(sums)) + "}"
    for step in range(steps):
        factor = "{%a0, %a1, %a2, %a3}" if registers else "%da"
        more = "%p"
        if acc != "s32":
            more += f", {negated[0]}, {negated[1]}"
        if a in ("f16", "bf16"):
            more += f", {turned[1]}" if registers else f", {turned[0]}, {turned[1]}"
        for d, at, way in (("da", A_AT, turned[0]), ("db", B_AT, turned[1])):
            lines.append(f"mov.u64 %{d}, {descriptor(at + 32 * step, span, way):#x}; add.u64 %{d}, %{d}, %w;")
        lines.append(f"{op} {group}, {factor}, %db, {more};")
    lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", f"mul.wide.u32 %o, %t, {4 * sums}; add.u64 %g, %D, %o;"]
    lines += [f"st.global.{word} [%g+{4 * i}], %c{i};" for i in range(sums)]
    if acc == "s32" or what == "whole":
        how = Exact()
    else:
        unit = {"f32": 2.0**-13 if BITS[a] == 8 else 2.0**-22, "f16": 2.0**-10}[acc]
        largest = max(finite(left, a), finite(fragment, a)) * finite(right, b) + finite(c.view(np.uint8), acc if acc != "f32" else "tf32")
        how = Within((steps * k + 1) * largest * unit)
    params = {"S": np.concatenate([left, right]), "A": fragment, "C": c, "D": np.zeros(64 * n, c.dtype)}
    return Case(
        "wgmma", form, entry("S A C D", "\n".join(lines), ".extern .shared .align 1024 .b8 buffer[];"), params, {"D": how}, THREADS, dynamic=BYTES
    )
