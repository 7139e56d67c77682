"""Entry points of the installed distributions, read from their `*.dist-info` and `*.egg-info` folders on the path, anew on every call.

`importlib.metadata` answers the same; but it brings readers of mail, archives and CSV, whose import takes a tenth of a small
check. So the folders are read here as the PyPA specifications give them ("Recording installed projects", "Entry points
specification"), and the library is asked wherever something else than a folder on the path may hold distributions.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module

from cake_core.frozen import frozen

#: `module`, `module:attribute`, and extras, which ask for other distributions and say nothing of the object.
VALUE = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+))?\s*(?:\[.*\])?")


@frozen
class Point:
    """One entry point: `value` names a module, or an object in one (`module:attribute`)."""

    name: str
    value: str

    def load(self) -> object:
        """The object. Raises whatever importing the module raises."""
        match = VALUE.fullmatch(self.value)
        if match is None:
            raise ImportError(f"'{self.value}' names no module")
        found = import_module(match[1])
        for name in match[2].split(".") if match[2] else ():
            found = getattr(found, name)
        return found


@frozen
class Distribution:
    """An installed distribution: its name and version as its metadata give them, and its entry points of one group."""

    name: str
    version: str
    points: tuple[Point, ...] = ()


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(group: str) -> dict[str, Distribution]:
    """The installed distributions by canonical name; of two of one name the first on the path counts."""
    if not _only_folders():
        return _by_library(group)
    found: dict[str, Distribution] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:
            continue
        for name in names:
            stem, end = os.path.splitext(name)
            title, _, version = stem.partition("-")
            if end in (".dist-info", ".egg-info") and canonical(title) not in found:
                found[canonical(title)] = _read(os.path.join(folder, name), title, version, group)
    return found


def _only_folders() -> bool:
    """Whether folders are all that this process looks into: no archive is on the path, and no finder brings distributions of its own."""
    own = [f for f in sys.meta_path if hasattr(f, "find_distributions") and getattr(f, "__name__", "") != "PathFinder"]
    return not own and not any(os.path.isfile(entry) for entry in sys.path)


def _read(folder: str, title: str, version: str, group: str) -> Distribution:
    """A distribution without entry points of the group has the name and version of its folder."""
    points = _points(_text(folder, "entry_points.txt"), group)
    if points:
        headers = dict(line.split(": ", 1) for line in _header(_text(folder, "METADATA") or _text(folder, "PKG-INFO")) if ": " in line)
        title, version = headers.get("Name", "unknown").strip(), headers.get("Version", "?").strip()
    return Distribution(title, version.partition("-")[0], points)


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # not there, or the folder is a file, as an egg's can be
        return ""


def _header(metadata: str) -> list[str]:
    return metadata.partition("\n\n")[0].splitlines()


def _points(text: str, group: str) -> tuple[Point, ...]:
    points, inside = [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            points.append(Point(name.strip(), value.strip()))
    return tuple(points)


def _by_library(group: str) -> dict[str, Distribution]:
    from importlib import metadata

    found: dict[str, Distribution] = {}
    for dist in metadata.distributions():
        name = dist.metadata["Name"] or "unknown"
        points = tuple(Point(p.name, p.value) for p in dist.entry_points if p.group == group)
        found.setdefault(canonical(name), Distribution(name, dist.metadata["Version"] or "?", points))
    return found
