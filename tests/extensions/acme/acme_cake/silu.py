"""`acme.silu(x)`: x / (1 + 2**(-x log2 e)), fused into whatever computes x."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2

from cake_core import types
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Call
from cake_core.ir.types import F32, Type, Value


@dataclass(frozen=True, kw_only=True)
class Silu(types.Function):
    """On register tiles of f32. Relative error below 2**-20: two approximate instructions and three roundings."""

    def result(self, call: Call, cx: types.CheckContext) -> Type:
        (x,) = call.positional if len(call.positional) == 1 else (None,)
        if x is None or not is_register_tile(x.type) or x.type.elem != F32:
            raise types.fail("type/operand", f"'{self.name}' takes one register tile of f32", call.span, fix="cast it: `f32(..)`")
        return Value(F32, tuple(x.type.shape), x.type.axis, x.type.part)

    def lower(self, call: Call, cx: types.LowerContext):
        b = cx.b
        return tuple(
            b.op("mul.f32", x, b.op("rcp.approx.ftz.f32", b.op("add.f32", b.op("ex2.approx.ftz.f32", b.op("mul.f32", x, -log2(e))), 1.0)))
            for x in cx.registers(call.positional[0])
        )


SILU = Silu(
    name="acme.silu",
    capabilities=frozenset({"acme_fast_math"}),
    doc="PTX ISA, Floating Point Instructions, ex2.approx and rcp.approx",
)
