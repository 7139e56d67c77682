"""`cake rules schema`."""

from __future__ import annotations

import click

from cake_core.cli import exits

EPILOG = """\b
Examples:
  cake rules schema rule > rule.schema.json
  cake rules schema pack > pack.schema.json

\b
An editor takes it from the first line of a file:
  # yaml-language-server: $schema=../../rule.schema.json
"""


@click.command("schema", epilog=EPILOG)
@click.argument("which", type=click.Choice(("rule", "pack")))
def command(which: str) -> int:
    """Print the JSON Schema of rule.yaml or pack.yaml, which editors complete and check by."""
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.fileschema import pack_schema, rule_schema

    click.echo(dumps(rule_schema() if which == "rule" else pack_schema()), nl=False)
    return exits.CLEAN
