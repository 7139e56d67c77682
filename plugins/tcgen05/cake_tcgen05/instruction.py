"""Kinds of products and their instruction descriptor (PTX ISA, tcgen05.mma, Instruction Descriptor).

    bits  4-5    type of D: 1 is f32
    bits  7-9    type of A, bits 10-12 of B: of the kind, see KINDS
    bits 13-14   negate A, B: 0
    bit  15      A is MN-major; bit 16: B is
    bits 17-22   N >> 3
    bits 24-28   M >> 4
    all others   0: dense, no saturation, no shift

M and N are those of the whole instruction: of both CTAs in a pair. K is implied, 32 bytes of each row.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP_BYTES = 32
D_F32 = 1


@dataclass(frozen=True, slots=True)
class Kind:
    """`types`: element types and their codes. `word`: the product must ask for the kind by its name, since it takes its
    operands for something else than they are. `mixes`: A and B may be of different types."""

    name: str
    types: dict[str, int]
    word: bool = False
    mn_major: bool = True
    mixes: bool = False


KINDS = (
    Kind("f16", {"f16": 0, "bf16": 1}),
    # 32 bits of each element are read and 19 of them count (PTX ISA, tf32). MN-major needs another swizzle atom (table 54).
    Kind("tf32", {"f32": 2}, word=True, mn_major=False),
    Kind("f8f6f4", {"e4m3": 0, "e5m2": 1}, mixes=True),
)


def kind_of(a: str, b: str) -> Kind | None:
    """The kind that multiplies elements of these types."""
    return next((k for k in KINDS if a in k.types and b in k.types and (k.mixes or a == b)), None)


def instruction_descriptor(kind: Kind, a: str, b: str, m: int, n: int, a_mn_major: bool, b_mn_major: bool) -> int:
    return D_F32 << 4 | kind.types[a] << 7 | kind.types[b] << 10 | a_mn_major << 15 | b_mn_major << 16 | n >> 3 << 17 | m >> 4 << 24
