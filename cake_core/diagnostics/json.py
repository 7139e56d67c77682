"""Findings as JSON after the published schema `schema/diagnostics.schema.json`; the same findings give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cake_core.diagnostics.categories import category_of
from cake_core.diagnostics.model import Diagnostic, Severity, Suppressed, Witness
from cake_core.source import Source, Span

SCHEMA_VERSION = 1
SCHEMA_FILE = Path(__file__).parent / "schema" / "diagnostics.schema.json"


def span_object(span: Span | None) -> dict | None:
    if span is None or not span.line:
        return None
    return {"file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def witness_object(w: Witness | None) -> dict | None:
    if w is None:
        return None
    places = [span_object(s) for s in (*w.places, *[None] * (len(w.story) - len(w.places)))]
    return {"params": dict(w.params), "story": list(w.story), "places": places, "confirmed": w.confirmed, "fault": w.fault or None}


def diagnostic_object(d: Diagnostic) -> dict:
    """One finding; fields that say nothing are null, so that every object has the same keys."""
    plain = ("code", "message", "resource", "role", "stage", "iteration", "why", "fix", "rule_version")
    return {
        **{k: getattr(d, k) for k in plain},
        "severity": str(d.severity),
        "category": d.category or category_of(d.code),
        "span": span_object(d.span),
        "witness": witness_object(d.witness),
        "related": [{"message": r.message, "span": span_object(r.span)} for r in d.related],
    }


def suppressed_object(s: Suppressed) -> dict:
    return {"rule": s.rule, "kind": s.kind, "reason": s.reason, "at": span_object(s.at), "diagnostic": diagnostic_object(s.finding)}


def document(diagnostics: Sequence[Diagnostic], suppressed: Sequence[Suppressed] = (), **more) -> dict:
    """The whole document. `more`: what a command adds (`builds`, `runs`), as the schema lists it."""
    failed = any(d.severity is Severity.ERROR for d in diagnostics)
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": "errors" if failed else "clean",
        "diagnostics": [diagnostic_object(d) for d in diagnostics],
        **({"suppressed": [suppressed_object(s) for s in suppressed]} if suppressed else {}),
        **more,
    }


def dumps(value) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source], color: bool, suppressed: Sequence[Suppressed] = ()) -> str:
    return dumps(document(diagnostics, suppressed))
