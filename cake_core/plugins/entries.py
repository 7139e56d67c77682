"""Where plugins come from: entry points of the installed distributions, read anew on every call.

A checkout that was never installed has no metadata; its own entry points are then read from the `pyproject.toml`
beside the package. They are the same table, so nothing is declared twice.
"""

from __future__ import annotations

import os

from cake_core import __version__
from cake_core.diagnostics.model import Diagnostic, Severity
from cake_core.frozen import frozen
from cake_core.plugins.installed import Distribution, Point, canonical, distributions
from cake_core.plugins.types import Origin

#: The distribution that carries the core and the built-in plugins, and the group of every plugin's entry point.
DISTRIBUTION = "cake-compiler"
GROUP = "cake"


@frozen
class Entry:
    """One entry point and who declares it."""

    origin: Origin
    point: Point

    @property
    def builtin(self) -> bool:
        return canonical(self.origin.distribution) == DISTRIBUTION


def find_entries() -> tuple[Entry, ...]:
    """Every entry point of the group, sorted by name, then distribution; no plugin is imported."""
    installed = distributions(GROUP)
    found = [Entry(Origin(point.name, dist.name, dist.version), point) for dist in installed.values() for point in dist.points]
    if DISTRIBUTION not in installed:
        found += [Entry(Origin(n, DISTRIBUTION, __version__), Point(n, v)) for n, v in (checkout_table() or {}).items()]
    return tuple(sorted(found, key=lambda e: (e.origin.plugin, e.origin.distribution)))


def stale_install(root: str | os.PathLike | None = None) -> Diagnostic | None:
    """A warning where the installed metadata lacks or misstates entry points that the checkout at `root` declares.

    Python files of an editable install are live, entry points are copied when it is made.
    """
    installed: Distribution | None = distributions(GROUP).get(DISTRIBUTION)
    declared = checkout_table(root)
    if installed is None or declared is None:
        return None
    known = {p.name: p.value for p in installed.points}
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


def checkout_table(root: str | os.PathLike | None = None) -> dict[str, str] | None:
    """Name to value of the entry points in the `pyproject.toml` of a checkout; None where there is no checkout."""
    import tomllib

    root = root or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:
            project = tomllib.loads(file.read())["project"]
        return dict(project["entry-points"][GROUP]) if project["name"] == DISTRIBUTION else None
    except (OSError, ValueError, KeyError):  # a file that isn't there, isn't TOML, or is another project's
        return None
