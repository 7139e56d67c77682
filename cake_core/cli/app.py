"""The command group: which commands there are, and how a run ends.

Built-in commands are listed with their summaries and imported on use; plugin commands come from the registry. Every
exception ends here as words and an exit code.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

from cake_core import __version__
from cake_core.cli import exits
from cake_core.cli.host import disable, plugin_commands
from cake_core.diagnostics.model import CakeError
from cake_core.diagnostics.near import get_close_matches

#: Built-in commands: name to the module's attribute `command` and the line in the list.
COMMANDS = {
    "build": "Compile a kernel to an artifact: PTX, cubin, manifest, source map.",
    "check": "Report what is wrong with texts; write nothing.",
    "fmt": "Rewrite texts in canonical form.",
    "run": "Run a kernel on the GPU and compare with its reference.",
    "bench": "Time a kernel on the GPU.",
    "show": "Show a kernel: roles over time, memory, findings.",
    "facts": "Print what the proof knows of a kernel, as rows.",
    "mutate": "Seed faults into a kernel and compare who finds them.",
    "reduce": "Make a kernel smaller while it still goes wrong.",
    "rules": "List rules; judge the texts beside them.",
    "explain": "Say what a diagnostic's code means and what to do.",
    "plugins": "List plugins, what they offer and what is broken.",
    "doctor": "Show what this installation is made of and what it lacks.",
}

#: What writing to stdout fails with where the output has no place.
UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF}

EPILOG = """\b
Exit codes:
  0    clean (warnings do not count)
  1    findings: errors in a text, what is not proved, wrong results, a file that 'fmt --check' would change
  2    usage: an unknown option, a file that is not there
  3    engine: a broken plugin, a missing tool, an internal error
  130  interrupted

\b
Examples:
  cake build gemm.cake -o out/gemm
  cake check kernels/*/*.cake
  cake explain type/unknown-name
"""


class App(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(plugin_commands().keys() - COMMANDS.keys())]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            return import_module(f"cake_core.cli.{name}").command
        offered = plugin_commands().get(name)
        return offered.load() if offered else None

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """As click's, with a suggestion for a misspelt name."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and name not in plugin_commands():
            near = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list with summaries at hand: no command is imported for it."""
        offered = {n: c for n, c in plugin_commands().items() if n not in COMMANDS}
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        if offered:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(n, f"{c.summary} [{c.source}]" if c.source else c.summary) for n, c in sorted(offered.items())])

    def invoke(self, ctx: click.Context):
        """As click's, which would end with 1 where the reader has gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _reader_gone()

    def main(self, args=None, prog_name=None, complete_var=None, standalone_mode=True, **extra):
        """Run, and turn every way to end into an exit code. Nothing but SystemExit leaves here."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        _open_streams()
        gc.set_threshold(100_000)  # most commands end before there is enough to collect
        sys.exit(_guarded(lambda: super(App, self).main(args, prog_name, complete_var, standalone_mode=False, **extra)))


def _guarded(run) -> int:
    """The exit code of a run."""
    with _interrupts_kept():
        return _ended(run)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """An interrupt that comes while an object is taken apart, as a solver's many are, Python prints and forgets. Inside it is raised again, a moment
    later: at once it would be that object's again. One is on its way at a time: a second one would come while the first is told."""
    again, coming = [], []

    def later(unraisable) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        if coming:
            return
        import signal
        from threading import Timer, main_thread

        wake = getattr(signal, "pthread_kill", lambda thread, number: signal.raise_signal(number))  # which ends a wait of the main thread too

        def send() -> None:
            coming.clear()  # first, for the one that is sent may be lost again
            wake(main_thread().ident, signal.SIGINT)

        coming.append(True)
        again.append(Timer(0.02, send))
        again[-1].daemon = True
        again[-1].start()

    before, sys.unraisablehook = sys.unraisablehook, later
    try:
        yield
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = before


def _ended(run) -> int:
    try:
        result = run()
        sys.stdout.flush()
        return result if isinstance(result, int) else exits.CLEAN
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return exits.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("cake: interrupted", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITTEN:
            internal_error(error)
            return exits.ENGINE
        click.echo(f"Error: Could not write the output: {error.strerror}", err=True)
        _leave_stdout()
        return exits.USAGE
    except CakeError as error:
        from cake_core.cli.output import print_findings

        print_findings(error.diagnostics, {}, "text")
        return exits.code_of(error.diagnostics)
    except Exception as error:
        internal_error(error)
        return exits.ENGINE


def _reader_gone() -> int:
    """The reader has gone (`cake ... | head`): say nothing."""
    _leave_stdout()
    return exits.BROKEN_PIPE


def _leave_stdout() -> None:
    """Keep the interpreter from flushing into what takes nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())


def _open_streams() -> None:
    """Where a standard stream is closed, the null device, so that no file of ours gets its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            while (at := os.open(os.devnull, os.O_RDWR)) < number:
                pass
            stream = open(at, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def internal_error(error: Exception) -> None:
    """A few lines for a person; the traceback only on request."""
    import traceback

    if debugging():
        traceback.print_exception(error)
    where = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if "cake_" in f.filename), None)
    place = f" at {_module_path(where.filename)}:{where.lineno}" if where else ""
    words = " ".join(str(error).split())[:300]
    click.echo(f"cake: internal error: {type(error).__name__}{': ' + words if words else ''}{place}", err=True)
    click.echo("This is a fault of cake or of a plugin, not of the text. A report needs the text and the output of 'cake doctor';", err=True)
    click.echo("'cake -v' or CAKE_DEBUG=1 shows the traceback.", err=True)


def _module_path(filename: str) -> str:
    """The file's path from its top-level package on."""
    parts = filename.replace("\\", "/").split("/")
    start = next((i for i, p in enumerate(parts) if p.startswith("cake_")), len(parts) - 1)
    return "/".join(parts[start:])


def debugging() -> bool:
    ctx = click.get_current_context(silent=True)
    return _verbose or bool(ctx and ctx.find_root().params.get("verbose")) or os.environ.get("CAKE_DEBUG", "") not in ("", "0")


_verbose = False


def _set_verbose(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    global _verbose
    _verbose = value
    return value


def _set_disabled(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    disable(value)
    return value


@click.group(cls=App, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("-v", "--verbose", is_flag=True, callback=_set_verbose, help="Show tracebacks of internal errors and of broken plugins.")
@click.option(
    "--no-plugin", "disabled", multiple=True, metavar="NAME", callback=_set_disabled, is_eager=True, help="Leave a plugin out; may be repeated."
)
@click.version_option(__version__, prog_name="cake")
def app(verbose: bool, disabled: tuple[str, ...]) -> None:
    """Cake: a compiler for GPU kernels. A typed text says what the machine does; cake derives the bookkeeping."""
