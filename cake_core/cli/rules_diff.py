"""`cake rules diff`, and how differences are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, progress, table
from cake_core.cli.rules import JSON
from cake_core.cli.versions import BASE, CORPUS, FOLDERS, HEAD, JOBS, both, corpus, tools
from cake_core.diagnostics.model import CakeError

if TYPE_CHECKING:
    from cake_core.review.difference import Cost, Row
    from cake_core.review.packs import Compared, Pair
    from cake_core.review.review import Difference

EPILOG = """\b
Examples:
  cake rules diff --base main
  cake rules diff --base main --corpus kernels/mine
  cake rules diff --base v1.2.0 --head v1.3.0 --json

\b
Verdicts are of the kernels in 'kernels/' of the repository, those in --corpus and the texts beside changed rules. They are kept by
content in the cache of proofs, so the same question is asked once. Cost is in steps of the solver, the same on every machine.
"""


@click.command("diff", epilog=EPILOG)
@BASE
@HEAD
@FOLDERS
@CORPUS
@JOBS
@JSON
def command(base: str, head: str | None, packs: tuple[str, ...], corpora: tuple[str, ...], jobs: int | None, as_json: bool) -> int:
    """Compare two versions of the rule packs of a git repository: rules, verdicts and what the solver takes.

    A rule is compared as logic: looser, tighter, the same, or not decided. Nothing is refused; 'cake rules review' does that.
    """
    from cake_core.review.review import difference

    try:
        with progress("comparing", as_json) as on_step, both(base, head, packs) as (old, new):
            found = difference(old, new, corpus(corpora), tools(on_step, jobs))
            findings = [d for h in (*old[1].held, *new[1].held) for d in h.findings]
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    if as_json:
        print_findings(findings, {}, "json", difference=record(found))
        return exits.code_of(findings)
    if findings:
        print_findings(findings, {}, "text")
    print_changes(found)
    print_verdicts(found)
    print_costs(found)
    return exits.code_of(findings)


# --- tables ------------------------------------------------------------------------------------------------------


def print_changes(found: Difference) -> None:
    if not found.changed:
        click.echo(f"No pack differs from {found.base[:12]}.")
        return
    for pack in found.changed:
        rows = [(p.id, str(p.fate), str(p.step), _said(p)) for p in pack.pairs if p.fate != "same"]
        old, new = pack.versions
        table(f"{pack.name}: {old or 'none'} to {new or 'none'}, its changes ask for a {_asked(pack)} step", ("rule", "is", "step", "by"), rows)


def _asked(pack: Compared) -> str:
    from cake_core.review.steps import asked

    old, _ = pack.versions
    return str(asked(old, pack.step) if old is not None else pack.step)


def _said(pair: Pair) -> str:
    renamed = [f"now '{pair.new.id}'"] if pair.old and pair.new and pair.old.id != pair.new.id else []
    return "; ".join([*renamed, *(f"{c.part}: {c.say}" for c in pair.changes), *(f"{n} {how}" for n, how in pair.texts)])


def print_verdicts(found: Difference) -> None:
    """Those that are others. What a rule that is new or gone proves is counted alone: it is no news of a kernel."""
    every = (*found.texts, *found.kernels)
    rows = [(r.id, r.text, r.what, *_verdicts(r)) for r in every if r.what == "changed" or r.what != "same" and (r.new or r.old).verdict != "proved"]
    if rows:
        table(
            "Verdicts",
            ("rule", "text", "", "before", "now"),
            rows,
            f"{len(every) - len(rows)} more are as before, or proved by a rule that is new or gone",
        )
    for name in (n for names in found.unread for n in names):
        click.echo(f"{name} has no facts here: nothing was judged of it")


def _verdicts(row: Row) -> tuple[str | None, str | None]:
    return tuple(t.verdict if t is not None else None for t in (row.old, row.new))


def print_costs(found: Difference) -> None:
    rows = [(id, *(getattr(c, k) if c else None for k in ("steps", "most") for c in both)) for id, both in found.costs.items()]
    if rows:
        columns = ("rule", "all, before", "all, now", "largest, before", "largest, now")
        table("Steps of the solver", columns, rows, "largest: the question that 95% of the texts stay below")


# --- JSON --------------------------------------------------------------------------------------------------------


def record(found: Difference) -> dict:
    """The two versions, what differs in packs and rules, verdicts that are others, and costs."""
    return {
        "base": found.base,
        "head": found.head or None,
        "packs": [_pack(p) for p in found.changed],
        "verdicts": [_row(r) for r in (*found.texts, *found.kernels) if r.what != "same"],
        "unread": [name for names in found.unread for name in names],
        "same": sum(r.what == "same" for r in (*found.texts, *found.kernels)),
        "costs": [{"rule": id, "before": _cost(old), "now": _cost(new)} for id, (old, new) in found.costs.items()],
    }


def _pack(pack: Compared) -> dict:
    old, new = pack.versions
    rules = [
        {
            "rule": p.id,
            "renamed_to": p.new.id if p.old and p.new and p.old.id != p.new.id else None,
            "is": str(p.fate),
            "step": str(p.step),
            "changes": [{"part": c.part, "direction": str(c.direction), "say": c.say} for c in p.changes],
            "texts": [{"name": n, "is": how} for n, how in p.texts],
        }
        for p in pack.pairs
        if p.fate != "same"
    ]
    return {"pack": pack.name, "from": old, "to": new, "step": _asked(pack), "rules": rules}


def _row(row: Row) -> dict:
    from cake_core.review.verdicts import record as tally

    old, new = (tally(t) | {"verdict": t.verdict} if t is not None else None for t in (row.old, row.new))
    return {"rule": row.id, "text": row.text, "zoo": row.zoo, "is": row.what, "before": old, "now": new}


def _cost(cost: Cost | None) -> dict | None:
    return None if cost is None else {"steps": cost.steps, "most": cost.most}
