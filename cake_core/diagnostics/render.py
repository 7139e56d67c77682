"""One door to all renderers: `render(diagnostics, sources, format, color) -> str`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from cake_core.diagnostics.model import Diagnostic, Severity, Suppressed
from cake_core.source import Source

if TYPE_CHECKING:
    from cake_core.diagnostics.catalog import Entry

#: Format to the module that renders it; read on use, so that plain text costs no JSON.
MODULES = {name: f"cake_core.diagnostics.{name}" for name in ("text", "concise", "json", "sarif", "github")}
FORMATS = tuple(MODULES)

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def render(diagnostics: Iterable[Diagnostic], sources: Mapping[str, Source] | Iterable[Source] = (), format: str = "text", color: bool = False, rules: Mapping[str, Entry] | None = None, suppressed: Iterable[Suppressed] = ()) -> str:
    """Findings as text in one of `FORMATS`, ending in a line break unless empty.

    `sources`: the texts that spans point into, by file name; excerpts are left out for a file that is not among them.
    `color`: ANSI styles (only `text` has any). `rules`: what a SARIF log lists as the tool's rules (default: the compiler's
    codes); `suppressed`: findings that are let pass, which JSON and SARIF alone tell. The order of the output does not depend on that of the input.
    """
    if format not in MODULES:
        raise ValueError(f"format {format!r}, expected one of {', '.join(FORMATS)}")
    if not isinstance(sources, Mapping):
        sources = {s.name: s for s in sources}
    renderer: Callable[..., str] = import_module(MODULES[format]).render
    passed = sorted(suppressed, key=lambda s: (_place(s.finding), s.kind, s.reason))
    more = {"rules": rules, "suppressed": passed} if format == "sarif" else {"suppressed": passed} if format == "json" else {}
    return renderer(in_order(diagnostics), sources, color, **more)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By place in the text, then severity and words; findings without a place come last. What follows from another finding comes behind it,
    wherever it stands."""
    left = sorted(diagnostics, key=_place)
    if not any(d.follows for d in left):
        return left
    to_come = Counter((_file(d), d.code) for d in left)
    out: list[Diagnostic] = []
    told: set[tuple[str, str]] = set()
    while left:
        d = left.pop(next((n for n, d in enumerate(left) if not _waits(d, to_come, told)), 0))  # of those that wait for each other the first
        to_come[_file(d), d.code] -= 1
        told.add((_file(d), d.code))
        out.append(d)
    return out


def _waits(d: Diagnostic, to_come: Counter, told: set[tuple[str, str]]) -> bool:
    causes = [(_file(d), code) for code in d.follows]
    return any(to_come[c] for c in causes) and not any(c in told for c in causes)


def _file(d: Diagnostic) -> str:
    return d.span.file if d.span is not None else ""


def _place(d: Diagnostic) -> tuple:
    s = d.span
    place = (1, "", 0, 0) if s is None or not s.line else (0, s.file, s.line, s.column)
    return (*place, _ORDER[d.severity], d.code, d.message, d.role or "", d.resource or "")
