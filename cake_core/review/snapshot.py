"""A version of a repository's rule packs and kernels on the disk, where packs are loaded and texts are judged from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from cake_core.diagnostics import CakeError, Diagnostic
from cake_core.frozen import frozen
from cake_core.review.git import Entry, Repository, Version
from cake_core.review.projects import Project, read_project
from cake_core.rules import Pack, load_pack
from cake_core.rules.packs import GROUP, LOCAL
from cake_core.rules.settings import FILE

#: Says which packs a distribution brings.
PROJECT = "pyproject.toml"
#: The folder of a repository whose kernels every rule must leave as they are.
ZOO = "kernels"
#: Packs below a folder of such a name are none of the repository's: tests are made of them, and new packs.
NO_PACKS = {"tests", "templates"}


@frozen
class Held:
    """A pack of a version: its folder from the repository's root on, the pack or why it can't be read, and the bytes of its files by path
    inside the folder. `offered`: a `pyproject.toml` above it has an entry point for it."""

    folder: str
    pack: Pack | None
    findings: tuple[Diagnostic, ...]
    files: dict[str, bytes]
    offered: bool = False


@frozen
class Snapshot:
    """`place`: where the files are. `projects`: what each `cake.toml` says. `odd`: paths inside of packs, or that lead to one, that are no regular files or have a name that is not read, with what they are."""

    place: Path
    held: tuple[Held, ...]
    odd: tuple[tuple[str, str], ...]
    zoo: tuple[Path, ...]
    projects: tuple[Project, ...] = ()

    def told(self, d: Diagnostic) -> Diagnostic:
        """A finding as of the repository: it names no folder of ours."""
        prefix = f"{self.place}/"

        def shown(span):
            return replace(span, file=span.file.removeprefix(prefix)) if span is not None else None

        related = tuple(replace(r, span=shown(r.span)) for r in d.related)
        return replace(d, message=d.message.replace(prefix, ""), span=shown(d.span), related=related)


def pack_folders(version: Version) -> tuple[str, ...]:
    """Folders with a `pack.yaml`, those below a folder `tests` or `templates` excepted, but for one that a project loads, whatever it is called."""
    found = (e.path.rpartition("/")[0] for e in version.entries if e.kind != "name" and e.path.rpartition("/")[2] == "pack.yaml")
    return tuple(sorted(f for f in found if _own(f)))


def _own(folder: str) -> bool:
    parts = PurePosixPath(folder).parts
    above = parts[:-3] if parts[-3:-1] == LOCAL.parts else parts
    return NO_PACKS.isdisjoint(above)


def project_files(version: Version) -> tuple[str, ...]:
    """Every `cake.toml`, those below a folder `tests` or `templates` excepted."""
    found = (e.path for e in version.entries if e.kind == "file" and e.path.rpartition("/")[2] == FILE)
    return tuple(sorted(f for f in found if _own(f.rpartition("/")[0])))


def snapshot(repository: Repository, version: Version, folders: tuple[str, ...], into: Path) -> Snapshot:
    """Write the packs in `folders` and the zoo of a version below `into`, and load them. Raises GitError."""
    into = into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    above = tuple(dict.fromkeys((p / PROJECT).as_posix() for f in folders for p in PurePosixPath(f).parents))
    files = project_files(version)
    repository.write(version, (*folders, ZOO, *above, *files), into)
    held = tuple(_held(into, f) for f in folders if (into / f / "pack.yaml").is_file())
    odd = tuple((e.path, e.kind) for e in version.entries if e.kind != "file" and (_loaded(e) or any(_touches(e.path, f) for f in (*folders, ZOO))))
    zoo = tuple(sorted(p for p in (into / ZOO).rglob("*.cake") if p.is_file()))
    return Snapshot(into, held, odd, zoo, tuple(read_project(into, f) for f in files))


def _loaded(entry: Entry) -> bool:
    """What is no file and may be a pack, one whose folder has a name that is not read, or is what a project would load or read."""
    if entry.path.rpartition("/")[2] == FILE and entry.kind == "link":
        return True
    return entry.kind == "name" and entry.path.endswith("/pack.yaml") or f"/{LOCAL.as_posix()}/" in f"/{entry.path}"


def _touches(path: str, folder: str) -> bool:
    return not folder or f"{path}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{path}/")


def _held(root: Path, folder: str) -> Held:
    place = root / folder
    files = {p.relative_to(place).as_posix(): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}
    offered = any(place.name in _offers(root / p / PROJECT) for p in PurePosixPath(folder).parents)
    try:
        return Held(folder, load_pack(place, folder or ".", folder or "."), (), files, offered)
    except CakeError as error:
        return Held(folder, None, error.diagnostics, files, offered)


def _offers(path: Path) -> tuple[str, ...]:
    """The packages of rule packs that a distribution has entry points for; none where that can't be read."""
    import tomllib

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
        return tuple(v for v in found.values() if isinstance(v, str))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()
