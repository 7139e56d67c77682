"""Races by bytes: each access must be ordered behind the accesses before it that it conflicts with.

Of each byte the last writer is kept, and of each agent that reads the count of its last read; strong accesses whose scopes hold each other's threads
are in no race with each other.
Accesses of engines must be ordered behind writes of threads by a proxy fence too; a read of threads in front of an engine's write needs none here
(what was awaited has been read).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate.clocks import Vector, reach
from cake_core.ptx.scopes import REACH

if TYPE_CHECKING:
    from cake_core.emulate.agents import Agent
    from cake_core.emulate.memory import Memory

#: A word of an access: agent << AGENT | count << COUNT | how far its scope reaches << SCOPE | lane. 0: nobody.
AGENT, COUNT, SCOPE, LANE = 40, 7, 5, 31
_COUNTS = (1 << AGENT - COUNT) - 1
#: The number that stands for a barrier object as the writer of its bytes: nobody's accesses are ordered behind it while it lives.
OBJECT = 1
#: Places of reads in front of the first write to an allocation that a launch keeps: what a host has room for (16 bytes each).
EARLY = 1 << 21


class Shadow:
    """`writes`: the word of each byte's last write. `reads`: by agent, the word of its last read without the agent. `early`: reads of global memory that
    nobody has written yet, as (agent, word, chunk, index): of inputs no more is ever made of them."""

    __slots__ = ("early", "memory", "reads", "size", "writes")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory, self.size = memory, size
        self.clear()

    def clear(self) -> None:
        """Nobody has accessed anything."""
        self.reads: dict[int, np.ndarray] = {}
        self.writes: np.ndarray | None = None
        self.early: list[tuple[int, int | np.ndarray, int, np.ndarray]] = []

    def read(self, agent: Agent, chunk: int, index: np.ndarray, lanes: np.ndarray | None, scope: str) -> None:
        """Bytes `index` (any shape, of rows of `chunk` bytes) are read; `lanes`: of which lane each first index is."""
        if not agent.grid.races:
            return
        clock, reach_ = agent.clock, REACH[scope]
        word = _word(0, clock.count << COUNT | reach_ << SCOPE, lanes, index)
        if self.writes is not None:
            self._behind_writes(agent, self.writes.reshape(-1, chunk)[index], lanes, reach_, "reads")
        elif self.memory.kind == "global":
            if agent.grid.early < EARLY:
                agent.grid.early += index.size
                self.early.append((clock.id, word, chunk, index))
            return
        self._keep(clock.id, word, chunk, index)

    def _keep(self, id: int, word: int | np.ndarray, chunk: int, index: np.ndarray) -> None:
        seen = self.reads.get(id)
        if seen is None:
            seen = self.reads[id] = np.zeros(self.size, np.uint32)
        seen.reshape(-1, chunk)[index] = word

    def _begin(self) -> None:
        """The first write: from here on words are kept by byte."""
        self.writes = np.zeros(self.size, np.int64)
        for read in self.early:
            self._keep(*read)
        self.early.clear()

    def write(self, agent: Agent, chunk: int, index: np.ndarray, lanes: np.ndarray | None, scope: str = "", fenced: bool = True) -> None:
        """`fenced`: fences for this kind of memory must order it too, where the kernel has such."""
        if not agent.grid.races:
            return
        reach_ = REACH[scope]
        if self.writes is None:
            self._begin()
        else:
            self._behind_writes(agent, self.writes.reshape(-1, chunk)[index], lanes, reach_, "writes", fenced)
        if self.reads:
            for chosen, vector in agent.parts(lanes):
                one, who = (index, lanes) if chosen is None else (index[chosen], lanes[chosen])
                self._behind_reads(agent, vector, chunk, one, who, reach_, fenced)
        clock = agent.clock
        self.writes.reshape(-1, chunk)[index] = _word(clock.id << AGENT, clock.count << COUNT | reach_ << SCOPE, lanes, index)

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
            self._begin()
        self.writes[at : at + size] = OBJECT << AGENT | _COUNTS << COUNT if held else 0

    # --- checks

    def _behind_writes(self, agent: Agent, words: np.ndarray, lanes: np.ndarray | None, scope: int, does: str, fenced: bool = True) -> None:
        if not words.size:
            return
        first = int(words.flat[0])
        if (words == first).all():  # one writer, as a rule
            if not first:
                return
            if first >> AGENT != agent.clock.id and not agent.clock.apart:
                words = words.reshape(-1)[:1]
        for chosen, vector in agent.parts(lanes):
            if chosen is None:
                self._behind(agent, vector, words, lanes, scope, does, fenced)
            else:
                self._behind(agent, vector, words[chosen], lanes[chosen], scope, does, fenced)

    def _behind(self, agent: Agent, vector: Vector, words: np.ndarray, lanes: np.ndarray | None, scope: int, does: str, fenced: bool) -> None:
        agents, counts = words >> AGENT, words >> COUNT & _COUNTS
        clock = agent.clock
        mine = agents == clock.id
        late = ~mine & (counts > reach(self._known(agent, vector, fenced), agents))
        if vector.over is not None:
            late &= ~(agent.grid.jobs[agents] & (counts <= reach(vector.over.known, agents)))
        if scope:
            late &= ~self._strong(agent, agents, words, scope)
        fenced = fenced and self.memory.kind in agent.grid.code.orders
        if fenced:  # fences for this kind of memory order by themselves, with relaxed operations too
            unfenced = (agents > 0) & ~(mine & (counts == clock.count)) & (counts > reach(vector.ordered[self.memory.kind], agents))
            late &= unfenced
        if late.any() and self._untold(vector, words[late]):
            self._race(agent, int(words[late][0]) >> AGENT, does, "wrote")
            return
        if lanes is not None and mine.any():
            who = _along(lanes, words)
            others = mine & (counts > clock.synced) & ((words & LANE) != who)
            if clock.pairs is not None:
                others &= counts > clock.pairs[who, words & LANE]
            if scope:
                others &= words >> SCOPE & 3 == 0
            if others.any():
                self._lanes(agent, int(words[others][0]) & LANE, does, "wrote")
        if fenced and unfenced.any():
            self._unfenced_between(agent, int(agents[unfenced].flat[0]), does, "wrote")
        if agent.engine and (ordered := vector.ordered.get(f"async.{self.memory.kind}")) is not None:
            threads = ~agent.grid.jobs[agents] & ~mine & (agents > 0)
            unfenced = threads & (counts > reach(ordered, agents))
            if unfenced.any():
                self._unfenced(agent, int(agents[unfenced].flat[0]), does)

    def _strong(self, agent: Agent, agents: np.ndarray, words: np.ndarray, scope: int) -> np.ndarray:
        """Which accesses are strong and of scopes that hold the agent's threads, where its own holds theirs."""
        far = agent.grid.between(agent.cta, agents)
        return (far <= scope) & (far <= (words >> SCOPE & 3))

    def _behind_reads(self, agent: Agent, vector: Vector, chunk: int, index: np.ndarray, lanes: np.ndarray | None, scope: int, fenced: bool) -> None:
        known, clock = self._known(agent, vector, fenced), agent.clock
        over = vector.over.known if vector.over is not None else known[:0]
        order = vector.ordered[self.memory.kind] if fenced and self.memory.kind in agent.grid.code.orders else None
        for reader, seen in self.reads.items():
            mine = reader == clock.id
            if order is not None:
                counts = seen.reshape(-1, chunk)[index] >> COUNT
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
            most = clock.synced if mine else max(int(known[reader]) if reader < len(known) else 0, int(over[reader]) if reader < len(over) else 0)
            if not words.size or int(words.max()) >> COUNT <= most:
                continue
            late = words >> COUNT > most
            if mine:
                who = _along(lanes, words)
                late &= (words & LANE) != who
                if clock.pairs is not None:
                    late &= words >> COUNT > clock.pairs[who, words & LANE]
            if scope:
                late &= ~self._strong(agent, np.array(reader), words, scope)
            if not late.any():
                continue
            found = words[late].astype(np.int64)
            if mine:
                self._lanes(agent, int(found[0]) & LANE, "writes", "read")
            elif self._untold(vector, reader << AGENT | found) and (vector.over is None or self._untold(vector.over, reader << AGENT | found)):
                self._race(agent, reader, "writes", "read")

    def _known(self, agent: Agent, vector: Vector, fenced: bool) -> np.ndarray:
        """What an access is ordered behind. One that needs no fences of its own is behind what those of others have ordered too."""
        if fenced or self.memory.kind not in agent.grid.code.orders:
            return vector.known
        return vector.fenced()

    def _untold(self, vector: Vector, words: np.ndarray) -> bool:
        """Whether one of the accesses is none that single lanes have told of."""
        told = vector.lanes
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
        line = agent.grid.unheld.get((agent.clock.id, other))
        if line is None:
            why, fix = "no chain of barriers, arrivals and completions leads from the one to the other", None
        else:
            why = f"the scopes of the release at line {line} of the PTX and of the acquire do not hold each other's threads (PTX ISA, Morally Strong Operations)"
            fix = "name a scope that holds the threads of both (.cluster, .gpu)"
        agent.finding(
            "emulate/race",
            f"{agent.who} {does} bytes of the {self.memory.name} that {agent.grid.name(other)} {did}, and nothing orders the two",
            why=why,
            fix=fix,
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
