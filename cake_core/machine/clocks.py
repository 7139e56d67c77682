"""Vector clocks of a scenario: what each lane group knows to have happened.

A clock is a list of counts, one a component. Components are: the two lane groups of each agent (the leading lane, and all lanes);
the fences that a lane group has executed, up to which of its own accesses; the groups of a queue whose reads, or whose reads and writes,
are complete; the operations of an engine that are complete; the phases of a barrier that counts bytes. So one comparison of two numbers
answers whether an access, synchronous or not, is known to be complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_core.effects import Fence
from cake_core.facts.schema import Access, Commit, Drain, EngineArrive, WithBytes, WithCommit, WithGroup, events
from cake_core.machine.threads import Agent, Cluster

Clock = list


def join(a: Clock, b: Clock) -> Clock:
    return [x if x > y else y for x, y in zip(a, b, strict=True)]  # noqa: FURB136 (half the time)


def includes(a: Clock, b: Clock) -> bool:
    """Whether all that b knows, a knows."""
    for x, y in zip(a, b, strict=True):
        if x < y:
            return False
    return True


@dataclass(slots=True)
class Layout:
    """Numbers of components. A lane group's own is `2 * agent` for the leading lane, `2 * agent + 1` for all lanes."""

    size: int
    numbers: dict[tuple, int] = field(default_factory=dict)

    def add(self, *key) -> None:
        if key not in self.numbers:
            self.numbers[key] = self.size
            self.size += 1

    def get(self, *key) -> int | None:
        return self.numbers.get(key)


def layout_of(cluster: Cluster) -> Layout:
    facts = cluster.facts
    out = Layout(2 * len(cluster.agents))
    for agent in cluster.agents:
        blocks = [facts.before, facts.after, *([agent.role.body] if agent.role else [])]
        for act in (a for b in blocks for e in events(b) for a in e.acts):
            match act:
                case Fence(kind):
                    for lane in (0, 1):
                        out.add("fence", kind, 2 * agent.id + lane)
                case Access(completion=WithGroup(queue)) | Commit(queue) | Drain(queue=queue):
                    for owner in owners(agent, queue):
                        out.add("reads", owner, queue)
                        out.add("writes", owner, queue)
                case Access(completion=WithCommit(engine)) | EngineArrive(engine=engine):
                    out.add("engine", agent.id, engine)
                case Access(completion=WithBytes(barrier)):
                    for cta in range(facts.cluster):
                        for i in range(facts.barriers[barrier.name].slots):
                            out.add("bytes", cta, barrier.name, i)
    return out


def owners(agent: Agent, queue: str) -> tuple:
    """Whose groups of a queue are waited for: those of the instance, where its warps issue them together, or of a lane group."""
    if queue in agent.collective:
        return ((agent.cta, agent.name, agent.instance),)
    return 2 * agent.id, 2 * agent.id + 1
