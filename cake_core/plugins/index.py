"""`offers.txt`: what a plugin offers, written beside its module, so that it is loaded when one of these things is asked for.

The file is optional and holds a label a line, as `cake plugins --all` shows them: `arch:NAME`, `operation:NAME`. Behind an
operation that can stand alone, without operands, are the kinds of effects that it then has: derivation looks for a fence
or a barrier by its effect. A plugin without the file is loaded before a command runs. `python -m cake_core.plugins.reindex
NAME..` writes the file of installed plugins anew. A file that is behind its plugin is a warning, `plugin/stale-index`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

FILE = "offers.txt"
HEAD = "# What this plugin offers: written by `python -m cake_core.plugins.reindex`.\n"


def path_of(module: str) -> Path | None:
    """Where the file of a plugin's module is or would be. No code of the plugin runs; None for a module outside any package."""
    package, *inner = module.partition(":")[0].split(".")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places)), *inner[:-1], FILE) if places and inner else None


def read(module: str) -> dict[str, tuple[str, ...]] | None:
    """Label to kinds of effects; None where there is no file."""
    path = path_of(module)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None else ()
    except OSError:
        return None
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {label: tuple(effects) for label, *effects in rows} or None


def text(index: dict[str, tuple[str, ...]]) -> str:
    return HEAD + "".join(" ".join((label, *effects)) + "\n" for label, effects in sorted(index.items()))


def differences(said: dict[str, tuple[str, ...]], offered: dict[str, tuple[str, ...]]) -> str:
    """What an index says wrongly of what is offered, in words; empty where it is right."""
    return ", ".join(
        [
            *(f"'{label}' is not in '{FILE}'" for label in sorted(offered.keys() - said.keys())),
            *(f"'{label}' is in '{FILE}' and is not offered" for label in sorted(said.keys() - offered.keys())),
            *(
                f"'{label}' has other effects than in '{FILE}'"
                for label in sorted(said.keys() & offered.keys())
                if said[label] != offered[label]
            ),
        ]
    )
