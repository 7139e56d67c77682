"""Integers and bits (PTX ISA, Integer Arithmetic, Extended-Precision, Logic and Shift, Comparison and Selection Instructions)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case
from .lanewise import case, data

WHOLE = ("s16", "u16", "s32", "u32", "s64", "u64")


def cases() -> Iterator[Case]:
    yield from arithmetic()
    yield from carries()
    yield from bits()
    yield from comparisons()


def _two(op: str, kind: str, to: str | None = None) -> Case:
    return case("integers", op, f"{op} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", to or kind)


def arithmetic() -> Iterator[Case]:
    for kind in WHOLE:
        for op in ("add", "sub", "min", "max", "mul.lo", "mul.hi"):
            yield _two(f"{op}.{kind}", kind)
        operands = data([kind, kind], f"div {kind}")
        operands[1] = np.where(operands[1] == 0, 3, operands[1]).astype(operands[1].dtype)
        if kind[0] == "s":  # the quotient that does not fit is not defined
            operands[1] = np.where((operands[1] == -1) & (operands[0] == np.iinfo(operands[0].dtype).min), 5, operands[1]).astype(operands[1].dtype)
        for op in ("div", "rem"):
            yield case("integers", f"{op}.{kind}", f"{op}.{kind} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind, given=operands)
        wide = f"{kind[0]}{2 * int(kind[1:])}"
        if kind[1:] != "64":
            yield _two(f"mul.wide.{kind}", kind, wide)
            yield case("integers", f"mad.wide.{kind}", f"mad.wide.{kind} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {wide}", wide)
            yield case("integers", f"sad.{kind}", f"sad.{kind} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} u{kind[1:]}", kind)
        for part in ("lo", "hi"):
            yield case("integers", f"mad.{part}.{kind}", f"mad.{part}.{kind} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {kind}", kind)
        if kind[0] == "s":
            for op in ("abs", "neg"):
                yield case("integers", f"{op}.{kind}", f"{op}.{kind} {{d}}, {{a}};", kind, kind)
    for op in ("add.sat.s32", "sub.sat.s32"):
        yield _two(op, "s32")
    yield case("integers", "mad.hi.sat.s32", "mad.hi.sat.s32 {d}, {a}, {b}, {c};", "s32 s32 s32", "s32")
    for op in ("min.relu.s32", "max.relu.s32"):
        yield _two(op, "s32")
    for op in ("add.u16x2", "add.s16x2", "min.u16x2", "min.s16x2", "max.u16x2", "max.s16x2", "min.relu.s16x2", "max.relu.s16x2"):
        yield _two(op, "b32")
    for kind in ("s32", "u32"):
        for part in ("lo", "hi"):
            yield _two(f"mul24.{part}.{kind}", kind)
            yield case("integers", f"mad24.{part}.{kind}", f"mad24.{part}.{kind} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {kind}", kind)
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield case("integers", f"dp4a.{a}.{b}", f"dp4a.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}};", "b32 b32 b32", "b32")
            for half in ("lo", "hi"):
                yield case("integers", f"dp2a.{half}.{a}.{b}", f"dp2a.{half}.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}};", "b32 b32 b32", "b32")


def carries() -> Iterator[Case]:
    for bits_ in ("32", "64"):
        k = f"u{bits_}"
        yield case("integers", f"add.cc addc.{k}", f"add.cc.{k} {{d}}, {{a}}, {{b}}; addc.{k} {{x}}, {{b}}, {{c}};", f"{k} {k} {k}", f"{k} {k}")
        yield case("integers", f"sub.cc subc.{k}", f"sub.cc.{k} {{d}}, {{a}}, {{b}}; subc.{k} {{x}}, {{b}}, {{c}};", f"{k} {k} {k}", f"{k} {k}")
        yield case(
            "integers",
            f"mad.lo.cc madc.hi.{k}",
            f"mad.lo.cc.{k} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.{k} {{x}}, {{a}}, {{b}}, {{c}};",
            f"{k} {k} {k}",
            f"{k} {k}",
        )

    for n in ("32", "64"):
        k = f"u{n}"
        text = f"add.cc.{k} {{d}}, {{a}}, {{b}}; addc.cc.{k} {{x}}, {{b}}, {{c}}; addc.{k} {{d}}, {{d}}, {{x}};"
        yield case("integers", f"add.cc addc.cc addc.{k}", text, f"{k} {k} {k}", f"{k} {k}")
        text = f"sub.cc.{k} {{d}}, {{a}}, {{b}}; subc.cc.{k} {{x}}, {{b}}, {{c}}; subc.{k} {{d}}, {{d}}, {{x}};"
        yield case("integers", f"sub.cc subc.cc subc.{k}", text, f"{k} {k} {k}", f"{k} {k}")
        text = f"mad.lo.cc.{k} {{d}}, {{a}}, {{b}}, {{c}}; madc.lo.cc.{k} {{x}}, {{b}}, {{c}}, {{a}}; madc.hi.cc.{k} {{d}}, {{d}}, {{x}}, {{a}}; addc.{k} {{x}}, {{x}}, 0;"
        yield case("integers", f"mad.lo.cc madc.lo.cc madc.hi.cc.{k}", text, f"{k} {k} {k}", f"{k} {k}")
        text = f"mad.hi.cc.{k} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.{k} {{x}}, {{b}}, {{c}}, {{a}};"
        yield case("integers", f"mad.hi.cc madc.hi.{k}", text, f"{k} {k} {k}", f"{k} {k}")


def bits() -> Iterator[Case]:
    for n in ("16", "32", "64"):
        for op in ("and", "or", "xor"):
            yield _two(f"{op}.b{n}", f"b{n}")
        for op in ("not", "cnot"):
            yield case("bits", f"{op}.b{n}", f"{op}.b{n} {{d}}, {{a}};", f"b{n}", f"b{n}")
        for op in (f"shl.b{n}", f"shr.b{n}", f"shr.u{n}", f"shr.s{n}"):
            yield case("bits", op, f"{op} {{d}}, {{a}}, {{b}};", f"b{n} u32", f"b{n}")
            yield case("bits", f"{op} below {n}", f"and.b32 {{b}}, {{b}}, {int(n) - 1}; {op} {{d}}, {{a}}, {{b}};", f"b{n} u32", f"b{n}")
    for way in ("l", "r"):
        for mode in ("clamp", "wrap"):
            yield case("bits", f"shf.{way}.{mode}", f"shf.{way}.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};", "b32 b32 u32", "b32")
    for table in (0x00, 0x1B, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0x6A):
        yield case("bits", f"lop3.b32 {table:#04x}", f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x};", "b32 b32 b32", "b32")
    for join in ("and", "or"):
        text = f"setp.lt.u32 %q, {{a}}, {{c}}; and.b32 {{a}}, {{a}}, 3; lop3.{join}.b32 {{d}}|%p, {{a}}, {{b}}, {{c}}, 0x80, %q; selp.b32 {{x}}, 1, 0, %p;"
        yield case("bits", f"lop3.{join}.b32 d|p", text, "b32 b32 b32", "b32 b32")
    for n in ("32", "64"):
        for op in ("popc", "clz"):
            yield case("bits", f"{op}.b{n}", f"{op}.b{n} {{d}}, {{a}};", f"b{n}", "u32")
        yield case("bits", f"brev.b{n}", f"brev.b{n} {{d}}, {{a}};", f"b{n}", f"b{n}")
        for sign in "us":
            for word in ("", ".shiftamt"):
                yield case("bits", f"bfind{word}.{sign}{n}", f"bfind{word}.{sign}{n} {{d}}, {{a}};", f"{sign}{n}", "u32")
            # Of 64 bits an H200 does not take position and length modulo 256, as the ISA says.
            byte = "" if n == "32" else "and.b32 {b}, {b}, 255; and.b32 {c}, {c}, 255; "
            yield case("bits", f"bfe.{sign}{n}", f"{byte}bfe.{sign}{n} {{d}}, {{a}}, {{b}}, {{c}};", f"{sign}{n} u32 u32", f"{sign}{n}")
            short = f"and.b32 {{b}}, {{b}}, 63; and.b32 {{c}}, {{c}}, 31; bfe.{sign}{n} {{d}}, {{a}}, {{b}}, {{c}};"
            yield case("bits", f"bfe.{sign}{n} short", short, f"{sign}{n} u32 u32", f"{sign}{n}")
        byte = "" if n == "32" else "and.b32 {c}, {c}, 255; and.b32 {d}, {d}, 255; "
        yield case("bits", f"bfi.b{n}", f"{byte}bfi.b{n} {{r}}, {{a}}, {{b}}, {{c}}, {{d}};", f"b{n} b{n} u32 u32", f"b{n}")
        short = f"and.b32 {{c}}, {{c}}, 63; and.b32 {{d}}, {{d}}, 31; bfi.b{n} {{r}}, {{a}}, {{b}}, {{c}}, {{d}};"
        yield case("bits", f"bfi.b{n} short", short, f"b{n} b{n} u32 u32", f"b{n}")
    for mode in ("clamp", "wrap"):
        for sign in "us":
            yield case("bits", f"szext.{mode}.{sign}32", f"szext.{mode}.{sign}32 {{d}}, {{a}}, {{b}};", f"{sign}32 u32", f"{sign}32")
        yield case("bits", f"bmsk.{mode}", f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}};", "u32 u32", "b32")
        short = f"and.b32 {{a}}, {{a}}, 63; and.b32 {{b}}, {{b}}, 63; bmsk.{mode}.b32 {{d}}, {{a}}, {{b}};"
        yield case("bits", f"bmsk.{mode} short", short, "u32 u32", "b32")
    short = "and.b32 {b}, {b}, 31; and.b32 {c}, {c}, 7; sub.s32 {c}, {c}, 4; fns.b32 {d}, {a}, {b}, {c};"
    yield case("bits", "fns.b32", short, "b32 u32 s32", "b32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield case("bits", f"prmt.b32{mode}", f"prmt.b32{mode} {{d}}, {{a}}, {{b}}, {{c}};", "b32 b32 b32", "b32")


def comparisons() -> Iterator[Case]:
    for kind in ("b16", "b32", "b64", *WHOLE):
        names = {"b": ("eq", "ne"), "u": ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"), "s": ("eq", "ne", "lt", "le", "gt", "ge")}
        for name in names[kind[0]]:
            text = f"setp.{name}.{kind} %p, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p;"
            yield case("comparisons", f"setp.{name}.{kind}", text, f"{kind} {kind}", "b32")
    for join in ("and", "or", "xor"):
        text = f"setp.lt.s32 %p, {{b}}, {{c}}; setp.ge.{join}.u32 %p|%q, {{a}}, {{b}}, %p; selp.b32 {{d}}, 1, 0, %p; selp.b32 {{x}}, 1, 0, %q;"
        yield case("comparisons", f"setp.ge.{join}.u32 p|q", text, "u32 s32 s32", "b32 b32")
        text = f"setp.lt.s32 %p, {{b}}, {{c}}; set.gt.{join}.u32.s32 {{d}}, {{a}}, {{b}}, %p;"
        yield case("comparisons", f"set.gt.{join}.u32.s32", text, "s32 s32 s32", "u32")
    for kind, name in (("s32", "lt"), ("f32", "lt"), ("f32", "eq")):
        for join in ("and", "or", "xor"):
            text = f"setp.gt.s32 %p, {{c}}, 5; setp.{name}.{join}.{kind} %p, {{a}}, {{b}}, %p; setp.ne.s32 %q, {{c}}, 0; {join}.pred %q, %p, %q; not.pred %p, %p;"
            yield case(
                "comparisons",
                f"setp.{name}.{join}.{kind}, {join}.pred",
                text + " selp.b32 {d}, 1, 0, %p; selp.b32 {x}, 1, 0, %q;",
                f"{kind} {kind} s32",
                "b32 b32",
            )
    for kind in ("f32", "f64"):
        yield case(
            "comparisons",
            f"selp.{kind}",
            f"setp.gt.s32 %p, {{c}}, 5; selp.{kind} {{d}}, {{a}}, {{b}}, %p; mov.{kind} {{x}}, {{d}};",
            f"{kind} {kind} s32",
            f"{kind} {kind}",
        )
    for to in ("u32", "s32", "f32"):
        yield case("comparisons", f"set.le.{to}.u32", f"set.le.{to}.u32 {{d}}, {{a}}, {{b}};", "u32 u32", "b32")
    for kind in ("b16", "b32", "b64"):
        text = f"setp.gt.s32 %p, {{c}}, 5; selp.{kind} {{d}}, {{a}}, {{b}}, %p;"
        yield case("comparisons", f"selp.{kind}", text, f"{kind} {kind} s32", kind)
        for by in ("s32", "f32"):
            yield case("comparisons", f"slct.{kind}.{by}", f"slct.{kind}.{by} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {by}", kind)
