"""Floating-point arithmetic against rational numbers: each result is the exact one rounded once, in every direction, with IEEE's rules for what has
no value."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers

#: Significand's digits, exponent of the least bit, the largest finite value.
F16, BF16 = (11, -24, Fraction(65504)), (8, -133, (2 - Fraction(1, 128)) * 2**127)
F32, F64 = (24, -149, (2 - Fraction(1, 2**23)) * 2**127), (53, -1074, (2 - Fraction(1, 2**52)) * Fraction(2) ** 1023)
NAN32 = 0x7FFFFFFF


def round_once(value: Fraction, form, way: str) -> float:
    """Not of zero. Searches the two neighbours among multiples of the unit in the last place, and takes one."""
    digits, least, top = form
    size = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    unit = Fraction(2) ** max(least, size - digits - 2)
    while abs(value) >= unit * 2**digits:
        unit *= 2
    below = math.floor(value / unit) * unit
    above = below if below == value else below + unit
    if way == "rm":
        out = below
    elif way == "rp":
        out = above
    elif way == "rz":
        out = below if value > 0 else above
    else:
        low, high = value - below, above - value
        out = below if low < high else above if high < low else (below if (below / unit) % 2 == 0 else above)
    if abs(out) > top:
        beyond = math.inf if out > 0 else -math.inf
        stays = way == "rz" or (way == "rm" and out > 0) or (way == "rp" and out < 0)
        return math.copysign(float(top), out) if stays else beyond
    if out == 0:
        return -0.0 if value < 0 else 0.0
    return float(out)


def singles(seed: int) -> np.ndarray:
    """32 patterns of f32 with all kinds among them."""
    pick = random.Random(seed)
    ends = [
        0,
        1 << 31,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00001,
        0xFFFFFFFF,
        1,
        0x807FFFFF,
        0x00800000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x33800000,
    ]
    near = [0x3F800000 + pick.getrandbits(24) for _ in range(10)]
    pick.shuffle(ends)
    return np.array((ends + near + [pick.getrandbits(32) for _ in range(32)])[:32], np.uint32)


def values(bits: np.ndarray) -> list[float]:
    return [float(v) for v in bits.view(np.float32)]


def special(op: str, *v: float) -> float | None:
    """The result where it is no rounding of a number other than zero: IEEE's."""
    with np.errstate(all="ignore"):
        x = [np.float64(n) for n in v]
        plain = {"add": lambda: x[0] + x[1], "sub": lambda: x[0] - x[1], "mul": lambda: x[0] * x[1], "fma": lambda: x[0] * x[1] + x[2]}[op]()
    if not all(map(math.isfinite, v)):
        if op == "fma" and math.isfinite(v[0]) and math.isfinite(v[1]):
            return v[2]
        return float(plain)
    return None


def expected(op: str, form, way: str, *v: float) -> float:
    if (found := special(op, *v)) is not None:
        return found
    x = [Fraction(n) for n in v]
    exact = {"add": lambda: x[0] + x[1], "sub": lambda: x[0] - x[1], "mul": lambda: x[0] * x[1], "fma": lambda: x[0] * x[1] + x[2]}[op]()
    if exact:
        return round_once(exact, form, way)
    negative = [math.copysign(1, n) < 0 for n in v]
    if op == "mul":
        return -0.0 if negative[0] != negative[1] else 0.0
    one, two = (negative[0] != negative[1], negative[2]) if op == "fma" else (negative[0], negative[1] != (op == "sub"))
    return -0.0 if (one and two) or (way == "rm" and (one or two)) else 0.0


