"""What plugins offer, by name, while some of them wait: mappings and lists that load a plugin when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cake_core.plugins.types import PluginRecord


class Table(Mapping):
    """Name to object of one kind, sorted by name; read only.

    A name is known before its object: looking it up, or asking for all objects, loads the plugin that offers it. Where that
    fails the name is gone, as if the plugin had failed at the start. Iterating over names loads nothing.
    """

    __slots__ = ("_found", "_load", "_waiting")

    def __init__(self, found: Mapping[str, object], waiting: Mapping[str, tuple[object, tuple[str, ...]]], load: Callable[[object], None]):
        """`waiting`: name to its plugin and to what the index says of it; `load` loads a plugin, which settles its names."""
        self._found = dict(sorted({**dict.fromkeys(waiting), **found}.items()))
        self._waiting = dict(waiting)
        self._load = load

    def get(self, name, default=None):
        if name in self._waiting:
            self._load(self._waiting[name][0])
        return self._found.get(name, default)

    def __getitem__(self, name):
        if name in self._waiting:
            self._load(self._waiting[name][0])
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._found))

    def __len__(self) -> int:
        return len(self._found)

    def items(self):
        self.load()
        return self._found.items()

    def values(self):
        self.load()
        return self._found.values()

    def load(self) -> None:
        """Load every plugin that offers something of this kind."""
        while self._waiting:
            self._load(next(iter(self._waiting.values()))[0])

    def said(self, name: str) -> tuple[str, ...] | None:
        """What the index says of a name whose plugin is not loaded; None for one that is."""
        return self._waiting[name][1] if name in self._waiting else None

    def settle(self, name: str, item: object | None) -> None:
        """The plugin of this name is loaded: `item` is what it offers, None where it failed."""
        self._waiting.pop(name, None)
        if item is None:
            self._found.pop(name, None)
        elif name in self._found:
            self._found[name] = item
        else:  # its plugin did not say that it offers this one
            self._found = dict(sorted({**self._found, name: item}.items()))


class Records(Sequence):
    """The records of plugins as they are now: one that is loaded later may turn out to be broken."""

    __slots__ = ("_plugins",)

    def __init__(self, plugins):
        self._plugins = tuple(plugins)

    def __getitem__(self, i) -> PluginRecord | tuple[PluginRecord, ...]:
        return tuple(p.record for p in self._plugins[i]) if isinstance(i, slice) else self._plugins[i].record

    def __len__(self) -> int:
        return len(self._plugins)
