"""`f32(x)`, `bf16(x)`, `f16(x)`, `e4m3(x)`, `e5m2(x)`."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.elementwise import PARTIAL
from cake_core.ir.nodes import Call
from cake_core.ir.types import BF16, ELEMENTS, F16, F32, I32, U32, Elem, Scalar, Type, Value
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.primitive.simulated import dtype_of
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


def _small_pairs(b: Builder, elem: Elem, quad: Operand) -> tuple[Operand, Operand]:
    """Four elements of 8 bits as two pairs of f16, which holds all of their values."""
    halves, pairs = b.regs("b16", 2), b.regs("b32", 2)
    b.emit("mov.b32", Vec(halves), quad)
    for pair, half in zip(pairs, halves, strict=True):
        b.emit(f"cvt.rn.f16x2.{elem}x2", pair, half)
    return pairs


_HALVES = {BF16: _bf16_halves, F16: _f16_halves}
SMALL = (ELEMENTS["e4m3"], ELEMENTS["e5m2"])
#: The largest finite value of each (PTX ISA, Alternate Floating-Point Data Formats).
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
SMALL_CAPABILITY = "fp8_convert"
_FROM_INTEGER = {I32: "cvt.rn.f32.s32", U32: "cvt.rn.f32.u32"}


def _argument(call: Call, allowed: tuple[Elem, ...], to: Elem, cx: CheckContext | None) -> Type:
    """The result of casting the one argument, whose elements must be among `allowed`. Raises CakeError."""
    (a,) = arguments(call, 1)
    elem = register_elem(a.type)
    if elem in SMALL and elem != to and elem in allowed:
        _need_small(call, cx)
    if elem not in allowed:
        wanted = ", ".join(e.name for e in allowed)
        raise fail(
            "type/operand",
            f"'{call.name}' takes {wanted}, not a {a.type}",
            a.span,
            fix="go through f32" if elem in (BF16, F16, I32, U32, *SMALL) else None,
        )
    shape = register_shape(a.type)
    if shape is not None:
        if a.type.part is not None:
            raise fail("type/partial", f"'{call.name}' takes a lane-partial tile", a.span, why=PARTIAL, fix="combine its lanes first, such as by `rowsum`")
        return Value(to, shape, a.type.axis)
    if to.bits < 32 or elem.bits < 32:
        raise fail(
            "type/not-implemented",
            f"'{call.name}' of one scalar: scalars have 32 bits",
            call.span,
            why="smaller elements are packed into registers",
            fix="cast the register tile",
        )
    return Scalar(to, a.type.level)


def _need_small(call: Call, cx: CheckContext | None) -> None:
    """A cast from 8 bits is the only one that some targets lack. Raises CakeError."""
    if cx is not None and cx.arch is not None and SMALL_CAPABILITY not in cx.arch.capabilities:
        raise fail(
            "type/missing-capability",
            f"'{call.name}' of elements of 8 bits needs '{SMALL_CAPABILITY}', which {cx.arch.name} does not offer",
            call.span,
            resource=SMALL_CAPABILITY,
            fix=f"build for an architecture that offers '{SMALL_CAPABILITY}'",
        )


def rounded(x: object, elem: Elem) -> object:
    """Values of a type, to the nearest, ties to even."""
    import numpy as np

    found = np.asarray(x).astype(dtype_of(elem))
    return found if found.ndim else found[()]


@frozen(kw_only=True)
class ToF32(Function):
    """From bf16, f16, e4m3 and e5m2 exact, from integers rounded to nearest even; f32 stays as it is."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        return _argument(call, (BF16, F16, *SMALL, I32, U32, F32), F32, cx)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return rounded(cx.value(call.positional[0]), F32)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        elem, held = register_elem(a.type), cx.registers(a)
        if elem in SMALL:
            return tuple(x for quad in held for pair in _small_pairs(cx.b, elem, quad) for x in _f16_halves(cx.b, pair))
        if elem in _HALVES:
            return tuple(half for pair in held for half in _HALVES[elem](cx.b, pair))
        if elem in _FROM_INTEGER:
            return tuple(float(x) if isinstance(x, int) else cx.b.op(_FROM_INTEGER[elem], x) for x in held)
        return held


@frozen(kw_only=True)
class ToPair(Function):
    """From f32, rounded to nearest even; two neighbours go into one register, the first into its lower half. f16 takes e4m3 and
    e5m2 too, exactly."""

    elem: Elem

    def result(self, call: Call, cx: CheckContext) -> Type:
        return _argument(call, (F32, self.elem, *(SMALL if self.elem == F16 else ())), self.elem, cx)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return rounded(cx.value(call.positional[0]), self.elem)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        elem, held = register_elem(a.type), cx.registers(a)
        if elem == self.elem:
            return held
        if elem in SMALL:
            return tuple(pair for quad in held for pair in _small_pairs(cx.b, elem, quad))
        if len(held) % 2:
            raise fail(
                "type/layout",
                f"a thread holds {len(held)} element{'s' if len(held) != 1 else ''}, and '{self.name}' packs pairs",
                call.span,
                fix="give the fragment an even `vec`",
            )
        opcode = f"cvt.rn.{self.elem}x2.f32"
        registers = [cx.b.mov(x, "f32") if isinstance(x, int | float) else x for x in held]
        return tuple(cx.b.op(opcode, high, low) for low, high in zip(registers[::2], registers[1::2], strict=True))


@frozen(kw_only=True)
class ToSmall(Function):
    """From f32, rounded to nearest even; what is beyond the largest finite value becomes that, infinities too; NaN stays NaN. Four
    neighbours go into one register, the first into its lowest byte."""

    elem: Elem
    capabilities: frozenset[str] = frozenset({SMALL_CAPABILITY})

    def result(self, call: Call, cx: CheckContext) -> Type:
        return _argument(call, (F32, self.elem), self.elem, cx)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        import numpy as np

        x = cx.value(call.positional[0])
        if register_elem(call.positional[0].type) == self.elem:
            return x
        most = LARGEST[self.elem.name]
        return rounded(np.clip(x, -most, most), self.elem)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (a,) = call.positional
        held, b = cx.registers(a), cx.b
        if register_elem(a.type) == self.elem:
            return held
        if len(held) % 4:
            raise fail(
                "type/layout",
                f"a thread holds {len(held)} element{'s' if len(held) != 1 else ''}, and '{self.name}' packs four",
                call.span,
                fix="give the fragment a `vec` that is a multiple of 4",
            )
        registers = [b.mov(float(x), "f32") if isinstance(x, int | float) else x for x in held]
        quads = []
        for i in range(0, len(registers), 4):
            halves = b.regs("b16", 2)
            for half, (low, high) in zip(halves, (registers[i : i + 2], registers[i + 2 : i + 4]), strict=True):
                b.emit(f"cvt.rn.satfinite.{self.elem}x2.f32", half, high, low)
            quads.append(b.reg("b32"))
            b.emit("mov.b32", quads[-1], Vec(halves))
        return tuple(quads)


CASTS = (
    ToF32(
        name="f32",
        doc="Widening: bf16 by a shift or a mask, f16 by cvt.f32.f16, e4m3 and e5m2 through f16, integers by cvt.rn "
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
    *(
        ToSmall(
            name=elem.name,
            elem=elem,
            doc=f"cvt.rn.satfinite.{elem}x2.f32: the first source is the upper half "
            "(PTX ISA, Data Movement and Conversion Instructions, cvt).",
        )
        for elem in SMALL
    ),
)
