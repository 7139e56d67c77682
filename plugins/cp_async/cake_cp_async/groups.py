"""Groups of asynchronous copies: each thread has a queue of its own, first in, first out."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import CommitGroup, Effect, WaitGroup
from cake_core.frozen import frozen
from cake_core.ir.nodes import Int, Op
from cake_core.primitive import CheckContext, LowerContext, Operation, Parameter

QUEUE = "cp_async"
CAPABILITIES = frozenset({"cp_async"})


@frozen(kw_only=True)
class Commit(Operation):
    """`cp.async.commit`: the copies of each thread since its last commit are one group, which may be empty."""

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (CommitGroup(QUEUE),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("cp.async.commit_group")


@frozen(kw_only=True)
class Wait(Operation):
    """`cp.async.wait N`: at most N of each thread's groups are unfinished. It says nothing of other threads' copies."""

    def check(self, op: Op, cx: CheckContext) -> None:
        pending = op.operands[0]
        if isinstance(pending, Int) and pending.value < 0:
            raise fail(
                "ptx/cp-async-pending", f"the number of pending groups is {pending.value}", pending.span, fix="write 0 to wait for all"
            )

    def effects(self, op: Op) -> tuple[Effect, ...]:
        pending = op.operands[0]
        return (WaitGroup(QUEUE, pending.value if isinstance(pending, Int) else 0),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("cp.async.wait_group", cx.constant(op.operands[0]))


COMMIT = Commit(name="cp.async.commit", capabilities=CAPABILITIES, doc="PTX ISA, cp.async.commit_group")
WAIT = Wait(
    name="cp.async.wait", capabilities=CAPABILITIES, operands=(Parameter("pending", "constant"),), doc="PTX ISA, cp.async.wait_group"
)
