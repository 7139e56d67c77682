"""Numbers that matrix units take and give, as numpy arrays: bits to values, and sums as the units round them.

Values are float64, in which each number of the formats below and each product of two is exact. Formats are PTX's words (PTX ISA, Alternate Floating
Point Data Formats; Fixed-point; Tensor Core formats): f16 bf16 tf32 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3 f64 s8 u8 s4 u4 b1.
"""

from __future__ import annotations

from functools import cache

import numpy as np

#: Bits of exponent and mantissa, and what the greatest exponent holds: 'ieee' infinities and NaN, 'nan' NaN in the greatest mantissa alone,
#: 'none' numbers (PTX ISA, Alternate Floating Point Data Formats; OCP 8-bit Floating Point and Microscaling Formats).
SMALL = {
    "e4m3": (4, 3, "nan"),
    "e5m2": (5, 2, "ieee"),
    "e3m2": (3, 2, "none"),
    "e2m3": (2, 3, "none"),
    "e2m1": (2, 1, "none"),
}
#: Bits of an element as it lies in registers and memory where elements stand side by side.
BITS = {
    "f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 4, "ue8m0": 8, "ue4m3": 8,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
#: The NaN that matrix units give: all bits but the sign (PTX ISA, Warp-level Matrix Instructions: NaN payloads are not kept).
NAN = 0x7FFFFFFF


@cache
def table(kind: str) -> np.ndarray:
    """The value of each code of a float of at most 8 bits, (256,) or fewer; codes of `ue8m0` and `ue4m3` too."""
    if kind == "ue8m0":  # 2 ** (code - 127), 255 is NaN
        values = np.ldexp(1.0, np.arange(256) - 127)
        values[255] = np.nan
        return values
    if kind == "ue4m3":  # the sign is not there: seven bits of an e4m3
        return table("e4m3")[:128]
    exponent_bits, bits, top = SMALL[kind]
    codes = np.arange(1 << 1 + exponent_bits + bits)
    fraction, exponent = codes & (1 << bits) - 1, codes >> bits & (1 << exponent_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    values = np.ldexp(fraction + np.where(exponent > 0, 1 << bits, 0).astype(float), np.maximum(exponent, 1) - bias - bits)
    greatest = exponent == (1 << exponent_bits) - 1
    if top == "ieee":
        values[greatest] = np.where(fraction[greatest] == 0, np.inf, np.nan)
    elif top == "nan":
        values[greatest & (fraction == (1 << bits) - 1)] = np.nan
    values[codes >> bits + exponent_bits == 1] *= -1.0
    return values


def values(data: np.ndarray, kind: str) -> np.ndarray:
    """The elements in bytes, float64: uint8 (.., n) to (.., 8 n / bits). Elements of less than a byte stand the first in the low bits; six-bit floats
    have a byte each, of which the low six bits count. Of tf32 the low 13 bits are cut off (PTX ISA: truncated before the multiplication)."""
    match kind:
        case "f16":
            return data.view(np.float16).astype(np.float64)
        case "bf16":
            return (data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        case "tf32":
            return (data.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        case "f64":
            return data.view(np.float64)
        case "s8":
            return data.view(np.int8).astype(np.float64)
        case "u8":
            return data.astype(np.float64)
        case "s4":
            nibbles = _nibbles(data).astype(np.int8)
            return (nibbles - ((nibbles & 8) << 1)).astype(np.float64)
        case "u4":
            return _nibbles(data).astype(np.float64)
        case "b1":
            return np.unpackbits(data, axis=-1, bitorder="little").astype(np.float64)
        case "e2m1":
            return table(kind)[_nibbles(data)]
        case "e3m2" | "e2m3":
            return table(kind)[data & 63]
        case "ue4m3":
            return table(kind)[data & 127]
    return table(kind)[data]


def _nibbles(data: np.ndarray) -> np.ndarray:
    out = np.empty((*data.shape[:-1], data.shape[-1], 2), np.uint8)
    out[..., 0] = data & 15
    out[..., 1] = data >> 4
    return out.reshape(*data.shape[:-1], data.shape[-1] * 2)


def cut(sums: np.ndarray) -> np.ndarray:
    """float64 to float32, towards zero, as matrix units drop what they have no bits for (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA
    tensor cores, 2021; the PTX ISA leaves the rounding open). What is too great for an f32 is infinite; a NaN is `NAN`."""
    out = sums.astype(np.float32)
    up = np.abs(out) > np.abs(sums)
    if up.any():
        up &= np.isfinite(out)
        out.view(np.uint32)[up] -= np.uint32(1)
    return known_nan(out)


def known_nan(out: np.ndarray) -> np.ndarray:
    """float32 with `NAN` for each NaN, in place."""
    strange = np.isnan(out)
    if strange.any():
        out.view(np.uint32)[strange] = np.uint32(NAN)
    return out


def halves(sums: np.ndarray) -> np.ndarray:
    """float64 to float16, to the nearest, ties to even; a NaN is 0x7FFF."""
    out = sums.astype(np.float16)
    strange = np.isnan(out)
    if strange.any():
        out.view(np.uint16)[strange] = np.uint16(0x7FFF)
    return out


def wrapped(sums: np.ndarray, saturate: bool) -> np.ndarray:
    """int64 to int32: the low 32 bits, or the nearest number that there is (PTX ISA, Warp-level Matrix Instructions: .satfinite)."""
    if saturate:
        return np.clip(sums, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    return (sums & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
