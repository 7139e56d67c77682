"""Bulk groups: which copies out of shared memory are complete. A thread has one queue of them, whatever it copies with."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.effects import CommitGroup, Effect, WaitGroup
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Int, Op
from cake_core.primitive import CheckContext, DeriveContext, Form, LowerContext, Operation, Parameter

QUEUE = "bulk"
CAPABILITIES = frozenset({"bulk_copy"})


@frozen(kw_only=True)
class Commit(Operation):
    """`bulk.commit`: the executing thread's bulk stores since the last commit are one group."""

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (CommitGroup(QUEUE),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("cp.async.bulk.commit_group")


@frozen(kw_only=True)
class Wait(Operation):
    """`bulk.wait N`: at most N of the leader's groups are unfinished. `bulk.wait.read N`: unfinished in reading, so that the shared
    memory they came from may be written again. Others learn of it by a `sync`."""

    reads_only: bool
    operands: tuple[Parameter, ...] = (Parameter("pending", "constant"),)

    def check(self, op: Op, cx: CheckContext) -> None:
        pending = op.operands[0]
        if isinstance(pending, Int) and pending.value < 0:
            raise fail("type/pending-groups", f"{pending.value} groups can't be pending", pending.span)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (by_leader(op),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        pending = op.operands[0]
        return (WaitGroup(QUEUE, pending.value if isinstance(pending, Int) else 0, self.reads_only),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(f"cp.async.bulk.wait_group{'.read' if self.reads_only else ''}", cx.constant(op.operands[0]))


COMMIT = Commit(name="bulk.commit", form=Form.DERIVED, capabilities=CAPABILITIES, doc="PTX ISA, cp.async.bulk.commit_group")
WAIT = Wait(name="bulk.wait", reads_only=False, capabilities=CAPABILITIES, doc="PTX ISA, cp.async.bulk.wait_group")
WAIT_READ = Wait(name="bulk.wait.read", reads_only=True, capabilities=CAPABILITIES, doc="PTX ISA, cp.async.bulk.wait_group (.read)")
