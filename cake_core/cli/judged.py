"""Which rules a command judges: the options of `cake check` and `cake build`, and what the project says in `cake.toml`."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import click

from cake_core.frozen import frozen


@frozen
class Judged:
    """What the options ask for. `packs`: folders; `suite`: None for the project's; `rules`: ids of rules beside it; `locked`:
    packs, Cake and solver have to be those of `cake.lock`."""

    packs: tuple[str, ...] = ()
    preview: bool = False
    suite: str | None = None
    rules: tuple[str, ...] = ()
    locked: bool = False

    def book(self):
        """The rules (`Rulebook`). Raises CakeError."""
        book = rules_of(self.packs, self.preview, self.suite, self.rules)
        book = replace(book, notes=(*book.notes, *misspelt(book)))
        if not self.locked:
            return book
        from cake_core.rules.lock import FILE, held
        from cake_core.rules.settings import project

        return replace(book, lock=held(book.packs, project() / FILE))


def misspelt(book) -> list:
    """Warnings of judged rules whose capability is nearly one that an installed architecture offers. All architectures are loaded for it, so
    those of built-in packs, which tests look at, are not asked."""
    from cake_core.rules.packs import DISTRIBUTION

    ours = {p.name for p in book.packs if p.distribution.partition(" ")[0] == DISTRIBUTION}
    asking = [r for r in book.rules if r.capabilities and r.pack not in ours]
    if not asking:
        return []
    from cake_core.cli.host import offered
    from cake_core.rules.offered import unoffered

    return list(unoffered(asking, offered(), misspelt=True))


LOCKED = click.option("--locked", is_flag=True, help="Refuse packs, a Cake or a solver that differ from cake.lock.")
OPTIONS = (
    LOCKED,
    click.option("--rule", "rules", multiple=True, metavar="ID", help="Judge this rule too, a draft even; may be repeated."),
    click.option("--suite", metavar="NAME", help="Judge this suite of the packs. [default: the one of cake.toml, or 'default']"),
    click.option("--preview", is_flag=True, help="Judge rules in preview too; what they find fails nothing."),
    click.option("--pack", "packs", multiple=True, metavar="DIR", help="A folder with a rule pack; may be repeated."),
)


def rule_options(command):
    """Which rules are judged: --pack, --preview, --suite, --rule, --locked. The command gets them as `judged`."""

    @functools.wraps(command)
    def run(*args, packs, preview, suite, rules, locked, **more):
        return command(*args, judged=Judged(packs, preview, suite, rules, locked), **more)

    for option in OPTIONS:
        run = option(run)
    return run


def rules_of(packs: tuple[str, ...] = (), preview: bool = False, suite: str | None = None, also: tuple[str, ...] = ()):
    """The rules that the options and the project ask for. Raises CakeError where a pack or `cake.toml` can't be read, or a rule covers what is
    no category."""
    from cake_core.check.safety import SAFETY
    from cake_core.diagnostics import fail
    from cake_core.rules import rulebook
    from cake_core.rules.settings import settings

    book = rulebook(tuple(map(Path, packs)), preview, suite, also, settings())
    for rule in (r for p in book.packs for r in p.rules):
        for name in (c for c in rule.covers if c not in SAFETY):
            raise fail("rules/value", f"'{rule.id}' covers '{name}', which is no category", rule.span, fix=f"they are: {', '.join(SAFETY)}")
    return book
