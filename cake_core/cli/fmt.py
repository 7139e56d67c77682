"""`cake fmt`."""

from __future__ import annotations

import os
import tempfile
from difflib import unified_diff
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.output import MACHINE, chosen_format, format_options, print_findings, read_source
from cake_core.diagnostics.model import CakeError

EPILOG = """\b
Examples:
  cake fmt gemm.cake
  cake fmt --check kernels/*/*.cake
  cake fmt --diff kernel.cake
  cake fmt - < kernel.cake
"""


@click.command("fmt", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Write nothing; name the files that would change and exit 1.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@format_options
def command(files, check, diff, format, as_json) -> int:
    """Rewrite FILES in canonical form; '-' reads stdin and writes stdout.

    A text with a syntax error is reported and left as it is.
    """
    from cake_core.syntax import format_text

    format = chosen_format(format, as_json)
    if "-" in files and format in MACHINE and not check:
        raise click.UsageError(f"the text of '-' and --format {format} would both go to stdout")
    sources, findings, states = {}, [], []
    for file in dict.fromkeys(files):
        try:
            source = read_source(file)
            sources[source.name] = source
            after = format_text(source)
        except CakeError as error:
            findings += error.diagnostics
            states.append({"file": file, "state": "errors"})
            continue
        changes = after.encode() != _bytes(file, source.text)
        if diff:
            lines = unified_diff(source.text.splitlines(True), after.splitlines(True), file, file)
            click.echo("".join(line if line.endswith("\n") else line + "\n" for line in lines), nl=False)
        elif file == "-" and not check:
            click.echo(after, nl=False)
        elif changes and not check:
            replace_file(Path(file), after)
        if changes and check and format == "text" and not diff:
            click.echo(f"{file} would change")
        states.append({"file": file, "state": "clean" if not changes else "would-change" if check or diff else "formatted"})
    print_findings(findings, sources, format, files=states)
    failed = exits.code_of(findings)
    return failed or (exits.FINDINGS if check and any(s["state"] == "would-change" for s in states) else exits.CLEAN)


def _bytes(file: str, text: str) -> bytes:
    """The file as it is on disk: other line ends and a byte order mark are changes too."""
    return text.encode() if file == "-" else Path(file).read_bytes()


def replace_file(path: Path, text: str) -> None:
    """Write by a rename, so that an interrupted run leaves the old file; a link stays a link, the mode stays."""
    path = path.resolve()
    try:
        handle, staging = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(text.encode())
            os.chmod(staging, path.stat().st_mode & 0o7777)
            os.replace(staging, path)
        except BaseException:
            Path(staging).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from None
