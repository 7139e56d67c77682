"""`cake.lock`: what a proof was made with. Every pack by version and content, the engine, the solver.

A pack's digest is the sha256 of its files, in the order of their paths from its folder, written with `/` and compared by code points: of each the
path in UTF-8, a zero byte, the number of its bytes in decimal, a zero byte, its bytes. What Python leaves beside a package
(`__pycache__`) is no file of a pack.

The file is JSON with sorted keys, so the same packs give the same bytes. `--locked` compares it with what is there and refuses any difference.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cake_core import __version__
from cake_core.diagnostics import CakeError, Diagnostic, fail
from cake_core.rules.schema import Pack
from cake_core.source import Span

FILE = "cake.lock"
SCHEMA = 1
MAX_BYTES = 1024 * 1024
PACK = ("name", "version", "sha256", "distribution")
FIX = "put back what was locked, or look at what has changed and lock it: cake rules lock"


def digest(folder: Path) -> str:
    """sha256 over all files of a pack. Raises CakeError `rules/pack` where one can't be read, or is a link."""
    whole = hashlib.sha256()
    for name, path in sorted(_files(folder, "")):
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise fail("rules/pack", f"'{path}' can't be read: {error.strerror}") from None
        whole.update(name.encode("utf-8", "surrogateescape") + b"\0" + str(len(data)).encode() + b"\0" + data)
    return whole.hexdigest()


def _files(folder: Path | str, under: str) -> Iterator[tuple[str, str]]:
    """(path from the folder of the pack, path) of every file."""
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise fail("rules/pack", f"'{folder}' can't be read: {error.strerror}") from None
    for e in entries:
        if e.name == "__pycache__":
            continue
        if e.is_symlink() or not e.is_dir() and not e.is_file():
            raise fail("rules/pack", f"'{e.path}' is no file of the pack, but a link or a device", fix="put the file itself there")
        if e.is_dir():
            yield from _files(e.path, f"{under}{e.name}/")
        else:
            yield f"{under}{e.name}", e.path


def locked(packs: Iterable[Pack]) -> dict:
    """What is there, as the file has it. `distribution` is null of a pack in a folder, whose content alone says what it is."""
    rows = [
        {"name": p.name, "version": p.version, "sha256": digest(p.folder), "distribution": p.distribution.partition(" ")[0] or None} for p in packs
    ]
    return {"schema": SCHEMA, "cake": __version__, "z3": solver(), "packs": sorted(rows, key=lambda r: r["name"])}


def solver() -> str:
    """The version of the solver that this process would ask."""
    from cake_core.smt import version

    return version()


def text(lock: dict) -> str:
    return json.dumps(lock, indent=2, sort_keys=True) + "\n"


def held(packs: Iterable[Pack], path: Path) -> str:
    """The sha256 of the lock file that the packs, the engine and the solver agree with. Raises CakeError `rules/lock` with every difference."""
    data, lock = read(path)
    wrong = list(differences(lock, locked(packs), os.path.relpath(path)))
    if wrong:
        raise CakeError(*wrong)
    return hashlib.sha256(data).hexdigest()


def read(path: Path) -> tuple[bytes, dict]:
    """The bytes of a lock file and what they say, read strictly. Raises CakeError `rules/lock`."""
    shown = os.path.relpath(path)
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > MAX_BYTES):
            raise _wrong(shown, f"it is no file of at most {MAX_BYTES} bytes")
        data = path.read_bytes()
        lock = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except FileNotFoundError:
        raise fail("rules/lock", f"there is no '{shown}' to hold the packs to", fix="write it: cake rules lock") from None
    except OSError as error:
        raise fail("rules/lock", f"'{shown}' can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(shown, f"it is no JSON: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(lock, dict) or lock.get("schema") != SCHEMA:
        raise _wrong(shown, f"this version reads schema {SCHEMA}")
    if lock.keys() != {"schema", "cake", "z3", "packs"} or not isinstance(lock["packs"], list):
        raise _wrong(shown, "it has 'schema', 'cake', 'z3' and 'packs', and nothing else")
    for row in lock["packs"]:
        if not isinstance(row, dict) or row.keys() != set(PACK):
            raise _wrong(shown, f"a pack has {', '.join(repr(k) for k in PACK)}, and nothing else")
        if not all(isinstance(row[k], str) for k in PACK[:3]) or not isinstance(row["distribution"], str | None):
            raise _wrong(shown, "what it says of a pack are texts")
    if len({row["name"] for row in lock["packs"]}) != len(lock["packs"]):
        raise _wrong(shown, "a pack stands twice")
    return data, lock


def _unique(pairs: list[tuple[str, object]]) -> dict:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice")
    return out


def _wrong(shown: str, what: str) -> CakeError:
    at = Span(shown, 1, 1, 1, 2)
    return fail("rules/lock", f"'{shown}' is no lock file: {what}", at, fix="write it anew: cake rules lock")


def differences(lock: dict, there: dict, shown: str) -> Iterator[Diagnostic]:
    """An error for each difference: of which pack, of which distribution, what was locked and what is there."""
    for what, name in (("cake", "Cake"), ("z3", "the solver z3")):
        if lock[what] != there[what]:
            yield _differs(f"{name} {lock[what]} is locked, this is {there[what]}", shown)
    was, now = ({r["name"]: r for r in of["packs"]} for of in (lock, there))
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if new is None:
            yield _differs(f"the pack {_pack(old)} is locked, and is not there", shown)
        elif old is None:
            yield _differs(f"the pack {_pack(new)} is there, and is not locked", shown)
        elif old != new:
            said = f"the pack {_pack(old)} is locked, there is {_pack(new)}"
            yield _differs(said, shown, f"sha256 {old['sha256']} is locked, {new['sha256']} is there")


def _pack(row: dict) -> str:
    return f"'{row['name']}' {row['version']} of {row['distribution'] or 'a folder'}"


def _differs(said: str, shown: str, why: str | None = None) -> Diagnostic:
    return Diagnostic("rules/lock", said, Span(shown, 1, 1, 1, 2), why=why, fix=FIX)
