"""Allocation of tensor memory (PTX ISA, tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit).

Each is executed by one whole converged warp. In a pair one warp of each CTA executes it, and may wait for the other's.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Access, Attribute, Effect, Free, Mode, Reserve
from cake_core.frozen import frozen
from cake_core.ir.nodes import Int, Op
from cake_core.ir.types import U32
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.ptx.builder import Addr
from cake_tcgen05.engine import CAPABILITIES, cta_group

COLUMNS = WordSpec("columns", "constant", required=True, help="a power of two, 32 to 512")


def _check_columns(op: Op, cx: CheckContext) -> None:
    n = op.words.get("columns")
    if not isinstance(n, Int) or cx.arch is None:
        return
    least, most = cx.arch.limit("tensor_granule"), cx.arch.limit("tensor_columns")
    if not least <= n.value <= most or n.value & (n.value - 1):
        raise fail(
            "ptx/tcgen05-columns",
            f"{n.value} columns can't be allocated",
            n.span,
            why=f"an allocation is a power of two, {least} to {most} (PTX ISA, tcgen05.alloc)",
        )


def columns_of(op: Op) -> int:
    n = op.words.get("columns")
    return n.value if isinstance(n, Int) else 0


@frozen(kw_only=True)
class Alloc(Operation):
    """`tcgen05.alloc x[i] columns N`: takes N columns, waiting until they are free, and writes their address to x[i], a u32 in
    shared memory. Other threads read it behind a barrier."""

    name: str = "tcgen05.alloc"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("where", "tile", ("shared",), writable=True),)
    words: tuple[WordSpec, ...] = (COLUMNS,)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.alloc"

    def check(self, op: Op, cx: CheckContext) -> None:
        where = op.operands[0]
        if where.type.elem != U32 or where.type.groups != ((),):
            raise fail("type/operand", f"the address goes to one u32, not to a {where.type}", where.span, fix="index one element")
        _check_columns(op, cx)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Reserve(columns_of(op)), Access(op.operands[0], Mode.WRITE), OF_WARP)

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], 0)

    def lower(self, op: Op, cx: LowerContext) -> None:
        where = Addr(cx.shared_address(op.operands[0]))
        cx.b.emit(f"tcgen05.alloc.{cta_group(cx)}.sync.aligned.shared::cta.b32", where, cx.constant(op.words.get("columns")))


@frozen(kw_only=True)
class Relinquish(Operation):
    """`tcgen05.relinquish`: this CTA allocates no more, so that others on the multiprocessor may."""

    name: str = "tcgen05.relinquish"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.relinquish_alloc_permit"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Attribute("permit", "given up"), OF_WARP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"tcgen05.relinquish_alloc_permit.{cta_group(cx)}.sync.aligned")


@frozen(kw_only=True)
class Dealloc(Operation):
    """`tcgen05.dealloc a columns N`: gives the N columns at address a back, by the warp that took them. Nothing may use them
    any more, in the other CTA of a pair either, and everything is given back before the CTA exits."""

    name: str = "tcgen05.dealloc"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("address", "integer"),)
    words: tuple[WordSpec, ...] = (COLUMNS,)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.dealloc"

    def check(self, op: Op, cx: CheckContext) -> None:
        _check_columns(op, cx)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Free(columns_of(op)), OF_WARP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"tcgen05.dealloc.{cta_group(cx)}.sync.aligned.b32", cx.value(op.operands[0]), cx.constant(op.words.get("columns")))
