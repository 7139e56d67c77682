"""Small records of the plugin host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """Who offers a thing: plugin (entry-point name), distribution and its version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.plugin} ({self.distribution} {self.version})"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand; `load` returns a click command and is called only when it runs."""

    name: str
    summary: str
    load: Callable[[], object]
    source: Origin | None = field(default=None, compare=False)
