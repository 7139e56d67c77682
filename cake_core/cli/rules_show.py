"""`cake rules show`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.rules import JSON, PACKS, book_of, one

EPILOG = """\b
Examples:
  cake rules show core/arrival-count
  cake rules show core/arrival-count --json
  cake rules show acme/few-slots --pack rules/cake_rules_acme
"""


@click.command("show", epilog=EPILOG)
@click.argument("id")
@PACKS
@JSON
def command(id: str, packs: tuple[str, ...], as_json: bool) -> int:
    """Show the rule ID as it was read: what it matches in words, its expressions as written, what it proves, its texts."""
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.page import going, page, record

    found = page(one(book_of(packs, as_json), id))
    if as_json:
        click.echo(dumps({"schema_version": 1, "rule": record(found)}), nl=False)
        return exits.CLEAN
    r, whole = found.rule, record(found)
    head = ("title", "kind", "level", "status", "precision", "category", "since", "owner", "shape")
    rows = [(k, whole[k]) for k in head]
    rows += [("deprecated", said)] if (said := going(r)) else []
    rows += [("related", f"{x['id']}, {x['type']}") for x in whole["related"]]
    rows += [("pack", f"{r.pack} {r.version}"), ("file", whole["path"])]
    rows += [("applies", f"where the target offers {', '.join(r.capabilities)}" if r.capabilities else "to every target")]
    rows += [("covers", ", ".join(r.covers))] if r.covers else []
    rows += [("budget", f"{r.rlimit} steps of the solver a question"), *(("matches" if i == 0 else "", m) for i, m in enumerate(found.matches))]
    rows += [("define" if i == 0 else "", f"{name} = {text}") for i, (name, text) in enumerate(found.definitions)]
    rows += [*found.written, *((kind, ", ".join(whole["texts"][kind])) for kind in ("bad", "good", "gaps") if whole["texts"][kind])]
    click.echo(r.id)
    for key, text in rows:
        first, *rest = str(text).splitlines() or [""]
        click.echo(f"  {key:<10} {first}".rstrip())
        for line in rest:
            click.echo(f"  {'':<10} {line}".rstrip())
    return exits.CLEAN
