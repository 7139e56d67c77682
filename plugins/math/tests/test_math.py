"""Typing, the contraction rule and the instructions of float arithmetic; every text is assembled."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from cake_core.assemble import assemble
from cake_core.diagnostics import CakeError
from cake_core.ir.contraction import factors
from cake_core.ir.nodes import Binary, Call, Float, Int, Name
from cake_core.ir.types import BF16, BOOL, ELEMENTS, F16, F32, I32, U32, Level, Scalar, Tile, Value
from cake_core.ptx.builder import Builder
from cake_core.ptx.module import Module
from cake_math.plugin import cake_primitives

FUNCTIONS = {p.name: p for p in cake_primitives()}


@dataclass
class Registers:
    """A lowering context that knows what a thread holds of each name."""

    b: Builder = field(default_factory=Builder)
    held: dict = field(default_factory=dict)

    def frag(self, name, elem, n):
        """A fragment of which each thread holds `n` elements."""
        self.held[name] = self.b.regs("f32" if elem == F32 else "b32", n * elem.bits // 32)
        return frag(name, elem, n)

    def scalar(self, name, elem=F32, level=Level.CTA):
        self.held[name] = self.b.regs("f32" if elem == F32 else "b32", 1)
        return Name(name, type=Scalar(elem, level))

    def registers(self, e):
        match e:
            case Int(value) | Float(value):
                return (value,)
            case Name(name):
                return self.held[name]
            case Binary(op, left, right):
                e = Call(Name(op), (left, right), type=e.type)
        return FUNCTIONS[e.name].lower(e, self)

    def broadcast(self, *exprs):
        parts = [self.registers(e) for e in exprs]
        n = max(map(len, parts))
        return tuple(p * n if len(p) == 1 else p for p in parts)


def frag(name, elem, n=4):
    return Name(name, type=Tile("frag", elem, ((32 * n,),)))


def scalar(elem, level=Level.CTA):
    return Name("s", type=Scalar(elem, level))


def call(name, *args):
    c = Call(Name(name), args)
    return Call(Name(name), args, type=FUNCTIONS[name].result(c, None))


def binary(op, left, right):
    return Binary(op, left, right, type=call(op, left, right).type)


def number(value):
    return Float(value, type=Scalar(F32))


def lowered(cx, e):
    """The instructions of `e`, the arguments' registers being %f0 .., %r0 ..; assembled."""
    out = cx.registers(e)
    text = [str(i) for i in cx.b.body]
    cx.b.emit("ret")
    ptx, lines = Module("8.6", "sm_90a", "k", builder=cx.b).print()
    assert assemble(ptx, "sm_90a", "k", lines=lines).cubin
    return out, text


# --- contraction and operators


