"""Arrays on the host as the element types of the language: bits in and out, without a library for bf16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.runtime.elements import Element

if TYPE_CHECKING:
    import numpy

#: numpy's name of each type; bf16 has none of its own and travels as uint16 bits.
BITS = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "u32": "<u4", "bool": "|u1"}


def packed_bytes(array: numpy.ndarray) -> numpy.ndarray:
    """The array's bytes in row-major order, as uint8. Types foreign to numpy (ml_dtypes) have no buffer of their own."""
    import numpy

    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def element_name(array: numpy.ndarray) -> str:
    """The language's name of a numpy array's type; numpy's own where it has none."""
    return {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "uint32": "u32", "bool": "bool"}.get(array.dtype.name, array.dtype.name)


def to_float64(bits: numpy.ndarray, elem: Element) -> numpy.ndarray:
    """Values of an array of `BITS[elem]`, exactly."""
    import numpy

    if elem.name == "bf16":
        bits = (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    return bits.astype(numpy.float64)


def random_bits(shape: tuple[int, ...], elem: Element, rng: numpy.random.Generator) -> numpy.ndarray:
    """Random values as `BITS[elem]`: standard normal floats, integers of 0 to 99, either bool."""
    import numpy

    if elem.name == "bool":
        return rng.integers(0, 2, shape, dtype=numpy.uint8)
    if elem.lo is not None:
        return rng.integers(0, 100, shape).astype(BITS[elem.name])
    values = rng.standard_normal(shape, dtype=numpy.float32)
    if elem.name != "bf16":
        return values.astype(BITS[elem.name])
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)
