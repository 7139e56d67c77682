"""The token of a `turn` on named barriers (PTX ISA, barrier{.cta}: bar.sync, bar.arrive).

One barrier an instance. Instance i takes the token by waiting at barrier i; who passes it arrives there and goes on. So each phase
of barrier i counts the threads of two instances. Nobody passes the first token: the last instance arrives for it at the start.
A barrier never counts an instance twice in one phase, since an instance passes again only after the token has gone round.
"""

from __future__ import annotations

from cake_core.ir.build import add, binary, mod, op
from cake_core.ir.nodes import Block, If, Name
from cake_core.primitive import TurnPlan, TurnProtocol


class NamedBarriers(TurnProtocol):
    def barriers(self, instances: int) -> int:
        return instances

    def start(self, plan: TurnPlan) -> Block:
        last = binary("==", Name(f"{plan.role}.i"), plan.instances - 1)
        return (If(last, (op("bar.arrive", plan.first, threads=2 * plan.threads),)),)

    def take(self, plan: TurnPlan) -> Block:
        return (op("bar.sync", add(plan.first, f"{plan.role}.i"), threads=2 * plan.threads),)

    def pass_on(self, plan: TurnPlan) -> Block:
        following = mod(add(f"{plan.role}.i", 1), plan.instances)
        return (op("bar.arrive", add(plan.first, following), threads=2 * plan.threads),)


NAMED_BARRIERS = NamedBarriers(
    name="named_barriers",
    capabilities=frozenset({"named_barrier"}),
    doc="PTX ISA, barrier{.cta}: bar.sync a, b and bar.arrive a, b",
)
