"""The pages among themselves: links lead somewhere, indexes are complete, decisions have one shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("arch", "bench", "docs", "kernels", "plugins", "rules")
PAGES = sorted([*ROOT.glob("*.md"), *(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.md"))])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
#: What is not the project's to speak of.
FOREIGN = re.compile(r"/work/|/tmp/|\bprototype\b|\bsession|\bchatbot|\bLLM\b|\bsubagent", re.I)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or anchor and anchor not in anchors(to):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_speaks_of_the_project_alone(page):
    text = page.read_text(encoding="utf-8")
    assert FOREIGN.findall(re.sub(r"[\w.-]+/[\w.-]+#\d+", "", text)) == []  # less names of repositories, as in owner/name#1
    assert text.startswith("# ") and text.endswith("\n") and not text.endswith("\n\n")


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    links = {(ROOT / "docs" / t).resolve() for t in re.findall(r"\]\(([^)#]+)\)", index)}
    pages = {p for p in PAGES if p.parent in (ROOT, ROOT / "docs", ROOT / "kernels", ROOT / "bench")} - {ROOT / "docs" / "README.md"}
    assert {name(p) for p in pages - links} == set()


def test_decisions_are_numbered_and_listed():
    assert [int(p.name[:4]) for p in DECISIONS] == list(range(1, len(DECISIONS) + 1)) and DECISIONS
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d{4})\]\((.+?)\) (.+)$", index, re.M)
    titles = [re.match(r"# (\d+)\. (.+)\n", p.read_text(encoding="utf-8")).groups() for p in DECISIONS]
    assert listed == [(f"{int(number):04d}", p.name, title) for (number, title), p in zip(titles, DECISIONS, strict=True)]


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_decision_has_context_decision_and_consequence(page):
    parts = re.findall(r"^\*\*(\w+)\.\*\* ", page.read_text(encoding="utf-8"), re.M)
    assert parts == ["Context", "Decision", "Consequence"]
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 30


def test_paths_that_pages_name_are_there():
    """Files and folders of this project, named in backticks."""
    wrong = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for path in re.findall(r"`((?:cake_core|tests|plugins|arch|kernels|bench|docs|\.ci)/[\w./-]+)`", prose(page)):
            if not (ROOT / path).exists():
                wrong.append(f"{name(page)}: {path}")
    assert wrong == []


def test_checks_that_the_proof_names_are_there():
    """`module.name` and `Class.name` of the prover and the facts: a hypothesis of a theorem whose check has gone would be nobody's."""
    files = {p: p.read_text(encoding="utf-8") for room in ("prove", "facts") for p in (ROOT / "cake_core" / room).glob("*.py")}
    named = set(re.findall(r"`([A-Za-z]\w*)\.(?!py`)(\w+)`", prose(ROOT / "docs" / "proof.md"))) - {
        ("cake", "load"),
        ("pipeline", "build"),
        ("gemm", "unproved"),
    }
    assert len(named) >= 20
    wrong = []
    for owner, what in sorted(named):
        own = [text for p, text in files.items() if p.stem == owner or re.search(rf"^class {owner}\b", text, re.MULTILINE)]
        if not any(re.search(rf"^\s*(def|class) {what}\b|^[\w, ]*\b{what}\b[\w, ]* = ", text, re.MULTILINE) for text in own):
            wrong.append(f"{owner}.{what}")
    assert wrong == []


def test_every_kernel_has_a_row():
    text = (ROOT / "kernels" / "README.md").read_text(encoding="utf-8")
    kernels = [p.relative_to(ROOT / "kernels") for p in (ROOT / "kernels").rglob("*.cake")]
    missing = [str(k) for k in kernels if f"[`{k.with_suffix('')}`]({k})" not in text]
    assert missing == [], "give it a row in kernels/README.md"


def test_version_and_changelog_agree():
    from cake_core import __version__

    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
