"""One line a finding: `file:line:column: severity[code]: message`, for editors and grep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cake_core.diagnostics.model import Diagnostic
from cake_core.diagnostics.text import visible
from cake_core.source import Source


def line(d: Diagnostic) -> str:
    place = f"{d.span}: " if d.span and d.span.line else ""
    return visible(f"{place}{d.severity}[{d.code}]: {d.message}")


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source], color: bool) -> str:
    return "".join(line(d) + "\n" for d in diagnostics)
