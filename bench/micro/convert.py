"""Conversions (PTX ISA, cvt and cvt.pack): between all types of sm_90, in every rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Exact
from .lanewise import DTYPES, case, data

NAN = Exact(nan=True)
INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
MODES = ("rn", "rz", "rm", "rp")


def one(form: str, ins: str, out: str, given=None, text: str | None = None) -> Case:
    operands = ", ".join("{" + "abc"[n] + "}" for n in range(len(ins.split())))
    return case("convert", form, text or f"{form} {{d}}, {operands};", ins, out, NAN if out.split()[0] in DTYPES else Exact(), given)


def cases() -> Iterator[Case]:
    yield from between_integers()
    yield from to_integers()
    yield from of_integers()
    yield from between_floats()
    yield from small()
    yield from packed()
    yield from bytes_()
    yield from limited()


def between_integers() -> Iterator[Case]:
    for to in INTEGERS:
        for come in INTEGERS:
            yield one(f"cvt.{to}.{come}", come, to)
            if not _holds(to, come):
                yield one(f"cvt.sat.{to}.{come}", come, to)
        for narrow in ("u8", "s8"):
            yield one(f"cvt.{to}.{narrow}", "b32" if to[1:] != "16" else "b16", to)
    for narrow in ("u8", "s8"):
        for come in ("s32", "u32", "s64"):
            wide = f"cvt.sat.{narrow}.{come}"
            text = f".reg .b32 %w; {wide} %w, {{a}}; cvt.{narrow[0]}32.{narrow} {{d}}, %w;"
            yield one(wide, come, "b32", text=text)


def _holds(to: str, come: str) -> bool:
    """Whether a type has all values of another: then there is nothing to saturate, and no such form."""
    a, b = (np.iinfo(f"{'int' if k[0] == 's' else 'uint'}{k[1:]}") for k in (to, come))
    return a.min <= b.min and b.max <= a.max


def to_integers() -> Iterator[Case]:
    for come in ("f32", "f64", "f16", "bf16"):
        for to in INTEGERS:
            for mode in MODES:
                for ftz in ("", ".ftz") if come == "f32" and mode in ("rn", "rp") else ("",):
                    form = f"cvt.{mode}i{ftz}.{to}.{come}"
                    yield one(form, come, to, [near_integers(come, form)])


def near_integers(kind: str, form: str) -> np.ndarray:
    """Half of them halves and quarters near integers."""
    (x,) = data([kind], form)
    with np.errstate(all="ignore"):
        x[::2] = (np.arange(-256, 256) / 4).astype(x.dtype)[: len(x[::2])]
    return x


def of_integers() -> Iterator[Case]:
    for to in ("f32", "f64", "f16", "bf16"):
        for come in INTEGERS:
            for mode in MODES:
                yield one(f"cvt.{mode}.{to}.{come}", come, to)
        if to == "f16":
            yield one("cvt.rn.sat.f16.s32", "s32", "f16")


def between_floats() -> Iterator[Case]:
    for mode in MODES:
        yield one(f"cvt.{mode}.f32.f64", "f64", "f32")
        yield one(f"cvt.{mode}.ftz.f32.f64", "f64", "f32")
        yield one(f"cvt.{mode}.f16.f64", "f64", "f16")
        yield one(f"cvt.{mode}.bf16.f64", "f64", "bf16")
        yield one(f"cvt.{mode}.f16.f32", "f32", "f16")
        # An H200 rounds subnormal numbers away from zero where the ISA has them flushed.
        given = None if mode in ("rn", "rz") else [without_subnormals(f"ftz {mode}")]
        yield one(f"cvt.{mode}.ftz.f16.f32", "f32", "f16", given)
        yield one(f"cvt.{mode}.sat.f16.f32", "f32", "f16")
        if mode in ("rn", "rz"):
            yield one(f"cvt.{mode}.relu.f16.f32", "f32", "f16")
            yield one(f"cvt.{mode}.relu.bf16.f32", "f32", "bf16")
        yield one(f"cvt.{mode}.bf16.f32", "f32", "bf16")
        yield one(f"cvt.{mode}.f16.bf16", "bf16", "f16")
        yield one(f"cvt.{mode}.bf16.f16", "f16", "bf16")
        for kind in ("f32", "f64", "f16", "bf16"):
            yield one(f"cvt.{mode}i.{kind}.{kind}", kind, kind, [near_integers(kind, f"{mode} {kind}")])
    for form, come, to in (
        ("cvt.f64.f32", "f32", "f64"),
        ("cvt.ftz.f64.f32", "f32", "f64"),
        ("cvt.f32.f16", "f16", "f32"),
        ("cvt.ftz.f32.f16", "f16", "f32"),
        ("cvt.sat.f32.f16", "f16", "f32"),
        ("cvt.f32.bf16", "bf16", "f32"),
        ("cvt.f64.f16", "f16", "f64"),
        ("cvt.f64.bf16", "bf16", "f64"),
        ("cvt.sat.f32.f32", "f32", "f32"),
        ("cvt.ftz.sat.f32.f32", "f32", "f32"),
        ("cvt.ftz.f32.f32", "f32", "f32"),
        ("cvt.rna.tf32.f32", "f32", "b32"),
        ("cvt.rn.tf32.f32", "f32", "b32"),
        ("cvt.rz.tf32.f32", "f32", "b32"),
        ("cvt.rn.relu.tf32.f32", "f32", "b32"),
        ("cvt.rz.relu.tf32.f32", "f32", "b32"),
    ):
        yield one(form, come, to)


def without_subnormals(name: str) -> np.ndarray:
    (x,) = data(["f32"], name)
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(1.25), x).astype(np.float32)


def small() -> Iterator[Case]:
    for to in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield one(f"cvt.rn.satfinite{relu}.{to}.f32", "f32 f32", "b16")
            yield one(f"cvt.rn.satfinite{relu}.{to}.f16x2", "b32", "b16")
            yield one(f"cvt.rn{relu}.f16x2.{to}", "b16", "b32", [np.arange(65536, dtype=np.uint32).astype(np.uint16)])


def packed() -> Iterator[Case]:
    for to in ("f16x2", "bf16x2"):
        for mode in ("rn", "rz"):
            for relu in ("", ".relu"):
                yield one(f"cvt.{mode}{relu}.{to}.f32", "f32 f32", "b32")
    for to in ("s16", "u16"):
        yield one(f"cvt.pack.sat.{to}.s32", "s32 s32", "b32")
    for to in ("s8", "u8"):
        yield one(f"cvt.pack.sat.{to}.s32.b32", "s32 s32 b32", "b32")
    for to in ("s4", "u4", "s2", "u2"):
        yield one(f"cvt.pack.sat.{to}.s32.b32", "s32 s32 b32", "b32")


def bytes_() -> Iterator[Case]:
    """Numbers of 8 bits from and to all types; what holds them is wider and gets the extension by the sign."""
    for kind in ("u8", "s8"):
        for come in INTEGERS:
            for sat in ("", ".sat"):
                if (kind, come, sat) not in ((k, c, ".sat") for k in ("u8", "s8") for c in ("s32", "u32", "s64")):  # these are above
                    text = f".reg .b32 %w; cvt{sat}.{kind}.{come} %w, {{a}}; mov.b32 {{d}}, %w;"
                    yield one(f"cvt{sat}.{kind}.{come} into 32 bits", come, "b32", text=text)
        for come in ("f32", "f64", "f16"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                text = f".reg .b32 %w; cvt.{mode}.{kind}.{come} %w, {{a}}; mov.b32 {{d}}, %w;"
                yield one(f"cvt.{mode}.{kind}.{come}", come, "b32", [near_integers(come, f"{mode} {kind}")], text)
            text = f".reg .b32 %w; cvt.rzi.sat.{kind}.{come} %w, {{a}}; mov.b32 {{d}}, %w;"
            yield one(f"cvt.rzi.sat.{kind}.{come}", come, "b32", [near_integers(come, f"sat {kind}")], text)
            yield one(f"cvt.rn.{come}.{kind}", "b16", come)


def limited() -> Iterator[Case]:
    """`.sat`, `.satfinite` and `.ftz` where they are more than what the rounding gives."""
    for to in INTEGERS:
        for come in ("f32", "f64", "f16"):
            yield one(f"cvt.rzi.sat.{to}.{come}", come, to)
    for mode in MODES:
        for to, come in (("f32", "f64"), ("f16", "f64"), ("f32", "s32"), ("f64", "s64"), ("f16", "u32"), ("f32", "u16")):
            yield one(f"cvt.{mode}.sat.{to}.{come}", come, to)
        yield one(f"cvt.{mode}.ftz.sat.f32.f64", "f64", "f32")
        for kind in ("f32", "f64", "f16"):
            yield one(f"cvt.{mode}i.sat.{kind}.{kind}", kind, kind, [near_integers(kind, f"sat {mode} {kind}")])
        yield one(f"cvt.{mode}i.ftz.f32.f32", "f32", "f32", [near_integers("f32", f"ftz {mode}")])
    for form, come, to in (("f64.f32", "f32", "f64"), ("f64.f16", "f16", "f64"), ("f16.f16", "f16", "f16"), ("f64.f64", "f64", "f64")):
        yield one(f"cvt.sat.{form}", come, to)
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            for to, out in (("f16", "f16"), ("bf16", "bf16")):
                yield one(f"cvt.{mode}{relu}.satfinite.{to}.f32", "f32", out)
                yield one(f"cvt.{mode}{relu}.satfinite.{to}x2.f32", "f32 f32", "b32")
    limited = "cvt.rna.satfinite.tf32.f32"  # of an H200 one NaN has other bits than the rest
    yield one(limited, "f32", "f32", text=f".reg .b32 %w; {limited} %w, {{a}}; mov.b32 {{d}}, %w;")
