"""Conversions, bit for bit: against ml_dtypes where it has the type, against Python's numbers and tables by hand elsewhere."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from cake_isa import convert, rounding

from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers

SMALL = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 0x7F, 448.0),
    "e5m2": (ml_dtypes.float8_e5m2, 0x7F, 57344.0),
    "e2m3": (ml_dtypes.float6_e2m3fn, None, 7.5),
    "e3m2": (ml_dtypes.float6_e3m2fn, None, 28.0),
    "e2m1": (ml_dtypes.float4_e2m1fn, None, 6.0),
}


def patterns(seed: int, count: int = 4096) -> np.ndarray:
    """f32 of all kinds: every exponent, values in the middle between two of fewer digits, and their neighbours."""
    pick = np.random.default_rng(seed)
    drawn = pick.integers(0, 1 << 32, count, dtype=np.uint32)
    drawn[: count // 2] &= np.uint32(0xFFFFF000)  # many ties
    near = (pick.integers(100, 145, count, dtype=np.uint32) << 23) | (pick.integers(0, 1 << 23, count, dtype=np.uint32) & np.uint32(0xFFF80000))
    near |= pick.integers(0, 2, count, dtype=np.uint32) << 31
    ends = np.array(
        [
            0,
            1 << 31,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
            0xFFFFFFFF,
            1,
            0x80000001,
            0x7F7FFFFF,
            0x477FF000,
            0x477FEFFF,
            0x38800000,
            0x33000000,
            0x33000001,
        ],
        np.uint32,
    )
    return np.concatenate([ends, drawn, near, near + np.uint32(1), near - np.uint32(1)]).view(np.float32)


@pytest.mark.parametrize("name", [*SMALL, "f16", "bf16"])
def test_rounding_to_nearest_is_that_of_ml_dtypes(name):
    x = patterns(1)
    with np.errstate(all="ignore"):
        bits = convert.converted(x.astype(np.float64), rounding.FORMATS[name], "rn", name in SMALL, False)
    if name in ("f16", "bf16"):
        with np.errstate(all="ignore"):
            want = x.astype(np.float16 if name == "f16" else ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32)
        want[np.isnan(x)] = 0x7FFF
    else:
        dtype, nan, top = SMALL[name]
        with np.errstate(all="ignore"):
            want = np.clip(x, -top, top).astype(dtype).view(np.uint8).astype(np.uint32) & ((1 << rounding.FORMATS[name].bits) - 1)
        want[np.isnan(x)] = nan if nan is not None else int(np.array(top, dtype).view(np.uint8))
    assert np.flatnonzero(bits != want).tolist() == []
    if name == "bf16":
        with np.errstate(all="ignore"):
            assert (convert.bf16_nearest(x) == want).all()


@pytest.mark.parametrize("name", SMALL)
def test_values_of_small_floats_are_those_of_ml_dtypes(name):
    dtype, _, _ = SMALL[name]
    bits = rounding.FORMATS[name].bits
    want = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    np.testing.assert_array_equal(convert.values_of(rounding.FORMATS[name]), want)
    assert (np.signbit(convert.values_of(rounding.FORMATS[name])) == np.signbit(want))[~np.isnan(want)].all()


def halfway(digits: int) -> np.ndarray:
    return np.array(
        [
            1 + 2.0**-digits,
            1 + 3 * 2.0**-digits,
            -1 - 2.0**-digits,
            1 + 2.0**-digits + 2.0**-23,
            1 + 2.0**-digits - 2.0**-23,
            2.0,
            math.inf,
            -math.nan,
        ]
        * 4,
        np.float32,
    )


def test_pairs(execute):
    """a goes into the upper half; towards zero truncates; NaN is canonical."""
    a, b = halfway(8), halfway(11)[::-1].copy()
    text = """cvt.rn.bf16x2.f32 %n, %a, %b;
              cvt.rz.bf16x2.f32 %z, %a, %b;
              cvt.rn.relu.bf16x2.f32 %r, %a, %b;
              cvt.rn.f16x2.f32 %h, %b, %a;
              cvt.rz.relu.f16x2.f32 %k, %b, %a;
              cvt.rn.satfinite.f16x2.f32 %s, %c, %c;
              cvt.rn.satfinite.bf16x2.f32 %t, %c, %c;"""
    c = np.array([1e6, -1e6, math.inf, -math.inf, math.nan, 3.4e38, 65519.0, 65520.0] * 4, np.float32)
    run = execute(text, {"a": a, "b": b, "c": c}, dict.fromkeys("nzrhkst", "uint32"))
    assert [hex(v >> 16) for v in run["n"][:8]] == ["0x3f80", "0x3f82", "0xbf80", "0x3f81", "0x3f80", "0x4000", "0x7f80", "0x7fff"]
    assert [hex(v >> 16) for v in run["z"][:8]] == ["0x3f80", "0x3f81", "0xbf80", "0x3f80", "0x3f80", "0x4000", "0x7f80", "0x7fff"]
    assert [hex(v >> 16) for v in run["r"][:8]] == ["0x3f80", "0x3f82", "0x0", "0x3f81", "0x3f80", "0x4000", "0x7f80", "0x7fff"]
    with np.errstate(all="ignore"):
        lower, upper = a.astype(np.float16).view(np.uint16), b.astype(np.float16).view(np.uint16)
    assert [(v & 0xFFFF, v >> 16) for v in run["h"].tolist()] == [
        (0x7FFF if math.isnan(x) else int(p), 0x7FFF if math.isnan(y) else int(q)) for x, y, p, q in zip(a, b, lower, upper, strict=True)
    ]
    assert [hex(v >> 16) for v in run["k"][:8]] == ["0x7fff", "0x7c00", "0x4000", "0x3c00", "0x3c00", "0x0", "0x3c01", "0x3c00"]
    assert [hex(v >> 16) for v in run["s"][:8]] == ["0x7bff", "0xfbff", "0x7bff", "0xfbff", "0x7fff", "0x7bff", "0x7bff", "0x7bff"]
    assert [hex(v & 0xFFFF) for v in run["t"][:6]] == ["0x4974", "0xc974", "0x7f7f", "0xff7f", "0x7fff", "0x7f7f"]


def test_stochastic_rounding_adds_to_the_discarded_bits(execute):
    """1 + k/256 of a unit: up as soon as the random bits carry out of the discarded ones."""
    a = np.full(32, 1 + 0.75 * 2.0**-7, np.float32)  # bf16's unit is 2**-7: discarded 0xC000 of 0x10000
    b = np.full(32, -(1 + 0.25 * 2.0**-10), np.float32)
    r = np.array([0x3FFF0000, 0x40000000, 0x00000000, 0xFFFF0000, 0x000017FF, 0x00001800, 0, 0x00001FFF] * 4, np.uint32)
    run = execute("cvt.rs.bf16x2.f32 %u, %a, %b, %r;\ncvt.rs.f16x2.f32 %h, %a, %b, %r;", {"a": a, "b": b, "r": r}, {"u": "uint32", "h": "uint32"})
    assert [hex(v >> 16) for v in run["u"][:4]] == ["0x3f80", "0x3f81", "0x3f80", "0x3f81"]
    assert [hex(v & 0xFFFF) for v in run["h"][4:8]] == ["0xbc00", "0xbc01", "0xbc00", "0xbc01"]


def test_tf32(execute):
    a = np.array([1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-11 - 2.0**-23, 1 + 3 * 2.0**-11, 3.4028235e38, math.inf, math.nan, 1e-45] * 4, np.float32)
    text = """cvt.rna.tf32.f32 %a0, %a;
              cvt.rn.tf32.f32 %a1, %a;
              cvt.rz.tf32.f32 %a2, %a;
              cvt.rn.relu.tf32.f32 %a3, %a;
              cvt.rna.satfinite.tf32.f32 %a4, %a;"""
    run = execute(text, {"a": a}, {f"a{n}": "uint32" for n in range(5)})
    shown = [[hex(v) for v in run[f"a{n}"][:8]] for n in range(5)]
    assert shown[0] == ["0x3f802000", "0xbf802000", "0x3f800000", "0x3f804000", "0x7f800000", "0x7f800000", "0x7fc00000", "0x0"]
    assert shown[1] == ["0x3f800000", "0xbf800000", "0x3f800000", "0x3f804000", "0x7f800000", "0x7f800000", "0x7fffe000", "0x0"]
    assert shown[2] == ["0x3f800000", "0xbf800000", "0x3f800000", "0x3f802000", "0x7f7fe000", "0x7f800000", "0x7fffe000", "0x0"]
    assert shown[3][:2] == ["0x3f800000", "0x0"]
    assert shown[4][4:7] == ["0x7f7fe000", "0x7f7fe000", "0x7fc00000"]


def test_small_floats_are_packed_and_taken_apart(execute):
    a = np.array([1.0, -448.0, 500.0, -math.inf, math.nan, 2.0**-9, 2.0**-10, -0.0] * 4, np.float32)
    b = np.array([2.0] * 32, np.float32)
    text = """cvt.rn.satfinite.e4m3x2.f32 %e, %a, %b;
              cvt.rn.satfinite.relu.e5m2x2.f32 %f, %a, %b;
              cvt.rn.satfinite.e2m1x2.f32 %g, %a, %b;
              cvt.rn.satfinite.e3m2x2.f32 %h, %a, %b;
              cvt.rn.satfinite.e2m3x2.f32 %i, %a, %b;
              cvt.rn.f16x2.e4m3x2 %j, %e;
              cvt.rn.relu.f16x2.e2m1x2 %k, %g;
              cvt.rn.satfinite.e4m3x2.f16x2 %l, %j;
              cvt.rn.satfinite.e2m1x2.bf16x2 %m, %w;"""
    w = np.array([0x3F80C080] * 32, np.uint32)  # (-4, 1)
    outs = {"e": "uint16", "f": "uint16", "g": "uint8", "h": "uint16", "i": "uint16", "j": "uint32", "k": "uint32", "l": "uint16", "m": "uint8"}
    run = execute(text, {"a": a, "b": b, "w": w}, outs)
    assert [hex(v) for v in run["e"][:8]] == ["0x3840", "0xfe40", "0x7e40", "0xfe40", "0x7f40", "0x140", "0x40", "0x8040"]
    assert [hex(v) for v in run["f"][:5]] == ["0x3c40", "0x40", "0x6040", "0x40", "0x7f40"]
    assert [hex(v) for v in run["g"][:5]] == ["0x24", "0xf4", "0x74", "0xf4", "0x74"]
    assert [hex(v >> 8) for v in run["h"][:5]] == ["0xc", "0x3f", "0x1f", "0x3f", "0x1f"] and [hex(v >> 8) for v in run["i"][:5]] == [
        "0x8",
        "0x3f",
        "0x1f",
        "0x3f",
        "0x1f",
    ]
    assert [hex(v) for v in run["j"][:5]] == ["0x3c004000", "0xdf004000", "0x5f004000", "0xdf004000", "0x7fff4000"]
    assert [hex(v) for v in run["k"][:2]] == ["0x3c004000", "0x4000"]
    assert run["l"].tolist() == run["e"].tolist() and set(run["m"].tolist()) == {0x2E}


def test_scales(execute):
    a = np.array([1.0, 1.5, -3.0, 0.0, math.inf, math.nan, 3.4e38, 1e-45] * 4, np.float32)
    b = np.full(32, 0.5, np.float32)
    w = np.array([0x3FC04000] * 32, np.uint32)  # (2, 1.5)
    text = """cvt.rz.ue8m0x2.f32 %z, %a, %b;
              cvt.rp.satfinite.ue8m0x2.f32 %p, %a, %b;
              cvt.rp.ue8m0x2.bf16x2 %w2, %w;
              cvt.rn.bf16x2.ue8m0x2 %d, %z;"""
    run = execute(text, {"a": a, "b": b, "w": w}, {"z": "uint16", "p": "uint16", "w2": "uint16", "d": "uint32"})
    assert [hex(v) for v in run["z"][:8]] == ["0x7f7e", "0x7f7e", "0x807e", "0x7e", "0xff7e", "0xff7e", "0xfe7e", "0x7e"]
    assert [hex(v >> 8) for v in run["p"][:8]] == ["0x7f", "0x80", "0x81", "0x0", "0xfe", "0xff", "0xfe", "0x0"]
    assert set(run["w2"].tolist()) == {0x8080}
    assert [hex(v) for v in run["d"][:5]] == ["0x3f803f00", "0x3f803f00", "0x40003f00", "0x403f00", "0x7fff3f00"]


INTO = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


@pytest.mark.parametrize("come", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("to", INTO)
def test_floats_to_integers(execute, come, to):
    pick = random.Random(3)
    numbers = [
        0.5,
        1.5,
        -0.5,
        -1.5,
        2.5,
        1e30,
        -1e30,
        math.inf,
        -math.inf,
        math.nan,
        -0.0,
        127.5,
        255.5,
        32768.0,
        2.0**31,
        2.0**32 - 2.0**9,
        2.0**63,
        -(2.0**63),
    ]
    numbers = (numbers + [pick.uniform(-1, 1) * 2.0 ** pick.randint(0, 70) for _ in range(32)])[:32]
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[come]
    with np.errstate(all="ignore"):
        a = np.array(numbers).astype(dtype)
    width, store = int(to[1:]), f"uint{max(int(to[1:]), 16)}"
    run = execute("\n".join(f"cvt.r{w}i.{to}.{come} %{w}, %a;" for w in "nzmp"), {"a": a.view(f"uint{8 * a.itemsize}")}, dict.fromkeys("nzmp", store))
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    mask = (1 << 8 * np.dtype(store).itemsize) - 1

    def reference(x: float, way: str) -> int:
        if math.isnan(x):
            value = 1 << width - 1 if come == "f64" or width == 64 else 0
            return (value - (1 << width) if to[0] == "s" and value else value) & mask
        if math.isinf(x):
            return (high if x > 0 else low) & mask
        whole = {"n": round, "z": math.trunc, "m": math.floor, "p": math.ceil}[way](x)
        return max(low, min(whole, high)) & mask

    for way in "nzmp":
        assert run[way].tolist() == [reference(float(x), way) for x in a], way


@pytest.mark.parametrize("way", ["rn", "rz", "rm", "rp"])
def test_integers_to_floats(execute, way):
    pick = random.Random(5)
    a = [0, 1, 2**24 + 1, 2**24 + 3, 2**63, 2**64 - 1, 2**53 + 1, 2**53 + 3, 65519, 65520, 2**31, 257, 2**31 - 1] + [
        pick.getrandbits(pick.randint(1, 64)) for _ in range(19)
    ]
    a = np.array(a, np.uint64)
    kinds = ("u64", "s64", "u32", "s32", "u16", "s8")
    text = "\n".join(f"cvt.{way}.{t}.{k} %{t}_{k}, %a;" for t in ("f16", "bf16", "f32", "f64") for k in kinds)
    run = execute(text, {"a": a}, {f"{t}_{k}": f"uint{t.lstrip('bf')}" for t in ("f16", "bf16", "f32", "f64") for k in kinds})
    forms = {"f16": (11, 65504), "bf16": (8, (2 - Fraction(1, 128)) * 2**127), "f32": (24, 2**128), "f64": (53, 2**1023)}
    for t, (digits, top) in forms.items():
        for k in kinds:
            for got, v in zip(run[f"{t}_{k}"].tolist(), a.tolist(), strict=True):
                width = int(k[1:])
                v &= (1 << width) - 1
                v -= 1 << width if k[0] == "s" and v >> width - 1 else 0
                unit = 1 << max(abs(v).bit_length() - digits, 0)
                below = v // unit * unit
                above = below + (unit if below != v else 0)
                near = below if v - below < above - v else above if v - below > above - v else below if below // unit % 2 == 0 else above
                want = {"rn": near, "rm": below, "rp": above, "rz": below if v > 0 else above}[way]
                if abs(want) > top:
                    stays = way == "rz" or (way == "rm" and v > 0) or (way == "rp" and v < 0)
                    want = math.copysign(top if stays else math.inf, v)
                dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[t]
                assert got == int(np.array(float(want)).astype(dtype).view(f"uint{t.lstrip('bf')}")), (t, k, v)


def test_integers_of_other_sizes(execute):
    a = np.array([0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, -(2**31), 77] * 2, np.int32)
    text = """cvt.u8.u32 %b, %a;
              cvt.s32.s8 %c, %a;
              cvt.s64.s32 %d, %a;
              cvt.u64.u32 %e, %a;
              cvt.sat.s8.s32 %f, %a;
              cvt.sat.u16.s32 %g, %a;
              cvt.sat.s32.u32 %h, %a;
              cvt.u32.u64 %i, %d;
              cvt.sat.u32.s64 %j, %d;"""
    outs = {"b": "uint32", "c": "int32", "d": "int64", "e": "uint64", "f": "int32", "g": "uint32", "h": "int32", "i": "uint32", "j": "uint32"}
    run = execute(text, {"a": a}, outs)
    v = a.tolist()
    byte = lambda x: (x + 128 & 255) - 128
    assert run["b"].tolist() == [x & 255 for x in v] and run["c"].tolist() == [byte(x) for x in v]
    assert run["d"].tolist() == v and run["e"].tolist() == [x & 0xFFFFFFFF for x in v] and run["i"].tolist() == [x & 0xFFFFFFFF for x in v]
    assert run["f"].tolist() == [max(-128, min(x, 127)) for x in v] and run["g"].tolist() == [max(0, min(x, 65535)) for x in v]
    assert run["h"].tolist() == [min(x & 0xFFFFFFFF, 2**31 - 1) for x in v] and run["j"].tolist() == [max(x, 0) for x in v]


def test_between_floats(execute):
    d = np.array([1 + 2.0**-24, 1 + 3 * 2.0**-24, -1e-46, 1e300, math.nan, -math.inf, 2.0**-130 * 1.3, 65520.0] * 4)
    f = np.array([0.5, 1.5, -0.5, 2.0**-127, math.nan, -2.5, 3.0, 1e30] * 4, np.float32)
    text = """cvt.rn.f32.f64 %a0, %d;
              cvt.rz.f32.f64 %a1, %d;
              cvt.rm.f32.f64 %a2, %d;
              cvt.rp.f32.f64 %a3, %d;
              cvt.rn.ftz.f32.f64 %a4, %d;
              cvt.rni.f32.f32 %a5, %f;
              cvt.rzi.ftz.f32.f32 %a6, %f;
              cvt.sat.f32.f32 %a7, %f;
              cvt.f64.f32 %g, %f;
              cvt.rn.f16.f64 %h, %d;
              cvt.f32.f16 %i, %h;
              cvt.rn.bf16.f16 %j, %h;
              cvt.f32.bf16 %k, %j;
              cvt.rn.f16.bf16 %l, %j;
              cvt.rni.f16.f16 %m, %h;
              cvt.bf16.f16 %o, %h;
              cvt.f16.bf16 %q, %j;"""
    outs = {
        "o": "uint16",
        "q": "uint16",
        **{f"a{n}": "uint32" for n in range(8)},
        "g": "float64",
        "h": "uint16",
        "i": "uint32",
        "j": "uint16",
        "k": "uint32",
        "l": "uint16",
        "m": "uint16",
    }
    run = execute(text, {"d": d, "f": f}, outs)
    shown = lambda n: [hex(v) for v in run[n][:8]]
    assert shown("a0") == [
        "0x3f800000",
        "0x3f800002",
        "0x80000000",
        "0x7f800000",
        "0x7fffffff",
        "0xff800000",
        hex(int(np.float32(2.0**-130 * 1.3).view(np.uint32))),
        "0x477ff000",
    ]
    assert shown("a1")[:4] == ["0x3f800000", "0x3f800001", "0x80000000", "0x7f7fffff"]
    assert shown("a2")[:4] == ["0x3f800000", "0x3f800001", "0x80000001", "0x7f7fffff"]
    assert shown("a3")[:4] == ["0x3f800001", "0x3f800002", "0x80000000", "0x7f800000"]
    assert shown("a4")[6] == "0x0"
    assert run["a5"].view(np.float32)[:8].tolist()[:4] == [0.0, 2.0, 0.0, 0.0] and run["a5"][2] == 0x80000000 and run["a5"][5] == 0xC0000000
    assert run["a6"][:8].tolist() == [0, 0x3F800000, 0x80000000, 0, 0x7FFFFFFF, 0xC0000000, 0x40400000, int(np.float32(1e30).view(np.uint32))]
    assert shown("a7") == ["0x3f000000", "0x3f800000", "0x0", "0x400000", "0x0", "0x0", "0x3f800000", "0x3f800000"]
    np.testing.assert_array_equal(run["g"], f.astype(np.float64))
    assert shown("h") == ["0x3c00", "0x3c00", "0x8000", "0x7c00", "0x7fff", "0xfc00", "0x0", "0x7c00"]
    assert shown("i") == ["0x3f800000", "0x3f800000", "0x80000000", "0x7f800000", "0x7fffffff", "0xff800000", "0x0", "0x7f800000"]
    assert shown("j")[:6] == ["0x3f80", "0x3f80", "0x8000", "0x7f80", "0x7fff", "0xff80"]
    assert shown("k")[:4] == ["0x3f800000", "0x3f800000", "0x80000000", "0x7f800000"] and shown("l")[:4] == ["0x3c00", "0x3c00", "0x8000", "0x7c00"]
    assert run["o"].tolist() == run["j"].tolist() and run["q"].tolist() == run["l"].tolist()
    assert shown("m")[:3] == ["0x3c00", "0x3c00", "0x8000"]


def test_packed_integers(execute):
    a, b = np.array([70000, -70000, 5, -1] * 8, np.int32), np.array([1, 2, -40000, 300] * 8, np.int32)
    c = np.full(32, 0xAABBCCDD, np.uint32)
    text = "cvt.pack.sat.s16.s32 %p, %a, %b;\ncvt.pack.sat.u16.s32 %q, %a, %b;\ncvt.pack.sat.u8.s32.b32 %r, %a, %b, %c;\ncvt.pack.sat.s8.s32.b32 %s, %a, %b, %c;"
    run = execute(text, {"a": a, "b": b, "c": c}, dict.fromkeys("pqrs", "uint32"))
    assert [hex(v) for v in run["p"][:4]] == ["0x7fff0001", "0x80000002", "0x58000", "0xffff012c"]
    assert [hex(v) for v in run["q"][:4]] == ["0xffff0001", "0x2", "0x50000", "0x12c"]
    assert [hex(v) for v in run["r"][:4]] == ["0xccddff01", "0xccdd0002", "0xccdd0500", "0xccdd00ff"]
    assert [hex(v) for v in run["s"][:4]] == ["0xccdd7f01", "0xccdd8002", "0xccdd0580", "0xccddff7f"]


@pytest.mark.parametrize(
    "text",
    [
        "cvt.s32.f32 %d, %a;",
        "cvt.f16.f32 %d, %a;",
        "cvt.f32.s32 %d, %a;",
        "cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %a, %a, %a}, %a;",
        "cvt.rn.satfinite.s2f6x2.f32 %d, %a, %a;",
        "cvt.rn.u32.s32 %d, %a;",
    ],
)
def test_forms_that_are_not_there_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": np.zeros(32, np.float32)}, {"d": "uint32"}, emulates)
