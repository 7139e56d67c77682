"""`cake mutate`."""

from __future__ import annotations

from collections import Counter

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of
from cake_core.cli.host import registry
from cake_core.cli.output import print_findings, progress, read_source, table
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake mutate gemm.cake
  cake mutate gemm.cake --at M=256,N=256,K=192 --at M=400,N=512,K=64
  cake mutate gemm.cake --operator swap --random 200 --seed 7 --json > mutants.json

\b
Outcomes: refused (by the compiler), rejected (by the proof, and the event machine shows the fault), checked (by a check alone), safe
(proved, and the machine finds nothing), unknown (outside of the method), and the two that no mutant should have: missed
(the machine shows a fault, and no one else), alarm (the proof rejects, and the machine finds nothing at the sizes tried).
"""


@click.command("mutate", epilog=EPILOG)
@click.argument("file")
@click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one.")
@click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several.")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--at", "sizes", multiple=True, metavar="N=V,..", help="Sizes for the event machine; may be repeated.  [default: some that are found]")
@click.option("--operator", "operators", multiple=True, metavar="WORD", help="Only operators that begin so; may be repeated.")
@click.option("--random", "count", type=click.IntRange(0), default=0, metavar="N", help="N mutants of one to three edits instead of all single ones.")
@click.option("--seed", type=int, default=0, metavar="N", help="Of those.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="As JSON, every mutant.")
def command(file, arch, kernel, settings, sizes, operators, count, seed, as_json) -> int:
    """Change one kernel of FILE ('-' is stdin) in every way that seeds a fault, and compare what checks, proof and event machine say.

    The derived form is changed, one statement or declaration at a time, and judged anew. It takes seconds a mutant.
    """
    from cake_core.diagnostics.json import dumps
    from cake_core.facts import facts_of
    from cake_core.machine import MachineError, Scenario, scenarios_of
    from cake_core.mutate import Judge, Outcome, drawn, mutants
    from cake_core.pipeline import frontend

    sources = {}
    try:
        source = read_source(file)
        sources[source.name] = source
        front = frontend(source, registry(), arch, settings_of(settings), kernel=kernel)
        facts = facts_of(front.typed, registry(), front.arch)
        given = tuple(Scenario(settings_of(s.split(","))) for s in sizes)
        scenarios = given or scenarios_of(facts)
    except CakeError as error:
        print_findings(error.diagnostics, sources, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    except MachineError as error:
        raise click.UsageError(f"{error}: --at N=V,..") from None
    if missing := [n for s in given for n in facts.scalars if n not in s.params]:
        raise click.UsageError(f"--at: '{missing[0]}' has no value")
    judge = Judge(registry(), front.arch, scenarios)
    edits = drawn(front.derived, front.typed, registry(), front.arch, count, seed) if count else mutants(front.derived, front.typed, registry())
    with progress("judging", as_json) as on_step:
        cases = [judge.case(None, front.derived)]
        for edit in edits:
            if not operators or edit.operator.startswith(tuple(operators)):
                on_step(f"{edit.operator}, line {edit.span.line}")
                cases.append(judge.case(edit, edit.kernel))
    wrong = [c for c in cases if c.outcome in (Outcome.MISSED, Outcome.ALARM)]
    if as_json:
        totals = {str(o): sum(c.outcome is o for c in cases[1:]) for o in Outcome}
        at = [dict(s.params) for s in scenarios]
        found = {"kernel": facts.kernel, "arch": facts.arch, "seed": seed if count else None, "scenarios": at, "outcomes": totals}
        click.echo(dumps(found | {"mutants": [c.record() for c in cases]}), nl=False)
        return exits.FINDINGS if wrong else exits.CLEAN
    tally = Counter((c.edit.operator if not count else "random", c.outcome) for c in cases[1:])
    rows = [
        (name, sum(n for (of, _), n in tally.items() if of == name), *(tally[name, o] or None for o in Outcome))
        for name in dict.fromkeys(n for n, _ in tally)
    ]
    total = ("all", len(cases) - 1, *(sum(c.outcome is o for c in cases[1:]) for o in Outcome))
    table(f"Mutants of {facts.kernel} for {facts.arch}", ("operator", "mutants", *map(str, Outcome)), [*rows, total])
    for c in cases:
        if c in wrong or c.outcome is Outcome.UNKNOWN:
            click.echo(_told(c))
    return exits.FINDINGS if wrong else exits.CLEAN


def _told(case) -> str:
    """A mutant on which the judges do not agree."""
    edit, (question, answer) = case.edit, case.proof
    lines = [f"{case.outcome}: {edit.operator}, {edit.what} (line {edit.span.line})" if edit else f"{case.outcome}: the kernel itself"]
    lines.append(f"  proof: {question or 'all'} {answer.standing}{', ' + answer.reason if answer.reason else ''}")
    if case.fault is not None:
        lines.append(f"  machine, at {', '.join(f'{n} = {v}' for n, v in case.at.items())}: {case.fault.kind}, {case.fault.message}")
    return "\n".join(lines) + "\n"
