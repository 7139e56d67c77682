"""`bulk.load` and `bulk.send`: copies into shared memory, completing bytes on a barrier."""

from __future__ import annotations

from dataclasses import dataclass

from cake_bulk.stretch import EXACT, check, check_rank, demand, size_of
from cake_core.diagnostics import fail
from cake_core.effects import Access, BySignal, Effect, Issuer, Mode, Proxy
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Op, Word, Words
from cake_core.ir.places import root
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, WordSpec
from cake_core.ptx.builder import Addr


@dataclass(frozen=True, kw_only=True)
class Load(Operation):
    """`bulk.load x <- T[..] [exact]`, in the derived form with `signal b`: the leader's. The barrier receives the bytes."""

    name: str = "bulk.load"
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("global",))
    words: tuple[WordSpec, ...] = (WordSpec("signal", "barrier", Form.DERIVED, required=True, help="the barrier that receives the bytes"),)
    flags: tuple[str, ...] = (EXACT,)
    capabilities: frozenset[str] = frozenset({"bulk_copy"})
    doc: str = "PTX ISA, cp.async.bulk (.shared::cluster.global, .mbarrier::complete_tx::bytes)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check(op, op.operands[0], op.value, cx)

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(op.operands[0]),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        (target,) = op.operands
        hand_off = cx.hand_off(target)
        if hand_off is None:
            raise fail(
                "derive/no-hand-off",
                f"nothing tells when the load into '{root(target).id}' is complete",
                op.span,
                resource=root(target).id,
                why="its bytes complete the full barrier of a pipeline slot that this role has acquired",
                fix=f"put '{root(target).id}' into a pipeline of this role, and load between `acquire` and `commit`",
            )
        words = Words((*op.words.items, Word("signal", hand_off.full, span=op.span)), op.words.flag, span=op.words.span)
        return (by_leader(Op(self.name, op.operands, "<-", op.value, words, span=op.span)),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        done = BySignal(op.words.get("signal"), size_of(op, op.operands[0]))
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER),
        )

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        to, of, signal = Addr(cx.shared_address(target)), Addr(cx.global_address(op.value)), Addr(cx.barrier(op.words.get("signal")))
        cx.b.emit("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", to, of, size_of(op, target), signal)


@dataclass(frozen=True, kw_only=True)
class Send(Operation):
    """`bulk.send y <- x at RANK signal b`: from this CTA's shared memory into the cluster's CTA of that rank, whose barrier receives
    the bytes. Of the derived form, where barriers have names; one executing thread, as under `if leader`."""

    name: str = "bulk.send"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("shared",))
    words: tuple[WordSpec, ...] = (
        WordSpec("at", "integer", required=True, help="rank in the cluster of the CTA that receives"),
        WordSpec("signal", "barrier", required=True, help="the barrier of that CTA which receives the bytes"),
    )
    capabilities: frozenset[str] = frozenset({"bulk_copy", "cluster"})
    doc: str = "PTX ISA, cp.async.bulk (.shared::cluster.shared::cta, .mbarrier::complete_tx::bytes); mapa"

    def check(self, op: Op, cx: CheckContext) -> None:
        check(op, op.operands[0], op.value, cx)
        check_rank(op.words.get("at"), cx)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        rank = op.words.get("at")
        done = BySignal(op.words.get("signal"), size_of(op, op.operands[0]), cta=rank)
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER, cta=rank),
        )

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        rank = cx.value(op.words.get("at"))
        there = lambda address: Addr(cx.b.op("mapa.shared::cluster.u32", address, rank))  # noqa: E731
        to, signal = there(cx.shared_address(target)), there(cx.barrier(op.words.get("signal")))
        opcode = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        cx.b.emit(opcode, to, Addr(cx.shared_address(op.value)), size_of(op, target), signal)


LOAD, SEND = Load(), Send()
