"""`cake rules list`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, table
from cake_core.cli.rules import JSON, PACKS, book_of

EPILOG = """\b
Examples:
  cake rules list
  cake rules list --pack rules/cake_rules_acme --json
"""


@click.command("list", epilog=EPILOG)
@PACKS
@JSON
def command(packs: tuple[str, ...], as_json: bool) -> int:
    """List the rules of every pack."""
    book = book_of(packs, as_json)
    judged = {r.id: r for r in book.rules}  # at the levels that the project has them
    rules = [judged.get(r.id, r) for p in book.packs for r in p.rules]
    if as_json:
        plain = ("id", "title", "pack", "version", "since", "owner")
        words = ("kind", "level", "status", "precision")
        rows = [
            {k: getattr(r, k) for k in plain} | {k: str(getattr(r, k)) for k in words} | {"judged": r.id in judged, "tags": list(r.tags)}
            for r in rules
        ]
        packs = [{"name": p.name, "version": p.version, "source": p.source, "rules": len(p.rules)} for p in book.packs]
        print_findings((), {}, "json", listed={"rules": rows, "packs": packs})
        return exits.CLEAN
    table(
        "Rules",
        ("rule", "kind", "level", "status", "precision", "what is wrong"),
        [(r.id, r.kind, r.level, r.status, r.precision, r.title) for r in rules],
    )
    for p in book.packs:
        click.echo(f"{p.name} {p.version}: {len(p.rules)} rule{'s' if len(p.rules) != 1 else ''}, from {p.source}")
    return exits.CLEAN
