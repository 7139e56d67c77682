"""Rows as text: plain data for JSON and tables, and the page of the schema."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.facts.relations import BOOL, EXPR, INT, RELATIONS, TEXT, Column
from cake_core.facts.rows import Rows
from cake_core.facts.schema import SCHEMA
from cake_core.ir.nodes import Expr
from cake_core.ir.printer import expr_text


def shown(value, column: Column) -> object:
    """A value as JSON has it: expressions as text."""
    if isinstance(value, tuple):
        return [shown(v, column) for v in value]
    return expr_text(value) if isinstance(value, Expr) else value


def records(rows: Rows, relation: str) -> Iterator[dict]:
    """The rows of a relation as plain data, columns in the order of the schema."""
    for row in rows[relation]:
        named = {"id": row.id, "loc": row.loc}
        yield {c.name: named[c.name] if c.name in named else shown(row[c.name], c) for c in RELATIONS[relation].columns}


def document(rows: Rows) -> dict:
    """All rows, by relation."""
    return {
        "schema": SCHEMA,
        "kernel": rows.facts.kernel,
        "arch": rows.facts.arch,
        "facts": {name: list(records(rows, name)) for name in RELATIONS},
    }


def markdown() -> str:
    """The tables of docs/facts.md: every relation with its columns."""
    lines: list[str] = []
    for r in RELATIONS.values():
        lines += [f"### {r.name}", "", r.doc, "", "| column | sort | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{c.name}` | {_sort(c)} | {c.doc} |" for c in r.columns]
        lines.append("")
    return "\n".join(lines)


def _sort(c: Column) -> str:
    sort = f"a row of `{c.sort}`" if c.sort not in (INT, BOOL, TEXT, EXPR) else c.sort
    if c.values:
        sort = ", ".join(f"`{v}`" for v in c.values)
    return f"{'several ' if c.many else ''}{sort}{', or none' if c.optional else ''}"
