"""What surrounds products: the fence before them, their groups, the wait for those."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARPGROUP, CommitGroup, Effect, Fence, WaitGroup
from cake_core.frozen import frozen
from cake_core.ir.nodes import Int, Op
from cake_core.primitive import CheckContext, Form, LowerContext, Operation, Parameter

QUEUE = "wgmma"
CAPABILITIES = frozenset({"wgmma"})
#: Groups that may be pending (CUTLASS, cute/arch/mma_sm90_gmma.hpp, warpgroup_wait).
PENDING_MAX = 7


@frozen(kw_only=True)
class RegisterFence(Operation):
    """`wgmma.fence`: what this warpgroup did to registers before the products that follow."""

    name: str = "wgmma.fence"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, wgmma.fence: before the first product, and whenever registers that a product takes were touched"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Fence("registers", "warpgroup"), OF_WARPGROUP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("wgmma.fence.sync.aligned")


@frozen(kw_only=True)
class Commit(Operation):
    """`wgmma.commit`: this warpgroup's products since the last commit are one group."""

    name: str = "wgmma.commit"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, wgmma.commit_group"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (CommitGroup(QUEUE), OF_WARPGROUP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("wgmma.commit_group.sync.aligned")


@frozen(kw_only=True)
class Wait(Operation):
    """`wgmma.wait N`: at most N of this warpgroup's groups are unfinished."""

    name: str = "wgmma.wait"
    operands: tuple[Parameter, ...] = (Parameter("pending", "constant"),)
    capabilities: frozenset[str] = CAPABILITIES
    doc: str = "PTX ISA, wgmma.wait_group"

    def check(self, op: Op, cx: CheckContext) -> None:
        pending = op.operands[0]
        if isinstance(pending, Int) and not 0 <= pending.value <= PENDING_MAX:
            raise fail(
                "ptx/wgmma-pending",
                f"{pending.value} groups can't be pending",
                pending.span,
                why=f"the instruction counts 0 to {PENDING_MAX}",
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        pending = op.operands[0]
        return (WaitGroup(QUEUE, pending.value if isinstance(pending, Int) else 0), OF_WARPGROUP)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("wgmma.wait_group.sync.aligned", cx.constant(op.operands[0]))