def bits32(value: float) -> int:
    return NAN32 if math.isnan(value) else int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("way", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_f32_is_rounded_once(execute, op, way):
    for seed in range(3):
        a, b, c = (singles(seed * 3 + n) for n in range(3))
        if seed == 2:  # products that a summand nearly cancels, and halves of units
            with np.errstate(all="ignore"):
                c = (-a.view(np.float32).astype(np.float64) * b.view(np.float32)).astype(np.float32).view(np.uint32)
        names = "abc"[: 3 if op == "fma" else 2]
        given = {"a": a, "b": b, "c": c}
        run = execute(f"{op}.{way}.f32 %d, {', '.join('%' + n for n in names)};", {n: given[n] for n in names}, {"d": "uint32"})
        rows = zip(*(values(given[n]) for n in names), strict=True)
        assert run["d"].tolist() == [bits32(expected(op, F32, way, *r)) for r in rows]


def test_fma_that_two_roundings_would_get_wrong(execute):
    """The sum lies so near to the middle of two f32 that float64 rounds it onto the middle."""
    a = np.full(32, 1 + 2.0**-12, np.float32)
    b = np.full(32, 1 + 2.0**-12, np.float32)  # product 1 + 2**-11 + 2**-24
    c = np.array([2.0**-60, -(2.0**-60), 2.0**-100, -(2.0**-100)] * 8, np.float32)
    run = execute("fma.rn.f32 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": "float32"})
    up, down = np.float32(1 + 2.0**-11 + 2.0**-23), np.float32(1 + 2.0**-11)
    assert run["d"].tolist() == [up, down] * 16


@pytest.mark.parametrize("way", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_f64_is_rounded_once(execute, op, way):
    pick = random.Random(7)
    ends = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**-1022, 1 + 2.0**-52]
    a, b, c = (np.array(pick.sample(ends, 12) + [pick.uniform(-2, 2) * 2.0 ** pick.randint(-60, 60) for _ in range(20)]) for _ in range(3))
    given = {"a": a, "b": b, "c": c}
    names = "abc"[: 3 if op == "fma" else 2]
    run = execute(f"{op}.{way}.f64 %d, {', '.join('%' + n for n in names)};", {n: given[n] for n in names}, {"d": "float64"})
    for got, row in zip(run["d"].tolist(), zip(*(given[n].tolist() for n in names), strict=True), strict=True):
        want = expected(op, F64, way, *row)
        assert (math.isnan(got) and math.isnan(want)) or (got == want and math.copysign(1, got) == math.copysign(1, want)), row


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_halves_are_rounded_once(execute, op, kind):
    pick = random.Random(11)
    form, dtype = (F16, np.float16) if kind == "f16" else (BF16, ml_dtypes.bfloat16)
    ends = [0, 0x8000, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FFF, 1, 0x8001, 0x3C00, 0xBC00, 0x3F80, 0x7BFF, 0x7F7F, 0x400, 0x80]
    given = {n: np.array((pick.sample(ends, 16) + [pick.getrandbits(16) for _ in range(48)]), np.uint16) for n in "abc"}
    names = "abc"[: 3 if op == "fma" else 2]
    registers = {n: np.ascontiguousarray(given[n]).view(np.uint32) for n in names}
    listed = ", ".join("%" + n for n in names)
    run = execute(f"{op}{'.rn' if op == 'fma' else ''}.{kind}x2 %d, {listed};", registers, {"d": "uint32"})
    one = execute(f"{op}.rn.{kind} %d, {listed};", {n: given[n][:32] for n in names}, {"d": "uint16"})
    wanted = []
    for row in zip(*(given[n].view(dtype).astype(np.float64).tolist() for n in names), strict=True):
        value = expected(op, form, "rn", *row)
        wanted.append(0x7FFF if math.isnan(value) else int(np.array(value).astype(dtype).view(np.uint16)))
    assert run["d"].view(np.uint16).tolist() == wanted
    assert one["d"].tolist() == wanted[:32]


