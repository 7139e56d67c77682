"""Atomics and reductions (PTX ISA, atom, red): every operation and type on global and shared memory, one lane at an address, so that old values are
determined; and many lanes at one, of which the sum in memory is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact, entry
from .lanewise import BLOCK, data, dtype_of

OPERATIONS = (
    *((op, k) for k in ("u32", "s32", "u64") for op in ("add", "min", "max")),
    *((op, "s64") for op in ("min", "max")),
    *((op, b) for b in ("b32", "b64") for op in ("and", "or", "xor", "exch", "cas")),
    *((op, "u32") for op in ("inc", "dec")),
    *(("add", k) for k in ("f32", "f64", "noftz.f16", "noftz.bf16", "noftz.f16x2", "noftz.bf16x2")),
    *((("cas"), "b16"),),
)
NAN = Exact(nan=True)


def kind_of(word: str) -> str:
    return {"noftz.f16": "f16", "noftz.bf16": "bf16", "noftz.f16x2": "b32", "noftz.bf16x2": "b32"}.get(word, word)


def cases() -> Iterator[Case]:
    for op, word in OPERATIONS:
        for space in ("global", "shared"):
            for form in ("atom", "red") if op not in ("exch", "cas") else ("atom",):
                yield apart(form, space, op, word)
    for space in ("global", "shared"):
        for op, word in (("add", "u32"), ("max", "s32"), ("xor", "b32"), ("add", "f32"), ("add", "u64"), ("inc", "u32")):
            yield together(space, op, word)
    for op in ("exch", "cas"):
        for space in ("global", "shared"):
            yield pairs(op, space)
    for word, widths in (("f32", (2, 4)), ("f16", (2, 4, 8)), ("bf16", (2, 4, 8)), ("f16x2", (2, 4)), ("bf16x2", (2, 4))):
        for width in widths:
            for op in ("add",) if word == "f32" else ("add", "min", "max"):
                for form in ("atom", "red"):
                    yield vector(form, width, op, word)
    for order in ("relaxed", "acquire", "release", "acq_rel"):
        for scope in ("cta", "cluster", "gpu", "sys"):
            yield worded(order, scope)


def _text(form: str, space: str, op: str, word: str, kind: str, sync: str = "") -> str:
    size = dtype_of(kind).itemsize
    bits = f"b{8 * size}"
    register = "b16" if size == 2 else bits
    operand = "%b, %c" if op == "cas" else "%b"
    order = ".relaxed.gpu" if space == "global" and form == "atom" else ""
    instruction = f"atom{order}.{space}.{op}.{word} %d, [%at], {operand};" if form == "atom" else f"red.{space}.{op}.{word} [%at], {operand};"
    load = lambda name, to: f"mul.wide.u32 %w, %i, {size}; add.u64 %w, %{name}, %w; ld.global.{bits} {to}, [%w];"
    lines = [
        f".reg .u32 %i, %n, %s; .reg .u64 %w, %at; .reg .{register} %a, %b, %c, %d;",
        f".shared .align 16 .b8 buffer[{BLOCK * size}];",
        "mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %i, %i, %n; mov.u32 %n, %tid.x; add.u32 %i, %i, %n;",
        load("B", "%b"),
        load("C", "%c"),
        f"mov.{bits} %d, 0;" if size > 2 else "mov.b16 %d, 0;",
    ]
    if space == "global":
        lines += [f"mul.wide.u32 %w, %i, {size}; add.u64 %at, %A, %w;", instruction]
    else:
        lines += [load("A", "%a"), f"mov.u32 %s, buffer; mad.lo.u32 %s, %n, {size}, %s; st.shared.{bits} [%s], %a; bar.sync 0;"]
        lines += [instruction.replace("%at", "%s"), f"bar.sync 0; ld.shared.{bits} %a, [%s]; mul.wide.u32 %w, %i, {size};"]
        lines += [f"add.u64 %at, %A, %w; st.global.{bits} [%at], %a;"]
    lines += [f"mul.wide.u32 %w, %i, {size}; add.u64 %w, %D, %w; st.global.{bits} [%w], %d;"]
    return entry("A B C D", "\n".join(lines))


def apart(form: str, space: str, op: str, word: str) -> Case:
    """Each thread at an element of its own: what it held, and what it holds."""
    kind = kind_of(word)
    a, b, c = data([kind] * 3, f"{form} {op} {word}", 512)
    if "x2" in word:
        half = word.split(".")[1][:-2]
        a, b = (data([half], f"{n} {word}", 1024)[0].view(np.uint32) for n in "ab")
    if op == "cas":
        b[::2] = a[::2]  # every second one holds
    how = NAN if kind[0] in "f" or kind == "bf16" else Exact()
    params = {"A": a, "B": b, "C": c, "D": np.zeros_like(a)}
    name = f"{form}.{space}.{op}.{word}"
    if "x2" in word:  # halves are compared as floats
        to = dtype_of(word.split(".")[1][:-2])
        params = {n: v.view(to) for n, v in params.items()}
        how = NAN
    return Case("atomics", name, _text(form, space, op, word, kind), params, {"A": how, "D": how} if form == "atom" else {"A": how}, BLOCK, 4)


def together(space: str, op: str, word: str) -> Case:
    """All threads of a grid, or of a CTA, at one element: the order is open, the outcome is not, for floats of whole numbers."""
    kind = kind_of(word)
    size = dtype_of(kind).itemsize
    rng = np.random.default_rng(7)
    b = rng.integers(0, 100, 512).astype(dtype_of(kind))
    lines = [
        f".reg .u32 %i, %n, %s; .reg .u64 %w, %at; .reg .b{8 * size} %a, %b; .reg .pred %p;",
        f".shared .align 16 .b8 buffer[{size}];",
        "mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %i, %i, %n; mov.u32 %n, %tid.x; add.u32 %i, %i, %n;",
        f"mul.wide.u32 %w, %i, {size}; add.u64 %w, %B, %w; ld.global.b{8 * size} %b, [%w];",
    ]
    if space == "global":
        lines += [f"red.relaxed.gpu.global.{op}.{word} [%A], %b;"]
    else:
        lines += ["setp.eq.u32 %p, %n, 0;", f"mov.b{8 * size} %a, 0; mov.u32 %s, buffer; @%p st.shared.b{8 * size} [%s], %a; bar.sync 0;"]
        lines += [f"red.relaxed.cta.shared.{op}.{word} [%s], {'%b' if op != 'inc' else '100'}; bar.sync 0;"]
        lines += [
            f"ld.shared.b{8 * size} %a, [%s]; mov.u32 %i, %ctaid.x; mul.wide.u32 %w, %i, {size}; add.u64 %at, %A, %w; @%p st.global.b{8 * size} [%at], %a;"
        ]
    if op == "inc":
        lines = [x.replace("%b;", "100;") if "red." in x else x for x in lines]
    a = np.zeros(4, dtype_of(kind))
    return Case("atomics", f"red.{space}.{op}.{word} at one place", entry("A B", "\n".join(lines)), {"A": a, "B": b}, {"A": Exact()}, BLOCK, 4)


def pairs(op: str, space: str) -> Case:
    """128 bits at once, with a thread an element."""
    rng = np.random.default_rng(11)
    a, b, c = (rng.integers(0, 2**63, 256, np.uint64) for _ in range(3))
    b[::4], b[1::4] = a[::4], a[1::4]  # every second pair holds
    b[2::8] = a[2::8]  # of some pairs one half
    load = lambda name, to: f"add.u64 %g, %{name}, %w; ld.global.v2.b64 {{%lo, %hi}}, [%g]; mov.b128 %{to}, {{%lo, %hi}};"
    operands = "%b, %c" if op == "cas" else "%b"
    body = f""".shared .align 16 .b8 buffer[{16 * BLOCK}]; .reg .u32 %n, %s; .reg .u64 %w, %g, %at; .reg .b128 %a, %b, %c, %d; .reg .b64 %lo, %hi;
