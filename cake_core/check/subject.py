"""What a check looks at: a derived kernel, its plan, and its statements with who executes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake_core.architecture import Architecture
from cake_core.effects import Effect
from cake_core.frozen import frozen
from cake_core.ir.nodes import Block, Expr, For, If, Kernel, Name, Role, Stmt, While
from cake_core.ir.places import names
from cake_core.ir.plan import Plan, RolePlan, read_plan
from cake_core.ir.types import Level, Scalar
from cake_core.primitive.asking import effects_of
from cake_core.primitive.groups import warps_of


@frozen
class Executed:
    """A statement of a role. `threads` of one instance run it (None: a condition that can't be counted decides);
    `region` names the straight-line stretch that it belongs to, leader guards looked through."""

    stmt: Stmt
    role: RolePlan
    threads: int | None
    region: tuple[int, ...]


@dataclass(slots=True)
class Subject:
    kernel: Kernel
    registry: object
    arch: Architecture
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.plan = read_plan(self.kernel, warps_of(self.kernel, self.registry), self.registry.spaces)

    def role(self, name: str) -> RolePlan:
        return next(r for r in self.plan.roles if r.name == name)

    def ctas(self, role: RolePlan) -> tuple[int, ...]:
        """Ranks in the cluster of the CTAs that have the role."""
        return tuple(r for r in range(self.plan.cluster) if role.on is None or r == role.on)

    def effects(self, s: Stmt) -> tuple[Effect, ...]:
        """Effects of one statement itself: its operation's and those of the functions that it calls."""
        return effects_of(s, self.registry)

    def executed(self, role: Role) -> Iterator[Executed]:
        """The statements of a role in text order, with how many threads of an instance run each."""
        plan = self.role(role.name)
        yield from self._executed(role.body, plan, 32 * plan.warps, (0,))

    def _executed(self, block: Block, role: RolePlan, threads: int | None, region: tuple[int, ...]) -> Iterator[Executed]:
        for n, s in enumerate(block):
            yield Executed(s, role, threads, region)
            inner = (*region, n)
            match s:
                case For() | While():
                    yield from self._executed(s.body, role, threads, inner)
                case If(Name("leader"), then, None):
                    yield from self._executed(then, role, 1, region)
                case If(Name("warp.leader"), then, None):
                    yield from self._executed(then, role, role.warps, region)
                case If(test, then, other):
                    inside = threads if _uniform(test) else None
                    yield from self._executed(then, role, inside, (*inner, 0))
                    yield from self._executed(other or (), role, inside, (*inner, 1))


def _uniform(test: Expr) -> bool:
    """Whether all instances of a role decide alike."""
    return isinstance(test.type, Scalar) and test.type.level <= Level.CTA or _cursor(test)


def _cursor(test: Expr) -> bool:
    """A comparison of a role's own counters: every instance goes through the same values."""
    return all(n.id.count(".") == 0 and isinstance(n.type, Scalar) and n.type.level <= Level.INSTANCE for n in names(test))


