"""`cluster.sync`: all threads of all CTAs of the cluster meet."""

from __future__ import annotations

from cake_core.effects import Effect, Rendezvous
from cake_core.frozen import frozen
from cake_core.ir.nodes import Op
from cake_core.primitive import LowerContext, Operation


@frozen(kw_only=True)
class ClusterSync(Operation):
    """No operands, no words. Every thread of every CTA of the cluster executes it, exited threads aside."""

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Rendezvous("cluster"),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        # Not .aligned: a warp may come here diverged, after a role in which one lane ran on its own.
        cx.b.emit("barrier.cluster.arrive.release")
        cx.b.emit("barrier.cluster.wait.acquire")


CLUSTER_SYNC = ClusterSync(
    name="cluster.sync",
    capabilities=frozenset({"cluster"}),
    doc=(
        "All threads of the cluster wait for each other, with release and acquire at cluster scope: what any of them "
        "wrote before is visible to all after. PTX ISA, barrier.cluster."
    ),
)
