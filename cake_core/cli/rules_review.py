"""`cake rules review`."""

from __future__ import annotations

from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, progress
from cake_core.cli.rules import JSON
from cake_core.cli.rules_diff import print_changes, print_costs, print_verdicts, record
from cake_core.cli.versions import BASE, CORPUS, FOLDERS, HEAD, JOBS, both, corpus, tools
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake rules review --base origin/main
  cake rules review --base origin/main --markdown comment.md
  cake rules review --base v1.2.0 --head HEAD --corpus kernels/mine --json

\b
Refused are, among others: a stable rule that may let more pass than before and has no soundness note in pack.yaml; existing
texts edited beside what a rule judges; a rule without an owner; an agent as author without its run; a version that does not
say what changed; a kernel of kernels/ that is judged otherwise than before; a cake.toml that asks for less. 'cake explain review/CODE' says why.
"""


@click.command("review", epilog=EPILOG)
@BASE
@HEAD
@FOLDERS
@CORPUS
@JOBS
@click.option("--markdown", metavar="FILE", help="Write the comment for a pull request here too.")
@JSON
def command(
    base: str, head: str | None, packs: tuple[str, ...], corpora: tuple[str, ...], jobs: int | None, markdown: str | None, as_json: bool
) -> int:
    """Say whether a change of rule packs may be merged: exit code 0 if it may, 1 or 3 if it is refused.

    Packs are all folders of the git repository with a 'pack.yaml', those below 'tests' and 'templates' excepted. What changed is compared
    rule by rule, the texts beside changed rules and the kernels in 'kernels/' are judged by both versions, by rules of safety and legality
    Cake's own kernels too where it runs from a checkout.
    """
    from cake_core.review.markdown import comment
    from cake_core.review.review import review

    try:
        with progress("reviewing", as_json) as on_step, both(base, head, packs) as (old, new):
            found = review(old, new, corpus(corpora), tools(on_step, jobs))
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    if markdown:
        try:
            Path(markdown).write_text(comment(found), encoding="utf-8")
        except OSError as error:
            raise click.FileError(markdown, error.strerror) from None
    if as_json:
        print_findings(found.findings, {}, "json", review={"verdict": found.verdict} | record(found.difference))
        return exits.code_of(found.findings)
    print_changes(found.difference)
    print_verdicts(found.difference)
    print_costs(found.difference)
    if found.findings:
        print_findings(found.findings, {}, "text", to_stdout=True)
    click.echo(found.verdict)
    return exits.code_of(found.findings)
