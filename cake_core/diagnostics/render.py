"""One door to all renderers: `render(diagnostics, sources, format, color) -> str`."""

from __future__ import annotations

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
    """By place in the text, then severity and words; findings without a place come last."""

    return sorted(diagnostics, key=_place)


def _place(d: Diagnostic) -> tuple:
    s = d.span
    place = (1, "", 0, 0) if s is None or not s.line else (0, s.file, s.line, s.column)
    return (*place, _ORDER[d.severity], d.code, d.message, d.role or "", d.resource or "")
