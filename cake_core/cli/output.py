"""What commands print: findings in any format, tables, progress. Colour and rich tables only on a terminal."""

from __future__ import annotations

import codecs
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import click

from cake_core.diagnostics.model import Diagnostic, Suppressed
from cake_core.diagnostics.render import FORMATS, in_order, render
from cake_core.source import Source

#: Formats that a program reads: they go to stdout, alone.
MACHINE = ("json", "sarif", "github")


def format_options(command):
    """`--format` and its alias `--json`."""
    command = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")(command)
    return click.option("--format", "format", type=click.Choice(FORMATS), default="text", help="How findings are written. [default: text]")(command)


def chosen_format(format: str, as_json: bool) -> str:
    return "json" if as_json else format


def colored(stream) -> bool:
    """Whether `stream` is a terminal that takes colours (NO_COLOR: no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())


def print_findings(
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, Source],
    format: str,
    to_stdout: bool = False,
    packs: tuple[str, ...] = (),
    suppressed: Sequence[Suppressed] = (),
    **more,
) -> None:
    """Findings: for a person to stderr (stdout where they are what was asked for), for a program to stdout.

    `packs`: folders of packs whose rules may be told. `suppressed`: findings that are let pass, of which only JSON and SARIF speak. `more` goes
    into the JSON document only.
    """
    if format == "json":
        from cake_core.diagnostics.json import document, dumps

        click.echo(dumps(document(in_order(diagnostics), suppressed, **more)), nl=False)
        return
    stream = sys.stdout if to_stdout or format in MACHINE else sys.stderr
    color = colored(stream)
    rules = None
    if format == "sarif":
        from cake_core.cli.host import catalogue

        rules = catalogue(packs)
    click.echo(render(diagnostics, sources, format, color, rules, suppressed), nl=False, file=stream, color=color)


def suppressed_lines(passed: Sequence[Suppressed]) -> Iterator[str]:
    """What is let pass, in words: a line a rule and reason."""
    counts = Counter((s.rule, s.reason) for s in passed)
    for (rule, reason), n in sorted(counts.items()):
        yield f"  let pass  {n} finding{'s' if n != 1 else ''} of {rule}: {reason}"


def read_source(path: str) -> Source:
    """The text of `path`, or of stdin for `-`. Raises CakeError where it is no UTF-8, click.FileError where it can't be read."""
    from cake_core.syntax import decode
    from cake_core.syntax.intake import MAX_SIZE

    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as f:
            data = f.read(4 * MAX_SIZE + 4)  # more is told as too large, and of a device there is no end
    except OSError as error:
        raise click.FileError(path, error.strerror) from None
    return decode("<stdin>" if path == "-" else path, data.removeprefix(codecs.BOM_UTF8))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> None:
    """A small table on stdout: numbers to the right; aligned text unless stdout is a terminal."""
    cells = [["" if c is None else str(c) for c in row] for row in rows]
    numeric = [bool(rows) and all(r[i] is None or isinstance(r[i], int | float) for r in rows) for i in range(len(columns))]
    if is_terminal(sys.stdout):
        _rich_table(title, columns, cells, numeric, note)
        return
    click.echo(title)
    widths = [max(len(columns[i]), *(len(r[i]) for r in cells)) if cells else len(columns[i]) for i in range(len(columns))]
    for row in [list(columns), *cells]:
        fields = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True))
        click.echo("  " + "  ".join(fields).rstrip())
    if note:
        click.echo(f"  {note}")
    click.echo()


def _rich_table(title: str, columns: Sequence[str], cells: list[list[str]], numeric: list[bool], note: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title, title_justify="left", title_style="bold", caption=note or None, caption_justify="left", box=box.SIMPLE_HEAD)
    for name, right in zip(columns, numeric, strict=True):
        drawn.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(c) for c in row))
    Console(file=sys.stdout, no_color=not colored(sys.stdout)).print(drawn)


@contextmanager
def progress(label: str, quiet: bool = False) -> Iterator:
    """Yields a function that names the step at work: a spinner on stderr where that is a terminal, else nothing."""
    if quiet or not is_terminal(sys.stderr):
        yield lambda step: None
        return
    from rich.console import Console
    from rich.text import Text  # a file's name is no markup

    with Console(stderr=True, no_color=not colored(sys.stderr)).status(Text(label)) as status:
        yield lambda step: status.update(Text(f"{label}: {step}"))