mov.u32 %n, %tid.x; mul.wide.u32 %w, %n, 16; {load("B", "b")} {load("C", "c")} {load("A", "a")} add.u64 %at, %A, %w;
mov.u32 %s, buffer; mad.lo.u32 %s, %n, 16, %s; st.shared.b128 [%s], %a; atom.relaxed.gpu.{space}.{op}.b128 %d, [{"%at" if space == "global" else "%s"}], {operands};
{"ld.shared.b128 %a, [%s]; st.global.b128 [%at], %a;" if space == "shared" else ""}
mov.b128 {{%lo, %hi}}, %d; add.u64 %g, %D, %w; st.global.v2.b64 [%g], {{%lo, %hi}};"""
    params = {"A": a, "B": b, "C": c, "D": np.zeros_like(a)}
    return Case("atomics", f"atom.{space}.{op}.b128", entry("A B C D", body), params, {"A": Exact(), "D": Exact()}, BLOCK)


def vector(form: str, width: int, op: str, word: str) -> Case:
    """sm_90: several elements at once, each atomic for itself; a thread a vector."""
    half = word.removesuffix("x2")
    of, count = dtype_of(half), width * (2 if word.endswith("x2") else 1)
    size = count * of.itemsize
    bits = 8 * size // width
    a, b = data([half, half], f"{form} {width} {op} {word}", BLOCK * count)
    names = lambda x: ", ".join(f"%{x}{n}" for n in range(width))
    register = f"b{bits}"
    noftz = "" if word == "f32" else ".noftz"
    operand = f"{form}.relaxed.gpu.global.{op}{noftz}.v{width}.{word}"
    move = "".join(f"ld.global.{register} %b{n}, [%g+{n * bits // 8}];" for n in range(width))
    back = "".join(f"st.global.{register} [%g+{n * bits // 8}], %d{n};" for n in range(width)) if form == "atom" else ""
    into = f"{{{names('d')}}}, " if form == "atom" else ""
    body = f""".reg .u32 %n; .reg .u64 %w, %at, %g; .reg .{register} %b<8>, %d<8>;
