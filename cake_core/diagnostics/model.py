"""The one type of finding: parser, types, derivation, assembler, runtime and (later) rules all speak it.

A diagnostic is data. Renderers (text, concise, json, sarif, github) turn it into words; nothing else prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from enum import StrEnum

from cake_core.frozen import frozen, thawed
from cake_core.source import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Related:
    """A second place that the finding speaks of."""

    message: str
    span: Span


@frozen
class Witness:
    """A run that goes wrong: sizes, and where each role stands then, one line each. `confirmed`: whether the event machine went wrong at
    these sizes too, with a fault of the finding's kind; None: it was not asked. `places`: where the lines of the story stand in the text, one each;
    None: nowhere. `fault`: what the event machine found, of that kind or another; empty: nothing."""

    params: tuple[tuple[str, int], ...] = ()
    story: tuple[str, ...] = ()
    confirmed: bool | None = None
    places: tuple[Span | None, ...] = ()
    fault: str = ""


@frozen
class Diagnostic:
    """One finding.

    `code` is `namespace/slug`; the compiler's own namespaces are `syntax/`, `type/`, `derive/`, `assemble/`,
    `runtime/`, `plugin/`, `rules/`, `review/`; everything about safety and legality is a rule's (`core/`, `ptx/`, and one namespace an architecture).
    `message` starts in lower case, names things in single quotes and has no final period. `why` gives the
    reason, `fix` what to do. `resource`, `role`, `stage`, `iteration` say what of the kernel is concerned; `witness` shows it.
    `category`: one of the seven of `categories.py`, where it is not that of the code. `follows`: codes of findings that this one often
    follows from: it is told behind them.
    """

    code: str
    message: str
    span: Span | None = None
    severity: Severity = Severity.ERROR
    resource: str | None = None
    role: str | None = None
    stage: str | None = None
    iteration: str | None = None
    why: str | None = None
    fix: str | None = None
    related: tuple[Related, ...] = ()
    rule_version: str | None = None
    witness: Witness | None = None
    category: str | None = None
    follows: tuple[str, ...] = ()


@frozen
class Suppressed:
    """A finding that is let pass, and `reason`. `rule`: whose it is; `kind`: SARIF's word for who lets it, "inSource", a comment of the text at
    `at`, or "external", a baseline."""

    finding: Diagnostic
    rule: str
    kind: str
    reason: str
    at: Span | None = None


class CakeError(Exception):
    """Carries findings up to the face; never shown as a traceback."""

    def __init__(self, *diagnostics: Diagnostic):
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


def fail(code: str, message: str, span: Span | None = None, **details) -> CakeError:
    """An error to raise: `raise fail("type/unknown-name", "...", node.span, fix="...")`."""
    return CakeError(Diagnostic(code, message, span, **details))


@thawed
class Sink:
    """Collects findings so that one run reports several."""

    items: list[Diagnostic] = field(default_factory=list)

    def add(self, *diagnostics: Diagnostic) -> None:
        for d in diagnostics:
            if d not in self.items:
                self.items.append(d)

    def error(self, code: str, message: str, span: Span | None = None, **details) -> None:
        self.add(Diagnostic(code, message, span, **details))

    @contextmanager
    def collecting(self, **context) -> Iterator[None]:
        """Run a step; what it raises is kept (with `context`, such as `role=`, filled in) and the run goes on."""
        try:
            yield
        except CakeError as error:
            for d in error.diagnostics:
                missing = {k: v for k, v in context.items() if getattr(d, k) is None}
                self.add(replace(d, **missing))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity is Severity.ERROR]

    def stop_if_errors(self) -> None:
        if self.errors:
            raise CakeError(*self.items)
