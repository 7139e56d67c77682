"""`bulk.load`: a stretch of a tensor into shared memory, completing bytes on a barrier; `bulk.prefetch`: into the cache."""

from __future__ import annotations

from cake_bulk.stretch import EXACT, UNIT, check, check_one, demand, filled, part, size_of
from cake_core.diagnostics import fail
from cake_core.effects import Access, BySignal, Effect, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader, words
from cake_core.ir.nodes import Block, Int, Name, Op, Words
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.ptx.builder import Addr


@frozen(kw_only=True)
class Load(Operation):
    """`bulk.load x <- T[..] [multicast AXIS] [exact]`, in the derived form `bulk.load x <- T[..] signal b [mask M] [exact]`: the leader's.
    The barrier receives the bytes.

    Multicast cuts the tile along its slowest dimension into equal parts (S15): each CTA loads its part into all CTAs of the cluster, at
    the same offset, and each barrier receives the bytes of the whole tile.
    """

    name: str = "bulk.load"
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("global",))
    words: tuple[WordSpec, ...] = (
        WordSpec("multicast", "axis", Form.SCHEDULE, help="the CTAs along this axis load a part each and receive all"),
        WordSpec("signal", "barrier", Form.DERIVED, required=True, help="the barrier that receives the bytes"),
        WordSpec("mask", "constant", Form.DERIVED, help="bit i: CTA i of the cluster receives the bytes"),
    )
    flags: tuple[str, ...] = (EXACT,)
    capabilities: frozenset[str] = frozenset({"bulk_copy"})
    doc: str = "PTX ISA, cp.async.bulk (.shared::cluster.global, .mbarrier::complete_tx::bytes, .multicast::cluster)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check(op, op.operands[0], op.value, cx)
        mask = op.words.get("mask")
        if isinstance(mask, Int) and not 0 < mask.value < 1 << cx.cluster_size:
            raise fail("ptx/bulk-cta", f"mask {mask.value} names no CTAs of a cluster of {cx.cluster_size}", mask.span)
        if op.words.get("multicast") is not None:
            for e in (op.operands[0], op.value):
                part(op, e, cx.cluster_size, Int(0))

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(op.operands[0]),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        full = filled(op, cx).full
        to, of, mask = op.operands[0], op.value, None
        if op.words.get("multicast") is not None and cx.cluster_size > 1:
            rank = Name(f"cluster.{cx.cluster_axis}")
            to, of = (part(op, e, cx.cluster_size, rank) for e in (to, of))
            mask = (1 << cx.cluster_size) - 1
        given = words(signal=full, mask=mask)
        return (by_leader(Op(self.name, (to,), "<-", of, Words(given.items, op.words.flag, span=op.words.span), span=op.span)),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        """`bytes`: what one CTA's barrier receives of this statement; of the whole tile, where a multicast is not yet cut."""
        mask = op.words.get("mask")
        multicast = op.words.get("multicast") is not None or mask is not None
        ranks = mask.value if isinstance(mask, Int) else None
        done = BySignal(op.words.get("signal"), size_of(op, op.operands[0]), multicast, ranks)
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER, clips=False, width=UNIT),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER, width=UNIT),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        target = op.operands[0]
        cx.write(target, cx.read(op.value).reshape(target.type.shape))

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        to, of, signal = Addr(cx.shared_address(target)), Addr(cx.global_address(op.value)), Addr(cx.barrier(op.words.get("signal")))
        opcode, mask = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", op.words.get("mask")
        if mask is None:
            cx.b.emit(opcode, to, of, size_of(op, target), signal)
        else:
            cx.b.emit(f"{opcode}.multicast::cluster", to, of, size_of(op, target), signal, cx.b.mov(cx.constant(mask), "b16"))


@frozen(kw_only=True)
class Prefetch(Operation):
    """`bulk.prefetch T[..] [exact]`: the leader asks for a tile of a tensor in the second-level cache. It changes no result, and nothing
    waits for it."""

    name: str = "bulk.prefetch"
    operands: tuple[Parameter, ...] = (Parameter("src", "tile", ("global",)),)
    flags: tuple[str, ...] = (EXACT,)
    capabilities: frozenset[str] = frozenset({"bulk_copy"})
    doc: str = "PTX ISA, cp.async.bulk.prefetch (.L2.global)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check_one(op, op.operands[0], cx)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (by_leader(op),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (tile,) = op.operands
        cx.b.emit("cp.async.bulk.prefetch.L2.global", Addr(cx.global_address(tile)), size_of(op, tile))


LOAD, PREFETCH = Load(), Prefetch()
