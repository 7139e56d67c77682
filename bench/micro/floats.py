"""Floats (PTX ISA, Floating Point, Half Precision Floating Point and Comparison Instructions): rounding in every mode, `.ftz`, `.sat`, NaN.

The bits of a NaN that arithmetic gives are compared where the ISA says them (f16, bf16: canonical, 0x7fff), and only that it is one in f32 and f64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact
from .lanewise import case, dtype_of

NAN = Exact(nan=True)
MODES = ("rn", "rz", "rm", "rp")


def one(form: str, text: str, ins: str, out: str, how=NAN) -> Case:
    return case("floats", form, text, ins, out, how)


def cases() -> Iterator[Case]:
    yield from single_and_double()
    yield from without_rounding()
    yield from halves()
    yield from comparisons()
    yield from joined()


def single_and_double() -> Iterator[Case]:
    for mode in MODES:
        for kind in ("f32", "f64"):
            for op in ("add", "sub", "mul"):
                for more in ("", ".ftz", ".sat", ".ftz.sat") if kind == "f32" else ("",):
                    form = f"{op}.{mode}{more}.{kind}"
                    yield one(form, f"{form} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind)
            for more in ("", ".ftz", ".sat", ".ftz.sat") if kind == "f32" else ("",):
                form = f"fma.{mode}{more}.{kind}"
                yield one(form, f"{form} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {kind}", kind)
            for more in ("", ".ftz") if kind == "f32" else ("",):
                yield one(f"div.{mode}{more}.{kind}", f"div.{mode}{more}.{kind} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind)
                for op in ("rcp", "sqrt"):
                    yield one(f"{op}.{mode}{more}.{kind}", f"{op}.{mode}{more}.{kind} {{d}}, {{a}};", kind, kind)
    for kind in ("f32", "f64"):
        for more in ("", ".ftz") if kind == "f32" else ("",):
            for op in ("abs", "neg"):
                yield one(f"{op}{more}.{kind}", f"{op}{more}.{kind} {{d}}, {{a}};", kind, kind)
            words = (more, f"{more}.NaN", f"{more}.xorsign.abs", f"{more}.NaN.xorsign.abs") if kind == "f32" else (more,)
            for word in words:
                for op in ("min", "max"):
                    yield one(f"{op}{word}.{kind}", f"{op}{word}.{kind} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind)
        yield one(f"copysign.{kind}", f"copysign.{kind} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind, Exact())
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield one(f"testp.{what}.{kind}", f"testp.{what}.{kind} %p, {{a}}; selp.b32 {{d}}, 1, 0, %p;", kind, "b32", Exact())


def without_rounding() -> Iterator[Case]:
    """To nearest where no mode is named; mad is fma."""
    for kind in ("f32", "f64"):
        for op in ("add", "sub", "mul"):
            for more in ("", ".ftz", ".sat") if kind == "f32" else ("",):
                yield one(f"{op}{more}.{kind}", f"{op}{more}.{kind} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", kind)
        for mode in MODES:
            for more in ("", ".ftz", ".sat") if kind == "f32" else ("",):
                yield one(f"mad.{mode}{more}.{kind}", f"mad.{mode}{more}.{kind} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} {kind}", kind)


def halves() -> Iterator[Case]:
    for of, kind in (("f16", "f16"), ("bf16", "bf16"), ("f16x2", "b32"), ("bf16x2", "b32")):
        brain, packed = of.startswith("b"), of.endswith("x2")
        how = Exact() if packed else NAN
        for op in ("add", "sub", "mul"):
            for more in ("", ".rn") if brain else ("", ".ftz", ".sat", ".ftz.sat", ".rn"):
                yield halved(f"{op}{more}.{of}", 2, kind, of, how)
        words = ("", ".relu")
        for more in words if brain else (*words, ".ftz", ".sat", ".ftz.sat", ".ftz.relu"):
            yield halved(f"fma.rn{more}.{of}", 3, kind, of, how)
        for more in ("", ".relu"):
            yield halved(f"fma.rn.oob{more}.{of}", 3, kind, of, how, beyond(of.removesuffix("x2"), 6 if packed else 3))
        for op in ("abs", "neg"):
            yield halved(f"{op}.{of}", 1, kind, of, how)
            if not brain:
                yield halved(f"{op}.ftz.{of}", 1, kind, of, how)
        for op in ("min", "max"):
            for more in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield halved(f"{op}{more}.{of}", 2, kind, of, how)
                if not brain:
                    yield halved(f"{op}.ftz{more}.{of}", 2, kind, of, how)


def beyond(kind: str, count: int) -> list[np.ndarray]:
    """Operands among which are NaNs of all kinds: with one of them a tensor map fills what lies outside of a tensor."""
    bits = np.array(
        [0x7FFF, 0xFFFF, 0x7E00, 0x7FC0, 0x7FF7, 0xFFF7, 0x7F81, 0x7C01, 0xFE00, 0, 0x8000, 0x3C00, 0xBC00, 0x4248, 0x7C00, 0x7F80, 0x3F80], np.uint16
    )
    return [bits[x].view(dtype_of(kind)) for x in np.random.default_rng(5).integers(0, len(bits), (count, 2048))]


def halved(form: str, count: int, kind: str, of: str, how, given: list[np.ndarray] | None = None) -> Case:
    """Packed ones get pairs of values of their type."""
    operands = ", ".join("{" + "abc"[n] + "}" for n in range(count))
    if kind != "b32":
        return case("floats", form, f"{form} {{d}}, {operands};", " ".join([kind] * count), kind, how, given)
    half = of[:-2]
    names = "abcdef"[: 2 * count]
    pack = [f".reg .b32 %x{n}; mov.b32 %x{n}, {{{{{{{names[2 * n]}}}, {{{names[2 * n + 1]}}}}}}};" for n in range(count)]
    text = " ".join([*pack, ".reg .b32 %o;", f"{form} %o, {', '.join(f'%x{n}' for n in range(count))};"])
    result, other = ("{r}", "{s}") if 2 * count > 3 else ("{d}", "{x}")
    text += f" mov.b32 {{{{{result}, {other}}}}}, %o;"
    return case("floats", form, text, " ".join([half] * (2 * count)), f"{half} {half}", NAN, given)


def comparisons() -> Iterator[Case]:
    names = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    for kind in ("f32", "f64", "f16", "bf16"):
        for name in names:
            for more in ("", ".ftz") if kind in ("f32", "f16") else ("",):
                text = f"setp.{name}{more}.{kind} %p, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p;"
                yield case("comparisons", f"setp.{name}{more}.{kind}", text, f"{kind} {kind}", "b32")
    for of in ("f16x2", "bf16x2"):
        for name in names:
            text = f"setp.{name}.{of} %p|%q, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p; selp.b32 {{x}}, 1, 0, %q;"
            yield case("comparisons", f"setp.{name}.{of}", text, "b32 b32", "b32 b32")
    for name in ("lt", "ge", "neu", "nan"):
        for to, out in (("u32", "b32"), ("s32", "b32"), ("f32", "b32")):
            yield case("comparisons", f"set.{name}.{to}.f32", f"set.{name}.{to}.f32 {{d}}, {{a}}, {{b}};", "f32 f32", out)
        for of in ("f16x2", "bf16x2"):
            yield case("comparisons", f"set.{name}.{of}.{of}", f"set.{name}.{of}.{of} {{d}}, {{a}}, {{b}};", "b32 b32", "b32")
    for name in ("lt", "equ"):
        yield case("comparisons", f"set.{name}.f16.f16", f"set.{name}.f16.f16 {{d}}, {{a}}, {{b}};", "f16 f16", "b16")


def joined() -> Iterator[Case]:
    """Comparisons of halves that are joined with a predicate, and their results of every type."""
    for of in ("f16", "bf16"):
        for join in ("and", "or", "xor"):
            text = f"setp.gt.s32 %p, {{c}}, 5; setp.leu.{join}.{of} %p, {{a}}, {{b}}, %p; selp.b32 {{d}}, 1, 0, %p;"
            yield case("comparisons", f"setp.leu.{join}.{of}", text, f"{of} {of} s32", "b32")
            text = f"setp.gt.s32 %p, {{c}}, 5; setp.leu.{join}.{of}x2 %p|%q, {{a}}, {{b}}, %p; selp.b32 {{d}}, 1, 0, %p; selp.b32 {{x}}, 1, 0, %q;"
            yield case("comparisons", f"setp.leu.{join}.{of}x2 p|q", text, "b32 b32 s32", "b32 b32")
            text = f"setp.gt.s32 %p, {{c}}, 5; set.ltu.{join}.{of}x2.{of}x2 {{d}}, {{a}}, {{b}}, %p;"
            yield case("comparisons", f"set.ltu.{join}.{of}x2.{of}x2", text, "b32 b32 s32", "b32")
        for to in ("u16", "s16", "u32", "s32"):
            yield case("comparisons", f"set.gt.{to}.{of}", f"set.gt.{to}.{of} {{d}}, {{a}}, {{b}};", f"{of} {of}", to)
        for to in ("u32", "s32"):
            yield case("comparisons", f"set.num.{to}.{of}x2", f"set.num.{to}.{of}x2 {{d}}, {{a}}, {{b}};", "b32 b32", to)
        for come in ("s32", "u16", "f32", "f64"):
            yield case("comparisons", f"set.ne.{of}.{come}", f"set.ne.{of}.{come} {{d}}, {{a}}, {{b}};", f"{come} {come}", of, Exact())
    for name in ("eq", "gtu"):
        for come in ("f32", "f16", "f16x2"):
            to, kind = {"f32": ("f32", "f32"), "f16": ("f16", "f16"), "f16x2": ("f16x2", "b32")}[come]
            form = f"set.{name}.ftz.{to}.{come}"
            yield case("comparisons", form, f"{form} {{d}}, {{a}}, {{b}};", f"{kind} {kind}", "b32" if come != "f16" else "b16")
    for kind in ("b32", "b64", "f32", "f64"):
        form = f"slct.ftz.{kind}.f32"
        yield case("comparisons", form, f"{form} {{d}}, {{a}}, {{b}}, {{c}};", f"{kind} {kind} f32", kind, NAN)
