"""Workspaces: memory of the runtime that holds zeros before each launch and, as the kernel's text promises, again behind it.

Launches on one stream follow one another, so they share one; launches on two streams may run at once, so each stream has its own. A
graph uses that of the stream on which it was captured, and so must not run beside other launches of that stream.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from math import prod
from typing import TYPE_CHECKING

from cake_core.runtime.device_array import DeviceArray, Memory
from cake_core.runtime.elements import ELEMENTS

if TYPE_CHECKING:
    from cake_core.runtime.driver import Driver

LEGACY, PER_THREAD = 1, 2  # handles of the default streams (CUDA driver API, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD); 0 is the first


class Workspaces:
    """Those of one kernel, by device, stream and parameter. One that is too small is replaced; the driver waits for what uses the old."""

    def __init__(self) -> None:
        self._made: dict[tuple, Memory] = {}
        self._lock = threading.Lock()

    def get(self, driver: Driver, device: int, stream: int, name: str, shape: tuple[int, ...], elem: str) -> DeviceArray:
        """The workspace `name` for launches on this stream. Allocates where there is none yet."""
        key = (device, stream_key(stream), name)
        size = prod(shape) * ELEMENTS[elem].bytes
        with self._lock:
            memory = self._made.get(key)
            if memory is None or memory.nbytes < size:
                memory = Memory(size, device, driver)
                memory.write(memory.pointer, bytes(size))
                with driver.active(memory.context):
                    driver.call("cuStreamSynchronize", driver.api.CUstream(LEGACY))  # the copy may still be under way when the host goes on
                self._made[key] = memory
        return DeviceArray(shape, elem, device, driver, memory)

    def dirty(self) -> tuple[str, ...]:
        """Names of those that hold something else than zeros, which are given up. The device must be idle."""
        with self._lock:
            found = [key for key, m in self._made.items() if any(m.read(m.pointer, m.nbytes))]
            for key in found:
                del self._made[key]
        return tuple(dict.fromkeys(name for *_, name in found))


def stream_key(stream: int) -> Hashable:
    """Equal for handles of one stream. The handle of the per-thread stream means another one in each thread."""
    return (PER_THREAD, threading.get_ident()) if stream == PER_THREAD else stream or LEGACY
