"""`cake explain`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from cake_core.cli import exits

EPILOG = """\b
Examples:
  cake explain type/unknown-name
  cake explain --list
  cake explain assemble/spill --json
  cake explain core/arrival-count
  cake explain acme/few-slots --pack rules/cake_rules_acme
"""


@click.command("explain", epilog=EPILOG)
@click.argument("code", required=False)
@click.option("--pack", "packs", multiple=True, metavar="DIR", help="A folder with a rule pack; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="List all codes with their titles.")
@click.option("--markdown", is_flag=True, help="Print the page docs/diagnostics.md.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(code: str | None, packs: tuple[str, ...], listed: bool, markdown: bool, as_json: bool) -> int:
    """Say what the diagnostic CODE means: why it is an error, an example, what to do. Of a rule, the page that its folder makes."""
    from dataclasses import asdict

    from cake_core.cli.host import became, catalogue, rule_of
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.page import explained, page, record

    entries = catalogue(packs, strict=bool(packs))
    if bool(code) + listed + markdown != 1:
        raise click.UsageError("name a code, or use --list")
    if markdown:
        from cake_core.diagnostics.catalog import markdown as page

        click.echo(page(entries.values()), nl=False)
        return exits.CLEAN
    if listed:
        if as_json:
            click.echo(dumps([asdict(e) for e in entries.values()]), nl=False)
        else:
            width = max(map(len, entries))
            for e in entries.values():
                click.echo(f"{e.code:<{width}}  {e.title}")
        return exits.CLEAN
    entry = entries.get(code) or next((e for e in entries.values() if e.code.partition("/")[2] == code), None)
    if entry is None and (of := became(code, packs)) is not None:
        entry = entries.get(of.rule.id) if of.rule is not None else None
        click.echo(": ".join(part for part in (of.said, of.why) if part), err=as_json or entry is not None)
        if entry is None:
            click.echo(f"\nFix: {of.fix}", err=as_json)
            return exits.CLEAN
    if entry is None:
        near = get_close_matches(code, entries, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else " 'cake explain --list' shows all."
        raise click.UsageError(f"no code '{code}'.{hint}")
    found = rule_of(packs, entry.code)
    if as_json:
        click.echo(dumps({"schema_version": 1, **asdict(entry), "rule": record(page(found)) if found is not None else None}), nl=False)
        return exits.CLEAN
    if found is not None:
        click.echo(explained(page(found)), nl=False)
        return exits.CLEAN
    click.echo(f"{entry.code}: {entry.title}\n\n{click.wrap_text(entry.why, 100)}\n")
    if entry.example:
        click.echo("Example:\n\n" + "\n".join(f"    {line}".rstrip() for line in entry.example.splitlines()) + "\n")
    click.echo("Fix: " + click.wrap_text(entry.fix, 95, subsequent_indent="     ").lstrip())
    if entry.origin != "cake_core":
        click.echo(f"\nReported by {entry.origin}.")
    return exits.CLEAN
