"""A git repository, read with git's own plumbing: no checkout, no hook, no filter and no attribute of a branch has a say in what is read."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path, PurePosixPath

from cake_core.frozen import frozen

#: What git reads of a version, at the most.
MOST_FILES, MOST_BYTES = 50_000, 256 * 2**20


class GitError(Exception):
    """git is not there (`missing`), or has no answer: no repository, no such version."""

    def __init__(self, message: str, missing: bool = False):
        super().__init__(message)
        self.missing = missing


@frozen
class Entry:
    """A path of a version, from the root on, with slashes. `kind`: "file", "link" (symbolic), "module" (another repository's commit)
    or "name" (the path is not UTF-8, or might lead out of a folder that it is written to): the last three are never read."""

    path: str
    kind: str
    blob: str = ""  # git's name of the content; empty where the file lies in the working tree


@frozen
class Version:
    """All paths of a commit, or of the working tree with what is not committed yet (`commit` empty; what git ignores is left out)."""

    commit: str
    entries: tuple[Entry, ...]


@frozen
class Repository:
    root: Path

    def commit(self, ref: str) -> str:
        """The commit that a name means. Raises GitError."""
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", may_fail=True)
        if found is None:
            raise GitError(f"'{ref}' is no commit of this repository; a clone of one branch has no other: git fetch origin, or fetch-depth: 0")
        return found.decode().strip()

    def fork(self, a: str, b: str) -> str:
        """The last commit that both have in their history. Raises GitError where there is none."""
        found = self._git("merge-base", a, b, may_fail=True)
        if found is None:
            raise GitError(f"{a[:12]} and {b[:12]} have no commit in common; of a shallow clone fetch the rest: git fetch --unshallow")
        return found.decode().split()[0]

    def at(self, commit: str) -> Version:
        kinds = {"120000": "link", "160000": "module"}
        entries = []
        for line in self._git("ls-tree", "-rz", "--full-tree", commit).split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, blob = head.decode().split(" ")
            entries.append(_entry(path, kinds.get(mode, "file"), blob))
        return Version(commit, tuple(entries))

    def working(self) -> Version:
        entries = {}
        for raw in self._git("ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard").split(b"\0")[:-1]:
            path = raw.rstrip(b"/")
            try:
                mode = os.lstat(os.fsencode(self.root) + b"/" + path).st_mode
            except OSError:
                continue  # deleted, and not committed yet
            kind = "link" if stat.S_ISLNK(mode) else "module" if stat.S_ISDIR(mode) else "file"
            entries[path] = _entry(path, kind)
        return Version("", tuple(sorted(entries.values(), key=lambda e: e.path)))

    def write(self, version: Version, folders: tuple[str, ...], into: Path) -> None:
        """The regular files of a version that lie in `folders` ("" is all), below `into`. Raises GitError where it is too much."""
        wanted = [e for e in version.entries if e.kind == "file" and any(_inside(e.path, f) for f in folders)]
        if len(wanted) > MOST_FILES:
            raise GitError(f"there are {len(wanted)} files to read, {MOST_FILES} are read at the most")
        total = 0
        for entry, data in zip(wanted, self._contents(wanted), strict=True):
            total += len(data)
            if total > MOST_BYTES:
                raise GitError(f"there are more than {MOST_BYTES} bytes to read")
            place = into / entry.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def _contents(self, entries: list[Entry]):
        blobs = [e.blob for e in entries if e.blob]
        read = self._git("cat-file", "--batch", given="".join(f"{b}\n" for b in blobs).encode()) if blobs else b""
        at = 0
        for entry in entries:
            if not entry.blob:
                place = self.root / entry.path
                # A fifo or a device is no text, and reading it might never end.
                yield place.read_bytes() if stat.S_ISREG(os.lstat(place).st_mode) else b""
                continue
            end = read.index(b"\n", at)
            header = read[at:end].split(b" ")
            if len(header) != 3:
                raise GitError(f"the content of '{entry.path}' is not there: {read[at:end].decode(errors='replace')}")
            size = int(header[2])
            yield read[end + 1 : end + 1 + size]
            at = end + 2 + size

    def _git(self, *args: str, given: bytes | None = None, may_fail: bool = False) -> bytes | None:
        return _run(self.root, *args, given=given, may_fail=may_fail)


def repository(where: Path) -> Repository:
    """The repository that a folder lies in. Raises GitError."""
    found = _run(where, "rev-parse", "--show-toplevel", may_fail=True)
    if found is None or not found.strip():
        raise GitError(f"'{where}' lies in no git repository")
    return Repository(Path(os.fsdecode(found.rstrip(b"\n"))))


def _run(where: Path, *args: str, given: bytes | None = None, may_fail: bool = False) -> bytes | None:
    git = shutil.which("git")
    if git is None:
        raise GitError("git is not installed: versions are read with it", missing=True)
    environ = os.environ | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run([git, "-c", "core.fsmonitor=false", *args], cwd=where, input=given, capture_output=True, env=environ, check=False)
    except OSError as error:
        raise GitError(f"git does not start in '{where}': {error.strerror}") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if may_fail and not any("dubious ownership" in line for line in said):
        return None
    raise GitError(f"git {args[0]}: {said[0] if said else f'exit code {done.returncode}'}")


def _entry(path: bytes, kind: str, blob: str = "") -> Entry:
    text = path.decode("utf-8", "backslashreplace")
    leads_out = PurePosixPath(text).is_absolute() or {"..", ".git"} & set(text.split("/"))
    return Entry(text, "name" if leads_out or "\\" in text else kind, blob)


def _inside(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")
