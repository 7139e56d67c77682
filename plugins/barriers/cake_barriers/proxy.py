"""The fence between the two paths to shared memory (PTX ISA, Memory Consistency Model, Proxies)."""

from __future__ import annotations

from cake_core.effects import Effect, Fence
from cake_core.frozen import frozen
from cake_core.ir.nodes import Op
from cake_core.primitive import Form, LowerContext, Operation


@frozen(kw_only=True)
class ProxyFence(Operation):
    """`fence.proxy.async`: this thread's generic accesses of shared memory before later asynchronous ones.

    Every thread that wrote executes it, before the barrier after which another thread starts the asynchronous access.
    """

    name: str = "fence.proxy.async"
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = frozenset({"async_proxy"})
    doc: str = "PTX ISA, membar, fence (fence.proxy.async)"

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Fence("proxy_async"),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit("fence.proxy.async.shared::cta")
