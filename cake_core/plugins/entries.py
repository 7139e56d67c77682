"""Where plugins come from: entry points of the installed distributions, read anew on every call.

A checkout that was never installed has no metadata; its own entry points are then read from the `pyproject.toml`
beside the package. They are the same table, so nothing is declared twice.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from cake_core import __version__
from cake_core.diagnostics import Diagnostic, Severity
from cake_core.frozen import frozen
from cake_core.plugins.types import Origin

#: The distribution that carries the core and the built-in plugins, and the group of every plugin's entry point.
DISTRIBUTION = "cake-compiler"
GROUP = "cake"


@frozen
class Entry:
    """One entry point and who declares it."""

    origin: Origin
    point: metadata.EntryPoint

    @property
    def builtin(self) -> bool:
        return canonical(self.origin.distribution) == DISTRIBUTION


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_entries() -> tuple[Entry, ...]:
    """Every entry point of the group, sorted by name, then distribution; no plugin is imported."""
    points = metadata.entry_points(group=GROUP)
    labels: dict[int, tuple[str, str]] = {}  # reading a distribution's metadata once is what keeps this quick
    found = []
    for point in points:
        dist = point.dist
        if id(dist) not in labels:
            labels[id(dist)] = (dist.metadata["Name"] or "unknown", dist.metadata["Version"] or "?") if dist else ("unknown", "?")
        found.append(Entry(Origin(point.name, *labels[id(dist)]), point))
    if not any(e.builtin for e in found) and _installed() is None:
        table = checkout_table() or {}
        found += [Entry(Origin(n, DISTRIBUTION, __version__), metadata.EntryPoint(n, v, GROUP)) for n, v in table.items()]
    return tuple(sorted(found, key=lambda e: (e.origin.plugin, e.origin.distribution)))


def stale_install(root: Path | None = None) -> Diagnostic | None:
    """A warning where the installed metadata lacks or misstates entry points that the checkout at `root` declares.

    Python files of an editable install are live, entry points are copied when it is made.
    """
    installed, declared = _installed(), checkout_table(root)
    if installed is None or declared is None:
        return None
    known = {p.name: p.value for p in installed.entry_points if p.group == GROUP}
    differences = [
        *(f"'{n}' is not installed" for n in sorted(declared.keys() - known.keys())),
        *(f"'{n}' is installed and no longer declared" for n in sorted(known.keys() - declared.keys())),
        *(f"'{n}' is installed as '{known[n]}'" for n in sorted(declared.keys() & known.keys()) if declared[n] != known[n]),
    ]
    if not differences:
        return None
    return Diagnostic(
        "plugin/stale-install",
        f"the installed entry points of '{DISTRIBUTION}' differ from those in its 'pyproject.toml'",
        severity=Severity.WARNING,
        why=", ".join(differences),
        fix="reinstall: pip install -e .",
    )


def checkout_table(root: Path | None = None) -> dict[str, str] | None:
    """Name to value of the entry points in the `pyproject.toml` of a checkout; None where there is no checkout."""
    path = (root or Path(__file__).resolve().parents[2]) / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return dict(project["entry-points"][GROUP]) if project["name"] == DISTRIBUTION else None
    except (OSError, ValueError, KeyError):  # a file that isn't there, isn't TOML, or is another project's
        return None


def _installed() -> metadata.Distribution | None:
    try:
        return metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
