"""`cake facts`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of
from cake_core.cli.host import registry
from cake_core.cli.output import print_findings, read_source, table
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake facts gemm.cake
  cake facts gemm.cake --relation access --relation barrier
  cake facts gemm.cake --json > facts.json

\b
Rules match on these rows; docs/facts.md says what each relation and column means.
"""


@click.command("facts", epilog=EPILOG)
@click.argument("file")
@click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one.")
@click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several.")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--relation", "relations", multiple=True, metavar="NAME", help="Only this relation; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(file, arch, kernel, settings, relations, as_json) -> int:
    """Print what the proof knows of one kernel of FILE ('-' is stdin), as rows: who runs which events, what each does.

    Facts are read off the derived form. Nothing is checked: a text that `cake check` refuses has facts too.
    """
    from cake_core.diagnostics.json import dumps
    from cake_core.facts import RELATIONS, facts_of, rows_of
    from cake_core.facts.listing import document
    from cake_core.pipeline import frontend

    if unknown := [r for r in relations if r not in RELATIONS]:
        raise click.UsageError(f"no relation '{unknown[0]}'; there are {', '.join(RELATIONS)}")
    sources = {}
    try:
        source = read_source(file)
        sources[source.name] = source
        front = frontend(source, registry(), arch, settings_of(settings), kernel=kernel)
        rows = rows_of(facts_of(front.typed, registry(), front.arch), front.arch, registry())
    except CakeError as error:
        print_findings(error.diagnostics, sources, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    found = document(rows)
    found["facts"] = {name: found["facts"][name] for name in relations or RELATIONS}
    if as_json:
        click.echo(dumps(found), nl=False)
        return exits.CLEAN
    for name, records in found["facts"].items():
        if records:
            columns = [c for c in records[0] if any(_said(r[c]) for r in records)]
            table(name, columns, [[_cell(r[c]) for c in columns] for r in records])
    return exits.CLEAN


def _said(value) -> bool:
    return value not in (None, [], "")


def _cell(value):
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
    return value
