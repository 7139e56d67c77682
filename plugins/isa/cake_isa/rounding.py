"""Rounding of exact values, apart from what numpy's own conversions do: to so many digits, in any direction, and without rounding twice.

A sum or product that does not fit into 53 bits is first rounded to odd, the one way of rounding after which a second one to fewer digits gives
what rounding once would have given (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008: two digits more are enough).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from cake_core.frozen import frozen

_WAYS = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda x: np.trunc(x + np.copysign(0.5, x)),
}  # of values below 2**52


@frozen
class Format:
    """A binary floating-point format. `digits`: of a significand, the hidden one among them; `least`: the exponent of the smallest value's bit;
    `top`: the largest finite value. `nan`: the bits of the canonical NaN (PTX ISA: 0x7fff, 0x7fffffff), None where there is none; `infinite`: it has
    infinities."""

    name: str
    bits: int
    digits: int
    least: int
    top: float
    nan: int | None
    infinite: bool = True


F32 = Format("f32", 32, 24, -149, float(np.finfo(np.float32).max), 0x7FFFFFFF)
F16 = Format("f16", 16, 11, -24, 65504.0, 0x7FFF)
BF16 = Format("bf16", 16, 8, -133, float.fromhex("0x1.fep127"), 0x7FFF)
TF32 = Format("tf32", 32, 11, -136, float.fromhex("0x1.ffcp127"), 0x7FFFFFFF)
E4M3 = Format("e4m3", 8, 4, -9, 448.0, 0x7F, infinite=False)
E5M2 = Format("e5m2", 8, 3, -16, 57344.0, 0x7F)
E2M3 = Format("e2m3", 6, 4, -3, 7.5, None, infinite=False)
E3M2 = Format("e3m2", 6, 3, -4, 28.0, None, infinite=False)
E2M1 = Format("e2m1", 4, 2, -1, 6.0, None, infinite=False)

FORMATS = {f.name: f for f in (F32, F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1)}


def rounded(x: np.ndarray, to: Format, way: str) -> np.ndarray:
    """x (float64) to the digits of a format, exponents above unlimited: float64. Ways: `rn` `rz` `rm` `rp` `rna` (ties away from zero)."""
    _, exponent = np.frexp(x)
    step = np.maximum(exponent - to.digits, to.least)
    return np.ldexp(_WAYS[way](np.ldexp(x, -step)), step)


def limited(x: np.ndarray, to: Format, way: str, saturates: bool = False) -> np.ndarray:
    """What `rounded` gave, where it is beyond the largest finite value: infinity, or that value where the direction or `saturates` forbids more (IEEE
    754, 7.4). Infinities stay, unless it saturates."""
    over = np.abs(x) > to.top
    if not over.any():
        return x
    stays = {"rn": False, "rna": False, "rz": True, "rm": x > 0, "rp": x < 0}[way]
    stays = True if saturates else stays & np.isfinite(x)
    return np.where(over, np.copysign(np.where(stays, to.top, np.inf), x), x)


def sum_to_odd(p: np.ndarray, c: np.ndarray) -> np.ndarray:
    """p + c (float64), rounded to odd; the error of the rounded sum is exact (Knuth, TwoSum)."""
    total = p + c
    part = total - p
    error = (p - (total - part)) + (c - part)
    wrong = (np.abs(error) > 0) & (total.view(np.int64) & 1 == 0)  # of an infinity or NaN the error is NaN
    if not wrong.any():
        return total
    towards = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(wrong, total.view(np.int64) + towards, total.view(np.int64)).view(np.float64)


_RISK = np.uint64(0x0FFFFFFF)


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z of float32, rounded once, to nearest. The product is exact in float64, and its sum rounded twice differs from rounding once only
    where what the first rounding left lies in the middle between two float32: its low 28 bits are zeros."""
    product = x.astype(np.float64) * y
    total = product + z
    if np.count_nonzero(total.view(np.uint64) & _RISK) != total.size:
        total = sum_to_odd(product, z.astype(np.float64))
    return total.astype(np.float32)


def exactly(value: Fraction, digits: int, least: int, way: str) -> float:
    """A rational number rounded to so many digits, as a float64; of what is not zero. Values beyond float64 are infinite or the largest, by the way."""
    negative, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    step = max(exponent + 1 - digits, least)
    scaled = size / Fraction(2) ** step
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    up = {
        "rn": 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and whole & 1),
        "rz": False,
        "rm": bool(rest) and negative,
        "rp": bool(rest) and not negative,
    }[way]
    try:
        result = math.ldexp(float(whole + bool(up)), step)
    except OverflowError:
        result = math.inf if way == "rn" or way == ("rm" if negative else "rp") else float(np.finfo(np.float64).max)
    return -result if negative else result


def root(value: Fraction, digits: int, least: int, way: str) -> float:
    """The square root of a positive rational number, rounded."""
    shift = 2 * (digits + 8) + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    shift += shift & 1
    scaled = (value.numerator << shift) // value.denominator
    whole = math.isqrt(scaled)
    inexact = whole * whole != scaled or scaled * value.denominator != value.numerator << shift
    return exactly(Fraction(2 * whole + inexact, 2 << shift // 2), digits, least, way)
