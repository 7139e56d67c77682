"""GitHub Actions workflow commands, which the service shows as annotations beside the changed lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cake_core.diagnostics.model import Diagnostic, Severity
from cake_core.diagnostics.text import shown
from cake_core.source import Source

COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def annotation(d: Diagnostic) -> str:
    properties: dict[str, object] = {}
    if d.span and d.span.line:
        properties |= {"file": d.span.file, "line": d.span.line, "endLine": d.span.end_line}
        if d.span.line == d.span.end_line:  # the service takes columns of one line only, the last included
            properties |= {"col": d.span.column, "endColumn": max(d.span.end_column - 1, d.span.column)}
    properties["title"] = d.code
    details = [f"{name}: {value}" for name, value in (("why", d.why), ("fix", d.fix)) if value]
    if d.witness is not None:
        details += [f"for example: {shown(d.witness)}", *(f"  {line}" for line in d.witness.story)]
    details = [f"{r.message} ({r.span})" if r.span.line else r.message for r in d.related] + details
    head = ",".join(f"{k}={_property(str(v))}" for k, v in properties.items())
    return f"::{COMMAND[d.severity]} {head}::{_data(chr(10).join([d.message, *details]))}"


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source], color: bool) -> str:
    return "".join(annotation(d) + "\n" for d in diagnostics)
