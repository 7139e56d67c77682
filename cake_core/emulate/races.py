"""Races by bytes: each access must be ordered behind the accesses before it that it conflicts with.

Of each byte the last writer is kept, and of each agent that reads the count of its last read; strong accesses are in no race with each other.
Accesses of engines must be ordered behind writes of threads by a proxy fence too; a read of threads in front of an engine's write needs none here
(what was awaited has been read).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate.clocks import reach

if TYPE_CHECKING:
    from cake_core.emulate.agents import Agent
    from cake_core.emulate.memory import Memory

#: A word of an access: agent << AGENT | count << COUNT | strong << STRONG | lane. 0: nobody.
AGENT, COUNT, STRONG, LANE = 40, 8, 7, 31
_COUNTS = (1 << AGENT - COUNT) - 1
#: The number that stands for a barrier object as the writer of its bytes: nobody's accesses are ordered behind it while it lives.
OBJECT = 1


class Shadow:
    """`writes`: the word of each byte's last write. `reads`: by agent, the word of its last read without the agent, from COUNT - 2 on."""

    __slots__ = ("memory", "reads", "size", "writes")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory, self.size = memory, size
        self.clear()

    def clear(self) -> None:
        """Nobody has accessed anything."""
        self.reads: dict[int, np.ndarray] = {}
        self.writes: np.ndarray | None = None

    def read(self, agent: Agent, chunk: int, index: np.ndarray, lanes: np.ndarray | None, strong: bool) -> None:
        """Bytes `index` (any shape, of rows of `chunk` bytes) are read; `lanes`: of which lane each first index is."""
        if not agent.grid.races:
            return
        if self.writes is not None:
            self._behind_writes(agent, self.writes.reshape(-1, chunk)[index], lanes, strong, "reads")
        elif self.memory.kind == "global":
            return  # of inputs, which nobody writes, no reads are kept; so one in front of the first write to an allocation is not seen
        clock = agent.clock
        seen = self.reads.get(clock.id)
        if seen is None:
            seen = self.reads[clock.id] = np.zeros(self.size, np.int32)
        seen.reshape(-1, chunk)[index] = _word(0, clock.count << COUNT - 2 | strong << STRONG - 2, lanes, index)

    def write(self, agent: Agent, chunk: int, index: np.ndarray, lanes: np.ndarray | None, strong: bool, fenced: bool = True) -> None:
        """`fenced`: fences for this kind of memory must order it too, where the kernel has such."""
        if not agent.grid.races:
            return
        if self.writes is None:
            self.writes = np.zeros(self.size, np.int64)
        else:
            self._behind_writes(agent, self.writes.reshape(-1, chunk)[index], lanes, strong, "writes", fenced)
        self._behind_reads(agent, chunk, index, lanes, strong, fenced)
        clock = agent.clock
        self.writes.reshape(-1, chunk)[index] = _word(clock.id << AGENT, clock.count << COUNT | strong << STRONG, lanes, index)

    def repeats(self, agent: Agent, chunk: int, index: np.ndarray, rows: np.ndarray, data: np.ndarray) -> bool:
        """Whether threads write what other threads have written there already, all of it: several warps that hold one value store it, as compilers have
        it where a layout is replicated. The first write stays the one that others have to be ordered behind."""
        if self.writes is None or not agent.grid.races:
            return False
        words = self.writes.reshape(-1, chunk)[index]
        if not words.size or int(words.min()) == 0 or (words >> AGENT == agent.clock.id).any() or agent.grid.jobs[words >> AGENT].any():
            return False
        return bool((rows[index] == data).all())

    def hold(self, at: int, size: int, held: bool) -> None:
        """A barrier object lives in these bytes, or does so no more."""
        if self.writes is None:
            self.writes = np.zeros(self.size, np.int64)
        self.writes[at : at + size] = OBJECT << AGENT | _COUNTS << COUNT if held else 0

    # --- checks

    def _behind_writes(self, agent: Agent, words: np.ndarray, lanes: np.ndarray | None, strong: bool, does: str, fenced: bool = True) -> None:
        if not words.size:
            return
        first = int(words.flat[0])
        if (words == first).all():  # one writer, as a rule
            if not first:
                return
            if first >> AGENT != agent.clock.id:
                words = words.reshape(-1)[:1]
        agents, counts = words >> AGENT, words >> COUNT & _COUNTS
        vector, clock = agent.clock.vector, agent.clock
        mine = agents == clock.id
        late = ~mine & (counts > reach(self._known(agent, fenced), agents))
        if strong:
            late &= words >> STRONG & 1 == 0
        fenced = fenced and self.memory.kind in agent.grid.code.orders
        if fenced:  # fences for this kind of memory order by themselves, with relaxed operations too
            unfenced = (agents > 0) & ~(mine & (counts == clock.count)) & (counts > reach(vector.ordered[self.memory.kind], agents))
            late &= unfenced
        if late.any() and self._untold(agent, words[late]):
            self._race(agent, int(words[late][0]) >> AGENT, does, "wrote")
            return
        if lanes is not None and mine.any():
            who = _along(lanes, words)
            others = mine & (counts > clock.synced) & ((words & LANE) != who)
            if clock.pairs is not None:
                others &= counts > clock.pairs[who, words & LANE]
            if strong:
                others &= words >> STRONG & 1 == 0
            if others.any():
                self._lanes(agent, int(words[others][0]) & LANE, does, "wrote")
        if fenced and unfenced.any():
            self._unfenced_between(agent, int(agents[unfenced].flat[0]), does, "wrote")
        if agent.engine and (ordered := vector.ordered.get(f"async.{self.memory.kind}")) is not None:
            threads = ~agent.grid.jobs[agents] & ~mine & (agents > 0)
            unfenced = threads & (counts > reach(ordered, agents))
            if unfenced.any():
                self._unfenced(agent, int(agents[unfenced].flat[0]), does)

    def _behind_reads(self, agent: Agent, chunk: int, index: np.ndarray, lanes: np.ndarray | None, strong: bool, fenced: bool) -> None:
        known, clock = self._known(agent, fenced), agent.clock
        order = agent.clock.vector.ordered[self.memory.kind] if fenced and self.memory.kind in agent.grid.code.orders else None
        for reader, seen in self.reads.items():
            mine = reader == clock.id
            if order is not None:
                counts = seen.reshape(-1, chunk)[index] >> COUNT - 2
                late = counts > (int(order[reader]) if reader < len(order) else 0)
                if mine:
                    late &= counts != clock.count
                if late.any():
                    unknown = not mine and (counts[late] > (int(known[reader]) if reader < len(known) else 0)).any()
                    (self._race if unknown else self._unfenced_between)(agent, reader, "writes", "read")
                continue
            if mine and lanes is None:
                continue
            words = seen.reshape(-1, chunk)[index]
            most = clock.synced if mine else int(known[reader]) if reader < len(known) else 0
            if not words.size or int(words.max()) >> COUNT - 2 <= most:
                continue
            late = words >> COUNT - 2 > most
            if mine:
                who = _along(lanes, words)
                late &= (words & LANE) != who
                if clock.pairs is not None:
                    late &= words >> COUNT - 2 > clock.pairs[who, words & LANE]
            if strong:
                late &= words >> STRONG - 2 & 1 == 0
            if not late.any():
                continue
            found = words[late].astype(np.int64)
            if mine:
                self._lanes(agent, int(found[0]) & LANE, "writes", "read")
            elif self._untold(agent, reader << AGENT | found >> COUNT - 2 << COUNT | found & LANE):
                self._race(agent, reader, "writes", "read")

    def _known(self, agent: Agent, fenced: bool) -> np.ndarray:
        """What an access is ordered behind. One that needs no fences of its own is behind what those of others have ordered too."""
        vector = agent.clock.vector
        if fenced or self.memory.kind not in agent.grid.code.orders:
            return vector.known
        return vector.fenced()

    def _untold(self, agent: Agent, words: np.ndarray) -> bool:
        """Whether one of the accesses is none that single lanes have told of."""
        told = agent.clock.vector.lanes
        if not told:
            return True
        for word in np.unique(words).tolist():
            count, mask = told.get(word >> AGENT, (0, 0))
            if word >> COUNT & _COUNTS > count or not mask >> (word & LANE) & 1:
                return True
        return False

    # --- findings

    def _race(self, agent: Agent, other: int, does: str, did: str) -> None:
        if other == OBJECT:
            agent.finding(
                "emulate/barrier",
                f"{agent.who} {does} bytes of the {self.memory.name} in which a barrier object lives",
                why="until it is invalidated its bytes are accessed by instructions for barrier objects alone (PTX ISA, mbarrier)",
            )
            return
        agent.finding(
            "emulate/race",
            f"{agent.who} {does} bytes of the {self.memory.name} that {agent.grid.name(other)} {did}, and nothing orders the two",
            why="no chain of barriers, arrivals and completions leads from the one to the other",
        )

    def _lanes(self, agent: Agent, other: int, does: str, did: str) -> None:
        agent.finding(
            "emulate/race",
            f"a lane of {agent.who} {does} what lane {other} {did} in the {self.memory.name}, and they have not met in between",
            why="lanes of one warp are ordered by a barrier of the warp, or of more threads",
            fix="let the lanes meet first (warp.sync)",
        )

    def _unfenced_between(self, agent: Agent, other: int, does: str, did: str) -> None:
        agent.finding(
            "emulate/missing-fence",
            f"{agent.who} {does} bytes of the {self.memory.name} that {agent.grid.name(other)} {did}, and fences for this memory do not order the two",
            why="what orders threads orders accesses of engines to it only with a fence in front of it and one behind it",
            fix="fence before the threads synchronise, and after",
        )

    def _unfenced(self, agent: Agent, other: int, does: str) -> None:
        agent.finding(
            "emulate/missing-fence",
            f"{agent.who} {does} bytes of the {self.memory.name} that {agent.grid.name(other)} wrote, without a proxy fence in between",
            why="writes of threads reach engines through a fence between the generic and the async proxy (PTX ISA, Proxies)",
            fix="fence behind the writes, in front of the barrier that orders them (fence.proxy.async)",
        )


def _word(agent: int, rest: int, lanes: np.ndarray | None, index: np.ndarray):
    word = agent | rest
    return word if lanes is None else (word | lanes.astype(np.int64)).reshape(*lanes.shape, *[1] * (index.ndim + 1 - lanes.ndim))


def _along(lanes: np.ndarray, words: np.ndarray) -> np.ndarray:
    return lanes.reshape(*lanes.shape, *[1] * (words.ndim - lanes.ndim))
