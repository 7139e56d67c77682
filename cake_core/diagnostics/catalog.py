"""What every code means: the tables behind `cake explain`, docs/diagnostics.md and the rules of a SARIF log.

The compiler's entries are the TOML files in `codes/`, one a namespace. A plugin package brings its own as a file `codes.toml`
in its top-level package; it is read without running the package's code. An entry is

    ["type/unknown-name"]
    title = "A name that nothing declares"
    why = "..."        # what the rule protects
    example = "..."    # optional: a text that shows it
    fix = "..."
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cake_core.frozen import frozen

FIELDS = {"title", "why", "fix", "example"}  # of an entry
CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")


@frozen
class Entry:
    """One code. `origin`: the package whose table holds it. `level`, of a rule: what its findings are, `error`, `warning`, `note` or `none`;
    `judged`: whether it is without being asked for."""

    code: str
    title: str
    why: str
    fix: str
    example: str = ""
    origin: str = "cake_core"
    level: str = ""
    judged: bool = True


class CatalogError(Exception):
    """A table that can't be read: says which file and why."""


def read_table(path: Path, origin: str) -> dict[str, Entry]:
    """Entries of one TOML file. Raises CatalogError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"{path.name} of {origin}: {error}") from None
    table = {}
    for code, fields in data.items():
        if not CODE.fullmatch(code):
            raise CatalogError(f"{path.name} of {origin}: {code!r} is no code")
        try:
            if not fields.keys() <= FIELDS:
                raise TypeError
            table[code] = Entry(code=code, origin=origin, **{k: str(v).strip("\n") for k, v in fields.items()})
        except (TypeError, AttributeError):
            raise CatalogError(f"{path.name} of {origin}: {code!r} needs title, why and fix, and may have example") from None
    return table


@cache
def core_table() -> dict[str, Entry]:
    """The compiler's own codes."""
    folder = Path(__file__).parent / "codes"
    return _merged(read_table(path, "cake_core") for path in sorted(folder.glob("*.toml")))


@cache
def catalogue(packages: tuple[str, ...] = ()) -> dict[str, Entry]:
    """Every code of the compiler and of `packages` (top-level packages of plugins), sorted.

    A plugin's table that can't be read is left out, and no plugin can rewrite what a code of the compiler means.
    """
    merged = dict(core_table())
    for package in packages:
        path = package_file(package, "codes.toml")
        if path is None:
            continue
        try:
            merged = read_table(path, package) | merged
        except CatalogError:
            continue
    return dict(sorted(merged.items()))


def package_file(package: str, name: str) -> Path | None:
    """A file of an installed top-level package; nothing of the package is imported."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = spec.submodule_search_locations if spec else None
    return next((p for f in folders or () if (p := Path(f, name)).is_file()), None)


def _merged(tables: Iterable[dict[str, Entry]]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for table in tables:
        if twice := merged.keys() & table.keys():
            raise CatalogError(f"{', '.join(sorted(twice))} stand in two tables")
        merged |= table
    return merged


def markdown(entries: Iterable[Entry]) -> str:
    """The page docs/diagnostics.md."""
    lines = [
        "# Diagnostics",
        "",
        "Every code that the compiler and its built-in plugins report. `cake explain CODE` prints one entry.",
        "This page is written from the catalogue: `cake explain --markdown > docs/diagnostics.md`.",
    ]
    namespace = None
    for e in sorted(entries, key=lambda e: e.code):
        if (n := e.code.partition("/")[0]) != namespace:
            namespace = n
            lines += ["", f"## {n}/"]
        lines += ["", f"### {e.code}", "", f"**{e.title}.** {e.why}"]
        if e.example:
            lines += ["", "```", e.example, "```"]
        lines += ["", f"Fix: {e.fix}"]
    return "\n".join(lines) + "\n"
