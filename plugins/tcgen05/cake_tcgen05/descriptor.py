"""Descriptors of operands in shared memory (PTX ISA, tcgen05, Shared Memory Descriptor; Matrix Descriptor Encode).

    bits  0-13   start address >> 4
    bits 16-29   leading dimension byte offset >> 4
    bits 32-45   stride dimension byte offset >> 4
    bits 46-48   1
    bits 49-51   base offset: 0, every pattern starts at a multiple of 8 of its rows
    bit  52      0: the leading offset is relative
    bits 61-63   swizzle: 0 none, 2 is 128 bytes, 4 is 64, 6 is 32

A shared address has 18 bits, so that its upper 14 need no mask. Under a swizzle of S bytes a pattern is 8 rows of S bytes:

    K-major    stride from one group of 8 rows to the next, 8 S; the leading offset is not used, 1 as others write it
    MN-major   leading from one column panel (S bytes of M or N) to the next, stride from one group of 8 K to the next, 8 S

One instruction takes 32 bytes of K. The next step inside a pattern's rows adds 32 bytes to the start address and nothing else:
the swizzle permutes bits of the absolute address, so the pattern stays where it is.
"""

from __future__ import annotations

from cake_core.primitive import LowerContext, factors
from cake_core.primitive.factors import PATTERN, Factor
from cake_core.primitive.reached import Described
from cake_core.ptx.builder import Reg

VERSION = 1 << 46
MODE = {128: 2, 64: 4, 32: 6}


def constant_bits(swizzle: int, leading: int, stride: int) -> int:
    """All of a descriptor but the start address; offsets in bytes."""
    return MODE[swizzle] << 61 | VERSION | stride >> 4 << 32 | leading >> 4 << 16


def descriptor(cx: LowerContext, factor: Factor, swizzle: int) -> tuple[Reg, Described]:
    """The descriptor of the factor's first K step: three instructions, everything constant folded into one; and what it says."""
    leading = 16 if factor.k_major else cx.panel(factor.expr)[1]
    bits = constant_bits(swizzle, leading, PATTERN * swizzle)
    return factors.descriptor(cx, factor, swizzle, bits), described(bits)


def described(bits: int) -> Described:
    """The fields, as the ISA numbers them."""
    leading, stride = (bits >> at & 0x3FFF for at in (16, 32))
    return Described({0: 0, 2: 128, 4: 64, 6: 32}[bits >> 61], leading << 4, stride << 4)
