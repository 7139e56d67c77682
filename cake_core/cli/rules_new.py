"""`cake rules new`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.output import print_findings, progress
from cake_core.cli.rules import JSON
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake rules new acme/few-slots --shape relation --pack cake-rules-acme/cake_rules_acme --owner "A. Person"
  cake check kernel.cake --json > finding.json
  cake rules new acme/late-fence --from finding.json --fixed repaired.cake --pack cake_rules_acme
  cake mutate gemm.cake --json > mutants.json
  cake rules new acme/lost-wait --from mutants.json --text gemm.cake --number 3 --pack cake_rules_acme

\b
What --from takes, a JSON file:
  the output of 'cake check --json', or one of its diagnostics
  the output of 'cake mutate --json', with --text the kernel that was changed; the mutant is the bad text, the kernel the good one
  {"kernel": "hangs.cake", "line": 31, "what": "hangs where K is 0", "fault": "deadlock", "fixed": "works.cake"}
      of a kernel that is accepted and goes wrong; 'line', 'what', 'fault' (a kind of the event machine) and 'fixed' may be left out
The bad text is made smaller while the finding is still told, or the event machine still shows the fault, and the good one by the same steps.
"""

#: What else of the repository names each rule of a built-in pack, and when; CONTRIBUTING.md says the same.
LISTED = """A rule of a built-in pack stands in these too ('A rule' in CONTRIBUTING.md):
  README.md of the pack: a row
  CHANGELOG.md of the pack: a line, and the version in pack.yaml that 'cake rules review' asks for
  pack.json of the pack: python -m cake_core.rules.store
  docs/diagnostics.md: cake explain --markdown > docs/diagnostics.md
  docs/evidence.md, if a case of tests/corpus is found by it: python docs/evidence.py > docs/evidence.md"""


@click.command("new", epilog=EPILOG)
@click.argument("id")
@click.option("--shape", type=click.Choice(("relation", "path", "protocol")), default="relation", show_default=True, help="What kind of rule it is.")
@click.option(
    "--pack",
    "folder",
    metavar="DIR",
    help="The pack's folder; made where it is not there.  [default: the pack of the namespace, or cake-rules-NAMESPACE/cake_rules_NAMESPACE]",
)
@click.option("--owner", metavar="NAME", default="TODO", help="A person or a named group who answers for what it finds.")
@click.option("--author", metavar="NAME", default="TODO", help="Who wrote it.")
@click.option("--run", metavar="ID", help="The author is an agent: where its work can be looked up.")
@click.option("--from", "failure", metavar="FILE", help="A finding, a list of mutants or a failure, as JSON: draft the rule and its texts from it.")
@click.option("--fixed", metavar="FILE", help="The kernel repaired: the good text.")
@click.option("--text", metavar="FILE", help="The kernel that a finding or mutant is of, where the file does not name it.")
@click.option("--number", type=click.IntRange(1), metavar="N", help="Which finding, or mutant, of several.  [default: the first that is wrong]")
@click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one.")
@click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several.")
@click.option("--tries", type=click.IntRange(1), default=400, show_default=True, metavar="N", help="How many smaller texts are tried.")
@JSON
def command(id, shape, folder, owner, author, run, failure, fixed, text, number, arch, kernel, tries, as_json) -> int:
    """Begin the rule ID (namespace/slug): its file with comments that teach, a text that breaks it and one that keeps it; the pack too, where
    there is none. Nothing that is there is overwritten.
    """
    from cake_core import __version__
    from cake_core.diagnostics.json import dumps
    from cake_core.rules.packs import built_in
    from cake_core.rules.scaffold import New, files, pack_of, plain
    from cake_core.rules.schema import Author

    for option, said in (("--owner", owner), ("--author", author), ("--run", run)):
        if said is not None and not plain(said).strip():
            raise click.UsageError(f"{option}: it is empty")
    place = Path(folder or ".")
    try:
        place = Path(folder) if folder else pack_of(id)
        new = New(id, place, shape, owner, Author(author, "agent" if run else "human", run or ""))
        files(new, __version__)  # what can't be is said before anything is made smaller
        reduced = None
        if failure is not None:
            from cake_core.cli.failures import drafted, read

            found = read(failure, text, fixed, number, arch, kernel)
            with progress("reducing", as_json) as on_step:
                new, reduced = drafted(new, found, arch, kernel, tries, on_step)
        written = files(new, __version__)
        _write(written)
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    except OSError as error:
        raise click.FileError(str(error.filename or place), error.strerror) from None
    if as_json:
        click.echo(dumps({"schema_version": 1, "rule": id, "pack": str(place), "files": [str(p) for p in written], "reduced": reduced}), nl=False)
        return exits.CLEAN
    for path in written:
        click.echo(f"wrote {path}")
    if reduced is not None:
        click.echo(f"{reduced['said']}")
    name = id.partition("/")[0]
    if built_in(place):
        click.echo(LISTED)
        asked = f"'cake rules test {id} --update' and 'cake rules lint {id}'"
        click.echo(f"Next: change what says TODO, then {asked}.")
        return exits.CLEAN
    click.echo(f"Next: change what says TODO, then 'cake rules test --pack {place} {id} --update' and 'cake rules lint --pack {place} {name}'.")
    return exits.CLEAN


def _write(files: dict[Path, str]) -> None:
    """All of them or none: half a rule would be one that is there already. Raises OSError."""
    done: list[Path] = []
    try:
        for path, content in files.items():
            missing = [p for p in path.parents if not p.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            done += [*reversed(missing), path]
            with open(path, "x", encoding="utf-8") as out:
                out.write(content)
    except BaseException as error:
        for path in reversed(done):
            if path.is_dir():
                with suppress(OSError):
                    path.rmdir()
            elif not isinstance(error, FileExistsError) or path != done[-1]:
                path.unlink(missing_ok=True)
        raise
