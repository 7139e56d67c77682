"""Who runs: one agent for each warp that differs from the others (language.md S21).

A role of w warps an instance is seen as two: its first warp, which holds the leader, and one that stands for all others.
They run the same text but for what the leader alone does, so a hazard between two warps of an instance is one between these two.
Where a text asks for a warp's number and does more by it than to name its own element of a buffer, warps behind the first differ too, and each is an agent.
An instance of one warp is one agent; where its leader waits for something that its other lanes do not, these are an agent of their own,
for they may run ahead. Each CTA of the cluster has its own.
"""

from __future__ import annotations

from cake_core.facts.inline import inline
from cake_core.facts.schema import (
    Access,
    Arrive,
    Block,
    Branch,
    By,
    Drain,
    EngineArrive,
    Event,
    Facts,
    Loop,
    Region,
    RoleFacts,
    Wait,
    While,
    events,
    walk,
)
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Int, Name
from cake_core.ir.places import names

#: Names that are numbers for one agent.
Constants = dict[str, Expr]


@frozen
class Agent:
    """`warps` that the agent stands for; `first`: whether the leader is in it. `apart`: it is the leading lane of a warp, or the 31 others.
    `warp`: the number of the one warp that it is, where each warp behind the first is an agent. `cluster`: CTAs of its cluster."""

    role: RoleFacts
    cta: int
    instance: int
    first: bool
    warps: int
    apart: bool = False
    warp: int | None = None
    cluster: int = 1

    @property
    def key(self) -> str:
        return f"{self.role.name}.{self.instance}.{'a' if self.first else 'b' if self.warp is None else f'b{self.warp}'}@{self.cta}"

    @property
    def place(self) -> tuple[str, int, int]:
        """The instance that it belongs to."""
        return self.role.name, self.instance, self.cta

    @property
    def text(self) -> str:
        """As diagnostics name it."""
        plan = self.role.plan
        out = plan.name + (f"[{self.instance}]" if plan.instances > 1 else "")
        if self.warp is not None:
            return f"{out}, warp {self.warp}"
        return out + ("" if self.first else ", lanes behind the leader" if self.apart else ", a warp behind the first")

    def runs(self, event: Event) -> bool:
        if self.apart and not self.first:
            return event.by is By.ALL
        if self.warp is not None and event.warp is not None and event.warp >= 0:
            return event.warp == self.warp
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
        elif self.warp is not None:
            env["warp"] = Int(self.warp)
        return env


def agents_of(facts: Facts) -> tuple[Agent, ...]:
    out = []
    each = _each_warp(facts)
    for role in facts.roles:
        w = role.plan.warps
        for cta in facts.ctas(role):
            for i in range(role.plan.instances):
                apart = w == 1 and _leader_waits(role.body)
                out.append(Agent(role, cta, i, True, 1, apart, cluster=facts.cluster))
                if w > 1 and role.name in each:
                    out += [Agent(role, cta, i, False, 1, warp=k, cluster=facts.cluster) for k in range(1, w)]
                elif w > 1 or apart:
                    out.append(Agent(role, cta, i, False, max(w - 1, 1), apart, cluster=facts.cluster))
    return tuple(out)


def told_apart(facts: Facts) -> str:
    """Why there are as many agents as there are."""
    each = [f"'{r.name}'" for r in facts.roles if r.name in _each_warp(facts)]
    if each:
        return f"each warp of {' and '.join(each)} is one, since more than its own element of a buffer goes by its number"
    return f"{len(facts.roles)} roles in {facts.cluster} CTAs"


def _each_warp(facts: Facts) -> frozenset[str]:
    """Roles whose warps behind the first are not all like one of them. A role that names no more by a warp's number than one element of a buffer, in one
    dimension and of a buffer that shares bytes with no other, is none: of two warps that meet there, one may as well be the first."""
    asking, plain, where = set(), True, {}
    for role in facts.roles:
        if role.plan.warps == 1:
            continue
        of_warps = of_warp(role.body)
        fixed = {e.warp for e in events(role.body) if e.warp and _seen(e)}
        regions = [a.region for e in events(role.body) for a in e.acts if isinstance(a, Access) and a.region.memory in ("shared", "tensor")]
        asked = [r for r in regions if mentions(place(r), of_warps)]
        tests = _asks(role.body, of_warps)
        if asked or tests or fixed:
            asking.add(role.name)
        plain &= not tests and (not fixed or len(fixed) == 1 and not asked)
        for r in asked:
            at = [(n, e) for n, e in enumerate(place(r)) if mentions(e, of_warps)]
            plain &= len(at) == 1 and isinstance(at[0][1], Name) and at[0][1].id == "warp"
            plain &= all(d.size == Int(1) for d in r.box if mentions(d.lo, of_warps))
            plain &= where.setdefault((r.memory, r.name), at[0][0]) == at[0][0]
    return frozenset() if plain and not any(_shares(facts, *w) for w in where) else frozenset(asking)


def of_warp(block: Block) -> frozenset[str]:
    """Names whose values may differ from warp to warp."""
    out = {"warp"}

    def sets(block: Block, differs: bool) -> None:
        for n in block:
            match n:
                case Event():
                    out.update(s.name for s in n.sets if differs or s.each or n.warp is not None or mentions(s.value, out))
                case Branch(test=test):
                    sets((*n.then, *n.other), differs or mentions(test, out))
                case Loop():
                    own = differs or mentions((n.lo, n.hi, n.step), out)
                    out.update((n.var,) if own else ())
                    sets(n.body, own)
                case While(test=test):
                    sets(n.body, differs or mentions(test, out))

    before = 0
    while len(out) > before:
        before = len(out)
        sets(block, False)
    return frozenset(out)


def place(r: Region) -> tuple[Expr, ...]:
    """What names a part of a buffer."""
    return (*r.slot, *(x for d in r.box for x in (d.lo, d.size)))


def mentions(e: Expr | tuple | None, of: frozenset[str] | set[str]) -> bool:
    return e is not None and any(n.id in of for n in names(e))


def _asks(block: Block, of: frozenset[str]) -> bool:
    """Whether who runs a statement that others see is told by such a name, or which barrier it is."""
    for n in walk(block):
        match n:
            case Branch() | While() | Loop() if any(_seen(e) for e in events((n,))):
                if mentions((n.lo, n.hi, n.step) if isinstance(n, Loop) else n.test, of):
                    return True
            case Event() if any(isinstance(a, Wait | Arrive | EngineArrive) and mentions(a.barrier.index, of) for a in n.acts):
                return True
    return False


def _seen(e: Event) -> bool:
    return any(not isinstance(a, Access) or a.region.memory in ("shared", "tensor") for a in e.acts)


def _shares(facts: Facts, memory: str, name: str) -> bool:
    plans = facts.buffers if memory == "shared" else facts.columns
    mine = plans[name].cells
    return any(n != name and p.cells.start < mine.stop and mine.start < p.cells.stop for n, p in plans.items())


def _leader_waits(block: Block) -> bool:
    """Whether something holds the leader up and not the lanes beside it, which touch shared memory themselves."""
    ran = list(events(block))
    held = any(e.by is not By.ALL and isinstance(a, Wait | Drain) for e in ran for a in e.acts)
    touch = any(e.by is By.ALL and isinstance(a, Access) and a.region.memory in ("shared", "tensor") for e in ran for a in e.acts)
    return held and touch


def specialise(e, constants: Constants):
    """An expression, act or set of acts for one agent."""
    return inline(e, constants)
