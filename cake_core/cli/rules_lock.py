"""`cake rules lock`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, table
from cake_core.cli.rules import JSON, PACKS, book_of
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake rules lock
  cake rules lock --check
  cake rules lock --pack rules/cake_rules_acme --json
  cake build gemm.cake --locked

\b
cake.lock belongs beside cake.toml, and into the repository. A build with --locked refuses packs, a Cake or a solver that differ from it.
"""


@click.command("lock", epilog=EPILOG)
@PACKS
@click.option("--check", is_flag=True, help="Write nothing; exit 3 where what is there differs.")
@JSON
def command(packs: tuple[str, ...], check: bool, as_json: bool) -> int:
    """Write down the packs that are there, with the sha256 of their files, and the versions of Cake and of the solver: cake.lock."""
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.lock import FILE, held, locked, text
    from cake_core.rules.settings import project

    book = book_of(packs, as_json)
    path = project() / FILE
    try:
        if check:
            held(book.packs, path)
        lock = locked(book.packs)
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    if not check:
        write(path, text(lock))
    if as_json:
        click.echo(dumps({"schema_version": 1, "file": os.path.relpath(path), "lock": lock}), nl=False)
        return exits.CLEAN
    table(
        "Packs",
        ("pack", "version", "from", "sha256"),
        [(r["name"], r["version"], r["distribution"] or "a folder", r["sha256"][:16]) for r in lock["packs"]],
    )
    click.echo(f"Cake {lock['cake']}, z3 {lock['z3']}: {'as locked in' if check else 'written to'} {os.path.relpath(path)}")
    return exits.CLEAN


def write(path: Path, text: str) -> None:
    """Whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise click.FileError(str(path), error.strerror) from None
