"""Findings as a SARIF 2.1.0 log (OASIS standard), with every code of the catalogue as a rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from cake_core import __version__
from cake_core.diagnostics.catalog import Entry, core_table
from cake_core.diagnostics.categories import category_of
from cake_core.diagnostics.json import witness_object
from cake_core.diagnostics.model import Diagnostic, Severity, Suppressed, Witness
from cake_core.diagnostics.text import shown
from cake_core.source import Source, Span

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def rule(entry: Entry) -> dict:
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": entry.fix},
        **({"defaultConfiguration": {"enabled": entry.judged and entry.level != "none", "level": entry.level}} if entry.level else {}),
    }


def location(span: Span, message: str | None = None) -> dict:
    region = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}
    place = {"artifactLocation": {"uri": quote(span.file.replace("\\", "/"))}, "region": region}
    return {"physicalLocation": place, **({"message": {"text": message}} if message else {})}


def code_flow(w: Witness) -> dict:
    """The witness: one thread flow an agent, with what it has done or waits for, in the order in which the story tells it."""
    flows: dict[str, list[dict]] = {}
    for n, line in enumerate(w.story):
        span = w.places[n] if n < len(w.places) else None
        there = location(span, line) if span is not None and span.line else {"message": {"text": line}}
        flows.setdefault(line.partition(":")[0], []).append({"location": there, "executionOrder": n + 1})
    return {"message": {"text": shown(w)}, "threadFlows": [{"id": who, "locations": steps} for who, steps in flows.items()]}


def result(d: Diagnostic, index: int) -> dict:
    words = d.message + "".join(f"\n{name}: {value}" for name, value in (("why", d.why), ("fix", d.fix)) if value)
    properties = {k: v for k in ("resource", "role", "stage", "iteration", "rule_version") if (v := getattr(d, k))}
    if category := d.category or category_of(d.code):
        properties["category"] = str(category)
    if d.witness is not None:
        properties["witness"] = witness_object(d.witness)
    related = [location(r.span, r.message) for r in d.related if r.span.line]
    return {
        "ruleId": d.code,
        "ruleIndex": index,
        "level": LEVEL[d.severity],
        "message": {"text": words},
        "locations": [location(d.span)] if d.span and d.span.line else [],
        **({"relatedLocations": related} if related else {}),
        **({"codeFlows": [code_flow(d.witness)]} if d.witness is not None and d.witness.story else {}),
        **({"properties": properties} if properties else {}),
    }


def suppression(s: Suppressed) -> dict:
    place = {"location": location(s.at)} if s.at is not None and s.at.line else {}
    return {"kind": s.kind, "justification": s.reason, **place}


def render(
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, Source],
    color: bool,
    rules: Mapping[str, Entry] | None = None,
    suppressed: Sequence[Suppressed] = (),
) -> str:
    rules = {code: rule(entry) for code, entry in (core_table() if rules is None else rules).items()}
    for d in (*diagnostics, *(s.finding for s in suppressed)):  # a third party's code without an entry is still a rule of the log
        rules.setdefault(d.code, {"id": d.code})
    index = {code: i for i, code in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "cake", "version": __version__, "rules": list(rules.values())}},
        "columnKind": "unicodeCodePoints",
        "results": [
            *(result(d, index[d.code]) for d in diagnostics),
            *(result(s.finding, index[s.finding.code]) | {"suppressions": [suppression(s)]} for s in suppressed),
        ],
    }
    return json.dumps({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
