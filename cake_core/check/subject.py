"""What a check looks at: a derived kernel, its plan, and the effects of its statements."""

from __future__ import annotations

from dataclasses import field

from cake_core.architecture import Architecture
from cake_core.effects import Effect
from cake_core.frozen import thawed
from cake_core.ir.nodes import Kernel, Stmt
from cake_core.ir.plan import Plan, RolePlan, read_plan
from cake_core.primitive.asking import effects_of
from cake_core.primitive.groups import warps_of


@thawed
class Subject:
    kernel: Kernel
    registry: object
    arch: Architecture
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.plan = read_plan(self.kernel, warps_of(self.kernel, self.registry), self.registry.spaces)

    def role(self, name: str) -> RolePlan:
        return next(r for r in self.plan.roles if r.name == name)

    def effects(self, s: Stmt) -> tuple[Effect, ...]:
        """Effects of one statement itself: its operation's and those of the functions that it calls."""
        return effects_of(s, self.registry)
