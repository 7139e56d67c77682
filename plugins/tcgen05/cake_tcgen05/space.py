"""`tmem x: T[slots][rows, columns]`: a buffer in the tensor memory of a CTA."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.ir.build import call
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Block, Expr
from cake_core.ir.types import Elem
from cake_core.primitive import Form, Space, WordSpec
from cake_tcgen05.engine import CAPABILITIES, LANES, ROWS, SCALE_LANES, SCALES
from cake_tcgen05.instruction import SCALE_TYPES

COLUMN_BITS = 32


@dataclass(frozen=True, kw_only=True)
class TensorMemory(Space):
    """Row m of 128 is lane m, row m of 64 lane 32 (m / 16) + m mod 16; a column holds 32 bits of each row: one element of 32 bits, or
    two of 16, the first in the low half.

    Block scales are another matter: the four of row m are one cell of lane m mod 32, column m / 32, and lie there four times,
    32 lanes apart (PTX ISA, tcgen05, block scaling, scale factor layouts)."""

    def columns(self, shape: tuple[int, ...], elem: Elem) -> int | None:
        if elem.name in SCALE_TYPES:
            return shape[0] // SCALE_LANES if len(shape) == 2 and shape[0] % LANES == 0 and shape[1] == SCALES else None
        if len(shape) != 2 or shape[0] not in ROWS or shape[1] * elem.bits % COLUMN_BITS:
            return None
        return shape[1] * elem.bits // COLUMN_BITS

    def allocate(self, where: Expr, columns: int) -> Block:
        # The permit goes back at once: a CTA allocates once, and its neighbours on the multiprocessor need not wait for its end.
        return (statement("tcgen05.alloc", where, columns=columns), statement("tcgen05.relinquish"))

    def address(self, where: Expr) -> Expr:
        return call("load", where, by=4)

    def release(self, address: Expr, columns: int) -> Block:
        return (statement("tcgen05.dealloc", address, columns=columns),)


TMEM = TensorMemory(
    name="tmem",
    memory="tensor",
    words=(
        WordSpec("at", "constant", Form.DERIVED, required=True, help="first column, counted from the allocation"),
        WordSpec("base", "integer", Form.DERIVED, required=True, help="address of the allocation"),
        WordSpec("alias", "name", help="the buffer in whose columns this one lies, from the first: one of them is in use at a time"),
    ),
    element_types=("f32", "i32", "u32", "bf16", "f16", *SCALE_TYPES),
    capabilities=CAPABILITIES,
    doc="128 lanes of 512 columns of 32 bits a CTA; a buffer has 128 or 64 rows and whole columns; one of block scales "
    "has multiples of 128 rows of four (PTX ISA, Tensor Memory, Addressing).",
)
