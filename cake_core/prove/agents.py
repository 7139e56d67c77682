"""Who runs: one agent for each warp that differs from the others (language.md S21).

A role of w warps an instance is seen as two: its first warp, which holds the leader, and one that stands for all others.
They run the same text but for what the leader alone does, so a hazard between two warps of an instance is one between these two.
An instance of one warp is one agent; where its leader waits for something that its other lanes do not, these are an agent of their own,
for they may run ahead. Each CTA of the cluster has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.facts.inline import inline
from cake_core.facts.schema import Access, Block, By, Drain, Event, Facts, RoleFacts, Wait, events
from cake_core.ir.nodes import Expr, Int

#: Names that are numbers for one agent.
Constants = dict[str, Expr]


@dataclass(frozen=True, slots=True)
class Agent:
    """`warps` that the agent stands for; `first`: whether the leader is in it. `apart`: it is the leading lane of a warp, or the 31 others."""

    role: RoleFacts
    cta: int
    instance: int
    first: bool
    warps: int
    apart: bool = False

    @property
    def key(self) -> str:
        return f"{self.role.name}.{self.instance}.{'a' if self.first else 'b'}@{self.cta}"

    @property
    def place(self) -> tuple[str, int, int]:
        """The instance that it belongs to."""
        return self.role.name, self.instance, self.cta

    @property
    def text(self) -> str:
        """As diagnostics name it."""
        plan = self.role.plan
        out = plan.name + (f"[{self.instance}]" if plan.instances > 1 else "")
        return out + ("" if self.first else ", lanes behind the leader" if self.apart else ", a warp behind the first")

    def runs(self, event: Event) -> bool:
        if self.apart and not self.first:
            return event.by is By.ALL
        if event.warp is not None and (event.warp == 0) != self.first and event.warp >= 0:
            return not self.first and event.warp > 0
        return self.first or event.by is not By.LEADER

    def arrivals(self, event: Event) -> int:
        """Threads that execute `event`, of all warps that the agent stands for."""
        if event.by is By.LEADER:
            return 1
        if self.apart:
            return 1 if self.first else 31
        warps = 1 if event.warp is not None else self.warps
        return warps if event.by is By.WARP_LEADERS else 32 * warps

    def constants(self, facts: Facts) -> Constants:
        """What is a number for this agent."""
        env = {f"{self.role.name}.i": Int(self.instance)}
        if facts.axis is not None:
            env[f"cluster.{facts.axis}"] = Int(self.cta)
        if self.first:
            env["warp"] = Int(0)
        return env


def agents_of(facts: Facts) -> tuple[Agent, ...]:
    out = []
    for role in facts.roles:
        w = role.plan.warps
        for cta in facts.ctas(role):
            for i in range(role.plan.instances):
                apart = w == 1 and _leader_waits(role.body)
                out.append(Agent(role, cta, i, True, 1, apart))
                if w > 1 or apart:
                    out.append(Agent(role, cta, i, False, max(w - 1, 1), apart))
    return tuple(out)


def _leader_waits(block: Block) -> bool:
    """Whether something holds the leader up and not the lanes beside it, which touch shared memory themselves."""
    ran = list(events(block))
    held = any(e.by is not By.ALL and isinstance(a, Wait | Drain) for e in ran for a in e.acts)
    touch = any(e.by is By.ALL and isinstance(a, Access) and a.region.memory in ("shared", "tensor") for e in ran for a in e.acts)
    return held and touch


def specialise(e, constants: Constants):
    """An expression, act or set of acts for one agent."""
    return inline(e, constants)
