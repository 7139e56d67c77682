"""`cake rules test`."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import click

from cake_core.cli import exits
from cake_core.cli.host import offered, registry
from cake_core.cli.output import print_findings, progress
from cake_core.cli.rules import JSON, PACKS, book_of, chosen
from cake_core.diagnostics.model import Severity

EPILOG = """\b
Examples:
  cake rules test
  cake rules test core/arrival-count
  cake rules test --pack rules/cake_rules_acme acme --update
  cake rules test --pack rules/cake_rules_acme acme --thorough

\b
Beside a rule stand bad_WHY.cake (breaks it; bad_WHY.diag is what is told), good_WHY.cake (reaches and keeps it) and gap_WHY.cake
(a fault that it does not find yet). One bad and one good text differ in one statement. Probes: with nothing required no bad text
is told any more; with what nothing keeps a bad and a good one are.
"""


@click.command("test", epilog=EPILOG)
@click.argument("which", nargs=-1, metavar="[ID|PACK]...")
@PACKS
@click.option("--update", is_flag=True, help="Write what is told beside the bad texts; read the difference.")
@click.option("--thorough", is_flag=True, help="Say which parts of a rule no text needs; some times as long.")
@click.option(
    "-j", "jobs", type=click.IntRange(1, 64), metavar="N", help="Judge with N processes. The result is the same.  [default: 2, where there are cores]"
)
@JSON
def command(which: tuple[str, ...], packs: tuple[str, ...], update: bool, thorough: bool, jobs: int | None, as_json: bool) -> int:
    """Judge the bad and good texts of rules, of all of them or those named.

    A bad text breaks its rule and is told as its '.diag' says, a good one reaches and keeps it, and one of each differ in one statement.
    """
    from cake_core.prove.beside import cores
    from cake_core.rules.offered import unoffered

    rules = chosen(book_of(packs, as_json, which), which)
    trials = []
    with progress("judging", as_json) as on_step:
        for t in _trials(rules, jobs or cores(), update, thorough):
            on_step(t.rule.id)
            trials.append(t)
    findings = [*unoffered(rules, offered()), *(d for t in trials for d in t.findings)]
    if as_json:
        print_findings(findings, {}, "json", rules=[_record(t) for t in trials])
    else:
        if findings:
            print_findings(findings, {}, "text", to_stdout=True)
        texts = sum(t.bad + t.good + t.gaps for t in trials)
        click.echo(
            f"{len(trials)} rule{'s' if len(trials) != 1 else ''}, {texts} texts, {sum(d.severity is not Severity.NOTE for d in findings)} wrong"
        )
    return exits.code_of(findings)


def _record(t) -> dict:
    counts = {"bad": t.bad, "good": t.good, "gaps": t.gaps, "undecided": t.undecided}
    return {
        "rule": t.rule.id,
        **counts,
        "probes": {name: not wrong for name, wrong in t.probes},
        "ok": not [d for d in t.findings if d.severity is not Severity.NOTE],
    }


def _trials(rules: list, jobs: int, update: bool, thorough: bool) -> Iterator:
    """The trial of each rule, in the order of the rules however many processes judge them."""
    import multiprocessing

    jobs = min(jobs, len(rules))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for rule in rules:
            yield _trial(rule, update, thorough)
        return
    registry()  # once, for all copies
    _SHARED[:] = [(r, update, thorough) for r in rules]  # what a copy inherits need not be sent to it
    with multiprocessing.get_context("fork").Pool(jobs, _leave_interrupts) as pool:
        yield from (_whole(rule, told) for rule, told in zip(rules, pool.imap(_numbered, range(len(rules))), strict=True))


_SHARED: list[tuple] = []


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends its copies


def _numbered(number: int) -> dict:
    """What a copy tells of a trial: all but the rule itself."""
    t = _trial(*_SHARED[number])
    return {name: getattr(t, name) for name in ("bad", "good", "undecided", "findings", "gaps", "probes")}


def _whole(rule, told: dict):
    from cake_core.rules.trial import Trial

    return Trial(rule, **told)


def _trial(rule, update: bool, thorough: bool):
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.prove.prover import Prover
    from cake_core.rules.trial import trial

    def rows(source):
        front = frontend(source, registry())
        return rows_of(facts_of(front.typed, registry(), front.arch), front.arch, registry())

    return trial(rule, rows, Prover, update, thorough)
