"""Kinds of products and their instruction descriptor (PTX ISA, tcgen05.mma, Instruction Descriptor).

    bits  4-5    type of D: 1 is f32
    bits  7-9    type of A, bits 10-12 of B: of the kind, see KINDS
    bits 13-14   negate A, B: 0
    bit  15      A is MN-major; bit 16: B is
    bits 17-22   N >> 3
    bits 24-28   M >> 4
    all others   0: dense, no saturation, no shift

and of a product with block scales (tables 43, 44), D being f32:

    bits  4-5    which byte of a cell holds the first scale of B's rows; bits 29-30: of A's
    bit  23      1: the scales are ue8m0, 0: ue4m3
    bits 24-28   M >> 4, which for 128 and 256 are the bits of M >> 7 at 27

M and N are those of the whole instruction: of both CTAs in a pair. K is implied, 32 bytes of each row. Two e2m1 are a byte, the first in
the low half, without padding.
"""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_tcgen05.engine import SCALES

STEP_BYTES = 32
D_F32 = 1
#: By the element type of the scales: bit 23. An e4m3 that is not negative is a ue4m3.
SCALE_TYPES = {"ue8m0": 1, "e4m3": 0}


@frozen
class Kind:
    """`types`: element types and their codes. `word`: the product must ask for the kind by its name, since it takes its
    operands for something else than they are. `mixes`: A and B may be of different types. `scale`: element type of the block
    scales, `per_step` of which an instruction takes of each row: one for every 32, 32 or 16 numbers along K."""

    name: str
    types: dict[str, int]
    word: bool = False
    mn_major: bool = True
    mixes: bool = False
    scale: str | None = None
    per_step: int = 0

    @property
    def opcode(self) -> str:
        return f"kind::{self.name}" + (f".block_scale.scale_vec::{self.per_step}X" if self.scale else "")

    @property
    def block_bytes(self) -> int:
        """Of a row along K, that the scales of one cell are for; 0 without scales."""
        return SCALES // self.per_step * STEP_BYTES if self.scale else 0


KINDS = (
    Kind("f16", {"f16": 0, "bf16": 1}),
    # 32 bits of each element are read and 19 of them count (PTX ISA, tf32). MN-major needs another swizzle atom (table 54).
    Kind("tf32", {"f32": 2}, word=True, mn_major=False),
    Kind("f8f6f4", {"e4m3": 0, "e5m2": 1}, mixes=True),
    Kind("mxf8f6f4", {"e4m3": 0, "e5m2": 1}, mixes=True, scale="ue8m0", per_step=1),
    Kind("mxf4", {"e2m1x2": 1}, mn_major=False, scale="ue8m0", per_step=2),
    Kind("mxf4nvf4", {"e2m1x2": 1}, mn_major=False, scale="e4m3", per_step=4),
)


def kind_of(a: str, b: str, scale: str | None) -> Kind | None:
    """The kind that multiplies elements of these types, with block scales of that type or without any."""
    return next((k for k in KINDS if k.scale == scale and a in k.types and b in k.types and (k.mixes or a == b)), None)


def instruction_descriptor(kind: Kind, a: str, b: str, m: int, n: int, a_mn_major: bool, b_mn_major: bool, first: int = 0) -> int:
    """`first`: which byte of a cell holds the first scale, of a kind that has them."""
    common = kind.types[a] << 7 | kind.types[b] << 10 | a_mn_major << 15 | b_mn_major << 16 | n >> 3 << 17 | m >> 4 << 24
    return common | (first << 4 | SCALE_TYPES[kind.scale] << 23 | first << 29 if kind.scale else D_F32 << 4)
