"""`bulk.store` and the reductions: shared memory into a tensor, in groups."""

from __future__ import annotations

from cake_bulk.groups import QUEUE
from cake_bulk.stretch import EXACT, UNIT, check, check_kinds, demand, size_of
from cake_core.effects import Access, Effect, InGroup, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.build import op as statement
from cake_core.ir.nodes import Block, Op
from cake_core.ir.types import BF16, F16, F32, I32, U32, Elem
from cake_core.primitive import CheckContext, Demand, DeriveContext, LowerContext, Operation, Parameter, SimulateContext
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Addr


@frozen(kw_only=True)
class Store(Operation):
    """`bulk.store T[..] <- x [exact]`. The schedule form derives to one group of the leader.

    `kinds`: of a reduction, the type in the instruction by element; None for a plain copy.
    """

    opcode: str
    kinds: dict[Elem, str] | None = None
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("global",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("shared",))
    flags: tuple[str, ...] = (EXACT,)
    capabilities: frozenset[str] = frozenset({"bulk_copy"})

    def check(self, op: Op, cx: CheckContext) -> None:
        check(op, op.operands[0], op.value, cx)
        check_kinds(op, self.kinds)

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(op.value),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (by_leader(op, statement("bulk.commit", at=op.span)),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        done, combines = InGroup(QUEUE), self.kinds is not None
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER, width=UNIT),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER, atomic=combines, scope="gpu" if combines else None, clips=False, width=UNIT),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        target = op.operands[0]
        combine = combining(self.name.split(".")[1]) if self.kinds is not None else None
        cx.write(target, cx.read(op.value).reshape(target.type.shape), combine=combine)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        kind = f".{self.kinds[target.type.elem]}" if self.kinds is not None else ""
        cx.b.emit(self.opcode + kind, Addr(cx.global_address(target)), Addr(cx.shared_address(op.value)), size_of(op, target))


_INTEGERS = {I32: "s32", U32: "u32"}
_BITS = {I32: "b32", U32: "b32"}
_HALVES = {BF16: "bf16", F16: "f16"}
_REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group"
STORES = (
    Store(
        name="bulk.store",
        opcode="cp.async.bulk.global.shared::cta.bulk_group",
        doc="PTX ISA, cp.async.bulk (.global.shared::cta, .bulk_group)",
    ),
    *(
        Store(
            name=f"bulk.{op}",
            opcode=f"{_REDUCE}.{op}",
            kinds=kinds,
            doc=f"PTX ISA, cp.reduce.async.bulk (.global.shared::cta, .bulk_group, .{op})",
        )
        for op, kinds in (
            ("add", {F32: "f32", BF16: "noftz.bf16", F16: "noftz.f16", **_INTEGERS}),
            ("min", {**_HALVES, **_INTEGERS}),
            ("max", {**_HALVES, **_INTEGERS}),
            ("and", _BITS),
            ("or", _BITS),
            ("xor", _BITS),
        )
    ),
)
