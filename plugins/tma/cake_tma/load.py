"""`tma.load`: a box of a tensor into shared memory, completing bytes on a barrier."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Access, BySignal, Effect, Issuer, Mode, Proxy
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader, words
from cake_core.ir.nodes import Block, Expr, Int, Name, Op, Words
from cake_core.ir.places import root
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.primitive.signals import check_rank, handed
from cake_core.ptx.builder import Addr
from cake_tma.copy import Copy, check, copy_of, demand, split, swizzle_of
from cake_tma.instruction import map_operand
from cake_tma.tiles import extent


@frozen(kw_only=True)
class Load(Operation):
    """Schedule form: `tma.load x <- T[..] [multicast AXIS]`. Derived form: `tma.load x <- T[..] signal b [mask M] [at RANK]`, one
    box.

    Elements outside the tensor are filled with zeros, and the barrier still receives all bytes of the box.
    Multicast cuts the box along its slowest dimension into equal parts; each CTA loads its part into all CTAs of the cluster,
    at the same offset, and each barrier receives the bytes of the whole tile. In a pair of CTAs the bytes may count in the
    barrier of either (`at`): where one CTA reads what both have loaded.
    """

    name: str = "tma.load"
    operands: tuple[Parameter, ...] = (Parameter("dst", "tile", ("shared",), writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("src", "tile", ("global",))
    words: tuple[WordSpec, ...] = (
        WordSpec("multicast", "axis", Form.SCHEDULE, help="the CTAs along this axis load a part each and receive all"),
        WordSpec("signal", "barrier", Form.DERIVED, required=True, help="the barrier that receives the bytes"),
        WordSpec("mask", "constant", Form.DERIVED, help="bit i: CTA i of the cluster receives the box"),
        WordSpec("at", "constant", Form.DERIVED, help="rank of the CTA of the pair whose barrier receives the bytes"),
    )
    capabilities: frozenset[str] = frozenset({"tma"})
    doc: str = "PTX ISA, cp.async.bulk.tensor (.shared::cluster.global, .mbarrier::complete_tx::bytes, .multicast::cluster)"

    def check(self, op: Op, cx: CheckContext) -> None:
        check(_copy(op, cx.cluster_size), cx)
        mask = op.words.get("mask")
        if isinstance(mask, Int) and not 0 < mask.value < 1 << cx.cluster_size:
            raise fail("ptx/tma-mask", f"mask {mask.value} names no CTAs of a cluster of {cx.cluster_size}", mask.span)
        rank = op.words.get("at")
        if isinstance(rank, Int):
            _check_rank(rank, mask, cx)

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        return (demand(_copy(op, cx.cluster_size)),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        copy = _copy(op, cx.cluster_size)
        fix = f"put '{copy.here.name}' into a pipeline of this role, and load between `acquire` and `commit`"
        hand_off = handed(op, copy.shared, cx, f"the load into '{copy.here.name}' is complete", fix)
        multicast = copy.pieces > 1
        rank = Name(f"cluster.{cx.cluster_axis}") if multicast else None
        mask = (1 << copy.pieces) - 1 if multicast else None
        tiles = split(copy, cx.swizzle(copy.here.name), rank)
        return (
            by_leader(*(self._box(op, to, of, words(signal=hand_off.full, mask=mask, at=hand_off.at)) for to, of in tiles)),
        )

    def _box(self, op: Op, to: Expr, of: Expr, given: Words) -> Op:
        return Op(self.name, (to,), "<-", of, given, span=op.span)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        """`bytes` are what one destination CTA's barrier receives: of the whole tile, where a multicast is not yet cut."""
        copy = _copy(op, 1)
        multicast = op.words.get("multicast") is not None or op.words.get("mask") is not None
        mask = op.words.get("mask")
        done = BySignal(op.words.get("signal"), copy.bytes, multicast, mask.value if isinstance(mask, Int) else None, op.words.get("at"))
        return (
            Access(op.value, Mode.READ, Proxy.ASYNC, done, Issuer.LEADER),
            Access(op.operands[0], Mode.WRITE, Proxy.ASYNC, done, Issuer.LEADER),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.read(op.value))

    def lower(self, op: Op, cx: LowerContext) -> None:
        b, shared, mask = cx.b, op.operands[0], op.words.get("mask")
        source = map_operand(cx, op.value, swizzle_of(cx.declaration(root(shared).id)))
        to, barrier, rank = Addr(cx.shared_address(shared)), cx.barrier(op.words.get("signal")), op.words.get("at")
        opcode = f"cp.async.bulk.tensor.{len(extent(op.value).shape)}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        if rank is not None:  # the barrier may be the peer's only under .cta_group::2
            barrier, opcode = b.op("mapa.shared::cluster.u32", barrier, cx.constant(rank)), f"{opcode}.cta_group::2"
        signal = Addr(barrier)
        if mask is None:
            b.emit(opcode, to, source, signal)
        else:
            b.emit(f"{opcode}.multicast::cluster", to, source, signal, b.mov(cx.constant(mask), "b16"))


def _check_rank(rank: Int, mask: Expr | None, cx: CheckContext) -> None:
    if not cx.pair:
        raise fail("ptx/tma-signal", "bytes for another CTA's barrier in a kernel without pairs", rank.span, why="only the CTAs of a pair count in each other's barriers")
    check_rank(rank, cx, "ptx/tma-signal")
    if mask is not None:
        raise fail("type/not-implemented", "a multicast whose bytes count in one CTA's barrier is not implemented", rank.span)


def _copy(op: Op, cluster: int) -> Copy:
    pieces = cluster if op.words.get("multicast") is not None else 1
    return copy_of(op, op.operands[0], op.value, pieces)
