"""What the commands share that compare two versions of packs or judge many kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cake_core.cli.host import registry
from cake_core.diagnostics.model import CakeError, fail

CORPUS = click.option(
    "--corpus", "corpora", multiple=True, metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Further kernels; may be repeated."
)
HEAD = click.option("--head", metavar="REF", help="The new version.  [default: the working tree, with what is not committed]")
BASE = click.option("--base", required=True, metavar="REF", help="The old version: where the new one's history left this branch, tag or commit.")
FOLDERS = click.option("--pack", "packs", multiple=True, metavar="DIR", help="Only this pack of the repository; may be repeated.  [default: all]")
JOBS = click.option(
    "-j",
    "jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Judge kernels with N processes. The result is the same.  [default: 2, where there are cores]",
)


def texts_of(name: str, data: bytes) -> list:
    """The kernels of a text, one for each of its targets that there is; what can't be read is one without facts."""
    from cake_core.review.verdicts import Text
    from cake_core.syntax import decode, parse

    try:
        program = parse(decode(name, data))
    except CakeError:
        return [Text(name, data, "", "")]
    known = registry().architectures
    return [Text(name, data, k.name, arch) for k in program.kernels for arch in k.targets if arch in known]


def rows_of(text):
    """The facts of a kernel for its target. Raises CakeError."""
    from cake_core.facts import facts_of
    from cake_core.facts import rows_of as rows
    from cake_core.pipeline import frontend
    from cake_core.syntax import decode

    front = frontend(decode(text.name, text.data), registry(), text.arch or None, kernel=text.kernel or None)
    return rows(facts_of(front.typed, registry(), front.arch), front.arch, registry())


def rows_of_source(source):
    """The facts of a text with one kernel for one target, as those beside rules are. Raises CakeError."""
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend

    front = frontend(source, registry())
    return rows_of(facts_of(front.typed, registry(), front.arch), front.arch, registry())


def corpus(folders: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """The texts in folders, by name and content."""
    return [(p.as_posix(), p.read_bytes()) for f in folders for p in sorted(Path(f).rglob("*.cake")) if p.is_file()]


def tools(on_step, jobs: int | None):
    """For the repository of the working directory."""
    from cake_core.prove.beside import cores
    from cake_core.review.git import repository
    from cake_core.review.review import Tools

    return Tools(texts_of, rows_of, rows_of_source, on_step, jobs or cores(), proved(repository(Path.cwd()).root))


def proved(root: Path) -> tuple[tuple[str, bytes], ...]:
    """The kernels of the checkout that Cake runs from, by name and content; none where it is installed as a copy, or is what is compared."""
    from cake_core.review.snapshot import ZOO
    from cake_core.rules.packs import checkout

    home = checkout()
    if home is None or home.resolve() == root.resolve():
        return ()
    return tuple((f"Cake's {p.relative_to(home).as_posix()}", p.read_bytes()) for p in sorted((home / ZOO).rglob("*.cake")) if p.is_file())


@contextmanager
def both(base: str, head: str | None, packs: tuple[str, ...]) -> Iterator[tuple]:
    """((version, snapshot) of the old one, of the new one), on the disk while the block runs. Raises click.UsageError where git has no answer,
    CakeError where there is no git."""
    from cake_core.review.git import GitError, repository
    from cake_core.review.review import snapshots, versions

    try:
        found = repository(Path.cwd())
        old, new = versions(found, base, head)
        with tempfile.TemporaryDirectory(prefix="cake-review-") as folder:
            a, b = snapshots(found, old, new, tuple(_inside(found.root, p) for p in packs), Path(folder))
            if not a.held and not b.held and not b.odd:
                where = f"in {', '.join(packs)}" if packs else f"in the repository '{found.root}'"
                raise click.UsageError(f"there is no rule pack {where}: a folder with 'pack.yaml', outside of 'tests' and 'templates'")
            yield (old, a), (new, b)
    except GitError as error:
        if error.missing:
            raise fail("review/no-git", str(error)) from None
        raise click.UsageError(str(error)) from None


def _inside(root: Path, folder: str) -> str:
    place = Path(folder).resolve()
    if not place.is_relative_to(root.resolve()):
        raise click.UsageError(f"'{folder}' lies outside of the repository '{root}'")
    found = place.relative_to(root.resolve()).as_posix()
    return "" if found == "." else found
