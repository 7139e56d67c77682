"""Hand-offs of the tensor engine: its commit, and the fences around the synchronisation of threads.

PTX ISA, Tensor memory consistency model: what a thread gave to the engine, and its loads and stores of tensor memory,
are ordered with those of another thread by a fence before and a fence behind what synchronises the two. A commit holds the
first of these fences.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import Effect, EngineCommit, Fence
from cake_core.frozen import frozen
from cake_core.ir.nodes import Int, Op
from cake_core.ir.types import Barriers
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter, WordSpec
from cake_core.ptx.builder import Addr
from cake_tcgen05.engine import CAPABILITIES, COMMIT, cta_group


@frozen(kw_only=True)
class Commit(Operation):
    """`tcgen05.commit b [mask M]`: one arrival at b when all products and copies that this thread started are complete.

    M: the CTAs of the cluster whose barriers, at the same offset, are arrived at; without it the own one. It must be
    executed by the thread that started them.
    """

    name: str = COMMIT
    form: Form = Form.DERIVED
    operands: tuple[Parameter, ...] = (Parameter("barrier", "barrier"),)
    words: tuple[WordSpec, ...] = (WordSpec("mask", "constant", help="bit i: CTA i of the cluster"),)
    capabilities: frozenset[str] = CAPABILITIES | {"mbarrier"}
    doc: str = "PTX ISA, tcgen05.commit"

    def check(self, op: Op, cx: CheckContext) -> None:
        barrier, mask = op.operands[0], op.words.get("mask")
        if isinstance(barrier.type, Barriers) and barrier.type.kind != "mbarrier":
            raise fail("type/barrier-kind", f"'{op.name}' takes an 'mbarrier', got a '{barrier.type.kind}'", barrier.span)
        if isinstance(mask, Int) and not 0 < mask.value < 1 << cx.cluster_size:
            raise fail("ptx/tcgen05-mask", f"mask {mask.value} names no CTAs of a cluster of {cx.cluster_size}", mask.span)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        mask = op.words.get("mask")
        return (EngineCommit(op.operands[0], self.name, mask.value if isinstance(mask, Int) else None),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        # The address of an own barrier in shared::cta is its address in shared::cluster too (PTX ISA, shared state space).
        opcode = f"tcgen05.commit.{cta_group(cx)}.mbarrier::arrive::one.shared::cluster"
        barrier, mask = Addr(cx.barrier(op.operands[0])), op.words.get("mask")
        if mask is None:
            cx.b.emit(f"{opcode}.b64", barrier)
        else:
            cx.b.emit(f"{opcode}.multicast::cluster.b64", barrier, cx.b.mov(cx.constant(mask), "b16"))


@frozen(kw_only=True)
class ThreadFence(Operation):
    """`tcgen05.fence.before`, `tcgen05.fence.after`: this thread's use of tensor memory and of the engine before, or behind,
    what synchronises it with other threads."""

    side: str  # "before" | "after"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, tcgen05.fence"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Fence(f"tensor_{self.side}"),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"tcgen05.fence::{self.side}_thread_sync")


BEFORE = ThreadFence(name="tcgen05.fence.before", side="before")
AFTER = ThreadFence(name="tcgen05.fence.after", side="after")
