"""The plugin registry of this process: loaded once, when a command first asks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_disabled: tuple[str, ...] = ()


def disable(names: tuple[str, ...]) -> None:
    """Leave out these plugins (`--no-plugin`): before anything asks for the registry."""
    global _disabled
    if names != _disabled:
        _disabled = names
        registry.cache_clear()
        plugin_commands.cache_clear()


@cache
def registry():
    """The registry. Raises CakeError where `--no-plugin` names none that is installed."""
    from cake_core.plugins import load_registry

    return load_registry(disabled=_disabled)


def offered() -> frozenset[str]:
    """What the architectures that are installed offer, all of them together."""
    return frozenset().union(*(registry().architecture(name, None).capabilities for name in registry().architectures))


@cache
def plugin_commands() -> dict:
    """Commands of plugins by name. Without a stranger's plugin there are none, and none is loaded to find out."""
    return dict(registry().commands) if strangers() else {}


def strangers() -> bool:
    """Whether another distribution than ours brings a plugin. Reads metadata alone, since `cake --help` waits for it."""
    from cake_core.plugins.entries import find_entries

    return any(not entry.builtin for entry in find_entries())


def plugin_packages() -> tuple[str, ...]:
    """Top-level packages of the installed plugins, which may hold a `codes.toml`; none is imported."""
    from cake_core.plugins.entries import find_entries

    return tuple(sorted({e.point.value.partition(":")[0].partition(".")[0] for e in find_entries()}))


def catalogue(folders: tuple[str, ...] = (), strict: bool = False) -> dict:
    """Every code known here: the compiler's, the installed plugins' and the rules of the packs that can be read, `folders` included.

    `strict`: raises CakeError where a pack can't be read.
    """
    from cake_core.diagnostics import catalog
    from cake_core.diagnostics.model import CakeError
    from cake_core.rules import find_packs
    from cake_core.rules.entries import entries

    try:
        rules = entries(find_packs(tuple(map(Path, folders))))
    except CakeError:  # a command that needs the packs says what is wrong with them
        if strict:
            raise
        rules = {}
    return dict(sorted({**rules, **catalog.catalogue(plugin_packages())}.items()))


def rule_of(folders: tuple[str, ...], id: str):
    """The rule of this id in the packs that can be read, `folders` included; None where it is none."""
    from cake_core.diagnostics.model import CakeError
    from cake_core.rules import find_packs

    try:
        packs = find_packs(tuple(map(Path, folders)))
    except CakeError:  # said already where the packs are what is asked for
        return None
    return next((r for p in packs for r in p.rules if r.id == id), None)


def became(id: str, folders: tuple[str, ...] = ()):
    """What became of a rule that there was under this id (`Named`): None where no pack that can be read says anything of it."""
    from cake_core.diagnostics.model import CakeError
    from cake_core.rules import find_packs
    from cake_core.rules.names import named

    try:
        of = named(find_packs(tuple(map(Path, folders))), id)
    except CakeError:  # `catalogue` said so where it matters
        return None
    return of if of.said and (of.rule is not None or of.removed is not None) else None
