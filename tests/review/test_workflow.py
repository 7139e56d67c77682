"""The workflow of the template repository: its commands are run as they stand, on a branch of a copy of it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from .conftest import ENVIRON, Repo

TEMPLATE = Path(__file__).resolve().parents[1] / "packs" / "template"
WORKFLOWS = TEMPLATE / ".github" / "workflows"


def workflow(name: str) -> dict:
    return yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))


def steps(name: str) -> list[dict]:
    return [s for job in workflow(name)["jobs"].values() for s in job["steps"]]


def commands() -> list[list[str]]:
    """The lines that call `cake rules`, in words; variables of the workflow replaced."""
    lines = [line for s in steps("rules.yml") for line in s.get("run", "").splitlines() if line.strip().startswith("cake ")]
    return [shlex.split(line.replace("$GITHUB_BASE_REF", "main"))[2:] for line in lines]


@pytest.fixture
def template(tmp_path, monkeypatch) -> Repo:
    """A copy of the template with `origin/main` as base, on a branch, and the working directory."""
    root = shutil.copytree(TEMPLATE, tmp_path / "repo")
    found = Repo(root)
    found.pack = root / "cake_rules_acme"
    found.git("init", "-q", "-b", "main")
    found.commit()
    found.git("update-ref", "refs/remotes/origin/main", "main")
    found.git("checkout", "-q", "-b", "branch")
    monkeypatch.chdir(root)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return found


def test_the_commands_pass_on_what_is_right(template, cake):
    template.change("rules/believed-data/rule.yaml", "title: A contract", "title: Any contract")
    template.change("pack.yaml", 'version: "0.1.0"', 'version: "0.1.1"')
    template.commit()
    called = commands()
    assert {c[0] for c in called} >= {"test", "lint", "review"}
    for words in called:
        result = cake(*words)
        assert result.exit_code == 0, (words, result.output)
    assert (template.root / "comment.md").read_text().startswith("## Rule review: accepted")


def test_the_review_refuses_what_is_not(template, cake):
    template.change("rules/believed-data/rule.yaml", "require: not c.believed", "require: not c.believed or c.believed")
    template.commit()
    (words,) = [c for c in commands() if c[0] == "review"]
    assert cake(*words).exit_code == 1
    assert "review/loosened" in (template.root / "comment.md").read_text()


def test_what_a_pull_request_writes_is_never_run_with_a_token_that_writes():
    """The workflow that reads the branch can't write, the one that writes reads no branch; no expression stands in a script."""
    reads, writes = workflow("rules.yml"), workflow("rules-comment.yml")
    assert reads["permissions"] == {"contents": "read"} and "pull_request_target" not in reads[True]
    assert list(writes[True]) == ["workflow_run"] and not any("checkout" in s.get("uses", "") for s in steps("rules-comment.yml"))
    for name in ("rules.yml", "rules-comment.yml"):
        assert not any("${{" in s.get("run", "") for s in steps(name))
    assert writes[True]["workflow_run"]["workflows"] == [reads["name"]]


def test_the_owners_of_what_decides_are_others():
    rows = [line.split() for line in (TEMPLATE / ".github" / "CODEOWNERS").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"@[a-z-]+/[a-z-]+", owner) for _, *owners in rows for owner in owners)
    for path, _ in rows[1:]:
        assert (TEMPLATE / path.strip("/")).exists(), path
    by = {path: owners for path, *owners in rows}
    assert by["/cake_rules_acme/pack.yaml"] != by["/cake_rules_acme/rules/"] != by["/.github/"]
