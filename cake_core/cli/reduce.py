"""`cake reduce`."""

from __future__ import annotations

from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.build import settings_of
from cake_core.cli.host import registry
from cake_core.cli.judged import rule_options
from cake_core.cli.output import print_findings, progress, read_source
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake reduce gemm.cake --keep core/arrival-count
  cake reduce hangs.cake --fixed works.cake --keep deadlock -o bad.cake --fixed-output good.cake
  cake reduce odd.cake --keep 'exit 1: cake check' --tries 200

\b
What to keep: the code of a finding; a kind of fault that the event machine shows (deadlock, race, missing fence, ..); or the exit code of
a command, 'exit N: COMMAND', the file behind it or in place of {}.
"""


#: Findings that are no fault of the text: it does not say which kernel or target is meant.
CHOICES = {"type/several-kernels", "type/several-targets"}


@click.command("reduce", epilog=EPILOG)
@click.argument("file")
@click.option("--keep", required=True, metavar="WHAT", help="What must stay: a code, a kind of fault, or 'exit N: COMMAND'.")
@click.option("--fixed", metavar="FILE", help="The same kernel repaired: made smaller by the same steps, and right all along.")
@click.option("--arch", metavar="ARCH", help="Which of the text's targets; may be left out where it has one.")
@click.option("--kernel", metavar="NAME", help="Which kernel, where the text has several.")
@click.option("--set", "settings", multiple=True, metavar="N=V", help="Override a constant; may be repeated.")
@click.option("--tries", type=click.IntRange(1), default=600, show_default=True, metavar="N", help="How many smaller texts are tried.")
@click.option("--as-written", is_flag=True, help="Keep the form of the text; without it the derived form is made smaller.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Where the text goes.  [default: stdout]")
@click.option("--fixed-output", type=click.Path(dir_okay=False), metavar="FILE", help="Where the repaired one goes.")
@rule_options
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(file, keep, fixed, arch, kernel, settings, tries, as_written, output, fixed_output, judged, as_json) -> int:
    """Make the kernel of FILE smaller while it still goes wrong in the same way, statement by statement (delta debugging).

    The result is the same in every run. A finding stays one of the same resource and role, and none of another code comes with it.
    """
    from cake_core.diagnostics.json import dumps
    from cake_core.reduce import minimise

    if (fixed is None) != (fixed_output is None) and not as_json:
        raise click.UsageError("--fixed and --fixed-output go together")
    try:
        book = judged.book()
        texts = Texts(book, arch, settings_of(settings), as_written, kernel)
        pair = texts.pair(file, fixed)
    except CakeError as error:
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        return exits.code_of(error.diagnostics)
    oracle = oracle_of(keep, texts.check, pair)
    with progress("reducing", as_json) as on_step:
        found = minimise(pair, oracle, tries, on_step)
    held = found.tries > 1
    bad, good = (formatted(t) if t is not None else None for t in (found.pair.bad, found.pair.good))
    if as_json:
        sizes = {"before": len(pair.bad.splitlines()), "after": len(bad.splitlines())}
        whole = {"schema_version": 1, "kept": held, "complete": found.complete, "tries": found.tries, "lines": sizes, "text": bad, "fixed": good}
        click.echo(dumps(whole), nl=False)
        return exits.CLEAN if held else exits.FINDINGS
    if not held:
        click.echo(f"'{keep}' is not what '{file}' shows{' where the repaired one does not' if fixed else ''}: nothing is reduced", err=True)
        return exits.FINDINGS
    if output is None:
        click.echo(bad, nl=False)
    for place, text in ((output, bad), (fixed_output, good)):
        if place is not None:
            write(Path(place), text)
    end = "" if found.complete else "; more tries may find a smaller one: --tries"
    click.echo(f"{len(pair.bad.splitlines())} lines to {len(bad.splitlines())} in {found.tries} tries{end}", err=True)
    return exits.CLEAN


def write(path: Path, text: str) -> None:
    """A file, whole or not at all. Raises click.FileError."""
    from cake_core.cli.fmt import replace_file

    try:
        path.touch()
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from None
    replace_file(path, text)


class Texts:
    """Texts in the form in which they are made smaller, and what is found in one."""

    def __init__(self, book, arch: str | None, overrides: dict, as_written: bool = False, kernel: str | None = None):
        from cake_core.reduce import Check

        self.arch, self.overrides, self.as_written, self.kernel = arch, overrides, as_written, kernel
        self.check = Check(self._front, registry(), book)

    def pair(self, bad: str, good: str | None = None):
        """Of the files of a text and of its repaired twin. Raises CakeError where one can't be read; click.FileError."""
        from cake_core.reduce import Pair

        return Pair.of(*(self.canonical(read_source(f)) if f is not None else None for f in (bad, good)))

    def canonical(self, source) -> str:
        """The derived form of a text for one target, or the text as it is where that is asked for or it has none."""
        from cake_core.ir.nodes import Program
        from cake_core.ir.printer import program_text
        from cake_core.pipeline import frontend
        from cake_core.syntax import format_text

        if not self.as_written:
            try:
                front = frontend(source, registry(), self.arch, self.overrides, kernel=self.kernel)
            except CakeError as error:
                if any(d.code in CHOICES for d in error.diagnostics):
                    raise
                return format_text(source)  # what is wrong keeps it from a derived form
            self.arch = front.arch.name
            return program_text(Program(front.program.version, True, (front.derived,)))
        return format_text(source)

    def _front(self, source):
        from cake_core.pipeline import frontend
        from cake_core.syntax import parse

        program = parse(source)
        front = frontend(source, registry(), self.arch, {} if program.derived else self.overrides, program=program)
        return front.typed, front.arch


def oracle_of(keep: str, check, pair):
    """What `--keep` asks for. Raises click.UsageError for what it is not."""
    import re

    from cake_core.cli.host import catalogue
    from cake_core.diagnostics.near import get_close_matches
    from cake_core.machine import Kind
    from cake_core.reduce import command_oracle, fault_oracle, finding_oracle

    if found := re.fullmatch(r"exit (\d+): *(.+)", keep, re.DOTALL):
        return command_oracle(found.group(2), int(found.group(1)))
    if keep in list(Kind):
        return fault_oracle(check, Kind(keep), pair.bad)
    codes = {*catalogue(), *(r.id for p in check.book.packs for r in p.rules)}
    if keep in codes:
        return finding_oracle(check, keep, pair.bad, pair.good)
    near = get_close_matches(keep, [*codes, *Kind], n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"a code, 'exit N: COMMAND', or one of {', '.join(Kind)}"
    raise click.UsageError(f"--keep: '{keep}' is nothing to keep; {hint}")


def formatted(text: str) -> str:
    """A reduced text in canonical layout."""
    from cake_core.source import Source
    from cake_core.syntax import format_text

    try:
        return format_text(Source("reduced.cake", text)).rstrip("\n") + "\n"
    except CakeError:  # what is kept may be that it does not parse
        return text
