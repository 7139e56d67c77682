"""A launch: CTAs by clusters, the jobs of their engines, and the turns that all of them take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.emulate.agents import Agent, JobAgent
from cake_core.emulate.barriers import Meeting, PhaseBarrier
from cake_core.emulate.blocks import Code
from cake_core.emulate.clocks import Clock, Vector
from cake_core.emulate.memory import Memory
from cake_core.emulate.outcome import Fault, Finding, Findings
from cake_core.emulate.races import OBJECT
from cake_core.emulate.turns import Turns
from cake_core.emulate.warps import Lanes, Warp
from cake_core.emulate.watch import JOB, Watch
from cake_core.ptx.emulated import LANES, RANK_AT, WINDOWS, TiledMap
from cake_core.ptx.groups import mask_of

if TYPE_CHECKING:
    from cake_core.emulate.device import Device

#: Where shared memory starts in its window: the system keeps the first kilobyte of a CTA (CUDA C++ Programming Guide, Compute Capabilities 8.x on).
SHARED_AT = 1024
#: Blocks of code that a warp goes through before others have their turn.
SLICE = 512
#: Rounds without a barrier, a store or a completion after which those that still run are taken to poll for what never comes, though they count.
IDLE_ROUNDS = 2000
#: Numbers of jobs that are looked at for one that may be taken again: those that are over for longest are known to most.
LOOKED_AT = 16
#: Instructions of warps that a launch may execute.
MOST = 200_000_000


class Job:
    """Work of an engine. Implements `ptx.emulated.Job`."""

    __slots__ = ("cta", "done", "line", "outlives", "proxy", "queue", "seen", "stamp", "what", "work")

    def __init__(
        self, cta: Cta, line: int, queue: Hashable | None, work: Callable[[Agent], None], what: str, proxy: str, outlives: bool, seen: Vector
    ) -> None:
        self.cta, self.line, self.queue, self.work, self.what, self.proxy, self.outlives, self.seen = (
            cta,
            line,
            queue,
            work,
            what,
            proxy,
            outlives,
            seen,
        )
        self.done, self.stamp = False, None


class Cta:
    """`number`: in the grid. Implements `ptx.emulated.Cta`."""

    def __init__(self, launch: Grid, number: int, index: tuple[int, int, int], rank: int, cluster: list[Cta]) -> None:
        self.launch, self.number, self.index, self.rank, self.cluster = launch, number, index, rank, cluster
        self.shape, self.threads = launch.shape, launch.threads
        self.shared = Memory(f"shared memory of CTA {number}", launch.shared_bytes, "shared", SHARED_AT)
        self.barriers: dict[int, tuple[PhaseBarrier, int, int]] = {}
        self.meetings: dict[int, Meeting] = {}
        self.kept: dict[Hashable, Any] = {}
        self.ended, self.gone = False, 0
        self.guests: dict[
            int, tuple[int, int, int]
        ] = {}  # agents of other CTAs in this one's shared memory: count, lanes and line of the last access
        self.whole = Meeting(f"the barrier of the cluster of CTA {number}")
        self.warps: list[Warp] = []
        for w in range(-(-self.threads // LANES)):
            clock = launch.clock(f"warp {w} of CTA {number}", self)
            self.warps.append(Warp(self, w, min(self.threads - LANES * w, LANES), launch.code, clock))

    def shared_of(self, agent: Agent, rank: int) -> Memory:
        if rank >= len(self.cluster):
            raise agent.fault("emulate/out-of-bounds", f"an address of shared memory in CTA {rank} of a cluster of {len(self.cluster)}")
        other = self.cluster[rank]
        if other.over and other is not self:
            raise agent.fault(
                "emulate/out-of-bounds",
                f"the shared memory of CTA {rank} of the cluster is accessed by CTA {self.rank}, and its threads have ended",
                why="a CTA's shared memory is there as long as the CTA is (PTX ISA, Distributed Shared Memory)",
                fix="let the CTAs of the cluster meet before they end",
            )
        if other is not self and self.launch.races:
            clock = agent.clock
            lanes = mask_of(agent.active) if isinstance(agent, Lanes) else 0
            other.guests[clock.id] = clock.count, lanes | other.guests.get(clock.id, (0, 0))[1], agent.line
        return other.shared

    @property
    def over(self) -> bool:
        return self.gone == self.threads

    def barrier(self, agent: Agent, address: int) -> PhaseBarrier:
        """The object at an address of the window. One that nobody has initialised faults when it is used."""
        rank, offset = address >> RANK_AT, address & (1 << RANK_AT) - 1
        memory = self.shared_of(agent, rank)
        memory._inside(agent, np.array([offset]), 8, "used as a barrier")
        kept = self.cluster[rank].barriers
        if offset not in kept:
            kept[offset] = PhaseBarrier(f"the barrier at {offset - SHARED_AT} of CTA {self.cluster[rank].number}", memory, offset, self.cluster[rank])
        return kept[offset]

    def meeting(self, number: int) -> Meeting:
        if number not in self.meetings:
            self.meetings[number] = made = Meeting(f"barrier {number} of CTA {self.number}")
            made.gone = self.gone
        return self.meetings[number]

    def together(self) -> Meeting:
        """The barrier of the cluster."""
        return self.cluster[0].whole

    def end(self, who: int, lanes: int) -> None:
        """These lanes of a warp have ended."""
        threads = lanes.bit_count()
        self.gone += threads
        for meeting in (*self.meetings.values(), self.together()):
            meeting.end(who, lanes, threads)
        if self.over:
            self._farewell()

    def _farewell(self) -> None:
        """Others have accessed this CTA's shared memory: one of its threads must know of that when the last one ends."""
        known = [v for w in self.warps for one in w.clock.vectors(-1) for v in (one, one.over) if v is not None]
        for guest, (count, lanes, line) in self.guests.items():
            if any(guest < len(v.known) and v.known[guest] >= count for v in known):
                continue
            told = [v.lanes.get(guest, (0, 0)) for v in known]
            if not any(c >= count and lanes and not lanes & ~mask for c, mask in told):
                who = self.launch.name(guest)
                message = f"{who} accesses the shared memory of CTA {self.number}, and nothing orders that in front of the end of that CTA"
                fix = "let the CTAs of the cluster meet before they end"
                self.launch.findings.add(Finding("emulate/race", message, line, who, fix=fix))

    def state(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def memory(self, name: str, size: int) -> Memory:
        return self.state(("memory", name), lambda: Memory(f"{name} of CTA {self.number}", size, name))


class Grid:
    """One launch. `dims`, `cluster`: CTAs along x, y, z. Implements `ptx.emulated.Launch`."""

    def __init__(
        self,
        code: Code,
        dims: tuple[int, int, int],
        cluster: tuple[int, int, int],
        shape: tuple[int, int, int],
        params: bytes,
        shared_bytes: int,
        dynamic_bytes: int,
        device: Device,
        turns: Turns,
        races: bool = True,
        most: int = MOST,
    ) -> None:
        self.code, self.grid, self.cluster, self.shape, self.device, self.turns = code, dims, cluster, shape, device, turns
        self.threads, self.races, self.most = shape[0] * shape[1] * shape[2], races, most
        self.shared_bytes, self.dynamic_bytes = shared_bytes, dynamic_bytes
        self.params = Memory("the parameters", max(len(params), 1), "param", written=True, watched=False)
        self.params.data[: len(params)] = np.frombuffer(params, np.uint8)
        self.findings = Findings()
        self.progress = self.executed = 0
        self.names: list[str] = ["nobody", "a barrier object"]  # by number: the second is races.OBJECT
        self.jobs = np.arange(64) == OBJECT  # by number of agent: whether it accesses memory as engines do
        self.homes = np.full((2, 64), -1)  # by number of agent: its CTA, and the first one of its cluster
        self.free: dict[int, deque[Clock]] = {}  # by CTA, clocks of its jobs that are over, the longest first
        self.early = 0  # places of reads in front of writes that are kept
        self.unheld: dict[tuple[int, int], int] = {}  # who acquired, and who released at which line, in scopes that did not hold both
        self.queues: dict[Hashable, deque[Job]] = {}
        self.last: dict[Hashable, Vector] = {}  # of a queue, what its last job had done and seen
        self.kept: dict[Hashable, Any] = {}
        self.watch: Watch | None = None
        self.directives: tuple[str, ...] = ()  # of the entry, as written
        self.waiting: deque = deque()  # clusters that have not begun, each by the indices of its CTAs
        self.now: Lanes | JobAgent | None = None  # who is executing

    @property
    def multiprocessors(self) -> int:
        return self.device.multiprocessors

    # --- agents

    def clock(self, name: str, cta: Cta, job: bool = False) -> Clock:
        number = len(self.names)
        self.names.append(name)
        if number >= len(self.jobs):
            self.jobs = np.concatenate([self.jobs, np.zeros(len(self.jobs), bool)])
            self.homes = np.concatenate([self.homes, np.full(self.homes.shape, -1)], axis=1)
        self.jobs[number] = job
        self.homes[:, number] = cta.number, cta.cluster[0].number if cta.cluster else cta.number
        return Clock(number)

    def between(self, cta: Cta, agents: np.ndarray) -> np.ndarray:
        """How far operations of the CTA and of these agents have to reach to hold each other (`ptx.scopes.REACH`)."""
        ctas, clusters = self.homes
        return np.where(ctas[agents] == cta.number, 1, np.where(clusters[agents] == cta.cluster[0].number, 2, 3))

    def name(self, number: int) -> str:
        return self.names[number]

    def _job_clock(self, job: Job) -> Clock:
        """A number for a job: one that was a job's which this one knows of, so that who knows this one knows that one too."""
        if not self.races:
            return Clock(0)
        known, engine = job.seen.known, job.proxy == "async"
        free = self.free.setdefault(job.cta.number, deque())
        for n, clock in enumerate(islice(free, LOOKED_AT)):
            if self.jobs[clock.id] == engine and clock.id < len(known) and known[clock.id] >= clock.count - 1:  # all that it has told
                del free[n]
                self.names[clock.id] = job.what
                break
        else:
            clock = self.clock(job.what, job.cta, engine)
        clock.vector = job.seen
        return clock

    # --- ptx.emulated.Launch

    def cancel(self) -> tuple[int, int, int] | None:
        return self.waiting.popleft()[0] if self.waiting else None

    def peek(self, address: int, size: int) -> bytes:
        found = self.locate(address, size)
        return b"" if found is None else found[0].data[found[1] : found[1] + size].tobytes()

    def map_in(self, data: bytes) -> TiledMap | None:
        return self.device.map_in(data)

    def map(self, address: int) -> TiledMap | None:
        """The map at a generic address: a parameter's is what `cvta.param` gives, not the one in its space (seen on an H200: misaligned)."""
        at = address - WINDOWS["param"]
        if 0 <= at < self.params.size:
            return self.device.map_in(self.params.data[at : at + 128].tobytes())
        return self.device.map_in(self.peek(address, 128))

    def locate(self, address: int, size: int) -> tuple[Memory, int] | None:
        return self.device.locate(address, size)

    def state(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    # --- jobs

    def start(self, lanes: Lanes, queue: Hashable | None, work: Callable[[Agent], None], what: str, proxy: str, outlives: bool, each: bool) -> Job:
        seen = lanes.release(each) or Vector()
        known = lanes.common() if each else lanes.seen()
        seen.ordered["tensor"] = known.ordered["tensor"].copy()  # its thread's own fences hold for it
        job = Job(lanes.cta, lanes.line, queue, work, what, proxy, outlives, seen)
        key = ("alone", id(job)) if queue is None else (lanes.cta.number, queue)
        self.queues.setdefault(key, deque()).append(job)
        return job

    def perform(self, key: Hashable) -> None:
        """The first job of a queue takes effect."""
        queue = self.queues[key]
        job = queue.popleft()
        if not queue:
            del self.queues[key]
        if self.races and key in self.last:
            job.seen.join(self.last[key], "tensor")  # an engine does its work in order, fences or not
        clock = self._job_clock(job)
        agent = JobAgent(job.cta, clock, job.line, job.what, job.proxy == "async")
        self.now = agent
        begun, job.seen.time = job.seen.time, job.seen.time + JOB
        job.work(agent)
        if self.watch is not None:
            self.watch.performed(job, begun, job.seen.time)
        job.done, job.stamp = True, agent.release()
        if self.races:
            self.free[job.cta.number].append(clock)
            if job.queue is not None:
                self.last[key] = job.stamp

    def phase_over(self, agent: Agent, barrier: PhaseBarrier) -> None:
        if self.watch is not None:
            self.watch.completed(barrier, agent, barrier.done.time)

    # --- the run

    def run(self, resident: int) -> None:
        """All CTAs, `resident` clusters at a time. Findings are in `findings`; a fault ends the run."""
        try:
            with np.errstate(all="ignore"):
                self._run(max(resident, 1))
        except Fault as fault:
            self.findings.add(fault.finding)

    def _run(self, resident: int) -> None:
        waiting = self.waiting = deque(self._clusters())
        live: list[list[Cta]] = []
        idle, seen = 0, set()
        while waiting or live:
            while waiting and len(live) < resident:
                live.append(self._begin(waiting.popleft()))
            before, went = self.progress, False
            warps = [w for cluster in live for cta in cluster for w in cta.warps if w.splits]
            for warp in self.turns.order(warps):
                went |= self._turn(warp)
            performed = self.turns.perform(self, went)
            if self.queues and self.progress == before:  # warps that only poll leave engines their turn
                performed |= self.turns.perform(self, False)
            for cluster in [c for c in live if not any(w.splits for cta in c for w in cta.warps)]:
                if self._end(cluster):
                    live.remove(cluster)
            if not went and not performed and live and any(w.splits for c in live for cta in c for w in cta.warps):
                self._deadlock(live)
                return
            if self.progress == before:
                idle += 1
                here = self._signature(warps)
                if idle > IDLE_ROUNDS or here in seen:  # all registers are what they were, and nothing has changed in memory since
                    self._deadlock(live)
                    return
                seen.add(here)
            elif idle:
                idle, seen = 0, set()
            if self.executed > self.most:
                lanes = warps[0].splits[0] if warps and warps[0].splits else None
                line = lanes.line if lanes is not None else 0
                self.findings.add(Finding("emulate/unfinished", f"the kernel still runs after {self.most} instructions of warps", line))
                return

    def _signature(self, warps: Sequence[Warp]) -> int:
        return hash(tuple((s.block, s.active.tobytes(), *(b.tobytes() for b in w.store.values())) for w in warps for s in w.splits))

    def _turn(self, warp: Warp) -> bool:
        """Each group of lanes that can go on does so, the one that is furthest behind first. Whether any did."""
        blocks, budget, went = self.code.blocks, self.turns.slice(SLICE), False
        for lanes in warp.splits:
            lanes.paused = False
        while budget > 0:
            ready = [s for s in warp.splits if not s.paused and (s.waiting is None or s.waiting.ready())]
            if not ready:
                break
            went = True
            lanes = ready[0] if len(ready) == 1 else min(ready, key=lambda s: s.block)
            self.now = lanes
            budget = lanes.run(blocks, budget)
        return went

    def _clusters(self) -> list[tuple[int, list[tuple[int, int, int]]]]:
        (gx, gy, gz), (cx, cy, cz) = self.grid, self.cluster
        found = []
        for z in range(0, gz, cz):
            for y in range(0, gy, cy):
                for x in range(0, gx, cx):
                    found.append([(x + i, y + j, z + k) for k in range(cz) for j in range(cy) for i in range(cx)])
        return found

    def _begin(self, indices: Sequence[tuple[int, int, int]]) -> list[Cta]:
        cluster: list[Cta] = []
        gx, gy, _ = self.grid
        for rank, (x, y, z) in enumerate(indices):
            cluster.append(Cta(self, x + gx * (y + gy * z), (x, y, z), rank, cluster))
        return cluster

    def _end(self, cluster: list[Cta]) -> bool:
        """What a cluster leaves unfinished; its jobs take effect first where nobody waited for them."""
        pending = [k for k, q in self.queues.items() if any(j.cta in cluster for j in q)]
        for key in pending:
            job = next((j for j in self.queues[key] if not j.outlives), None)
            if job is not None:
                message = f"{job.what} has not taken effect when CTA {job.cta.number} ends"
                self.findings.add(Finding("emulate/unfinished", message, job.line, f"CTA {job.cta.number}"))
            while key in self.queues:
                self.perform(key)
        for cta in cluster:
            cta.ended = True
            self.free.pop(cta.number, None)
            for kept in tuple(cta.kept.values()):
                if callable(ended := getattr(kept, "ended", None)):
                    for left in ended(cta):
                        self.findings.add(Finding("emulate/unfinished", left, 0, f"CTA {cta.number}"))
        return True

    def _deadlock(self, live: list[list[Cta]]) -> None:
        stuck: Mapping[tuple, list] = {}
        for cluster in live:
            for cta in cluster:
                for warp in cta.warps:
                    for s in warp.splits:
                        what = s.waiting.what if s.waiting is not None else "polls for a change that does not come"
                        stuck.setdefault((s.line, what), []).append(s)
        for (line, what), lanes in stuck.items():
            names = ", ".join(s.who for s in lanes[:4]) + (f" and {len(lanes) - 4} more" if len(lanes) > 4 else "")
            message = f"{names} never go on: they wait for {what}" if lanes[0].waiting is not None else f"{names} never go on: they poll"
            states = [b.state() for b in lanes[0].cta.barriers.values() if b.bytes or b.pending != b.count]
            self.findings.add(Finding("emulate/deadlock", message, line, lanes[0].who, "; ".join(states[:4]) or None))
