"""What every code means: the tables behind `cake explain`, docs/diagnostics.md and the rules of a SARIF log.

The compiler's entries are the TOML files in `codes/`, one a namespace. A plugin package brings its own as a file `codes.toml`
beside its modules; it is found through the package's entry point and read without running the package's code. An entry is

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
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

NAMESPACES = ("syntax", "type", "derive", "assemble", "runtime", "plugin")  # the compiler's own
CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One code. `origin`: the package whose table holds it."""

    code: str
    title: str
    why: str
    fix: str
    example: str = ""
    origin: str = "cake_core"


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
            table[code] = Entry(code=code, origin=origin, **{k: str(v).strip("\n") for k, v in fields.items()})
        except (TypeError, AttributeError):
            raise CatalogError(f"{path.name} of {origin}: {code!r} needs title, why and fix, and may have example") from None
    return table


@cache
def core_table() -> dict[str, Entry]:
    """The compiler's own codes."""
    folder = Path(__file__).parent / "codes"
    return _merged(read_table(path, "cake_core") for path in sorted(folder.glob("*.toml")))


def plugin_folders() -> dict[str, Path]:
    """Top-level package of each installed plugin to its folder; nothing of it is imported."""
    packages = sorted({e.value.partition(":")[0].partition(".")[0] for e in entry_points(group="cake")})
    specs = {p: find_spec(p) for p in packages}
    return {p: Path(next(iter(s.submodule_search_locations))) for p, s in specs.items() if s and s.submodule_search_locations}


@cache
def catalogue() -> dict[str, Entry]:
    """Every code that is known here, the installed plugins' included, sorted. An unreadable plugin table is left out."""
    tables = [core_table()]
    for package, folder in plugin_folders().items():
        path = folder / "codes.toml"
        if path.is_file():
            try:
                tables.append(read_table(path, package))
            except CatalogError:
                continue
    merged: dict[str, Entry] = {}
    for table in tables:  # the first keeps its entry: a plugin can't rewrite what the compiler's code means
        merged = table | merged
    return dict(sorted(merged.items()))


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
        "This page is written from the catalogue: `python -m cake_core.diagnostics.catalog > docs/diagnostics.md`.",
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


if __name__ == "__main__":
    print(markdown(catalogue().values()), end="")
