"""Element types as the outside world names them: DLPack codes, array-interface strings, torch and driver names."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """One element type of the language; there is one object of each, compared and hashed by identity.

    `dlpack`: (type code, bits) of DLPack's DLDataType, `lanes` its lanes. `typestr`: of the array interface (None: it has no
    string for it). `torch`: name in torch. `map_type`: suffix of CUtensorMapDataType (None: no tensor map of it).
    `lo`, `hi`: what an integer type holds (None: a float).
    """

    name: str
    bytes: int
    dlpack: tuple[int, int]
    typestr: str | None
    torch: str
    map_type: str | None
    lo: int | None = None
    hi: int | None = None
    lanes: int = 1

    def __str__(self) -> str:
        return self.name


# DLPack's DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2, 14 float8_e8m0fnu,
# 17 float4_e2m1fn.
ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        Element("f32", 4, (2, 32), "<f4", "float32", "FLOAT32"),
        Element("f16", 2, (2, 16), "<f2", "float16", "FLOAT16"),
        Element("bf16", 2, (4, 16), None, "bfloat16", "BFLOAT16"),
        Element("e4m3", 1, (10, 8), None, "float8_e4m3fn", "UINT8"),
        Element("e5m2", 1, (12, 8), None, "float8_e5m2", "UINT8"),
        Element("ue8m0", 1, (14, 8), None, "float8_e8m0fnu", "UINT8"),
        Element("e2m1x2", 1, (17, 4), None, "float4_e2m1fn_x2", "UINT8", lanes=2),
        Element("i32", 4, (0, 32), "<i4", "int32", "INT32", -(2**31), 2**31 - 1),
        Element("u32", 4, (1, 32), "<u4", "uint32", "UINT32", 0, 2**32 - 1),
        Element("bool", 1, (6, 8), "|b1", "bool", None, 0, 1),
    )
}
BY_DLPACK = {(*e.dlpack, e.lanes): e for e in ELEMENTS.values()}
BY_TYPESTR = {e.typestr: e for e in ELEMENTS.values() if e.typestr}
BY_TORCH = {f"torch.{e.torch}": e for e in ELEMENTS.values()}


def scalar_cell(elem: Element, value: int | float) -> bytes:
    """A scalar kernel parameter as the 8 bytes that its pointer points to, little-endian; the entry reads the first ones.

    Integers are sign-extended, floats rounded to nearest, ties to even. Raises OverflowError for a finite float that
    the type can't hold.
    """
    match elem.name:
        case "f32":
            data = struct.pack("<f", value)
        case "f16":
            data = struct.pack("<e", value)
        case "bf16":
            data = struct.pack("<H", bf16_bits(value))
        case _:
            data = struct.pack("<q", value)
    return data.ljust(8, b"\0")


def bf16_bits(value: float) -> int:
    """The bf16 nearest to a float32 value, ties to even, as bits. A NaN stays a NaN."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
