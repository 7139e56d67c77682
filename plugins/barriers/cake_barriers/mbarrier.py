"""Operations on barriers with phases (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier)."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import BarrierArrive, BarrierInit, BarrierWait, Effect, Fence
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Index, Int, Name, Op
from cake_core.ir.ranges import constant
from cake_core.ir.types import I32, Barriers, Level, Scalar
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter, WordSpec
from cake_core.primitive.signals import check_rank
from cake_core.ptx.builder import Addr, Sym

#: PTX ISA, Contents of the mbarrier object: pending and expected arrival counts are 1 .. 2^20 - 1, tx-count is -(2^20 - 1) .. 2^20 - 1.
COUNT_MAX = 2**20 - 1

TRANSACTIONS = "transaction_barrier"  # barriers that count bytes, and waits that suspend the thread
CAPABILITIES = frozenset({"mbarrier"})
BARRIER = (Parameter("barrier", "barrier"),)
AT = WordSpec("at", "integer", help="rank in the cluster of the CTA whose barrier receives the arrival")


def require_mbarrier(op: Op) -> None:
    """The operand must be of the kind that these instructions work on."""
    barrier = op.operands[0]
    if isinstance(barrier.type, Barriers) and barrier.type.kind != "mbarrier":
        raise fail("type/barrier-kind", f"'{op.name}' takes an 'mbarrier', got a '{barrier.type.kind}'", barrier.span)


@frozen(kw_only=True)
class Init(Operation):
    """`mbarrier.init b`: every barrier of the array, with the count that its declaration states."""

    name: str = "mbarrier.init"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("barrier", "barriers"),)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, mbarrier.init"

    def check(self, op: Op, cx: CheckContext) -> None:
        require_mbarrier(op)
        barrier = op.operands[0]
        if not isinstance(barrier, Name):
            raise fail(
                "type/barrier-index", "'mbarrier.init' initialises a whole array", barrier.span, fix="name the array without an index"
            )
        declared = cx.declaration(barrier.id)
        count = declared.words.get("count") if declared else None
        if isinstance(count, Int) and not 1 <= count.value <= COUNT_MAX:
            raise fail(
                "ptx/mbarrier-count",
                f"'{barrier.id}' counts {count.value} arrivals",
                count.span,
                why=f"an arrival count is 1 to {COUNT_MAX} (PTX ISA, Contents of the mbarrier object)",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (BarrierInit(op.operands[0]),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        barrier = op.operands[0]
        slots = barrier.type.slots
        first = barrier if slots is None else _first(barrier)
        base, count = cx.barrier(first), _count(cx, barrier)
        for slot in range(slots or 1):
            cx.b.emit("mbarrier.init.shared::cta.b64", Addr(base, 8 * slot), count)


def _first(array: Expr) -> Index:
    zero = Int(0, span=array.span, type=Scalar(I32, Level.CTA, constant(0)))
    return Index(array, (zero,), span=array.span, type=replace(array.type, slots=None))


def _count(cx: LowerContext, barrier: Name) -> int:
    declared = cx.declaration(barrier.id)
    count = declared.words.get("count") if declared else None
    if count is None:
        raise fail("type/missing-word", f"'{barrier.id}' states no arrival count", barrier.span, fix="write 'count N' on its declaration")
    return cx.constant(count)


@frozen(kw_only=True)
class Wait(Operation):
    """`mbarrier.wait b[i] parity P`: until the phase of parity P is complete. Every executing thread waits.

    A fresh barrier is in phase 0, so a wait for parity 1 returns at once: that is how a producer finds its first slots empty.
    `try_wait` suspends the thread for a time that the hardware chooses, hence a loop and no sleep; where the target does not have it,
    the loop is of `test_wait`.
    """

    name: str = "mbarrier.wait"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = BARRIER
    words: tuple[WordSpec, ...] = (WordSpec("parity", "integer", required=True, help="0 or 1: of the phase that is waited for"),)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, mbarrier.test_wait, mbarrier.try_wait"

    def check(self, op: Op, cx: CheckContext) -> None:
        require_mbarrier(op)
        parity = op.words.get("parity")
        if isinstance(parity, Int) and parity.value not in (0, 1):
            raise fail("ptx/mbarrier-parity", f"parity is {parity.value}", parity.span, why="a phase is even (0) or odd (1)")

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (BarrierWait(op.operands[0], op.words.get("parity")),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        b = cx.b
        address, parity = Addr(cx.barrier(op.operands[0])), cx.value(op.words.get("parity"))
        again, done = b.label("wait"), b.reg("pred")
        b.place(again)
        how = "try_wait" if TRANSACTIONS in cx.arch.capabilities else "test_wait"
        b.emit(f"mbarrier.{how}.parity.shared::cta.b64", done, address, parity)
        b.branch(again, guard=done, negate=True)


@frozen(kw_only=True)
class Expect(Operation):
    """`mbarrier.expect b[i] bytes N [at RANK]`: one arrival, and N more transaction bytes in this phase; `at`: on the same
    barrier of that CTA of the cluster."""

    name: str = "mbarrier.expect"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = BARRIER
    words: tuple[WordSpec, ...] = (WordSpec("bytes", "constant", required=True, help="transaction bytes of the phase"), AT)
    capabilities: frozenset[str] = CAPABILITIES | {TRANSACTIONS}
    doc: str = "PTX ISA, mbarrier.arrive (.expect_tx)"

    def check(self, op: Op, cx: CheckContext) -> None:
        require_mbarrier(op)
        check_rank(op.words.get("at"), cx, "ptx/cluster-rank")
        count = op.words.get("bytes")
        if isinstance(count, Int) and not 0 <= count.value <= COUNT_MAX:
            raise fail(
                "ptx/mbarrier-bytes",
                f"{count.value} transaction bytes are expected of one phase",
                count.span,
                why=f"a phase counts at most {COUNT_MAX} bytes (PTX ISA, Contents of the mbarrier object)",
                fix="make the slot smaller, or give its buffers pipelines of their own",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        count = op.words.get("bytes")
        return (BarrierArrive(op.operands[0], op.words.get("at"), count.value if isinstance(count, Int) else 0),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        _arrive(op, cx, "mbarrier.arrive.expect_tx", cx.constant(op.words.get("bytes")))


@frozen(kw_only=True)
class Arrive(Operation):
    """`mbarrier.arrive b[i] [at RANK]`: one arrival a thread; `at`: on the same barrier of that CTA of the cluster.

    The remote form is written without `.release.cluster`: qualified so, it becomes a fence of the whole device, which costs
    a main loop a quarter of its speed; unqualified it is enough to hand back a slot whose reads have retired.
    """

    name: str = "mbarrier.arrive"
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = BARRIER
    words: tuple[WordSpec, ...] = (AT,)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, mbarrier.arrive; mapa"

    def check(self, op: Op, cx: CheckContext) -> None:
        require_mbarrier(op)
        check_rank(op.words.get("at"), cx, "ptx/cluster-rank")

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (BarrierArrive(op.operands[0], op.words.get("at")),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        _arrive(op, cx, "mbarrier.arrive")


def _arrive(op: Op, cx: LowerContext, opcode: str, *operands: int) -> None:
    """At the own barrier, or at that of another CTA by its address in the cluster (PTX ISA, mapa)."""
    address, rank = cx.barrier(op.operands[0]), op.words.get("at")
    if rank is None:
        cx.b.emit(f"{opcode}.shared::cta.b64", Sym("_"), Addr(address), *operands)
        return
    remote = cx.b.op("mapa.shared::cluster.u32", address, cx.value(rank))
    cx.b.emit(f"{opcode}.shared::cluster.b64", Sym("_"), Addr(remote), *operands)


@frozen(kw_only=True)
class InitFence(Operation):
    """`fence.mbarrier_init`: this thread's `mbarrier.init`s before what the cluster and the asynchronous proxy do later.

    Where the target has neither, a fence of the CTA is as much: the barrier of the CTA behind it orders the rest.
    """

    name: str = "fence.mbarrier_init"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, membar, fence (fence.mbarrier_init.release.cluster; fence.acq_rel.cta)"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Fence("barrier_init", "cluster"),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("fence.mbarrier_init.release.cluster" if "cluster" in cx.arch.capabilities else "fence.acq_rel.cta")