def xyz(cx):
    return cx.scalar("x"), cx.scalar("y"), cx.scalar("z")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda x, y, z: binary("+", x, y), ["add.rn.f32 %f3, %f0, %f1;"]),
        (lambda x, y, z: binary("-", x, y), ["sub.rn.f32 %f3, %f0, %f1;"]),
        (lambda x, y, z: binary("*", x, y), ["mul.rn.f32 %f3, %f0, %f1;"]),
        (lambda x, y, z: binary("/", x, y), ["div.rn.f32 %f3, %f0, %f1;"]),
        (lambda x, y, z: call("-", x), ["neg.f32 %f3, %f0;"]),
        (lambda x, y, z: binary("+", binary("*", x, y), z), ["fma.rn.f32 %f3, %f0, %f1, %f2;"]),
        (lambda x, y, z: binary("+", z, binary("*", x, y)), ["fma.rn.f32 %f3, %f0, %f1, %f2;"]),
        (lambda x, y, z: binary("-", binary("*", x, y), z), ["neg.f32 %f3, %f2;", "fma.rn.f32 %f4, %f0, %f1, %f3;"]),
        (lambda x, y, z: binary("-", z, binary("*", x, y)), ["neg.f32 %f3, %f0;", "fma.rn.f32 %f4, %f3, %f1, %f2;"]),
        # of two products the left one is fused
        (
            lambda x, y, z: binary("+", binary("*", x, y), binary("*", y, z)),
            ["mul.rn.f32 %f3, %f1, %f2;", "fma.rn.f32 %f4, %f0, %f1, %f3;"],
        ),
        # a chain is fused at each sum whose operand is a product
        (
            lambda x, y, z: binary("+", binary("*", x, y), binary("+", binary("*", y, z), x)),
            ["fma.rn.f32 %f3, %f1, %f2, %f0;", "fma.rn.f32 %f4, %f0, %f1, %f3;"],
        ),
        # a product below a quotient, a call or another product is rounded
        (lambda x, y, z: binary("/", binary("*", x, y), z), ["mul.rn.f32 %f3, %f0, %f1;", "div.rn.f32 %f4, %f3, %f2;"]),
        (
            lambda x, y, z: binary("+", call("rsqrt", binary("*", x, y)), z),
            ["mul.rn.f32 %f3, %f0, %f1;", "rsqrt.approx.f32 %f4, %f3;", "add.rn.f32 %f5, %f4, %f2;"],
        ),
        (lambda x, y, z: binary("+", x, number(1.0)), ["add.rn.f32 %f3, %f0, 0f3F800000;"]),
        (lambda x, y, z: binary("/", number(1.0), number(3.0)), ["div.rn.f32 %f3, 0f3F800000, 0f40400000;"]),
        (lambda x, y, z: binary("-", binary("*", x, y), number(2.0)), ["fma.rn.f32 %f3, %f0, %f1, 0fC0000000;"]),
        (lambda x, y, z: call("abs", x), ["abs.f32 %f3, %f0;"]),
        (lambda x, y, z: call("exp2", x), ["ex2.approx.ftz.f32 %f3, %f0;"]),
        (lambda x, y, z: call("log2", x), ["lg2.approx.ftz.f32 %f3, %f0;"]),
        (lambda x, y, z: call("rcp", x), ["rcp.approx.ftz.f32 %f3, %f0;"]),
        (lambda x, y, z: call("sqrt", x), ["sqrt.approx.ftz.f32 %f3, %f0;"]),
        (lambda x, y, z: call("tanh", x), ["tanh.approx.f32 %f3, %f0;"]),
    ],
)
def test_operators(build, text):
    cx = Registers()
    assert lowered(cx, build(*xyz(cx)))[1] == text


def test_scalars_are_repeated_over_tiles():
    cx = Registers()
    x, w, s = cx.frag("x", F32, 2), cx.frag("w", BF16, 2), cx.scalar("s")
    out, text = lowered(cx, call("bf16", binary("*", binary("*", x, s), call("f32", w))))
    assert text == [
        "mul.rn.f32 %f3, %f0, %f2;",
        "mul.rn.f32 %f4, %f1, %f2;",
        "shl.b32 %f5, %r0, 16;",
        "and.b32 %f6, %r0, 4294901760;",
        "mul.rn.f32 %f7, %f3, %f5;",
        "mul.rn.f32 %f8, %f4, %f6;",
        "cvt.rn.bf16x2.f32 %r1, %f8, %f7;",
    ]
    assert [str(x) for x in out] == ["%r1"]


def test_only_a_product_as_it_stands_is_contracted():
    x, n = scalar(F32), Int(2, type=Scalar(I32))
    assert factors(binary("*", x, x)) == (x, x)
    assert factors(call("f32", x)) is None
    assert factors(Binary("*", n, n, type=Scalar(I32))) is None
    assert factors(x) is None


# --- casts


@pytest.mark.parametrize(
    ("name", "elem", "n", "text"),
    [
        ("f32", BF16, 2, ["shl.b32 %f0, %r0, 16;", "and.b32 %f1, %r0, 4294901760;"]),
        ("f32", F16, 2, ["mov.b32 {%h0, %h1}, %r0;", "cvt.f32.f16 %f0, %h0;", "cvt.f32.f16 %f1, %h1;"]),
        ("f32", I32, 1, ["cvt.rn.f32.s32 %f0, %r0;"]),
        ("f32", U32, 1, ["cvt.rn.f32.u32 %f0, %r0;"]),
        ("f32", F32, 2, []),
        ("bf16", F32, 4, ["cvt.rn.bf16x2.f32 %r0, %f1, %f0;", "cvt.rn.bf16x2.f32 %r1, %f3, %f2;"]),
        ("f16", F32, 2, ["cvt.rn.f16x2.f32 %r0, %f1, %f0;"]),
        ("bf16", BF16, 2, []),
    ],
)
def test_casts_of_tiles(name, elem, n, text):
    cx = Registers()
    out, have = lowered(cx, call(name, cx.frag("x", elem, n)))
    assert have == text
    assert len(out) == n * FUNCTIONS[name].result(Call(Name(name), (frag("x", elem, n),)), None).elem.bits // 32


