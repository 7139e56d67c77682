"""Numbers of matrix units: every code of every small format, and how sums are rounded."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from cake_core.ptx import numbers

OTHERS = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_in_a_run():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("kind", OTHERS)
def test_every_code_of_a_small_float(kind):
    codes = np.arange(64 if kind in ("e3m2", "e2m3") else 256, dtype=np.uint8)
    found, expected = numbers.values(codes, kind), codes.view(OTHERS[kind]).astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(expected[there]))


def test_two_of_four_bits_in_a_byte():
    codes = np.arange(256, dtype=np.uint8)
    of = lambda n, type: np.array([n], np.uint8).view(type).astype(np.float64)[0]
    expected = [v for c in codes.tolist() for v in (of(c & 15, ml_dtypes.float4_e2m1fn), of(c >> 4, ml_dtypes.float4_e2m1fn))]
    np.testing.assert_array_equal(numbers.values(codes, "e2m1"), expected)
    np.testing.assert_array_equal(numbers.values(codes, "u4"), [v for c in codes.tolist() for v in (c & 15, c >> 4)])
    np.testing.assert_array_equal(numbers.values(codes, "s4"), [v - 16 * (v > 7) for c in codes.tolist() for v in (c & 15, c >> 4)])


def test_a_scale_without_a_sign():
    codes = np.arange(128, dtype=np.uint8)
    np.testing.assert_array_equal(numbers.values(codes, "ue4m3"), codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64))


@pytest.mark.parametrize(("kind", "type"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_code_of_sixteen_bits(kind, type):
    codes = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(numbers.values(codes.view(np.uint8), kind), codes.view(type).astype(np.float64))


def test_tf32_has_nineteen_bits():
    x = np.array([1.0, 1.0 + 2.0**-10, 1.0 + 2.0**-11, -1.0 - 2.0**-23, 2.0**-140, np.inf], np.float32)
    np.testing.assert_array_equal(numbers.values(x.view(np.uint8), "tf32"), [1, 1 + 2.0**-10, 1, -1, float(x[4]) // 2.0**-136 * 2.0**-136, np.inf])


def test_bits_and_integers():
    assert numbers.values(np.array([0b10000101], np.uint8), "b1").tolist() == [1, 0, 1, 0, 0, 0, 0, 1]
    assert numbers.values(np.array([0x80, 0x7F, 0xFF], np.uint8), "s8").tolist() == [-128, 127, -1]
    assert numbers.values(np.array([0x80, 0xFF], np.uint8), "u8").tolist() == [128, 255]


def test_sums_are_cut_off_towards_zero():
    """The greatest f32 that is not greater in magnitude, by fractions."""
    rng = np.random.default_rng(0)
    sums = np.concatenate(
        [rng.standard_normal(200) * 2.0 ** rng.integers(-150, 120, 200), [0.0, -0.0, 1.0, 2.0**-149, 1.5 * 2.0**-149, -(2.0**24) - 1]]
    )
    for x, f in zip(sums.tolist(), numbers.cut(sums), strict=True):
        exact, got = abs(Fraction(x)), abs(Fraction(float(f)))
        assert got <= exact < abs(Fraction(float(np.nextafter(np.abs(f), np.float32(np.inf)))))
        assert np.signbit(f) == np.signbit(x)


def test_what_has_no_number():
    bits = lambda x: numbers.cut(np.array([x])).view(np.uint32)[0]
    assert (bits(np.nan), bits(np.inf), bits(-1e300)) == (numbers.NAN, 0x7F800000, 0xFF800000)
    assert numbers.halves(np.array([np.nan, 65520.0, 2049.0])).view(np.uint16).tolist() == [0x7FFF, 0x7C00, 0x6800]


def test_integers_wrap_or_saturate():
    sums = np.array([2**31, -(2**31) - 1, 5, 2**33 + 7])
    assert numbers.wrapped(sums, False).tolist() == [-(2**31), 2**31 - 1, 5, 7]
    assert numbers.wrapped(sums, True).tolist() == [2**31 - 1, -(2**31), 5, 2**31 - 1]
