"""Arrays on the host as the element types of the language: bits in and out, without a library for bf16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.runtime.elements import Element

if TYPE_CHECKING:
    import numpy

#: numpy's name of each type; those that it does not have travel as unsigned bits.
BITS = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "|u1", "e5m2": "|u1", "ue8m0": "|u1", "e2m1x2": "|u1", "i32": "<i4", "u32": "<u4", "bool": "|u1"}
#: Bits of exponent and mantissa of the floats of 8 bits (PTX ISA, Alternate Floating-Point Data Formats).
FLOAT8 = {"e4m3": (4, 3), "e5m2": (5, 2)}
#: Bits of the numbers that stand in an e2m1x2, which numpy has as a byte.
FLOAT4 = (2, 1)
#: A ue8m0 is the exponent of a power of two and nothing else; all ones are NaN (PTX ISA, Alternate Floating-Point Data Formats).
UE8M0_BIAS = 127


def packed_bytes(array: numpy.ndarray) -> numpy.ndarray:
    """The array's bytes in row-major order, as uint8. Types foreign to numpy (ml_dtypes) have no buffer of their own."""
    import numpy

    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def element_name(array: numpy.ndarray) -> str:
    """The language's name of a numpy array's type; numpy's own where it has none."""
    return {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "ue8m0", "uint8": "e2m1x2", "int32": "i32", "uint32": "u32", "bool": "bool"}.get(array.dtype.name, array.dtype.name)


def to_float64(bits: numpy.ndarray, elem: Element) -> numpy.ndarray:
    """Values of an array of `BITS[elem]`, exactly; the last dimension of an e2m1x2 becomes twice as long."""
    import numpy

    if elem.name == "e2m1x2":
        halves = numpy.stack([bits & 15, bits >> 4], axis=-1)
        return float_values(*FLOAT4)[halves.reshape(*bits.shape[:-1], -1)]
    if elem.name == "bf16":
        bits = (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    if elem.name in FLOAT8:
        return float8_values(elem.name)[bits]
    if elem.name == "ue8m0":
        return numpy.where(bits == 255, numpy.nan, 2.0 ** (bits.astype(numpy.float64) - UE8M0_BIAS))
    return bits.astype(numpy.float64)


def float8_values(name: str) -> numpy.ndarray:
    """The value of each of the 256 patterns. e4m3 has no infinities, and NaN for all ones alone; e5m2 has both as IEEE types do."""
    import numpy

    exponent, mantissa = FLOAT8[name]
    values, half = float_values(exponent, mantissa), 1 << exponent + mantissa
    first = half - 1 if name == "e4m3" else half - (1 << mantissa)  # of what is no number
    values[first:half] = numpy.nan if name == "e4m3" else [numpy.inf, *[numpy.nan] * ((1 << mantissa) - 1)]
    values[half + first :] = -values[first:half]
    return values


def float_values(exponent: int, mantissa: int) -> numpy.ndarray:
    """The value of each pattern of a sign, so many bits of exponent and of mantissa, all of them numbers (PTX ISA, Alternate
    Floating-Point Data Formats)."""
    import numpy

    patterns = numpy.arange(1 << exponent + mantissa)
    e, m = patterns >> mantissa, patterns & (1 << mantissa) - 1
    bias = (1 << exponent - 1) - 1
    size = numpy.where(e == 0, m * 2.0 ** (1 - bias - mantissa), (1 + m * 2.0**-mantissa) * 2.0 ** (e - bias))
    return numpy.concatenate([size, -size])


def random_bits(shape: tuple[int, ...], elem: Element, rng: numpy.random.Generator) -> numpy.ndarray:
    """Random values as `BITS[elem]`: standard normal floats, any of 4 bits, scales of 1/8 to 8, integers of 0 to 99, either bool."""
    import numpy

    if elem.name == "bool":
        return rng.integers(0, 2, shape, dtype=numpy.uint8)
    if elem.lo is not None:
        return rng.integers(0, 100, shape).astype(BITS[elem.name])
    if elem.name == "e2m1x2":
        return rng.integers(0, 256, shape, dtype=numpy.uint8)
    if elem.name == "ue8m0":
        return rng.integers(UE8M0_BIAS - 3, UE8M0_BIAS + 4, shape, dtype=numpy.uint8)
    values = rng.standard_normal(shape, dtype=numpy.float32)
    if elem.name in FLOAT8:  # the nearest value in size; of two the smaller
        sizes = float8_values(elem.name)[:128]
        sizes = sizes[numpy.isfinite(sizes)]
        found = numpy.abs(values)
        above = numpy.clip(numpy.searchsorted(sizes, found), 1, len(sizes) - 1)
        nearest = numpy.where(found - sizes[above - 1] <= sizes[above] - found, above - 1, above)
        return (nearest + 128 * (values < 0)).astype(numpy.uint8)
    if elem.name != "bf16":
        return values.astype(BITS[elem.name])
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)