@pytest.mark.parametrize("way", ["rn", "rz", "rm", "rp"])
def test_quotients_and_roots(execute, way):
    a, b = singles(21), singles(22)
    a[:4] = np.array([1.0, 1e38, 1e-38, 3.0], np.float32).view(np.uint32)
    b[:4] = np.array([3.0, 1e-5, 1e10, 7.0], np.float32).view(np.uint32)
    run = execute(f"div.{way}.f32 %q, %a, %b;\nrcp.{way}.f32 %r, %b;\nsqrt.{way}.f32 %s, %a;", {"a": a, "b": b}, dict.fromkeys("qrs", "uint32"))

    def quotient(x: float, y: float) -> int:
        if math.isfinite(x) and math.isfinite(y) and x and y:
            return bits32(round_once(Fraction(x) / Fraction(y), F32, way))
        with np.errstate(all="ignore"):
            return bits32(float(np.float32(x) / np.float32(y)))

    def root(x: float) -> int:
        if not math.isfinite(x) or x <= 0:
            return bits32(x if x == 0 or x == math.inf else math.nan)
        value = Fraction(x)
        whole = math.isqrt((value.numerator << 800) // value.denominator)  # 400 bits behind the point
        exact = Fraction(whole, 1 << 400)
        return bits32(round_once(exact if exact * exact == value else exact + Fraction(1, 1 << 401), F32, way))

    assert run["q"].tolist() == [quotient(x, y) for x, y in zip(values(a), values(b), strict=True)]
    assert run["r"].tolist() == [quotient(1.0, y) for y in values(b)]
    assert run["s"].tolist() == [root(x) for x in values(a)]


def test_flushing_and_saturation(execute):
    a = np.array([0x00000001, 0x80000001, 0x007FFFFF, 0x3F800000, 0x40000000, 0xBF800000, 0x7FC00000, 0x00800000] * 4, np.uint32)
    zero, one = np.zeros(32, np.uint32), np.full(32, 0x3F800000, np.uint32)
    half = np.full(32, 0x3F000000, np.uint32)
    text = """add.ftz.f32 %d, %a, %z;
              mul.ftz.f32 %e, %a, %h;
              mul.f32 %f, %a, %h;
              add.sat.f32 %g, %a, %z;
              fma.rn.ftz.sat.f32 %h2, %a, %o, %z;"""
    run = execute(text, {"a": a, "z": zero, "o": one, "h": half}, {"d": "uint32", "e": "uint32", "f": "uint32", "g": "uint32", "h2": "uint32"})
    assert [hex(v) for v in run["d"][:8]] == ["0x0", "0x0", "0x0", "0x3f800000", "0x40000000", "0xbf800000", "0x7fffffff", "0x800000"]
    assert [hex(v) for v in run["e"][:8]] == ["0x0", "0x80000000", "0x0", "0x3f000000", "0x3f800000", "0xbf000000", "0x7fffffff", "0x0"]
    assert [hex(v) for v in run["f"][:8]] == ["0x0", "0x80000000", "0x400000", "0x3f000000", "0x3f800000", "0xbf000000", "0x7fffffff", "0x400000"]
    assert [hex(v) for v in run["g"][:8]] == ["0x1", "0x0", "0x7fffff", "0x3f800000", "0x3f800000", "0x0", "0x0", "0x800000"]
    assert [hex(v) for v in run["h2"][:8]] == ["0x0", "0x0", "0x0", "0x3f800000", "0x3f800000", "0x0", "0x0", "0x800000"]


def test_relu_and_packed_singles_and_mixed_types(execute):
    a = np.array([0xBC003C00, 0x7E008000] * 16, np.uint32)  # (1, -1), (-0, NaN)
    one = np.full(32, 0x3C003C00, np.uint32)
    zero = np.zeros(32, np.uint32)
    run = execute("fma.rn.relu.f16x2 %d, %a, %o, %z;", {"a": a, "o": one, "z": zero}, {"d": "uint32"})
    assert [hex(v) for v in run["d"][:2]] == ["0x3c00", "0x7fff0000"]
    x, y = np.linspace(-3, 3, 64).astype(np.float32), np.linspace(1, 2, 64).astype(np.float32)
    run = execute(
        "add.rn.f32x2 %s, %x, %y;\nmul.rn.f32x2 %p, %x, %y;", {"x": x.view(np.uint64), "y": y.view(np.uint64)}, {"s": "uint64", "p": "uint64"}
    )
    assert (run["s"].view(np.float32) == x + y).all() and (run["p"].view(np.float32) == x * y).all()
    h = np.linspace(-5, 5, 32).astype(np.float16)
    run = execute(
        "add.rn.f32.f16 %d, %h, %x;\nfma.rn.f32.f16 %e, %h, %h, %x;", {"h": h.view(np.uint16), "x": x[:32]}, {"d": "float32", "e": "float32"}
    )
    assert (run["d"] == h.astype(np.float32) + x[:32]).all()
    assert run["e"].tolist() == [round_once(Fraction(float(v)) ** 2 + Fraction(float(z)), F32, "rn") for v, z in zip(h, x, strict=False)]


NUMBERS = [0.0, -0.0, 1.0, -2.0, 5.0, math.inf, -math.inf, math.nan]


def test_least_and_greatest(execute):
    a, b = (np.array(v, np.float32) for v in (NUMBERS * 4, [v for v in (0.0, -0.0, math.nan, 1.5) for _ in range(8)]))
    text = "\n".join(
        f"{op}{mods}.f32 %{op}{n}, %a, %b;" for op in ("min", "max") for n, mods in enumerate(("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"))
    )
    run = execute(text, {"a": a, "b": b}, {f"{op}{n}": "uint32" for op in ("min", "max") for n in range(4)})

    def choose(op: str, x: float, y: float, nan: bool, xorsign: bool) -> int:
        sign = (math.copysign(1, x) < 0) != (math.copysign(1, y) < 0)
        if xorsign:
            x, y = abs(x), abs(y)
        if math.isnan(x) or math.isnan(y):
            if nan or (math.isnan(x) and math.isnan(y)):
                return NAN32
            out = y if math.isnan(x) else x
        else:
            ordered = sorted((x, y), key=lambda v: (v, math.copysign(1, v)))
            out = ordered[0] if op == "min" else ordered[1]
        return bits32(-out if xorsign and sign else out)

    for op in ("min", "max"):
        for n, (nan, xorsign) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
            assert run[f"{op}{n}"].tolist() == [choose(op, float(x), float(y), nan, xorsign) for x, y in zip(a, b, strict=True)], (op, n)


def test_least_of_three_and_of_halves(execute):
    a, b = (np.array([1.0, -4.0, math.nan, 2.0] * 8, np.float32) for _ in range(2))
    c = np.array([-3.0, 3.0, 1.0, math.nan] * 8, np.float32)
    run = execute("min.f32 %m, %a, %b, %c;\nmax.abs.f32 %x, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"m": "float32", "x": "float32"})
    assert run["m"][:4].tolist() == [-3.0, -4.0, 1.0, 2.0] and run["x"][:4].tolist() == [3.0, 4.0, 1.0, 2.0]
    h = np.array([0x80000000, 0x3F803C00] * 16, np.uint32)  # (0, -0), ..
    z = np.zeros(32, np.uint32)
    run = execute("min.f16x2 %m, %h, %z;\nmax.bf16x2 %x, %h, %z;", {"h": h, "z": z}, {"m": "uint32", "x": "uint32"})
    assert [hex(v) for v in run["m"][:2]] == ["0x80000000", "0x0"] and [hex(v) for v in run["x"][:2]] == ["0x0", "0x3f803c00"]


def test_signs(execute):
    a = np.array([0x80000000, 0x7FC00001, 0xFF800000, 0x00000001] * 8, np.uint32)
    b = np.array([0x3F800000] * 32, np.uint32)
    text = "neg.f32 %n, %a;\nabs.f32 %p, %a;\nneg.ftz.f32 %f, %a;\ncopysign.f32 %c, %a, %b;\nneg.f16x2 %h, %a;\nabs.bf16x2 %i, %a;"
    run = execute(text, {"a": a, "b": b}, dict.fromkeys("npfchi", "uint32"))
    assert [hex(v) for v in run["n"][:4]] == ["0x0", "0xffc00001", "0x7f800000", "0x80000001"]
    assert [hex(v) for v in run["p"][:4]] == ["0x0", "0x7fc00001", "0x7f800000", "0x1"]
    assert [hex(v) for v in run["f"][:4]] == ["0x0", "0xffc00001", "0x7f800000", "0x80000000"]
    assert [hex(v) for v in run["c"][:4]] == ["0xbf800000", "0x3f800000", "0xbf800000", "0x3f800000"]
    assert [hex(v) for v in run["h"][:4]] == ["0x8000", "0xffc08001", "0x7f808000", "0x80008001"]
    assert [hex(v) for v in run["i"][:4]] == ["0x0", "0x7fc00001", "0x7f800000", "0x1"]


def test_kinds_of_numbers(execute):
    a = np.array([0.0, 1.0, 1e-40, math.inf, math.nan, -1e-40, 2.0**-126, -math.inf] * 4, np.float32)
    tests = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    run = execute("\n".join(f"testp.{t}.f32 %{t}, %a;" for t in tests), {"a": a}, dict.fromkeys(tests, "bool"))
    assert {t: "".join(str(int(v)) for v in run[t][:8]) for t in tests} == {
        "finite": "11100110", "infinite": "00010001", "number": "11110111", "notanumber": "00001000", "normal": "11000010", "subnormal": "00100100",
    }  # fmt: skip


def test_approximations_keep_the_bounds_of_the_isa(execute):
    a = np.array([2.0 ** (n / 2 - 8) * 1.1 for n in range(32)], np.float32)
    small = np.linspace(-3.1, 3.1, 32).astype(np.float32)
    text = """rcp.approx.f32 %rcp, %a;
              rsqrt.approx.f32 %rsqrt, %a;
              sqrt.approx.f32 %sqrt, %a;
              lg2.approx.f32 %lg2, %a;
              ex2.approx.ftz.f32 %ex2, %s;
              sin.approx.f32 %sin, %s;
              cos.approx.f32 %cos, %s;
              tanh.approx.f32 %tanh, %s;
              div.approx.f32 %div, %s, %a;
              div.full.f32 %full, %s, %a;"""
    names = ("rcp", "rsqrt", "sqrt", "lg2", "ex2", "sin", "cos", "tanh", "div", "full")
    run = execute(text, {"a": a, "s": small}, dict.fromkeys(names, "float32"))
    relative = {
        "rcp": (lambda x, s: 1 / x, 2.0**-23), "rsqrt": (lambda x, s: x**-0.5, 2.0**-22.9), "sqrt": (lambda x, s: x**0.5, 2.0**-23),
        "ex2": (lambda x, s: 2**s, 2.0**-22), "tanh": (lambda x, s: math.tanh(s), 2.0**-11), "div": (lambda x, s: s / x, 2.0**-22),
        "full": (lambda x, s: s / x, 2.0**-22),
    }  # fmt: skip
    absolute = {"sin": (math.sin, 2.0**-20.5), "cos": (math.cos, 2.0**-20.5)}
    for lane, (x, s) in enumerate(zip(a.tolist(), small.tolist(), strict=True)):
        for name, (f, bound) in relative.items():
            assert abs(float(run[name][lane]) - f(x, s)) <= bound * abs(f(x, s)), (name, x, s)
        for name, (f, bound) in absolute.items():
            assert abs(float(run[name][lane]) - f(s)) <= bound
        assert abs(float(run["lg2"][lane]) - math.log2(x)) <= 2.0**-22 * max(1, abs(math.log2(x)))


def test_approximations_at_the_edges(execute):
    a = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, 1e-40, 2.0**127] * 4, np.float32)
    names = ("rcp", "rsqrt", "sqrt", "lg2", "ex2", "sin", "tanh")
    text = "\n".join(f"{n}.approx.f32 %{n}, %a;\n{n}.approx.ftz.f32 %{n}f, %a;" for n in names if n != "tanh") + "\ntanh.approx.f32 %tanh, %a;"
    run = execute(text, {"a": a}, {**dict.fromkeys(names, "float32"), **{f"{n}f": "float32" for n in names if n != "tanh"}})
    shown = lambda n: [str(v) for v in run[n][:6].tolist()]
    assert shown("rcp") == ["inf", "-inf", "0.0", "-0.0", "nan", "-1.0"]
    assert shown("rsqrt") == ["inf", "-inf", "0.0", "nan", "nan", "nan"]
    assert shown("sqrt") == ["0.0", "-0.0", "inf", "nan", "nan", "nan"]
    assert shown("lg2") == ["-inf", "-inf", "inf", "nan", "nan", "nan"]
    assert shown("ex2") == ["1.0", "1.0", "inf", "0.0", "nan", "0.5"]
    assert shown("sin") == ["0.0", "-0.0", "nan", "nan", "nan", str(float(np.float32(math.sin(-1))))]
    assert shown("tanh")[:5] == ["0.0", "-0.0", "1.0", "-1.0", "nan"]
    assert run["rcpf"][6] == math.inf and run["rcpf"][7] == 0 and run["rcp"][7] == np.float32(2.0**-127) and run["lg2f"][6] == -math.inf
    big = np.array([2.0**127, 2.0**127, 2.0**127, 2.0**126] * 8, np.float32)
    x = np.array([1.0, math.inf, -1.0, 1.0] * 8, np.float32)
    run = execute("div.approx.f32 %d, %x, %b;\ndiv.full.f32 %f, %x, %b;", {"x": x, "b": big}, {"d": "float32", "f": "float32"})
    assert [str(v) for v in run["d"][:4].tolist()] == ["0.0", "nan", "-0.0", str(2.0**-126)]
    assert run["f"][0] == np.float32(2.0**-127)


