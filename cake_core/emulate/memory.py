"""Memory by bytes, with what is known of each byte: whether anyone has written it, who wrote and who read it last.

An access names `n` places of one size. All are checked at once: inside, written before they are read, and ordered behind what others did there
(`clocks`). Offsets are those of the addresses that programs use, so `base` is where the first byte lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cake_core.emulate.races import Shadow

if TYPE_CHECKING:
    from cake_core.emulate.agents import Agent

#: Bytes of the chunk that memory is made of: accesses of a power of two up to it are single elements of a view.
CHUNK = 128


class Memory:
    """`data`: what it holds. `kind`: which fences order its accesses (`shared`, `global`, `tensor`). `written`: bytes that hold a value; None: all do.
    `watched`: accesses are held against those of others; an input that nobody writes is not."""

    __slots__ = ("base", "data", "kind", "name", "shadow", "size", "written")

    def __init__(self, name: str, size: int, kind: str, base: int = 0, written: bool = False, watched: bool = True) -> None:
        whole = -(-max(size, 1) // CHUNK) * CHUNK
        self.name, self.size, self.kind, self.base = name, size, kind, base
        self.data = np.zeros(whole, np.uint8)
        self.written = None if written else np.zeros(whole, np.uint8)
        self.shadow = Shadow(self, whole) if watched else None

    def read(self, agent: Agent, offsets: np.ndarray, size: int, lanes: np.ndarray | None = None, scope: str = "") -> np.ndarray:
        """`size` bytes at each offset: uint8 of the shape of `offsets` + (size,). `lanes`: who of a warp reads each place; `scope`: of a strong access."""
        at = self._inside(agent, offsets, size, "read")
        chunk, index = _chunks(at, size)
        if self.written is not None and not _all(self.written, chunk, index):
            self._unwritten(agent, at, size)
        if self.shadow is not None:
            self.shadow.read(agent, chunk, index, lanes, scope)
        found = self.data.reshape(-1, chunk)[index]
        return found.reshape(*offsets.shape, size)

    def write(self, agent: Agent, offsets: np.ndarray, data: np.ndarray, lanes: np.ndarray | None = None, scope: str = "") -> None:
        size = data.shape[-1]
        at = self._inside(agent, offsets, size, "written")
        chunk, index = _chunks(at, size)
        data = data.reshape(*index.shape, chunk)
        rows = self.data.reshape(-1, chunk)
        if self.shadow is not None and not (lanes is not None and self.shadow.repeats(agent, chunk, index, rows, data)):
            self.shadow.write(agent, chunk, index, lanes, scope)
        rows[index] = data
        if lanes is not None and not scope and self.shadow is not None and agent.grid.races and (lost := rows[index] != data).any():
            self._overwritten(agent, int(lanes[np.argwhere(lost)[0][0]]))
        if self.written is not None:
            self.written.reshape(-1, chunk)[index] = 1

    def _overwritten(self, agent: Agent, lane: int) -> None:
        agent.finding(
            "emulate/race",
            f"lane {lane} of {agent.who} writes bytes of the {self.name} that another lane writes too, with another value, by the same instruction",
            why="which of the two values stays is open",
        )

    def forget(self, agent: Agent, offsets: np.ndarray, size: int) -> None:
        at = self._inside(agent, offsets, size, "given back")
        chunk, index = _chunks(at, size)
        if self.shadow is not None:
            self.shadow.write(agent, chunk, index, None, fenced=False)
        if self.written is not None:
            self.written.reshape(-1, chunk)[index] = 0

    def atomic(
        self, agent: Agent, offset: int, size: int, change: Callable[[np.ndarray], np.ndarray], lane: int | None = None, scope: str = "gpu"
    ) -> np.ndarray:
        """One place, read and written at once; returns what it held. Atomic accesses are strong: they do not race among each other where their scopes
        hold each other's threads."""
        at = int(self._inside(agent, np.array([offset]), size, "changed")[0])
        if self.written is not None and not self.written[at : at + size].all():
            self._unwritten(agent, np.array([at]), size)
        if self.shadow is not None:
            self.shadow.write(agent, *_chunks(np.array([at]), size), None if lane is None else np.array([lane]), scope)
        old = self.data[at : at + size].copy()
        self.data[at : at + size] = change(old)
        return old

    def _inside(self, agent: Agent, offsets: np.ndarray, size: int, done: str) -> np.ndarray:
        at = np.asarray(offsets, np.int64) - self.base
        if at.size and (int(at.min()) < 0 or int(at.max()) + size > self.size):
            bad = int(at[(at < 0) | (at + size > self.size)].flat[0])
            where = f"{-bad} bytes in front of it" if bad < 0 else f"byte {bad} of {self.size}"
            raise agent.fault("emulate/out-of-bounds", f"{size} bytes of '{self.name}' are {done} outside of it, at {where}")
        return at

    def _unwritten(self, agent: Agent, at: np.ndarray, size: int) -> None:
        rows = (at[..., None] + np.arange(size)).reshape(-1)
        first = int(rows[self.written[rows] == 0][0])
        agent.finding("emulate/uninitialised", f"byte {first + self.base} of '{self.name}' is read, and nobody has written it")


def _chunks(at: np.ndarray, size: int) -> tuple[int, np.ndarray]:
    """A view of memory as rows of the first number of bytes, and the rows of each place: (.., rows a place)."""
    chunk = size & -size
    chunk = min(chunk, CHUNK)
    if size == 0:
        return 1, np.zeros((*at.shape, 0), np.int64)
    while chunk > 1 and (at & chunk - 1).any():
        chunk >>= 1
    rows = at // chunk
    if chunk == size:
        return chunk, rows[..., None]
    return chunk, rows[..., None] + np.arange(size // chunk)


def _all(written: np.ndarray, chunk: int, index: np.ndarray) -> bool:
    return bool(written.reshape(-1, chunk)[index].all())
