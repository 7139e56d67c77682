"""`cake rules test`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.host import registry
from cake_core.cli.output import print_findings
from cake_core.cli.rules import JSON, PACKS, book_of, chosen

EPILOG = """\b
Examples:
  cake rules test
  cake rules test core/arrival-count
  cake rules test --pack rules/cake_rules_acme acme --update
"""


@click.command("test", epilog=EPILOG)
@click.argument("which", nargs=-1, metavar="[ID|PACK]...")
@PACKS
@click.option("--update", is_flag=True, help="Write what is told beside the bad texts; read the difference.")
@JSON
def command(which: tuple[str, ...], packs: tuple[str, ...], update: bool, as_json: bool) -> int:
    """Judge the bad and good texts of rules, of all of them or those named.

    A bad text breaks its rule and is told as its '.diag' says, a good one reaches and keeps it, and one of each differ in one statement.
    """
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.prove.prover import Prover
    from cake_core.rules.trial import trial

    def rows(source):
        front = frontend(source, registry())
        return rows_of(facts_of(front.typed, registry(), front.arch), front.arch, registry())

    rules = chosen(book_of(packs, as_json), which)
    trials = [trial(r, rows, Prover, update) for r in rules]
    findings = [d for t in trials for d in t.findings]
    if as_json:
        results = [{"rule": t.rule.id, "bad": t.bad, "good": t.good, "undecided": t.undecided, "ok": not t.findings} for t in trials]
        print_findings(findings, {}, "json", rules=results)
    else:
        if findings:
            print_findings(findings, {}, "text", to_stdout=True)
        texts = sum(t.bad + t.good for t in trials)
        click.echo(f"{len(trials)} rule{'s' if len(trials) != 1 else ''}, {texts} texts, {len(findings)} wrong")
    return exits.code_of(findings)
