"""Comparisons and selections: all of them, over numbers and NaN, joined with predicates."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers

NUMBERS = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40]
A = [v for v in NUMBERS[:4] for _ in range(8)], [v for v in NUMBERS[4:] for _ in range(8)]
B = NUMBERS * 4
PLAIN = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def ordered(name: str, a: float, b: float) -> bool:
    """The ISA's table: a plain name is false of NaN, a name with `u` true."""
    nan = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return nan == (name == "nan")
    if name in PLAIN:
        return not nan and PLAIN[name](a, b)
    return nan or PLAIN[name[:-1]](a, b)


NAMES = (*PLAIN, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_floats(execute, kind, part):
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
    a, b = np.array(A[part], dtype), np.array(B, dtype)
    bits = f"uint{8 * a.itemsize}"
    run = execute("\n".join(f"setp.{n}.{kind} %{n}, %a, %b;" for n in NAMES), {"a": a.view(bits), "b": b.view(bits)}, dict.fromkeys(NAMES, "bool"))
    for n in NAMES:
        assert run[n].tolist() == [ordered(n, float(x), float(y)) for x, y in zip(a, b, strict=True)], n


def test_flushed_numbers_are_zeros(execute):
    a, b = np.full(32, 1e-40, np.float32), np.array([0.0, -0.0, -1e-40, 1e-38] * 8, np.float32)
    run = execute("setp.eq.ftz.f32 %p, %a, %b;\nsetp.eq.f32 %q, %a, %b;\nsetp.lt.ftz.f32 %r, %a, %b;", {"a": a, "b": b}, dict.fromkeys("pqr", "bool"))
    assert run["p"][:4].tolist() == [True, True, True, True] and not run["q"].any() and not run["r"].any()
    b[3] = 1.2e-38
    run = execute("setp.lt.ftz.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": "bool"})
    assert run["r"][:4].tolist() == [False, False, False, True]


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_integers(execute, kind):
    width = int(kind[1:])
    top = 1 << width - 1
    ends = [0, 1, top - 1, top, top + 1, 2 * top - 1, 5, 5]
    a, b = np.array(ends * 4, f"uint{width}"), np.array([v for v in ends[:4] for _ in range(8)], f"uint{width}")
    names = (*PLAIN, *(("lo", "ls", "hi", "hs") if kind[0] == "u" else ()))
    run = execute("\n".join(f"setp.{n}.{kind} %{n}, %a, %b;" for n in names), {"a": a, "b": b}, dict.fromkeys(names, "bool"))
    seen = lambda v: int(v) - (1 << width) if kind[0] == "s" and int(v) >> width - 1 else int(v)
    as_plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    for n in names:
        assert run[n].tolist() == [PLAIN[as_plain.get(n, n)](seen(x), seen(y)) for x, y in zip(a, b, strict=True)], n


@pytest.mark.parametrize(("join", "f"), [("and", lambda x, y: x and y), ("or", lambda x, y: x or y), ("xor", lambda x, y: x != y)])
def test_both_results_are_joined(execute, join, f):
    a, c = np.arange(32, dtype=np.int32), np.arange(32) % 3 == 0
    run = execute(f"setp.lt.{join}.s32 %p|%q, %a, 16, %c;\nsetp.lt.{join}.s32 %r|_, %a, 16, !%c;", {"a": a, "c": c}, dict.fromkeys("pqr", "bool"))
    rows = [(int(x) < 16, bool(y)) for x, y in zip(a, c, strict=True)]
    assert run["p"].tolist() == [f(x, y) for x, y in rows]
    assert run["q"].tolist() == [f(not x, y) for x, y in rows]
    assert run["r"].tolist() == [f(x, not y) for x, y in rows]


def test_packed_halves_give_two_predicates(execute):
    a = np.array([1.0, 2.0, math.nan, -0.0] * 16, np.float16)
    b = np.array([1.0, 1.0, 1.0, 0.0] * 16, np.float16)
    text = "setp.eq.f16x2 %p|%q, %a, %b;\nset.gtu.f16x2.f16x2 %s, %a, %b;\nset.eq.u32.f16x2 %t, %a, %b;"
    run = execute(text, {"a": a.view(np.uint32), "b": b.view(np.uint32)}, {"p": "bool", "q": "bool", "s": "uint32", "t": "uint32"})
    assert run["p"][:2].tolist() == [True, False] and run["q"][:2].tolist() == [False, True]
    assert [hex(v) for v in run["s"][:2]] == ["0x3c000000", "0x3c00"] and [hex(v) for v in run["t"][:2]] == ["0xffff", "0xffff0000"]


def test_set_and_selections(execute):
    a = np.array([1.0, -1.0, math.nan, -0.0] * 8, np.float32)
    n = np.array([0, -1, 5, -(2**31)] * 8, np.int32)
    text = """set.lt.f32.f32 %s, %a, 0f00000000;
              set.ge.and.u32.s32 %t, %n, 0, %p;
              slct.b32.s32 %u, 1, 2, %n;
              slct.b32.f32 %v, 1, 2, %a;
              selp.f32 %w, %a, 0f40000000, %p;
              selp.b32 %x, 7, %n, !%p;"""
    p = np.arange(32) % 2 == 0
    run = execute(text, {"a": a, "n": n, "p": p}, {"s": "float32", "t": "uint32", "u": "uint32", "v": "uint32", "w": "float32", "x": "int32"})
    assert run["s"][:4].tolist() == [0.0, 1.0, 0.0, 0.0] and run["t"][:4].tolist() == [0xFFFFFFFF, 0, 0xFFFFFFFF, 0]
    assert run["u"][:4].tolist() == [1, 2, 1, 2] and run["v"][:4].tolist() == [1, 2, 2, 1]
    assert run["w"][:4].tolist()[:2] == [1.0, 2.0] and math.isnan(run["w"][2]) and run["x"][:4].tolist() == [0, 7, 5, 7]


@pytest.mark.parametrize(
    "text",
    ["setp.lt.b32 %p, %a, %a;", "setp.lo.s32 %p, %a, %a;", "setp.hi.f32 %p, %a, %a;", "setp.eq.and.s32 %p, %a, %a;", "setp.eq.ftz.f64 %p, %a, %a;"],
)
def test_forms_that_are_not_there_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": np.zeros(32, np.float32)}, {"p": "bool"}, emulates)
