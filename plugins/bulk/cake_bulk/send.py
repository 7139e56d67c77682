"""`bulk.send` and its reductions: from this CTA's shared memory into another CTA's of the cluster, whose barrier receives the bytes."""

from __future__ import annotations

from cake_bulk.stretch import check, check_kinds, demand, filled, size_of
from cake_core.effects import Access, BySignal, Effect, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Expr, Op, Word, Words
from cake_core.ir.types import I32, U32, Elem
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.primitive.signals import check_rank
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Addr, Operand


@frozen(kw_only=True)
class Send(Operation):
    """`NAME y <- x at RANK`, in the derived form with `signal b`: the leader's. In the schedule form `y` is a pipeline slot, and the barrier
    is the slot's in the CTA of that rank. `x` has been read when the slot is free again: then all CTAs have what was sent to them.

    `kinds`: of a reduction, the type in the instruction by element; None for a plain copy.
    """

    opcode: str
    kinds: dict[Elem, str] | None = None
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("shared",))
    words: tuple[WordSpec, ...] = (
        WordSpec("at", "integer", required=True, help="rank in the cluster of the CTA that receives"),
        WordSpec("signal", "barrier", Form.DERIVED, required=True, help="the barrier of that CTA which receives the bytes"),
    )
    capabilities: frozenset[str] = frozenset({"bulk_copy", "cluster"})

    def check(self, op: Op, cx: CheckContext) -> None:
        check(op, op.operands[0], op.value, cx)
        check_kinds(op, self.kinds)
        check_rank(op.words.get("at"), cx, "ptx/bulk-cta")

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(op.operands[0]), demand(op.value))

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        signal = Word("signal", filled(op, cx).full, span=op.span)
        words = Words((*op.words.items, signal), op.words.flag, span=op.words.span)
        return (by_leader(Op(self.name, op.operands, "<-", op.value, words, span=op.span)),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        rank, combines = op.words.get("at"), self.kinds is not None
        done = BySignal(op.words.get("signal"), size_of(op, op.operands[0]), cta=rank)
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER, cta=rank, atomic=combines, scope="gpu" if combines else None),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        target = op.operands[0]
        combine = combining(self.name.rpartition(".")[2]) if self.kinds is not None else None
        cx.write(target, cx.read(op.value).reshape(target.type.shape), cta=cx.value(op.words.get("at")), combine=combine)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        rank = cx.value(op.words.get("at"))
        to, signal = _there(cx, cx.shared_address(target), rank), _there(cx, cx.barrier(op.words.get("signal")), rank)
        kind = f".{self.kinds[target.type.elem]}" if self.kinds is not None else ""
        cx.b.emit(self.opcode + kind, to, Addr(cx.shared_address(op.value)), size_of(op, target), signal)


def _there(cx: LowerContext, address: Operand, rank: Expr) -> Addr:
    """The same place in the CTA of that rank."""
    return Addr(cx.b.op("mapa.shared::cluster.u32", address, rank))


_REDUCE = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
_DOC = "PTX ISA, cp.reduce.async.bulk (.shared::cluster.shared::cta, .mbarrier::complete_tx::bytes"
_INTEGERS = {I32: "s32", U32: "u32"}
_BITS = {I32: "b32", U32: "b32"}
SENDS = (
    Send(
        name="bulk.send",
        opcode="cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
        doc="PTX ISA, cp.async.bulk (.shared::cluster.shared::cta, .mbarrier::complete_tx::bytes); mapa",
    ),
    *(
        Send(name=f"bulk.send.{op}", opcode=f"{_REDUCE}.{op}", kinds=kinds, doc=f"{_DOC}, .{op}); mapa")
        for op, kinds in (("add", _INTEGERS), ("min", _INTEGERS), ("max", _INTEGERS), ("and", _BITS), ("or", _BITS), ("xor", _BITS))
    ),
)
