"""Kinds of products and their instruction descriptor (PTX ISA, tcgen05.mma, Instruction Descriptor).

    bits  4-5    type of D: 1 is f32
    bits  7-9    type of A, bits 10-12 of B: of the kind, see KINDS
    bits 13-14   negate A, B: 0
    bit  15      A is MN-major; bit 16: B is
    bits 17-22   N >> 3
    bits 24-28   M >> 4
    all others   0: dense, no saturation, no shift

and of a product with block scales (table 43), D being f32:

    bits  4-5    which byte of a cell holds the scale of B's rows; bits 29-30: of A's
    bit  23      1: the scales are ue8m0
    bits 24-28   M >> 4, which for 128 and 256 are the bits of M >> 7 at 27

M and N are those of the whole instruction: of both CTAs in a pair. K is implied, 32 bytes of each row.
"""

from __future__ import annotations

from cake_core.frozen import frozen

STEP_BYTES = 32
D_F32 = 1
UE8M0 = 1


@frozen
class Kind:
    """`types`: element types and their codes. `word`: the product must ask for the kind by its name, since it takes its
    operands for something else than they are. `mixes`: A and B may be of different types. `scaled`: every 32 elements of a
    row along K have a scale."""

    name: str
    types: dict[str, int]
    word: bool = False
    mn_major: bool = True
    mixes: bool = False
    scaled: bool = False


KINDS = (
    Kind("f16", {"f16": 0, "bf16": 1}),
    # 32 bits of each element are read and 19 of them count (PTX ISA, tf32). MN-major needs another swizzle atom (table 54).
    Kind("tf32", {"f32": 2}, word=True, mn_major=False),
    Kind("f8f6f4", {"e4m3": 0, "e5m2": 1}, mixes=True),
    Kind("mxf8f6f4", {"e4m3": 0, "e5m2": 1}, mixes=True, scaled=True),
)


def kind_of(a: str, b: str, scaled: bool) -> Kind | None:
    """The kind that multiplies elements of these types, with block scales or without."""
    return next((k for k in KINDS if k.scaled == scaled and a in k.types and b in k.types and (k.mixes or a == b)), None)


def instruction_descriptor(kind: Kind, a: str, b: str, m: int, n: int, a_mn_major: bool, b_mn_major: bool, scale: int = 0) -> int:
    """`scale`: which byte of a cell holds the scales, of a kind that has them."""
    common = kind.types[a] << 7 | kind.types[b] << 10 | a_mn_major << 15 | b_mn_major << 16 | n >> 3 << 17 | m >> 4 << 24
    return common | (scale << 4 | UE8M0 << 23 | scale << 29 if kind.scaled else D_F32 << 4)
