"""`cake plugins`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from cake_core.cli import exits
from cake_core.cli.app import debugging
from cake_core.cli.host import registry
from cake_core.cli.output import table

EPILOG = """\b
Examples:
  cake plugins
  cake plugins --all
  cake plugins --hook cake_architectures --json
  cake plugins --check
  cake -v plugins
"""


@click.command("plugins", epilog=EPILOG)
@click.option("--all", "everything", is_flag=True, help="List every single thing that a plugin offers, and blocked plugins.")
@click.option("--hook", metavar="HOOK", help="Only plugins that implement this hook.")
@click.option("--check", is_flag=True, help="Exit 3 if a plugin is broken.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(everything: bool, hook: str | None, check: bool, as_json: bool) -> int:
    """List plugins: who brings them, what they offer, and why one did not load."""
    from cake_core.plugins import Status
    from cake_core.plugins.entries import stale_install
    from cake_core.plugins.host import HOOKS

    if hook is not None and hook not in HOOKS:
        raise click.UsageError(f"no hook '{hook}'; there are {', '.join(HOOKS)}")
    records = [r for r in registry().whole().plugins if hook is None or hook in r.hooks]
    bad = [r for r in records if r.status in (Status.BROKEN, Status.FAILED)]
    behind = [r for r in records if r.status is Status.ACTIVE and r.cause]
    stale = stale_install()
    if as_json:
        show_json(records)
    else:
        shown = records if everything else [r for r in records if r.status is not Status.BLOCKED]
        provides = (lambda r: ", ".join(r.provides)) if everything else (lambda r: counted(r.provides))
        rows = [(r.name, f"{r.distribution} {r.version}", str(r.status), provides(r)) for r in shown]
        table("Plugins", ("plugin", "from", "status", "offers"), rows)
        for r in bad:
            click.echo(f"{r.name}: {r.status} {r.where}: {r.cause}", err=True)
            if debugging() and r.traceback:
                click.echo(r.traceback, err=True)
        for r in behind:
            click.echo(f"{r.name}: {r.cause}\n  fix: python -m cake_core.plugins.reindex {r.name}", err=True)
        if stale:
            click.echo(f"{stale.message}: {stale.why}\n  fix: {stale.fix}", err=True)
    return exits.ENGINE if check and (bad or behind or stale) else exits.CLEAN


def counted(provides: tuple[str, ...]) -> str:
    """`arch:sm1, operation (12)`: architectures and commands by name, the rest by number."""
    named = [p for p in provides if p.partition(":")[0] in ("arch", "command")]
    counts = Counter(p.partition(":")[0] for p in provides if p not in named)
    return ", ".join([*named, *(f"{kind} ({n})" for kind, n in sorted(counts.items()))])


def show_json(records) -> None:
    from cake_core.diagnostics.json import dumps

    click.echo(dumps([{**asdict(r), "status": str(r.status)} for r in records]), nl=False)
