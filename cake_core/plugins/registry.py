"""All that the installed plugins offer, by kind and name. Frozen: a registry is built once a command and never edited.

Its tables may know a name before the plugin that offers it is loaded (`tables`); whoever asks does not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from cake_core.architecture import Architecture
from cake_core.diagnostics import CakeError, Diagnostic, Severity, fail
from cake_core.diagnostics.near import get_close_matches
from cake_core.frozen import frozen
from cake_core.ir.nodes import Kernel
from cake_core.plugins.tables import Table
from cake_core.plugins.types import Command, Origin, PluginRecord, Status
from cake_core.primitive import (
    Counter,
    Function,
    Layout,
    Operation,
    Protocol,
    Reduction,
    RoleWord,
    Space,
    ThreadGroup,
    TurnProtocol,
)
from cake_core.ptx.acts import Reread
from cake_core.ptx.emulated import Emulated
from cake_core.source import Span

#: Kind to its class, the dict of the registry that holds it, and what messages call it.
KINDS: dict[str, tuple[type, str, str]] = {
    "arch": (Architecture, "architectures", "architecture"),
    "operation": (Operation, "operations", "operation"),
    "function": (Function, "functions", "function"),
    "reduction": (Reduction, "reductions", "reduction"),
    "layout": (Layout, "layouts", "layout"),
    "space": (Space, "spaces", "space"),
    "group": (ThreadGroup, "groups", "thread group"),
    "protocol": (Protocol, "protocols", "protocol"),
    "turn": (TurnProtocol, "turns", "turn protocol"),
    "counter": (Counter, "counters", "counter"),
    "role_word": (RoleWord, "role_words", "role word"),
    "reread": (Reread, "rereads", "reading of an instruction"),
    "emulated": (Emulated, "emulates", "execution of an instruction"),
    "command": (Command, "commands", "command"),
}


@frozen
class Observer:
    """A plugin's `cake_after_pass`, called apart from all others."""

    origin: Origin
    call: Callable[[str, Kernel], None]


@frozen
class Registry:
    """Name to object, one dict a kind, each sorted by name; `plugins` has a record for each plugin found, sorted too."""

    architectures: Mapping[str, Architecture] = field(default_factory=dict)
    operations: Mapping[str, Operation] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    reductions: Mapping[str, Reduction] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    spaces: Mapping[str, Space] = field(default_factory=dict)
    groups: Mapping[str, ThreadGroup] = field(default_factory=dict)
    protocols: Mapping[str, Protocol] = field(default_factory=dict)
    turns: Mapping[str, TurnProtocol] = field(default_factory=dict)
    counters: Mapping[str, Counter] = field(default_factory=dict)
    role_words: Mapping[str, RoleWord] = field(default_factory=dict)
    rereads: Mapping[str, Reread] = field(default_factory=dict)
    emulates: Mapping[str, Emulated] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    plugins: Sequence[PluginRecord] = ()
    observers: tuple[Observer, ...] = ()

    def of_kind(self, kind: str) -> Mapping:
        """The dict of one of `KINDS`."""
        return getattr(self, KINDS[kind][1])

    def whole(self) -> Registry:
        """This registry, with every plugin loaded that waited to be asked."""
        for kind in KINDS:
            if isinstance(table := self.of_kind(kind), Table):
                table.load()
        return self

    def alone(self, effect: type) -> Iterator[Operation]:
        """The operations that stand without operands, in the order of their names. Those of which an index says that they
        have no effect of this class are left out."""
        for name in self.operations:
            said = self.operations.said(name) if isinstance(self.operations, Table) else None
            if said is None or effect.__name__ in said:
                operation = self.operations.get(name)
                if operation is not None and not operation.operands and not operation.arrows:
                    yield operation

    def closest(self, kind: str, name: str) -> str | None:
        """The name of this kind that is most like `name`, for "did you mean"."""
        return next(iter(get_close_matches(name, self.of_kind(kind), n=1)), None)

    def architecture(self, name: str, span: Span | None = None) -> Architecture:
        """The architecture of that name; `span` is where a text asks for it.

        Raises `plugin/unknown-arch`; `plugin/broken` or `plugin/blocked` where a plugin that did not load offers it.
        """
        if (found := self.architectures.get(name)) is not None:
            return found
        if error := self.unavailable("arch", name, span):
            raise error
        names = ", ".join(f"'{n}'" for n in self.architectures)
        why = f"installed: {names}" if names else "no plugin that loaded offers an architecture"
        if suspects := [r for r in self.plugins if r.status in (Status.BROKEN, Status.FAILED)]:
            why += "; not loaded: " + ", ".join(f"{r.origin}" for r in suspects)
        close = self.closest("arch", name)
        fix = f"did you mean '{close}'?" if close else "install the plugin that offers it; 'cake plugins' lists what is there"
        raise fail("plugin/unknown-arch", f"no architecture '{name}' is installed", span, why=why, fix=fix)

    def unavailable(self, kind: str, name: str, span: Span | None = None) -> CakeError | None:
        """The error to raise for a missing `name` if the plugin that offers it is known and not active, else None.

        A plugin that stopped early has not said all that it offers; what bears its name is taken to be its: plugin `x`,
        architecture `x`, operations `x` and `x.y`.
        """
        what = KINDS[kind][2]
        for record in self.whole().plugins:
            if record.status is Status.ACTIVE:
                continue
            if f"{kind}:{name}" not in record.provides and name.split(".")[0] != record.name:
                continue
            if record.status is Status.BLOCKED:
                message = f"{what} '{name}' belongs to plugin {record.origin}, which is blocked"
                return fail("plugin/blocked", message, span, why=record.cause, fix="let the plugin load")
            return fail(
                "plugin/broken",
                f"{what} '{name}' belongs to plugin {record.origin}, which is {record.status}",
                span,
                why=f"{record.where}: {record.cause}",
                fix="'cake plugins -v' shows the traceback",
            )
        return None

    def problems(self) -> tuple[Diagnostic, ...]:
        """One warning a plugin that is broken or failed, for commands that get along without it, or whose index is behind."""
        behind = [
            Diagnostic(
                "plugin/stale-index",
                f"plugin {record.origin} does not say what it offers",
                severity=Severity.WARNING,
                why=record.cause,
                fix=f"python -m cake_core.plugins.reindex {record.name}",
            )
            for record in self.plugins
            if record.status is Status.ACTIVE and record.cause
        ]
        return *behind, *(
            Diagnostic(
                "plugin/not-loaded",
                f"plugin {record.origin} is {record.status} and was left out",
                severity=Severity.WARNING,
                why=f"{record.where}: {record.cause}",
            )
            for record in self.plugins
            if record.status in (Status.BROKEN, Status.FAILED)
        )

    def after_pass(self, name: str, kernel: Kernel) -> tuple[Diagnostic, ...]:
        """Show the kernel to every observer. One that raises is reported as a warning and stops nothing."""
        found = []
        for observer in self.observers:
            try:
                observer.call(name=name, kernel=kernel)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # an observer that exits must not end a build
                found.append(
                    Diagnostic(
                        "plugin/observer-failed",
                        f"plugin {observer.origin} failed after pass '{name}'",
                        severity=Severity.WARNING,
                        why=f"in hook 'cake_after_pass': {first_line(error)}",
                    )
                )
        return tuple(found)


def first_line(error: BaseException) -> str:
    """Type and first line of an exception, also of one that can't be printed."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 - a stranger's __str__
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
