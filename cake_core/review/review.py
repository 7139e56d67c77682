"""One review, from top to bottom: two versions of a repository, what differs, what each says of kernels, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cake_core.diagnostics import Diagnostic, Severity
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.prove.prover import Prover
from cake_core.review.compare import STRICT
from cake_core.review.difference import Cost, Row, costs, rows, witnessed
from cake_core.review.gate import nobody, refusals
from cake_core.review.git import Repository, Version
from cake_core.review.packs import Compared, Fate, compared
from cake_core.review.projects import changed_settings
from cake_core.review.snapshot import Snapshot, pack_folders, snapshot
from cake_core.review.verdicts import Bench, Text
from cake_core.rules.trial import trial
from cake_core.source import Source


@frozen
class Difference:
    """`base`, `head`: commits, an empty `head` is the working tree. `texts`: verdicts on what lies beside rules, `kernels`: on the zoo and the corpus;
    `unread`: kernels of the zoo, and of the corpus, that have no facts here, so that nothing was judged of them."""

    base: str
    head: str
    packs: tuple[Compared, ...]
    texts: tuple[Row, ...]
    kernels: tuple[Row, ...]
    unread: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def changed(self) -> list[Compared]:
        return [p for p in self.packs if p.files]

    @property
    def costs(self) -> dict[str, tuple[Cost | None, Cost | None]]:
        return costs((*self.texts, *self.kernels))


@frozen
class Review:
    difference: Difference
    findings: tuple[Diagnostic, ...]

    @property
    def verdict(self) -> str:
        return "refused" if any(d.severity is Severity.ERROR for d in self.findings) else "accepted"


@frozen
class Tools:
    """What the command brings. `texts_of`: the kernels of a text by its name and bytes, one for each target; `rows_of`: the facts of one; `rows`:
    those of a text beside a rule; `jobs`: processes that judge kernels; `proved`: Cake's own kernels by name and content, which every rule of safety
    and legality leaves as they are, whoever's it is."""

    texts_of: Callable[[str, bytes], list[Text]]
    rows_of: Callable[[Text], Rows]
    rows: Callable[[Source], Rows]
    on_step: Callable[[str], None] = lambda step: None
    jobs: int = 1
    proved: tuple[tuple[str, bytes], ...] = ()


def versions(repository: Repository, base: str, head: str | None) -> tuple[Version, Version]:
    """Where the branch left `base`, and what it is now: the commit `head`, or the working tree. Raises GitError."""
    now = repository.commit(head or "HEAD")
    start = repository.fork(repository.commit(base), now)
    return repository.at(start), repository.at(now) if head else repository.working()


def snapshots(repository: Repository, base: Version, head: Version, only: tuple[str, ...], into: Path) -> tuple[Snapshot, Snapshot]:
    """Both versions on the disk, all packs or those in the folders `only`."""
    folders = tuple(sorted(set(pack_folders(base)) | set(pack_folders(head)))) if not only else only
    return snapshot(repository, base, folders, into / "base"), snapshot(repository, head, folders, into / "head")


def difference(base: tuple[Version, Snapshot], head: tuple[Version, Snapshot], corpus: Iterable[tuple[str, bytes]], tools: Tools) -> Difference:
    """`corpus`: further kernels by name and content."""
    bench = Bench(tools.rows_of, tools.jobs)
    packs, beside = witnessed(compared(base[1].held, head[1].held), tools.texts_of, bench)
    zoo = {**_zoo(head[1]), **_zoo(base[1])}  # a kernel that the change takes away or edits is judged as it was
    texts = [(name, tools.texts_of(name, data)) for name, data in (*zoo.items(), *corpus)]
    kernels, unread = rows(packs, [(t, True) for _, of in texts for t in of], bench, tools.on_step)
    ours, _ = rows(packs, [(t, True) for n, data in tools.proved for t in tools.texts_of(n, data)], bench, tools.on_step, STRICT)
    unread = (*unread, *(name for name, of in texts if not of))  # all its targets are of plugins that are not here
    apart = tuple(n for n in unread if n in zoo), tuple(n for n in unread if n not in zoo)
    return Difference(base[0].commit, head[0].commit, packs, beside, (*kernels, *ours), apart)


def _zoo(of: Snapshot) -> dict[str, bytes]:
    return {p.relative_to(of.place).as_posix(): p.read_bytes() for p in of.zoo}


def review(base: tuple[Version, Snapshot], head: tuple[Version, Snapshot], corpus: Iterable[tuple[str, bytes]], tools: Tools) -> Review:
    found = difference(base, head, corpus, tools)
    findings = [*changed_settings(base[1].projects, head[1].projects, nobody), *refusals(head[1], found.packs, found.texts, found.kernels, found.unread), *_trials(head[1], found, tools)]
    return Review(found, tuple(map(head[1].told, dict.fromkeys(findings))))


def _trials(head: Snapshot, found: Difference, tools: Tools) -> Iterator[Diagnostic]:
    """What `cake rules test` says of the rules that are not as they were."""
    for pair in (p for c in found.packs for p in c.pairs if p.new is not None and p.fate is not Fate.SAME):
        tools.on_step(pair.new.id)
        yield from trial(pair.new, tools.rows, Prover).findings
