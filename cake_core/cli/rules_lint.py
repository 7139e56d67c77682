"""`cake rules lint`."""

from __future__ import annotations

from collections import Counter

import click

from cake_core.cli import exits
from cake_core.cli.host import offered
from cake_core.cli.output import chosen_format, format_options, print_findings
from cake_core.cli.rules import PACKS, book_of, chosen
from cake_core.diagnostics.model import Severity

EPILOG = """\b
Examples:
  cake rules lint
  cake rules lint --pack cake_rules_acme acme
  cake rules lint core/arrival-count --json
  cake rules lint --pack cake_rules_acme acme --strict

\b
Errors are what is left to do (TODO), warnings what readers miss (style, references, definitions without use), notes advice (a
condition that a pattern could hold, two rules that require the same). 'cake explain rules/style' and its kin say more.
"""


@click.command("lint", epilog=EPILOG)
@click.argument("which", nargs=-1, metavar="[ID|PACK]...")
@PACKS
@click.option("--strict", is_flag=True, help="Warnings too end with exit code 1.")
@format_options
def command(which: tuple[str, ...], packs: tuple[str, ...], strict: bool, format: str, as_json: bool) -> int:
    """Say of rules what does not change what they judge: style, what is unfinished, unused or said twice.

    Exit code 1 where there is an error, with --strict a warning.
    """
    from cake_core.rules.lint import lint
    from cake_core.rules.offered import unoffered

    format = chosen_format(format, as_json)
    book = book_of(packs, format == "json", which)
    rules = chosen(book, which)
    findings = (*lint(book.packs, rules), *unoffered(rules, offered()))
    print_findings(findings, {}, format, to_stdout=True, packs=packs)
    count = Counter(d.severity for d in findings)
    if format == "text":
        numbers = ", ".join(f"{count[s]} {s}{'s' if count[s] != 1 else ''}" for s in (Severity.ERROR, Severity.WARNING, Severity.NOTE) if count[s])
        click.echo(f"{len(rules)} rule{'s' if len(rules) != 1 else ''}: {numbers or 'nothing to say'}")
    return exits.code_of(findings) or (exits.FINDINGS if strict and count[Severity.WARNING] else exits.CLEAN)