def test_casts_of_scalars():
    cx = Registers()
    assert lowered(cx, call("f32", cx.scalar("c", I32)))[1] == ["cvt.rn.f32.s32 %f0, %r0;"]
    assert cx.registers(call("f32", Int(7, type=Scalar(I32)))) == (7.0,)


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_four_small_elements_go_into_one_register(name):
    cx = Registers()
    out, text = lowered(cx, call(name, cx.frag("x", F32, 4)))
    assert text == [
        f"cvt.rn.satfinite.{name}x2.f32 %h0, %f1, %f0;",
        f"cvt.rn.satfinite.{name}x2.f32 %h1, %f3, %f2;",
        "mov.b32 %r0, {%h0, %h1};",
    ]
    assert [str(x) for x in out] == ["%r0"]


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_small_elements_are_widened_through_f16(name):
    cx = Registers()
    elem = ELEMENTS[name]
    out, text = lowered(cx, call("f16", cx.frag("x", elem, 4)))
    pairs = ["mov.b32 {%h0, %h1}, %r0;", f"cvt.rn.f16x2.{name}x2 %r1, %h0;", f"cvt.rn.f16x2.{name}x2 %r2, %h1;"]
    assert text == pairs and [str(x) for x in out] == ["%r1", "%r2"]
    cx = Registers()
    out, text = lowered(cx, call("f32", cx.frag("x", elem, 4)))
    assert text[:3] == pairs and text[3] == "mov.b32 {%h2, %h3}, %r1;" and [str(x) for x in out] == ["%f0", "%f1", "%f2", "%f3"]
    assert [line.split()[0] for line in text[3:]] == ["mov.b32", "cvt.f32.f16", "cvt.f32.f16"] * 2


def test_a_target_that_cannot_widen_small_elements():
    lacks = SimpleNamespace(arch=SimpleNamespace(name="old", capabilities=frozenset()))
    for name in ("f32", "f16"):
        with pytest.raises(CakeError) as error:
            FUNCTIONS[name].result(Call(Name(name), (frag("x", ELEMENTS["e4m3"]),)), lacks)
        assert [(d.code, d.resource) for d in error.value.diagnostics] == [("type/missing-capability", "fp8_convert")]
        assert FUNCTIONS[name].result(Call(Name(name), (frag("x", F32),)), lacks)
    assert FUNCTIONS["e4m3"].capabilities == FUNCTIONS["e5m2"].capabilities == {"fp8_convert"}


def test_a_constant_is_packed_through_registers():
    cx = Registers()
    x = cx.frag("x", F32, 2)
    cx.held["x"] = (1.0, 2.0)
    assert lowered(cx, call("bf16", x))[1][-1] == "cvt.rn.bf16x2.f32 %r0, %f3, %f2;"


def test_infinity_is_an_immediate():
    cx = Registers()
    assert lowered(cx, binary("+", cx.scalar("x"), number(-math.inf)))[1] == ["add.rn.f32 %f1, %f0, 0fFF800000;"]


# --- typing


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda: call("+", scalar(F32), scalar(F32, Level.WARP)), Scalar(F32, Level.WARP)),
        (lambda: call("+", scalar(F32), frag("x", F32)), Value(F32, (128,))),
        (lambda: call("*", frag("x", F32), frag("y", F32)), Value(F32, (128,))),
        (lambda: call("f32", frag("x", BF16)), Value(F32, (128,))),
        (lambda: call("f32", scalar(I32, Level.INSTANCE)), Scalar(F32, Level.INSTANCE)),
        (lambda: call("bf16", call("+", frag("x", F32), scalar(F32))), Value(BF16, (128,))),
        (lambda: call("rsqrt", scalar(F32, Level.INSTANCE)), Scalar(F32, Level.INSTANCE)),
        (lambda: call("-", frag("x", F32)), Value(F32, (128,))),
    ],
)
def test_types(made, wanted):
    assert made().type == wanted


@pytest.mark.parametrize(
    ("made", "code", "words"),
    [
        (lambda: call("+", frag("x", BF16), scalar(F32)), "type/operand", "'+' takes f32, not bf16"),
        (lambda: call("*", scalar(I32), scalar(F32)), "type/operand", "'*' takes f32, not i32"),
        (lambda: call("+", frag("x", F32), frag("y", F32, 8)), "type/shape", "'+': shapes [128] and [256] do not meet"),
        (
            lambda: call("+", Name("a", type=Tile("shared", F32, ((128,),))), scalar(F32)),
            "type/operand",
            "'+' takes scalars and register tiles, not a shared f32[128]",
        ),
        (lambda: call("*", Name("a", type=Tile("frag", F32, ((2,), (128,)))), scalar(F32)), "type/operand", None),
        (lambda: call("f32", scalar(BOOL)), "type/operand", "'f32' takes bf16, f16, e4m3, e5m2, i32, u32, f32, not a bool"),
        (lambda: call("bf16", frag("x", F16)), "type/operand", None),
        (lambda: call("bf16", scalar(F32)), "type/not-implemented", "'bf16' of one scalar: scalars have 32 bits"),
        (lambda: call("rsqrt", scalar(F32), scalar(F32)), "type/arguments", "'rsqrt' takes 1 argument, not 2"),
        (lambda: call("*", scalar(F32)), "type/arguments", "'*' takes 2 arguments, not 1"),
    ],
)
def test_type_errors(made, code, words):
    with pytest.raises(CakeError) as error:
        made()
    (d,) = error.value.diagnostics
    assert d.code == code
    assert words is None or d.message == words


