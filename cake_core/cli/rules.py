"""`cake rules`: which commands it has; each is a file `rules_NAME.py`, imported on use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from cake_core.cli import exits
from cake_core.cli.judged import rules_of
from cake_core.cli.output import print_findings
from cake_core.diagnostics.model import CakeError
from cake_core.diagnostics.near import get_close_matches

#: Commands by name, with the line in the list.
COMMANDS = {
    "lint": "Say what of rules is unfinished, unused or said twice.",
    "list": "List the rules of every pack.",
    "new": "Begin a rule, from a failure too.",
    "show": "Show a rule as it was read.",
    "test": "Judge the texts beside rules.",
    "schema": "Print the JSON Schema of rule.yaml, pack.yaml or cake.toml.",
    "lock": "Write down packs, engine and solver by version and content.",
    "stats": "Say what rules take of the solver and find.",
    "diff": "Compare two versions of packs: rules, verdicts, cost.",
    "review": "Say whether a change of packs may be merged.",
}

EPILOG = """\b
Examples:
  cake rules list
  cake rules test --pack rules/cake_rules_acme acme
  cake explain core/arrival-count
"""

PACKS = click.option("--pack", "packs", multiple=True, metavar="DIR", help="A folder with a rule pack; may be repeated.")
JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


class Rules(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return import_module(f"cake_core.cli.rules_{name}").command if name in COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """As click's, with a suggestion for a misspelt name."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            near = get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("rules", cls=Rules, epilog=EPILOG)
def command() -> None:
    """List rules, and judge the texts that stand beside them. 'cake explain ID' says what one means."""


def book_of(packs: tuple[str, ...], as_json: bool, which: tuple[str, ...] = ()):
    """The rules that there are; where a pack can't be read, its findings are printed and the command ends. `which`: ids and packs that alone are
    looked at, so that another installed pack that can't be read is left out with a note."""
    try:
        return rules_of(packs)
    except CakeError as error:
        if which and (found := _without(packs, which)) is not None:
            click.echo(f"note: another pack is left out: {error.diagnostics[0].message}", err=True)
            return found
        print_findings(error.diagnostics, {}, "json" if as_json else "text")
        raise click.exceptions.Exit(exits.code_of(error.diagnostics)) from None


def _without(packs: tuple[str, ...], which: tuple[str, ...]):
    """The packs that can be read, no rule of them judged on any kernel; None where those that are asked for can't be."""
    from cake_core.rules import Rulebook, find_packs

    try:
        return Rulebook(find_packs(tuple(map(Path, packs)), needed={w.partition("/")[0] for w in which}), ())
    except CakeError:
        return None


def chosen(book, which: tuple[str, ...]) -> list:
    """The rules of these ids and packs, all of them where none is named. Raises click.UsageError for a name that is not there, with what
    became of a rule that was."""
    from cake_core.rules.names import named

    rules = [r for p in book.packs for r in p.rules]
    packs = {p.name for p in book.packs}
    wanted = {name for name in which if name in packs}
    for name in which:
        if name in packs:
            continue
        of = named(book.packs, name)
        if of.said:
            click.echo(f"note: {of.said}", err=True) if of.rule is not None else _unknown(of, name, packs)
        wanted.add(of.rule.id)
    return [r for r in rules if not which or r.id in wanted or r.pack in wanted]


def one(book, id: str):
    """The rule of this id; the namespace may be left out. Raises click.UsageError, with what became of a rule that was."""
    from cake_core.rules.names import named

    slugs = [r for p in book.packs for r in p.rules if r.id.partition("/")[2] == id]
    if len(slugs) == 1:
        return slugs[0]
    of = named(book.packs, id)
    if of.said:
        click.echo(f"note: {of.said}", err=True) if of.rule is not None else _unknown(of, id, set())
    return of.rule


def _unknown(of, name: str, packs: set[str]) -> None:
    near = get_close_matches(name, packs, n=1)
    if of.removed is None and near and "/" not in name:
        raise click.UsageError(f"no rule or pack '{name}'; did you mean '{near[0]}'?")
    said = of.said if of.removed is not None else f"no rule{' or pack' if packs else ''} '{name}'"
    raise click.UsageError("; ".join(part for part in (said, of.why, of.fix) if part))
