"""A warp: registers of 32 lanes, and those of its lanes that execute together."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.emulate import calls
from cake_core.emulate.agents import Agent
from cake_core.emulate.calls import END
from cake_core.emulate.clocks import Clock, Vector
from cake_core.emulate.code import VIEWS
from cake_core.emulate.memory import Memory
from cake_core.ptx.emulated import LANES, RANK_AT, WINDOWS

if TYPE_CHECKING:
    from cake_core.emulate.barriers import PhaseBarrier
    from cake_core.emulate.blocks import Code
    from cake_core.emulate.grid import Cta, Job

_NUMBERS = np.arange(LANES)
_OFFSET = (1 << RANK_AT) - 1
_ONES = np.ones(LANES, bool)
_ONES.flags.writeable = False
#: What registers hold before anyone writes them: a number that is no address, and a NaN as a float.
_FRESH = 0xFFDEAD5A


class Waiting:
    """What lanes wait for. `after`: the step has begun, and ends with this call."""

    __slots__ = ("after", "ready", "since", "what")

    def __init__(self, ready: Callable[[], bool], what: str, after: Callable[[], None] | None) -> None:
        self.ready, self.what, self.after = ready, what, after
        self.since: float | None = None


class Warp:
    """`store`: registers by width; `banks`: by view, the registers of its width as (n, 32); `rows`: the same, row by row. `splits`: the groups of lanes that execute apart."""

    def __init__(self, cta: Cta, number: int, lanes: int, code: Code, clock: Clock) -> None:
        self.cta, self.number, self.clock = cta, number, clock
        self.kept: dict[Hashable, Any] = {}
        self.held: dict[tuple[int, int], str] = {}  # registers that an engine has, and which
        self.touches, self.touched = 0, {}  # accesses of registers that engines may have, and the last of each
        self.store = store = {w: _fresh(w, n) for w, n in code.rows.items()}
        store.setdefault(0, np.zeros((1, LANES), bool))
        self.banks: list[np.ndarray | None] = [None] * len(VIEWS)
        self.rows: list[list[np.ndarray] | None] = [None] * len(VIEWS)
        for v in code.views:
            width = 0 if VIEWS[v] == "bool" else np.dtype(VIEWS[v]).itemsize
            if width in store:
                self.banks[v] = store[width].view(VIEWS[v])
                self.rows[v] = list(self.banks[v])
        self.splits = [Lanes(self, _NUMBERS < lanes)]
        self.code, self._local = code, None

    def local(self, bytes: int) -> Memory:
        """The memory of its threads, one behind another."""
        if self._local is None:
            self._local = Memory(f"local memory of warp {self.number} of CTA {self.cta.number}", LANES * bytes, "local", watched=False)
        return self._local

    @property
    def alive(self) -> int:
        return sum(s.group for s in self.splits)


def _fresh(width: int, count: int) -> np.ndarray:
    if not width:
        return np.zeros((count, LANES), bool)
    return np.full((count, LANES), (_FRESH << 32 | _FRESH) & (1 << 8 * width) - 1, np.dtype(f"uint{8 * width}"))


def _mask(active: np.ndarray) -> int:
    return int.from_bytes(np.packbits(active, bitorder="little").tobytes(), "little")


class Lanes(Agent):
    """Lanes that execute together: `block` is where they are. `group`: all of them as bits, also those that a guard keeps from the instruction that the
    active ones execute. `frames`: the calls that they are in, `base`: where their frame of local memory starts. Implements `ptx.emulated.Lanes`."""

    __slots__ = ("active", "banks", "base", "block", "first", "frames", "full", "group", "own", "paused", "rows", "waiting", "warp")

    def __init__(self, own: Warp, active: np.ndarray) -> None:
        super().__init__(own.cta, own.clock)
        self.own, self.warp, self.banks, self.rows = own, own.number, own.banks, own.rows
        self.block, self.waiting, self.paused = 0, None, False
        self.frames, self.base = (), 0
        self.regroup(active)

    def regroup(self, active: np.ndarray) -> None:
        self.group = _mask(active)
        self.narrow(active)

    def narrow(self, active: np.ndarray) -> None:
        self.active, self.full = active, bool(active.all())
        self.first = 0 if self.full else int(active.argmax())

    @property
    def who(self) -> str:
        return f"warp {self.warp} of CTA {self.cta.number}"

    @property
    def alive(self) -> int:
        return self.own.alive

    @property
    def ended(self) -> np.ndarray:
        """The lanes of the warp that have ended."""
        return (self.own.alive >> _NUMBERS & 1) == 0

    @property
    def touches(self) -> int:
        return self.own.touches

    def missing(self, mask: int | None) -> int:
        """Those lanes of `mask` (None: all that have not ended) that are not here."""
        if self.full:
            return 0
        wanted = self.own.alive if mask is None else mask
        return wanted & ~_mask(self.active)

    def seen(self) -> Vector:
        c = self.clock
        return c.vector if not c.apart else c.seen(_mask(self.active))

    def common(self) -> Vector:
        c = self.clock
        return c.vector if not c.apart else c.common(_mask(self.active))

    def parts(self, lanes: np.ndarray | None) -> list[tuple[np.ndarray | None, Vector]]:
        c = self.clock
        if not c.apart:
            return [(None, c.vector)]
        if lanes is None:  # all of them access all of it
            return [(None, vector) for vector in c.vectors(_mask(self.active))]
        found, rest = [], np.ones(len(lanes), bool)
        for mask, vector in c.apart:
            chosen = mask >> lanes & 1 == 1
            if chosen.all():
                return [(None, vector)]
            if chosen.any():
                found.append((chosen, vector))
                rest &= ~chosen
        return [*found, (rest, c.vector)] if rest.any() else found

    def fence(self, kind: str) -> None:
        if self.grid.races:
            c = self.clock
            for vector in c.vectors(_mask(self.active)):
                vector.fence(kind, c.id, c.count)
            c.count += 1

    def met(self, mask: int | None = None) -> None:
        c = self.clock
        c.meet(self.own.alive if mask is None else mask, self.own.alive)
        if mask is None or not self.own.alive & ~mask:
            c.synced, c.pairs = c.count, None
        elif self.grid.races:
            members = mask >> _NUMBERS & 1 == 1
            pairs = self._pairs()
            told = pairs[members].max(axis=0)
            told[members] = c.count
            pairs[members] = told
        c.count += 1

    def _pairs(self) -> np.ndarray:
        c = self.clock
        if c.pairs is None:
            c.pairs = np.zeros((LANES, LANES), np.int64)
        return c.pairs

    def acquire(self, stamp: Vector | None, order: str = "", mask: int | None = None) -> None:
        """What it tells of this warp's own lanes is ordered in front of these lanes too. Lanes that acquire alone know it alone."""
        if stamp is None:
            return
        c = self.clock
        active = self.active if mask is None else self.active & (mask >> _NUMBERS & 1 == 1)
        whole = (self.full and mask is None) or not self.own.alive & ~_mask(active)
        if whole:
            c.vector.join(stamp, order)
            if c.apart:
                for _, vector in c.apart:
                    vector.join(stamp, order)
                c.together(self.own.alive)
        else:
            for vector in c.part(_mask(active)):
                vector.join(stamp, order)
            c.vector.time = max(c.vector.time, stamp.time)
        own = int(stamp.known[c.id]) if c.id < len(stamp.known) else 0
        if own > c.synced:
            if whole:
                c.synced = own
            else:
                pairs = self._pairs()
                pairs[active] = np.maximum(pairs[active], own)
        count, told = stamp.lanes.get(c.id, (0, 0))
        if count > c.synced:
            pairs, counts = self._pairs(), np.where(told >> _NUMBERS & 1, count, 0)
            pairs[active] = np.maximum(pairs[active], counts)

    def acquire_fenced(self, stamp: Vector | None) -> None:
        if stamp is not None:
            for vector in self.clock.vectors(_mask(self.active)):
                vector.join_fenced(stamp)

    def _tell(self, stamp: Vector) -> None:
        c = self.clock
        if self.full:
            stamp.tell(c.id, c.count)
            return
        if c.synced:
            stamp.tell(c.id, c.synced)
        count, mask = stamp.lanes.get(c.id, (0, 0))
        stamp.lanes[c.id] = max(c.count, count), mask | _mask(self.active)

    def uniform(self, values: np.ndarray) -> int:
        value = values[self.first]
        if not self.full:
            values = values[self.active]
        if (values != value).any():
            raise self.fault("emulate/divergent", "lanes give different values for an operand that is one for all of them")
        return int(value)

    # --- memory

    def load(self, space: str, addresses: np.ndarray, size: int, scope: str = "") -> np.ndarray:
        if not self.full:
            addresses = np.where(self.active, addresses, addresses[self.first])
        self._aligned(addresses, size)
        lanes = _NUMBERS if self.full else np.where(self.active, _NUMBERS, self.first)
        memory, offsets = self._where(space, addresses, size, lanes)
        if memory is not None:
            return memory.read(self, offsets, size, lanes, scope)
        found = np.zeros((LANES, size), np.uint8)
        for lane in np.flatnonzero(self.active):
            one, at = self._where(space, addresses[lane : lane + 1], size, lanes[lane : lane + 1])
            found[lane] = one.read(self, at, size, lanes[lane : lane + 1], scope)[0]
        return found

    def store(self, space: str, addresses: np.ndarray, data: np.ndarray, scope: str = "") -> None:
        size = data.shape[-1]
        lanes = _NUMBERS
        if not self.full:
            addresses, data, lanes = addresses[self.active], np.broadcast_to(data, (LANES, size))[self.active], _NUMBERS[self.active]
        self._aligned(addresses, size)
        self.grid.progress += 1
        memory, offsets = self._where(space, addresses, size, lanes)
        if memory is not None:
            memory.write(self, offsets, data, lanes, scope)
            return
        for n in range(len(addresses)):
            one, at = self._where(space, addresses[n : n + 1], size, lanes[n : n + 1])
            one.write(self, at, data[n : n + 1], lanes[n : n + 1], scope)

    def update(self, space: str, addresses: np.ndarray, size: int, change: Callable[[int, np.ndarray], np.ndarray], scope: str = "gpu") -> np.ndarray:
        old = np.zeros((LANES, size), np.uint8)
        self._aligned(addresses if self.full else addresses[self.active], size)
        self.grid.progress += 1
        for lane in np.flatnonzero(self.active):
            memory, at = self._where(space, addresses[lane : lane + 1], size, _NUMBERS[lane : lane + 1])
            row = memory.atomic(self, int(at[0]), size, lambda bytes, lane=int(lane): change(lane, bytes), int(lane), scope)
            old[lane] = row
        return old

    def _aligned(self, addresses: np.ndarray, size: int) -> None:
        align = size & -size
        bad = addresses & np.uint64(align - 1)
        if bad.any():
            at = int(addresses[bad != 0][0])
            raise self.fault("emulate/misaligned", f"an access of {size} bytes at {at:#x}, which is no multiple of {align}")

    def _where(self, space: str, addresses: np.ndarray, size: int, lanes: np.ndarray) -> tuple[Memory | None, np.ndarray]:
        """The memory that holds all of these addresses, and the offsets in it; None: they lie in several."""
        if space == "generic":
            space, addresses = self._generic(addresses)
            if space is None:
                return None, addresses
        if space == "shared":
            ranks = addresses >> np.uint64(RANK_AT)
            rank = int(ranks[0])
            if (ranks != rank).any():
                return None, addresses
            return self.cta.shared_of(self, rank), (addresses & np.uint64(_OFFSET)).astype(np.int64)
        if space == "param":
            return self.cta.launch.params, addresses.astype(np.int64)
        if space in ("global", "const"):
            low, high = int(addresses.min()), int(addresses.max())
            found, last = self.cta.launch.locate(low, 1), self.cta.launch.locate(high, 1)
            if found is None:
                raise self.fault("emulate/out-of-bounds", f"{size} bytes of global memory at {low:#x}, where nothing is allocated")
            if last is not None and last[0] is not found[0]:
                return None, addresses
            return found[0], addresses.astype(np.int64) - low + found[1]
        if space == "local":
            bytes = self.own.code.local_bytes
            if (addresses + np.uint64(size) > bytes).any():
                raise self.fault(
                    "emulate/out-of-bounds", f"{size} bytes of a thread's local memory at {int(addresses.max()):#x}, which has {bytes} bytes"
                )
            return self.own.local(bytes), addresses.astype(np.int64) + lanes * bytes
        raise self.fault("emulate/unsupported", f"memory of the space '.{space}' is not covered")

    def _generic(self, addresses: np.ndarray) -> tuple[str | None, np.ndarray]:
        first = int(addresses[0])
        name = next((n for n, base in WINDOWS.items() if base <= first < base << 1), "global")
        low = WINDOWS.get(name, 0)
        high = low << 1 or min(WINDOWS.values())
        if int(addresses.min()) < low or int(addresses.max()) >= high:
            return None, addresses
        return name, addresses - np.uint64(low)

    def barrier(self, address: int) -> PhaseBarrier:
        if address % 8:
            raise self.fault("emulate/misaligned", f"a barrier object at {address:#x}, which is no multiple of 8")
        return self.cta.barrier(self, address)

    # --- waiting and engines

    def wait(self, ready: Callable[[], bool], what: str, after: Callable[[], None] | None = None) -> Waiting:
        return Waiting(ready, what, after)

    def pause(self) -> None:
        self.paused = True

    def start(
        self, queue: Hashable | None, work: Callable[[Agent], None], what: str, proxy: str = "async", outlives: bool = False, each: bool = False
    ) -> Job:
        return self.grid.start(self, queue, work, what, proxy, outlives, each)

    def state(self, key: Hashable, make: Callable[[], Any]) -> Any:
        kept = self.own.kept
        if key not in kept:
            kept[key] = make()
        return kept[key]

    # --- control

    def run(self, blocks: list, budget: int) -> int:
        """Go on until these lanes wait, pause, end, come to where others of their warp are or were, or `budget` blocks are done. Returns what is
        left of it."""
        own, grid, watch = self.own, self.grid, self.grid.watch
        if (waiting := self.waiting) is not None:
            self.waiting = None
            grid.progress += 1
            if waiting.after is not None:
                waiting.after()
                if watch is not None:
                    self._waited(waiting)
                self._go(blocks, blocks[self.block])
        while budget > 0:
            if self.block < END:
                calls.go(self)
                continue
            if self.block < 0:
                own.splits.remove(self)
                self.cta.end(self.clock.id, self.group)
                grid.progress += 1
                return budget
            if len(own.splits) > 1 and self._joins():
                return budget
            b = blocks[self.block]
            budget -= 1
            if b.waits:
                self.line, step = b.steps[0]
                self.waiting = step(self)
                grid.executed += 1
                if self.waiting is not None:
                    self.waiting.since = self.clock.vector.time if waiting is None or waiting.after is not None else waiting.since
                    return budget
                if watch is not None:
                    if waiting is not None and waiting.after is None:
                        self._waited(waiting)
                    self._ran(b)
                waiting = None
            else:
                for self.line, step in b.steps:
                    step(self)
                grid.executed += len(b.steps) + 1
                if watch is not None:
                    self._ran(b)
            self._go(blocks, b)
            if self.paused or len(own.splits) > 1:
                return budget
        return budget

    def _ran(self, b) -> None:
        now = self.clock.vector
        self.grid.watch.ran(self, [line for line, _ in b.steps], now.time)
        now.time += len(b.steps)

    def _waited(self, waiting: Waiting) -> None:
        if waiting.since is not None and self.clock.vector.time > waiting.since:
            self.grid.watch.waited(self, self.line, waiting.since, self.clock.vector.time, waiting.what)

    def _joins(self) -> bool:
        """Where other lanes of the warp stand at the same block they go on together; these are gone then."""
        for other in self.own.splits:
            if (
                other is not self
                and other.block == self.block
                and (other.waiting is None or other.waiting.after is None)
                and calls.alike(other, self)
            ):
                other.regroup(other.active | self.active)
                other.waiting, other.paused = None, other.paused and self.paused
                self.own.splits.remove(self)
                return True
        return False

    def _go(self, blocks: list, b) -> None:
        if b.taken is None:
            self.block = b.next
            return
        if b.guard is None:
            self.block = b.taken
            return
        holds = self.rows[_BOOL][b.guard]
        chosen = self.active & ~holds if b.negated else self.active & holds
        if not chosen.any():
            self.block = b.next
            return
        rest = self.active & ~chosen
        if not rest.any():
            self.block = b.taken
            return
        other = Lanes(self.own, rest)
        other.block, other.line, other.frames, other.base = b.next, self.line, self.frames, self.base
        self.own.splits.append(other)
        self.regroup(chosen)
        self.block = b.taken


_BOOL = VIEWS.index("bool")
