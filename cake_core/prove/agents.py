"""Who runs: one agent for each warp that differs from the others (language.md S21).

A role of w warps an instance is seen as two: its first warp, which holds the leader, and one that stands for all others.
They run the same text but for what the leader alone does, so a hazard between two warps of an instance is one between these two.
An instance of one warp is one agent. Each CTA of the cluster has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.facts.extract import inline
from cake_core.facts.schema import By, Event, Facts, RoleFacts
from cake_core.ir.nodes import Expr, Int

#: Names that are numbers for one agent.
Constants = dict[str, Expr]


@dataclass(frozen=True, slots=True)
class Agent:
    """`warps` that the agent stands for; `first`: whether the first warp, with the leader, is it."""

    role: RoleFacts
    cta: int
    instance: int
    first: bool
    warps: int

    @property
    def key(self) -> str:
        return f"{self.role.name}.{self.instance}.{'a' if self.first else 'b'}@{self.cta}"

    @property
    def text(self) -> str:
        """As diagnostics name it."""
        plan = self.role.plan
        out = plan.name + (f"[{self.instance}]" if plan.instances > 1 else "")
        return out + ("" if self.first or plan.warps == 1 else ", a warp behind the first")

    def runs(self, event: Event) -> bool:
        if event.warp is not None and (event.warp == 0) != self.first and event.warp >= 0:
            return not self.first and event.warp > 0
        return self.first or event.by is not By.LEADER

    def arrivals(self, event: Event) -> int:
        """Threads that execute `event`, of all warps that the agent stands for."""
        if event.by is By.LEADER:
            return 1
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
                out.append(Agent(role, cta, i, True, 1))
                if w > 1:
                    out.append(Agent(role, cta, i, False, w - 1))
    return tuple(out)


def specialise(e, constants: Constants):
    """An expression, act or set of acts for one agent."""
    return inline(e, constants)
