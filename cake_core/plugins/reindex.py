"""`python -m cake_core.plugins.reindex NAME..`: write the indexes of these installed plugins, or of all that have one, anew."""

from __future__ import annotations

import sys

from cake_core.diagnostics import CakeError
from cake_core.plugins.entries import Entry, find_entries
from cake_core.plugins.host import index_of
from cake_core.plugins.index import path_of, text


def reindex(entry: Entry) -> None:
    """Write the index of one plugin. Raises CakeError where it does not load, or has no package to hold the file."""
    path = path_of(entry.point.value)
    assert path is not None, entry
    path.write_text(text(index_of(entry)), encoding="utf-8")


def main(names: list[str]) -> int:
    entries = [
        e for e in find_entries() if (path := path_of(e.point.value)) is not None and (e.origin.plugin in names if names else path.exists())
    ]
    missing = sorted(set(names) - {e.origin.plugin for e in entries})
    for name in missing:
        print(f"no plugin '{name}' is installed as a package", file=sys.stderr)
    for entry in entries:
        try:
            reindex(entry)
        except CakeError as error:
            print(error, file=sys.stderr)
            missing.append(entry.origin.plugin)
    return 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