mov.u32 %n, %tid.x; mul.wide.u32 %w, %n, {size}; add.u64 %g, %B, %w; {move} add.u64 %at, %A, %w; {operand} {into}[%at], {{{names("b")}}};
add.u64 %g, %D, %w; {back}"""
    params = {"A": a, "B": b, "D": np.zeros_like(a)}
    outputs = {"A": NAN} | ({"D": NAN} if form == "atom" else {})
    return Case("atomics", f"{form}.global.{op}{noftz}.v{width}.{word}", entry("A B D", body), params, outputs, BLOCK)


def worded(order: str, scope: str) -> Case:
    """Orders and scopes, and generic addresses of both spaces."""
    body = f""".shared .align 4 .b32 cell[{BLOCK}]; .reg .u32 %n, %s, %x, %y, %z; .reg .u64 %w, %at, %g;
mov.u32 %n, %tid.x; mul.wide.u32 %w, %n, 4; add.u64 %at, %A, %w; mov.u32 %s, cell; mad.lo.u32 %s, %n, 4, %s; st.shared.u32 [%s], %n; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;
atom.{order}.{scope}.add.u32 %x, [%at], 5; atom.{order}.{scope}.max.u32 %y, [%g], 60; atom.{order}.{scope}.shared::cta.exch.b32 %z, [%s], %x;
mad.lo.u32 %x, %x, 3, %y; xor.b32 %x, %x, %z; add.u64 %g, %D, %w; st.global.u32 [%g], %x;"""
    params = {"A": np.random.default_rng(2).integers(0, 2**32, BLOCK, np.uint32), "D": np.zeros(BLOCK, np.uint32)}
    return Case("atomics", f"atom.{order}.{scope}", entry("A D", body), params, {"A": Exact(), "D": Exact()}, BLOCK)