def test_halves_of_approximations(execute):
    h = np.linspace(-4, 4, 64).astype(np.float16)
    run = execute(
        "ex2.approx.f16x2 %e, %h;\ntanh.approx.f16x2 %t, %h;\ntanh.approx.bf16x2 %b, %h;", {"h": h.view(np.uint32)}, dict.fromkeys("etb", "uint32")
    )
    x = h.astype(np.float64)
    assert (np.abs(run["e"].view(np.float16) / np.exp2(x) - 1) <= 2.0**-9.9).all()
    assert (np.abs(run["t"].view(np.float16) - np.tanh(x)) <= 2.0**-10.987).all()
    y = h.view(ml_dtypes.bfloat16).astype(np.float64)
    assert (np.abs(run["b"].view(ml_dtypes.bfloat16).astype(np.float64) - np.tanh(y)) <= 2.0**-8)[~np.isnan(y)].all()


def test_gross_approximations_of_f64(execute):
    a = np.array([3.0, -0.1, 1e300, 5e-324, math.inf, 0.0, 2.0**-1000, math.nan] * 4)
    run = execute(
        "rcp.approx.ftz.f64 %r, %a;\nrsqrt.approx.ftz.f64 %s, %a;\nrsqrt.approx.f64 %t, %a;", {"a": a}, {"r": "uint64", "s": "uint64", "t": "float64"}
    )
    assert abs(run["t"][0] * math.sqrt(3) - 1) < 2.0**-51 and run["t"][6] == 2.0**500
    assert (run["r"] & np.uint64(0xFFFFFFFF) == 0).all()
    r, s = run["r"].view(np.float64), run["s"].view(np.float64)
    assert abs(r[0] * 3 - 1) < 2.0**-19 and abs(r[1] * -0.1 - 1) < 2.0**-19 and abs(s[0] ** 2 * 3 - 1) < 2.0**-18
    assert r[3] == math.inf and r[4] == 0 and r[5] == math.inf and math.isnan(s[1]) and math.isnan(r[7]) and s[3] == math.inf


