"""`cake rules stats`."""

from __future__ import annotations

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, progress, table
from cake_core.cli.rules import JSON, PACKS, book_of, chosen
from cake_core.cli.versions import CORPUS, JOBS, corpus, rows_of, texts_of

#: Rules in the table; JSON has all.
MOST = 10

EPILOG = """\b
Examples:
  cake rules stats
  cake rules stats core --corpus kernels
  cake rules stats --pack rules/cake_rules_acme acme --json

\b
Cost is in steps of the solver (rlimit), the same on every machine. Verdicts and costs are kept by content in the cache of proofs.
"""


@click.command("stats", epilog=EPILOG)
@click.argument("which", nargs=-1, metavar="[ID|PACK]...")
@PACKS
@CORPUS
@JOBS
@JSON
def command(which: tuple[str, ...], packs: tuple[str, ...], corpora: tuple[str, ...], jobs: int | None, as_json: bool) -> int:
    """Say what rules take of the solver, how often they find something and how often they do not know: of all rules or those named.

    Each is judged on the texts beside it and on every kernel of --corpus, each time by itself.
    """
    from cake_core.prove.beside import cores
    from cake_core.review.stats import stats
    from cake_core.review.verdicts import Bench

    rules = chosen(book_of(packs, as_json), which)
    kernels = [t for name, data in corpus(corpora) for t in texts_of(name, data)]
    with progress("judging", as_json) as on_step:
        found = stats(rules, kernels, _beside, Bench(rows_of, jobs or cores()), on_step)
    if as_json:
        print_findings((), {}, "json", stats=[_record(s) for s in found])
        return exits.CLEAN
    rows = [(s.rule.id, s.texts, s.reached, s.findings, s.unknown, s.checks, s.steps, s.usual, s.rule.rlimit, s.dearest) for s in found]
    columns = ("rule", "texts", "reached", "findings", "unknown", "checks", "steps", "question", "budget", "most in")
    table("The most expensive rules", columns, rows[:MOST], "question: the largest one of 95% of the texts, in steps")
    unknown = [s.rule.id for s in found if s.unknown]
    totals = ((len(found), "rule"), (sum(s.texts for s in found), "time"), (sum(s.findings for s in found), "finding"))
    rules, times, findings = (f"{n} {what}{'s' if n != 1 else ''}" for n, what in totals)
    click.echo(f"{rules}, {times} judged, {findings}, {sum(s.unknown for s in found)} unknown, {sum(s.steps for s in found)} steps")
    if unknown:
        click.echo(f"not decided somewhere: {', '.join(sorted(unknown))}")
    return exits.CLEAN


def _beside(rule) -> list:
    folder = rule.path.parent
    return [t for p in sorted(folder.glob("*.cake")) if p.is_file() for t in texts_of(f"{rule.id}/{p.name}", p.read_bytes())]


def _record(s) -> dict:
    numbers = ("texts", "reached", "findings", "unknown", "checks", "steps", "most", "usual")
    return {"rule": s.rule.id} | {n: getattr(s, n) for n in numbers} | {"budget": s.rule.rlimit, "dearest": s.dearest or None}
