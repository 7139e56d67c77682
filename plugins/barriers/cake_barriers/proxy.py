"""The fences between the two paths to shared and to global memory (PTX ISA, Memory Consistency Model, Proxies)."""

from __future__ import annotations

from cake_core.effects import Effect, Fence
from cake_core.frozen import frozen
from cake_core.ir.nodes import Op
from cake_core.primitive import Form, LowerContext, Operation


@frozen(kw_only=True)
class ProxyFence(Operation):
    """`fence.proxy.async`: this thread's generic accesses of shared memory before later asynchronous ones; `fence.proxy.async.global`: of
    global memory.

    Every thread that wrote executes it, before the barrier after which another thread starts the asynchronous access.
    """

    name: str
    kind: str  # of the fence, as rules call it
    opcode: str
    form: Form = Form.DERIVED
    capabilities: frozenset[str] = frozenset({"async_proxy"})

    def effects(self, op: Op) -> tuple[Effect, ...]:
        return (Fence(self.kind),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        cx.b.emit(self.opcode)


_DOC = "PTX ISA, membar, fence (fence.proxy.async"
FENCES = (
    ProxyFence(name="fence.proxy.async", kind="proxy_async", opcode="fence.proxy.async.shared::cta", doc=f"{_DOC})"),
    ProxyFence(name="fence.proxy.async.global", kind="proxy_async_global", opcode="fence.proxy.async.global", doc=f"{_DOC}.global)"),
)