@pytest.mark.parametrize(
    "text",
    [
        "add.rz.f16 %d, %a, %a;",
        "mul.f32.f16 %d, %a, %a;",
        "fma.rn.oob.f32 %d, %a, %a, %a;",
        "fma.rn.sat.oob.f16 %d, %a, %a, %a;",
        "min.xorsign.f32 %d, %a, %a;",
        "div.f32 %d, %a, %a;",
        "sqrt.approx.f64 %d, %a;",
    ],
)
def test_forms_that_are_not_there_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": np.zeros(32, np.float32)}, {"d": "float32"}, emulates)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_factor_from_outside_of_a_tensor_makes_zero(emulates, kind):
    """fma.oob: of a factor, whichever it is and whatever its sign; of the summand it is a NaN as any other."""
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    rows = [(0x7FF7, one, one), (0xFFF7, one, one), (one, 0x7FF7, 0x7FFF), (0x7FF7, 0x7FFF, 0x7FFF), (0x7FFF, one, one), (one, one, 0x7FF7), (one, one, one)]
    a, b, c = (np.array([r[n] for r in rows] + [0] * (32 - len(rows)), np.uint16) for n in range(3))
    double = {"f16": 0x4000, "bf16": 0x4000}[kind]
    wanted = [0, 0, 0, 0, 0x7FFF, 0x7FFF, double]
    run = on_registers(f"fma.rn.oob.{kind} %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": "uint16"}, emulates)
    assert run["d"][: len(rows)].tolist() == wanted
    wide = {n: x.astype(np.uint32) * 0x10001 for n, x in (("a", a), ("b", b), ("c", c))}
    run = on_registers(f"fma.rn.oob.{kind}x2 %d, %a, %b, %c;", wide, {"d": "uint32"}, emulates)
    assert run["d"][: len(rows)].tolist() == [w * 0x10001 for w in wanted]
