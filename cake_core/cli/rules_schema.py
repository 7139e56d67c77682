"""`cake rules schema`."""

from __future__ import annotations

import click

from cake_core.cli import exits

EPILOG = """\b
Examples:
  cake rules schema rule > rule.schema.json
  cake rules schema pack > pack.schema.json
  cake rules schema project > project.schema.json

\b
An editor takes it from the first line of a file, in YAML and in TOML:
  # yaml-language-server: $schema=../../rule.schema.json
  #:schema docs/project.schema.json
"""


@click.command("schema", epilog=EPILOG)
@click.argument("which", type=click.Choice(("rule", "pack", "project")))
def command(which: str) -> int:
    """Print the JSON Schema of rule.yaml, pack.yaml or cake.toml, which editors complete and check by."""
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.fileschema import pack_schema, project_schema, rule_schema

    click.echo(dumps({"rule": rule_schema, "pack": pack_schema, "project": project_schema}[which]()), nl=False)
    return exits.CLEAN
