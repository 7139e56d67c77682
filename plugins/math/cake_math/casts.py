"""`f32(x)`, `bf16(x)`, `f16(x)`."""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.diagnostics import fail
from cake_core.ir.elementwise import PARTIAL
from cake_core.ir.nodes import Call
from cake_core.ir.types import BF16, F16, F32, I32, U32, Elem, Scalar, Type, Value
from cake_core.primitive import CheckContext, Function, LowerContext
from cake_core.ptx.builder import Builder, Operand, Vec
from cake_math.operands import arguments, register_elem, register_shape


def _bf16_halves(b: Builder, pair: Operand) -> tuple[Operand, Operand]:
    """A bf16 is the upper half of the f32 of the same value: two bit operations, exact."""
    low, high = b.regs("f32", 2)
    b.emit("shl.b32", low, pair, 16)
    b.emit("and.b32", high, pair, 0xFFFF0000)
    return low, high


def _f16_halves(b: Builder, pair: Operand) -> tuple[Operand, Operand]:
    halves = b.regs("b16", 2)
    b.emit("mov.b32", Vec(halves), pair)
    return tuple(b.op("cvt.f32.f16", h) for h in halves)


_HALVES = {BF16: _bf16_halves, F16: _f16_halves}
_FROM_INTEGER = {I32: "cvt.rn.f32.s32", U32: "cvt.rn.f32.u32"}


def _argument(call: Call, allowed: tuple[Elem, ...], to: Elem) -> Type:
    """The result of casting the one argument, whose elements must be among `allowed`. Raises CakeError."""
    (a,) = arguments(call, 1)
    elem = register_elem(a.type)
    if elem not in allowed:
        wanted = ", ".join(e.name for e in allowed)
        raise fail(
            "type/operand",
            f"'{call.name}' takes {wanted}, not a {a.type}",
            a.span,
            fix="go through f32" if elem in (BF16, F16, I32, U32) else None,
        )
    shape = register_shape(a.type)
    if shape is not None:
        if a.type.part is not None:
            raise fail("type/partial", f"'{call.name}' takes a lane-partial tile", a.span, why=PARTIAL, fix="combine its lanes first, such as by `rowsum`")
        return Value(to, shape, a.type.axis)
    if to.bits == 16 or elem.bits == 16:
        raise fail(
            "type/not-implemented",
            f"'{call.name}' of one scalar: scalars have 32 bits",
            call.span,
            why="16-bit elements are packed in pairs",
            fix="cast the register tile",
        )
    return Scalar(to, a.type.level)


@dataclass(frozen=True, kw_only=True)
class ToF32(Function):
    """From bf16 and f16 exact, from integers rounded to nearest even; f32 stays as it is."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        return _argument(call, (BF16, F16, I32, U32, F32), F32)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        elem, held = register_elem(a.type), cx.registers(a)
        if elem in _HALVES:
            return tuple(half for pair in held for half in _HALVES[elem](cx.b, pair))
        if elem in _FROM_INTEGER:
            return tuple(float(x) if isinstance(x, int) else cx.b.op(_FROM_INTEGER[elem], x) for x in held)
        return held


@dataclass(frozen=True, kw_only=True)
class ToPair(Function):
    """From f32, rounded to nearest even; two neighbours go into one register, the first into its lower half."""

    elem: Elem

    def result(self, call: Call, cx: CheckContext) -> Type:
        return _argument(call, (F32, self.elem), self.elem)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        held = cx.registers(a)
        if register_elem(a.type) == self.elem:
            return held
        if len(held) % 2:
            raise fail(
                "type/layout",
                f"a thread holds {len(held)} elements, and '{self.name}' packs pairs",
                call.span,
                fix="give the fragment an even `vec`",
            )
        opcode = f"cvt.rn.{self.elem}x2.f32"
        registers = [cx.b.mov(x, "f32") if isinstance(x, int | float) else x for x in held]
        return tuple(cx.b.op(opcode, high, low) for low, high in zip(registers[::2], registers[1::2], strict=True))


CASTS = (
    ToF32(
        name="f32",
        doc="Widening: bf16 by a shift or a mask, f16 by cvt.f32.f16, integers by cvt.rn "
        "(PTX ISA, Data Movement and Conversion Instructions, cvt).",
    ),
    ToPair(
        name="bf16",
        elem=BF16,
        doc="cvt.rn.bf16x2.f32: the first source is the upper half (PTX ISA, Data Movement and Conversion Instructions, cvt).",
    ),
    ToPair(
        name="f16",
        elem=F16,
        doc="cvt.rn.f16x2.f32: the first source is the upper half (PTX ISA, Data Movement and Conversion Instructions, cvt).",
    ),
)
