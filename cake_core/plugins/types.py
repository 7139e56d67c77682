"""Small records of the plugin host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum

from cake_core.frozen import frozen


@frozen
class Origin:
    """Who offers a thing: plugin (entry-point name), distribution and its version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"'{self.plugin}' ({self.distribution} {self.version})"


class Status(StrEnum):
    """What became of a plugin."""

    ACTIVE = "active"
    BLOCKED = "blocked"  # the user said so; its code was not imported
    BROKEN = "broken"  # could not be imported or registered
    FAILED = "failed"  # one of its hooks raised or returned what it must not, or its names clash


@frozen
class PluginRecord:
    """One plugin as `cake plugins` shows it.

    `module` is the value of the entry point. `hooks` are those that it implements. `provides` are labels such as
    `arch:NAME` or `operation:NAME`; of a failed plugin they say what it offered, and none of it is in force.
    `hook` is the hook that failed (None: importing or registering did), `cause` the first line of the reason,
    `traceback` its full text where there is one. An active plugin has a cause where its index is behind what it offers.
    """

    origin: Origin
    module: str
    status: Status
    hooks: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    hook: str | None = None
    cause: str | None = None
    traceback: str | None = None

    @property
    def name(self) -> str:
        return self.origin.plugin

    @property
    def distribution(self) -> str:
        return self.origin.distribution

    @property
    def version(self) -> str:
        return self.origin.version

    @property
    def where(self) -> str:
        """The step that failed, in words."""
        return f"in hook '{self.hook}'" if self.hook else "while it was loaded"


@frozen
class Command:
    """A subcommand; `load` returns a click command and is called only when it runs."""

    name: str
    summary: str
    load: Callable[[], object]
    source: Origin | None = field(default=None, compare=False)
