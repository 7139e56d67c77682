"""A bounded cache that several threads may use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Lru(Generic[V]):
    """At most `size` entries; the one unused for longest goes first. Two threads may both make a missing entry; one is kept."""

    __slots__ = ("_entries", "_lock", "size")

    def __init__(self, size: int):
        self.size = size
        self._entries: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Hashable) -> V | None:
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The entry at `key`, made by `make()` (outside the lock, never None) where it is missing."""
        value = self.find(key)
        return self.add(key, make()) if value is None else value

    def add(self, key: Hashable, value: V) -> V:
        with self._lock:
            value = self._entries.setdefault(key, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)
            return value
