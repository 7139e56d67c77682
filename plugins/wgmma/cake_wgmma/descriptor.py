"""Matrix descriptors: how a product finds its operands in shared memory (PTX ISA, Matrix Descriptor Format).

    bits  0-13   start address >> 4
    bits 16-29   leading dimension byte offset >> 4
    bits 32-45   stride dimension byte offset >> 4
    bits 49-51   base offset, 0 where every pattern starts at a multiple of 8 rows
    bits 62-63   swizzle: 1 is 128 bytes, 2 is 64, 3 is 32

A shared address has 18 bits, so that its upper 14 need no mask. A swizzle of B bytes has a pattern of 8 rows of B bytes; the
stride is from one pattern to the next below it, 8 * B. The leading offset is used by the MN-major layout only, from one column
panel to the next; K-major it is 1 by convention. Both layouts of both factors ran right under all three swizzles, in one panel
and in several (H200, driver 580.159.04).
"""

from __future__ import annotations

from cake_core.primitive import LowerContext, factors
from cake_core.primitive.factors import PATTERN, Factor
from cake_core.primitive.reached import Described
from cake_core.ptx.builder import Reg

MODE = {128: 1, 64: 2, 32: 3}


def descriptor(cx: LowerContext, factor: Factor, swizzle: int) -> tuple[Reg, Described]:
    """The descriptor of the factor's first K step: three instructions, everything constant folded into one; and what it says."""
    leading = 1 if factor.k_major else cx.panel(factor.expr)[1] >> 4
    bits = MODE[swizzle] << 62 | PATTERN * swizzle >> 4 << 32 | leading << 16
    return factors.descriptor(cx, factor, swizzle, bits), described(bits)


def described(bits: int) -> Described:
    """The fields, as the ISA numbers them."""
    leading, stride = (bits >> at & 0x3FFF for at in (16, 32))
    return Described({0: 0, 1: 128, 2: 64, 3: 32}[bits >> 62], leading << 4, stride << 4)
