"""`atomic.add(x[i], v)` and its kin: an element is changed, and what it held before is the result."""

from __future__ import annotations

from dataclasses import replace

from cake_atomics.place import ORDER, SCOPE, SUFFIX, address, check_element, one_writer, ordering, qualifiers
from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect, Issuer, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import WARP_LEADER
from cake_core.ir.nodes import Call, Expr, Int
from cake_core.ir.tiles import level
from cake_core.ir.types import F32, I32, U32, Elem, Level, Scalar, Type
from cake_core.primitive import CheckContext, Function, LowerContext, SimulateContext
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Builder, Operand, Reg

INTEGERS = (I32, U32)
ALL_LANES = -1


@frozen(kw_only=True)
class Atomic(Function):
    """Made once a warp: by its leading lane, which hands the result to the others; by each lane where place or value differ by lane.

    The whole warp must be there. A role of several warps must have a place of its own for each: that none of them learns of
    another's result is no accident that a text may rely on.
    """

    elements: tuple[Elem, ...]
    values: int = 1  # behind the place
    bits: bool = False  # it moves bits, whatever they stand for
    arguments: str = "own"
    options: tuple = (ORDER, SCOPE)
    capabilities: frozenset[str] = frozenset({"atomics"})

    def result(self, call: Call, cx: CheckContext) -> Type:
        args = call.positional
        if len(args) != 1 + self.values:
            raise fail("type/arguments", f"'{self.name}' takes a place and {self.values} value{'s' * (self.values > 1)}, not {len(args)} arguments", call.span)
        target, *values = args
        check_element(target, self.name, self.elements, cx)
        elem = target.type.elem
        for v in values:
            literal = isinstance(v, Int) and elem in (F32, U32)
            if not isinstance(v.type, Scalar) or v.type.elem != elem and not literal:
                raise fail("type/operand", f"'{self.name}' of {elem} takes a value of {elem}, not a {v.type}", v.span, fix=f"cast it: `{elem}(..)`")
        qualifiers(call.options.get("order"), call.options.get("scope"), target.type.space)
        found = one_writer(target, max(v.type.level for v in values), cx.warps, self.name, call)
        return Scalar(elem, max(found, Level.WARP))

    def effects(self, call: Call) -> tuple[Effect, ...]:
        target = call.positional[0]
        ordered = ordering(call.options.get("order"), call.options.get("scope"), target)
        one = self.name == "atomic.add" and target.type.elem in (I32, U32) and max(level(target), call.positional[1].type.level) is not Level.LANE
        read = Access(target, Mode.READ, issuer=Issuer.WARP, atomic=True, **ordered)
        return read, replace(read, mode=Mode.WRITE, adds=call.positional[1] if one else None)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        target, *values = call.positional
        *expected, given = map(cx.value, values)
        action = combining(self.name.split(".")[1])
        if expected:
            return cx.write(target, given, combine=lambda old, new: new if old == expected[0] else old)
        return cx.write(target, given, combine=action)

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        target, *values = call.positional
        b, elem = cx.b, target.type.elem
        kind = "f32" if elem == F32 else "b32"
        registers = tuple(_register(v, kind, cx) for v in values)
        suffix = "b32" if self.bits else SUFFIX[elem]
        opcode = f"atom{qualifiers(call.options.get('order'), call.options.get('scope'), target.type.space)}.{target.type.space}.{self.name.split('.')[1]}.{suffix}"
        where, out = address(cx, target), b.reg(kind)
        if max(level(target), *(v.type.level for v in values)) is Level.LANE:
            b.emit(opcode, out, where, *registers)
            return (out,)
        b.emit(f"mov.{kind}", out, 0.0 if kind == "f32" else 0)
        b.emit(opcode, out, where, *registers, guard=cx.predicate(WARP_LEADER))
        return (_spread(out, b),)


def _spread(own: Reg, b: Builder) -> Operand:
    """What the leading lane holds, in all lanes; which one leads is the target's affair, and the others hold 0."""
    if own.kind == "b32":
        return b.op("redux.sync.or.b32", own, ALL_LANES)
    told = b.reg(own.kind)  # of floats redux takes the bits only
    b.emit("mov.b32", told, b.op("redux.sync.or.b32", b.op("mov.b32", own), ALL_LANES))
    return told


def _register(e: Expr, kind: str, cx: LowerContext) -> Operand:
    value = cx.value(e)
    return cx.b.mov(float(value) if kind == "f32" else int(value), kind) if isinstance(value, int | float) else value


_ISA = "PTX ISA, Parallel Synchronization and Communication Instructions, atom"
ATOMICS = (
    Atomic(name="atomic.add", elements=(*INTEGERS, F32), doc=f"The sum goes to the element; f32 is rounded to nearest even ({_ISA}, .add)."),
    Atomic(name="atomic.min", elements=INTEGERS, doc=f"The smaller goes to the element ({_ISA}, .min)."),
    Atomic(name="atomic.max", elements=INTEGERS, doc=f"The larger goes to the element ({_ISA}, .max)."),
    Atomic(name="atomic.exch", elements=(*INTEGERS, F32), bits=True, doc=f"The value goes to the element ({_ISA}, .exch)."),
    Atomic(
        name="atomic.cas",
        elements=INTEGERS,
        values=2,
        bits=True,
        doc=f"`atomic.cas(x[i], expected, v)`: v goes to the element if it holds `expected` ({_ISA}, .cas).",
    ),
)
