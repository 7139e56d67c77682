"""A repository with a small pack, whose branches are changes, honest and not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app

PACK = """schema: 1
name: acme
namespace: acme
version: "1.2.0"
requires: {cake: ">=0.1"}
suites:
  default: [{status: stable}]
removed: [{id: acme/old, since: "1.0.0", reason: it said what small-role says}]
soundness: [{version: "1.0.0", rules: [acme/small-role], note: an early note about something else}]
define:
  enough: {of: {r: role}, as: r.warps >= 2}
"""
SMALL = """schema: 1
id: acme/small-role
title: A role of one warp
kind: safety
level: error
status: stable
precision: proof
since: "1.0"
owner: A. Person
match: {r: {role: {}}}
where: r.instances >= 1
require: r.warps > 1
message: "role '{r.id}' is small"
help: give it two warps
why: It is.
"""
DEFINED = SMALL.replace("small-role", "few-warps").replace("r.warps > 1", "enough(r)").replace("is small", "has few warps")
DRAFT = (
    DEFINED.replace("few-warps", "drafted")
    .replace("status: stable", "status: draft")
    .replace("owner: A. Person\n", 'owner: A. Person\nauthors: [{name: rule-agent, kind: agent, run: "17"}]\n')
)
GOOD = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 2 warps at 0 {\n    warp.sync\n  }\n}\n"
BAD = GOOD.replace("2 warps", "1 warp")
NOTE = "roles of five instances and more are of another kind, nothing is shared there"
NEW = SMALL.replace("small-role", "many-instances").replace("r.warps > 1", "r.instances < 2").replace("is small", "has instances")
TWO = GOOD.replace("role a: 2 warps", "role a[2]: 2 warps")
WAIVER = '[[rules.waivers]]\nrule = "acme/small-role"\nlevel = "{level}"\nreason = "{reason}"\nowner = "{owner}"\n'
RULES = {"small-role": SMALL, "few-warps": DEFINED, "drafted": DRAFT}
PLACE = "packs/cake_rules_acme"
ENVIRON = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


class Repo:
    """A repository of a test; `git` runs git in it, the rest edits its working tree."""

    def __init__(self, root: Path):
        self.root, self.pack = root, root / PLACE

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.run(["git", *who, *args], cwd=self.root, env=os.environ | ENVIRON, check=True, capture_output=True, text=True).stdout

    def rule(self, slug: str, text: str, **texts: str) -> None:
        folder = self.pack / "rules" / slug
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rule.yaml").write_text(text)
        for name, content in texts.items():
            (folder / f"{name}.cake").write_text(content)

    def change(self, name: str, old: str, new: str) -> None:
        path = self.pack / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def version(self, version: str, note: str = "", *rules: str) -> None:
        self.change("pack.yaml", 'version: "1.2.0"', f'version: "{version}"')
        if note:
            said = f'soundness: [{{version: "{version}", rules: [{", ".join(rules)}], note: "{note}"}}, '
            self.change("pack.yaml", "soundness: [", said)

    def tombstone(self, id: str, version: str, more: str = "") -> None:
        self.change("pack.yaml", "removed: [", f'removed: [{{id: {id}, since: "{version}", reason: it is not needed{more}}}, ')

    def goldens(self, slug: str) -> None:
        result = CliRunner().invoke(app, ["rules", "test", f"acme/{slug}", "--pack", str(self.pack), "--update", "-j1"], prog_name="cake")
        assert result.exit_code == 0, result.output

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")


def reviewed(cake, *more: str) -> tuple[dict, dict[str, set[str]]]:
    result = cake("review", "--base", "main", "--json", "-j1", *more)
    assert "Traceback" not in result.output and result.exit_code in (0, 1, 3), result.output
    found = json.loads(result.output)
    codes: dict[str, set[str]] = {"error": set(), "warning": set()}
    for d in found["diagnostics"]:
        codes[d["severity"]].add(d["code"])
    assert (result.exit_code == 0) == (found["review"]["verdict"] == "accepted") == (not codes["error"])
    return found, codes


def fates(found: dict) -> dict[str, str]:
    return {r["rule"]: r["is"] for p in found["review"]["packs"] for r in p["rules"]}


@pytest.fixture(scope="session")
def origin(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("origin")
    repo = Repo(root)
    repo.pack.mkdir(parents=True)
    (repo.pack / "pack.yaml").write_text(PACK)
    for slug, text in RULES.items():
        repo.rule(slug, text, bad_one=BAD, good_two=GOOD)
        repo.goldens(slug)
    (root / "kernels").mkdir()
    (root / "kernels" / "right.cake").write_text(GOOD)
    (root / "README.md").write_text("Rules.\n")
    repo.git("init", "-q", "-b", "main")
    repo.commit()
    return root


@pytest.fixture
def repo(origin, tmp_path, monkeypatch) -> Repo:
    """A copy on a branch of its own, which is the working directory."""
    root = tmp_path / "repo"
    shutil.copytree(origin, root)
    found = Repo(root)
    found.git("checkout", "-q", "-b", "branch")
    monkeypatch.chdir(root)
    monkeypatch.setattr("cake_core.cli.versions.proved", lambda root: ())  # all of Cake's kernels, for each change of a small rule, take their time
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def cake() -> Callable:
    return lambda *args: CliRunner().invoke(app, ["rules", *args], prog_name="cake")
