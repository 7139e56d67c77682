"""Prints docs/evidence.md: the corpus of real failures under tests/corpus, and who must find each of them.

    python docs/evidence.py > docs/evidence.md

A case is a folder with `case.toml`, texts that are right (`good*.cake`) and texts that are wrong (`bad*.cake`). tests/test_corpus.py
judges them and holds the page against the cases.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"

#: What a text can be wrong in.
CATEGORIES = (
    *("deadlock", "race", "phase", "overrun", "transaction-bytes", "arrival-count", "async-completion", "proxy-fence", "scope-fence"),
    *("barrier-init", "bounds", "overflow", "alignment", "swizzle", "bank-conflict", "tensor-memory", "registers", "named-barrier"),
    *("cluster-exit", "pdl", "cta-group", "numeric", "capability", "capacity", "workspace", "contract"),
)

HEAD = """# Evidence

Failures that were reported of real kernels, libraries and compilers, each as a pair of texts of this language: one that is wrong and one
that is right, as few statements apart as possible. This page is written by docs/evidence.py from the folders of `tests/corpus`; the
sources are issues and pull requests of public repositories.

Who must find a wrong text: the **compiler**, by what one text says, does so by the code that is named. A **rule**: only what is proved over all
schedules, or read off all ways, can, and does by the code that is named; where none is, nothing finds it yet. **Inexpressible**: no text of this
language has the failure; what comes nearest stands in the folder. A finding is an error unless *advice* or *warning* is said; *strict* is a
finding under the strict policy for fences alone, and *preview* one of another rule in preview, both of which `--preview` judges; *advice* comes from the suite `advice`.

Cases C were reported, F and M were planted: F into the derived forms of two matrix products, M into smaller texts. Cases N and T are
right texts that look wrong. A right text must pass. Of a **hard** one, which is right for a reason that its case states, a checker may
say that it cannot tell.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What the finding must name. `line`: of the access that is hit, or of the wait, arrival or declaration that is wrong; `also`:
    lines that do as well, such as that of the hand-off behind the access."""

    line: int
    also: tuple[int, ...] = ()
    role: str | None = None
    resource: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A wrong text. `witness`: small parameters at which it shows; a list is the head of a tensor, `cluster.count` the clusters."""

    text: str
    expect: str  # rule, compiler, inexpressible
    where: Where
    witness: dict[str, int | list[int] | list[float]]
    code: str | None = None  # the finding; a rule's where one finds it
    also: tuple[str, ...] = ()  # what else is found
    level: str = "error"
    policy: str = "default"
    reason: str | None = None  # why it cannot be expressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One folder. `control`: another whose right texts this one's wrong ones are edits of. `hard`: right texts, by name, of which a
    checker may say that it cannot tell, and the reason; to call one wrong is a false alarm all the same."""

    folder: Path
    case: str
    title: str
    source: tuple[str, ...]
    target: str
    category: str
    form: str
    note: str | None = None
    control: str | None = None
    hard: dict[str, str] = field(default_factory=dict)
    bad: tuple[Bad, ...] = field(default=())

    @property
    def good(self) -> list[Path]:
        folders = [self.folder, *([self.folder.parent / self.control] if self.control else [])]
        return sorted(p for folder in folders for p in folder.glob("good*.cake"))

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(CORPUS))


def read(path: Path) -> Case:
    """A `case.toml`. Raises TypeError where a key is unknown or missing."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    bad = tuple(
        Bad(**b | {"where": Where(**b["where"] | {"also": tuple(b["where"].get("also", ()))}), "also": tuple(b.get("also", ()))})
        for b in table.pop("bad", ())
    )
    return Case(folder=path.parent, bad=bad, **table | {"source": tuple(table["source"])})


def cases() -> list[Case]:
    """All cases, by letter and number."""
    found = [read(p) for p in CORPUS.rglob("case.toml")]
    return sorted(found, key=lambda c: ("CFMTN".index(c.case[0]), int(re.sub(r"\D", "", c.case)), c.name))


def page(found: list[Case]) -> str:
    """Markdown: what it is, a table of cases, sums."""
    wrong = [b for c in found for b in c.bad]
    sums = Counter(b.expect for b in wrong)
    right = sum(len(list(c.folder.glob("good*.cake"))) for c in found)
    by_rule = sum(b.expect == "rule" and b.code is not None for b in wrong)
    lines = [
        HEAD,
        f"{len(found)} cases: {right} right texts and {len(wrong)} wrong ones. Of these {sums['compiler']} are for the compiler,",
    ]
    lines += [f"{sums['rule']} for a rule, {by_rule} of which are found by one, and {sums['inexpressible']} inexpressible.", ""]
    lines += ["| case | failure | target | category | found by | reported in |", "| --- | --- | --- | --- | --- | --- |"]
    for c in found:
        title = f"{c.title} ([texts](../tests/corpus/{c.name}))"
        lines.append(f"| {c.case} | {title} | {c.target} | {c.category} | {_found_by(c)} | {'<br>'.join(c.source)} |")
    return "\n".join(lines) + "\n"


def _found_by(c: Case) -> str:
    parts = dict.fromkeys(_one(b) for b in c.bad)
    return "<br>".join(parts) or f"no finding: it is right{', and hard' if c.hard else ''}"


def _one(b: Bad) -> str:
    words = [w for w in (b.level if b.level != "error" else "", b.policy if b.policy != "default" else "") if w]
    said = f" ({', '.join(words)})" if words else ""
    return f"{'' if b.expect == 'compiler' else b.expect}{f' `{b.code}`' if b.code else ''}{said}".strip()


if __name__ == "__main__":
    print(page(cases()), end="")
