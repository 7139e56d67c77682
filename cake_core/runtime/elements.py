"""Element types as the outside world names them: DLPack codes, array-interface strings, torch and driver names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """One element type of the language.

    `dlpack`: (type code, bits) of DLPack's DLDataType, one lane. `typestr`: of the array interface (None: it has no
    string for it). `torch`: name in torch. `map_type`: suffix of CUtensorMapDataType (None: no tensor map of it).
    `pack`: struct format of a scalar kernel parameter.
    """

    name: str
    bytes: int
    dlpack: tuple[int, int]
    typestr: str | None
    torch: str
    map_type: str | None
    pack: str | None = None
    lo: int | None = None
    hi: int | None = None

    def __str__(self) -> str:
        return self.name


# DLPack's DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool.
ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        Element("f32", 4, (2, 32), "<f4", "float32", "FLOAT32", "<f"),
        Element("f16", 2, (2, 16), "<f2", "float16", "FLOAT16"),
        Element("bf16", 2, (4, 16), None, "bfloat16", "BFLOAT16"),
        Element("i32", 4, (0, 32), "<i4", "int32", "INT32", "<i", -(2**31), 2**31 - 1),
        Element("u32", 4, (1, 32), "<u4", "uint32", "UINT32", "<I", 0, 2**32 - 1),
        Element("bool", 1, (6, 8), "|b1", "bool", None),
    )
}
BY_DLPACK = {e.dlpack: e for e in ELEMENTS.values()}
BY_TYPESTR = {e.typestr: e for e in ELEMENTS.values() if e.typestr}
BY_TORCH = {f"torch.{e.torch}": e for e in ELEMENTS.values()}
