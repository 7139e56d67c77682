"""The operand that names a box of a tensor."""

from __future__ import annotations

from cake_core.ir.nodes import Expr
from cake_core.ir.places import root
from cake_core.primitive import LowerContext
from cake_core.ptx.builder import Sym, Vec
from cake_tma.tiles import extent


def map_operand(cx: LowerContext, tensor: Expr, swizzle: int) -> Sym:
    """`[map, {coordinates}]`: the instruction takes coordinates innermost first, the language writes them outermost first."""
    address = cx.tensor_map(root(tensor), extent(tensor).sizes, swizzle)
    return Sym(f"[{address}, {Vec(tuple(reversed(cx.coordinates(tensor))))}]")
