"""The turns of a kernel: their named barriers, and the statements that their protocol writes (S8)."""

from __future__ import annotations

from cake_core.derive.warps import Placed
from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Block, Kernel, Name, Op, Turn
from cake_core.primitive import TurnPlan, TurnProtocol


@frozen
class Turning:
    """A turn with its protocol. Nothing is left of it where a role has one instance, or never takes it."""

    plan: TurnPlan
    protocol: TurnProtocol
    needed: bool

    def start(self) -> Block:
        return self.protocol.start(self.plan) if self.needed else ()

    def take(self) -> Block:
        return self.protocol.take(self.plan) if self.needed else ()

    def pass_on(self) -> Block:
        return self.protocol.pass_on(self.plan) if self.needed else ()


def turns_of(kernel: Kernel, registry, arch, placed: dict[str, Placed], first: int) -> tuple[dict[str, Turning], int]:
    """The turns by name, and the first named barrier behind theirs, which start at `first`. Raises CakeError without a protocol."""
    turns = {}
    for s in kernel.body:
        if not isinstance(s, Turn):
            continue
        protocol = next((p for p in registry.turns.values() if p.capabilities <= arch.capabilities), None)
        if protocol is None:
            raise fail("derive/no-protocol", f"no installed plugin offers a protocol of turns for {arch.name}", s.span, resource=s.name)
        role = s.words.get("over").id
        p = placed[role]
        body = next(r.body for r in kernel.roles if r.name == role)
        needed = p.instances > 1 and any(isinstance(x, Op) and x.name == "take" and x.operands == (Name(s.name),) for x in walk(body))
        turns[s.name] = Turning(TurnPlan(s.name, role, p.instances, 32 * p.warps, first), protocol, needed)
        if needed:
            first += protocol.barriers(p.instances)
    return turns, first