def test_a_pair_needs_two_elements():
    cx = Registers()
    with pytest.raises(CakeError, match="holds 1 element,"):
        cx.registers(call("bf16", cx.frag("x", F32, 1)))


# --- erf


def evaluated(text, x):
    """What instructions on f32 give, each rounded to f32; `ex2` as exact as f32 can be."""
    registers = {"%f0": x}

    def value(operand):
        return np.float32(struct.unpack(">f", bytes.fromhex(operand[2:]))[0]) if operand.startswith("0f") else registers[operand]

    steps = {
        "abs": np.abs,
        "min": np.minimum,  # of NaN and a number: NaN, as min.NaN
        "fma": lambda a, b, c: a.astype(np.float64) * b + c,
        "mul": lambda a, b: a.astype(np.float64) * b,
        "ex2": lambda a: np.exp2(a.astype(np.float64)),
        "sub": np.subtract,
        "neg": np.negative,
        "max": np.fmax,
        "copysign": lambda sign, of: np.copysign(of, sign),
    }
    for line in text:
        opcode, out, *operands = line.rstrip(";").replace(",", "").split()
        registers[out] = np.asarray(steps[opcode.split(".")[0]](*map(value, operands))).astype(np.float32)
    return registers[out]


def test_erf():
    """The error that its text states, less what the approximate exponential may add: 2**-22."""
    cx = Registers()
    _, text = lowered(cx, call("erf", cx.scalar("x")))
    assert [line.split(".")[0] for line in text] == ["abs", "min"] + ["fma"] * 6 + ["mul", "ex2", "sub", "copysign"]
    x = np.concatenate([np.linspace(-6, 6, 60_001), np.geomspace(1e-30, 4, 5_000)]).astype(np.float32)
    error = np.abs(evaluated(text, x) - np.vectorize(math.erf)(x.astype(np.float64)))
    assert error.max() < 5e-7 - 2.0**-22
    special = evaluated(text, np.array([0.0, -0.0, math.inf, -math.inf, math.nan], np.float32))
    assert special[:4].tolist() == [0, 0, 1, -1] and np.signbit(special[:2]).tolist() == [False, True] and np.isnan(special[4])


def test_gelu():
    """The error that its text states, beside the last rounding and less what the approximate exponential may add."""
    cx = Registers()
    _, text = lowered(cx, call("gelu", cx.scalar("x")))
    assert sorted(line.split(".")[0] for line in text) == sorted(["abs", "min", *["fma"] * 6, "ex2", "neg", "max"])
    x = np.concatenate([np.linspace(-9, 9, 60_001), np.geomspace(1e-30, 4, 5_000), -np.geomspace(1e-30, 4, 5_000)]).astype(np.float32)
    exact = x.astype(np.float64) * 0.5 * np.vectorize(math.erfc)(-x.astype(np.float64) / math.sqrt(2))
    error = np.abs(evaluated(text, x) - exact) - 2.0**-24 * np.abs(exact)
    assert error.max() < 7e-7 - 0.2 * 2.0**-22
    special = evaluated(text, np.array([0.0, -0.0, math.inf, -math.inf, math.nan], np.float32))
    assert special[:3].tolist() == [0, 0, math.inf] and abs(special[3]) < 1.2e-7 and np.isnan(special[4])


def test_every_function_cites_its_source():
    functions = {"abs", "exp2", "log2", "rcp", "rsqrt", "sqrt", "tanh", "erf", "gelu"}
    masks = {"<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "where", "min", "max"}
    assert {"+", "-", "*", "/", "f32", "bf16", "f16", "e4m3", "e5m2", "log"} | functions | masks == set(FUNCTIONS)
    assert all("PTX ISA" in f.doc for f in FUNCTIONS.values())
