"""`cake rules`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.build import rules_of
from cake_core.cli.host import registry
from cake_core.cli.output import print_findings, table
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake rules list
  cake rules list --pack rules/cake_rules_acme --json
  cake rules test --pack rules/cake_rules_acme acme
  cake rules test core/arrival-count
  cake explain core/arrival-count
"""

PACKS = click.option("--pack", "packs", multiple=True, metavar="DIR", help="A folder with a rule pack; may be repeated.")
JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group("rules", epilog=EPILOG)
def command() -> None:
    """List rules, and judge the texts that stand beside them. 'cake explain ID' says what one means."""


@command.command("list", epilog=EPILOG)
@PACKS
@JSON
def listed(packs: tuple[str, ...], as_json: bool) -> int:
    """List the rules of every pack."""
    try:
        book = rules_of(packs)
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    default = {r.id for r in book.rules}
    rules = [r for p in book.packs for r in p.rules]
    if as_json:
        from cake_core.diagnostics.json import dumps

        plain = ("id", "title", "pack", "version", "since", "owner")
        words = ("kind", "level", "status", "precision")
        rows = [
            {k: getattr(r, k) for k in plain} | {k: str(getattr(r, k)) for k in words} | {"judged": r.id in default, "tags": list(r.tags)}
            for r in rules
        ]
        click.echo(dumps(rows), nl=False)
        return exits.CLEAN
    table(
        "Rules",
        ("rule", "kind", "level", "status", "precision", "what is wrong"),
        [(r.id, r.kind, r.level, r.status, r.precision, r.title) for r in rules],
    )
    for p in book.packs:
        click.echo(f"{p.name} {p.version}: {len(p.rules)} rule{'s' if len(p.rules) != 1 else ''}, from {p.distribution}")
    return exits.CLEAN


@command.command("test", epilog=EPILOG, short_help="Judge the texts beside rules.")
@click.argument("which", nargs=-1, metavar="[ID|PACK]...")
@PACKS
@click.option("--update", is_flag=True, help="Write what is told beside the bad texts; read the difference.")
@JSON
def tested(which: tuple[str, ...], packs: tuple[str, ...], update: bool, as_json: bool) -> int:
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

    try:
        book = rules_of(packs)
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    rules = [r for p in book.packs for r in p.rules if not which or r.id in which or p.name in which]
    known = {r.id for p in book.packs for r in p.rules} | {p.name for p in book.packs}
    if missing := [w for w in which if w not in known]:
        raise click.UsageError(f"no rule or pack '{missing[0]}'; 'cake rules list' lists them")
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
