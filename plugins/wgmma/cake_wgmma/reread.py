"""What warpgroup products do to their groups, and what of shared memory they read, from the PTX ISA (Asynchronous Warpgroup Level Matrix Instructions)
and apart from lowering."""

from __future__ import annotations

from functools import lru_cache

from cake_core.ptx.acts import Act, Moment, Reread, committed, drained, fenced, form_of, in_rank, used
from cake_core.ptx.matrices import matrix_used
from cake_core.ptx.reader import Statement

QUEUE = "wgmma"  # the wgmma-group of the executing threads
BLOCK = 64  # rows of A
#: Bits 62-63 of a descriptor (Matrix Descriptor Format).
SWIZZLE = {0: 0, 1: 128, 2: 64, 3: 32}
#: Types as an opcode names them, by what a text calls them, and their bytes.
TYPES = {"bf16": ("bf16", 2), "f16": ("f16", 2), "tf32": ("f32", 4), "e4m3": ("e4m3", 1), "e5m2": ("e5m2", 1), "s8": ("i8", 1), "u8": ("u8", 1)}


def _product(s: Statement, at: Moment) -> tuple[Act, ...]:
    """`d, a, b, scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a} , imm-trans-b}` of `.shape.dtype.atype.btype`: a and b in shared memory are descriptors.
    A in registers has no imm-trans-a; types of other sizes than 16 bits have neither."""
    operands = s.operands
    a, b, turned = operands[1], operands[2], operands[6:]
    columns, kinds = _shape(s.opcode)
    if operands[4:6] != (1, 1):  # factors are negated, or the number is none of the two that there are
        return (used(QUEUE, 0, 16, form_of(f"factors times {operands[4:6]}")),)
    found = _matrix(at.value(b), at.rank, kinds[1], columns, bool(turned and turned[-1]))
    return found if not isinstance(a, str) else (*_matrix(at.value(a), at.rank, kinds[0], BLOCK, bool(turned and turned[0])), *found)


@lru_cache(64)
def _shape(opcode: str) -> tuple[int, tuple[str, str]]:
    """N, and the types of A and B."""
    words = opcode.split(".")
    return int(next(w for w in words if w.startswith("m64n"))[4:].partition("k")[0]), (words[-2], words[-1])


@lru_cache(1024)
def _matrix(bits: int, rank: int, kind: str, rows: int, turned: bool) -> tuple[Act, ...]:
    elem, size = TYPES[kind]
    swizzle, stride, leading = SWIZZLE[bits >> 62 & 3], (bits >> 32 & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4
    first = in_rank((bits & 0x3FFF) << 4, rank)
    form = form_of(elem, swizzle) if bits >> 49 & 7 == 0 else form_of(f"a base offset of {bits >> 49 & 7}")
    return tuple(matrix_used(QUEUE, first, stride, leading, swizzle, size, rows, turned, form))


REREADS = (
    Reread("wgmma.mma_async", _product, writes=True, doc="PTX ISA, wgmma.mma_async"),
    Reread("wgmma.fence", lambda s, at: (fenced("registers"),), doc="PTX ISA, wgmma.fence"),
    Reread("wgmma.commit_group", lambda s, at: (committed(QUEUE),), doc="PTX ISA, wgmma.commit_group"),
    Reread("wgmma.wait_group", lambda s, at: (drained(QUEUE, at.value(s.operands[0])),), doc="PTX ISA, wgmma.wait_group"),
)
