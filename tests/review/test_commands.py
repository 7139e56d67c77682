"""`cake rules diff`, `stats` and `review` as commands: what they print, what they cost, and what they say where git has no answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from cake_core import diagnostics
from cake_core.review.markdown import cell, code
from cake_core.review.verdicts import Tally, apart
from cake_core.rules import Outcome

from .conftest import GOOD, SMALL

ORDERED = SMALL.replace("small-role", "free-run").replace("r.warps > 1", "may_run(r)").replace("is small", "has nothing to do")
IDLE = GOOD.replace("    warp.sync\n", "    if N > N {\n      warp.sync\n    }\n")


def loosened(repo) -> None:
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 1", "require: r.warps > 0")


# --- diff --------------------------------------------------------------------------------------------------------


def test_diff_tells_rules_verdicts_and_cost(repo, cake):
    loosened(repo)
    result = cake("diff", "--base", "main")
    assert result.exit_code == 0
    for said in ("acme: 1.2.0 to 1.2.0, its changes ask for a major step", "acme/small-role  loosened  major", "changed  violated  proved"):
        assert said in result.output, result.output


def test_diff_of_a_corpus(repo, cake):
    loosened(repo)
    (repo.root / "more").mkdir()
    (repo.root / "more" / "small.cake").write_text(GOOD.replace("2 warps", "1 warp"))
    (repo.root / "more" / "broken.cake").write_text("cake 1\nkernel")
    found = json.loads(cake("diff", "--base", "main", "--corpus", "more", "--json").output)["difference"]
    rows = {r["text"]: r for r in found["verdicts"]}
    assert rows["more/small.cake (k, sm90)"]["is"] == "changed" and not any("broken" in t for t in rows)
    assert found["unread"] == ["more/broken.cake"]
    assert "more/broken.cake has no facts here" in cake("diff", "--base", "main", "--corpus", "more").output


def test_diff_without_a_difference(repo, cake):
    result = cake("diff", "--base", "main")
    assert result.exit_code == 0 and result.output.startswith("No pack differs from ")


def test_a_rule_that_is_new_and_one_that_is_gone(repo, cake):
    (repo.pack / "rules" / "few-warps").rename(repo.pack / "rules" / "other")
    repo.change("rules/other/rule.yaml", "few-warps", "other")
    (pack,) = json.loads(cake("diff", "--base", "main", "--json").output)["difference"]["packs"]
    assert {r["rule"]: r["is"] for r in pack["rules"]} == {"acme/few-warps": "removed", "acme/other": "added"}


# --- the same everywhere -----------------------------------------------------------------------------------------


def asked_apart(where, seed: str, *args: str) -> str:
    """What a process of its own prints, with nothing kept from before."""
    environ = os.environ | {"PYTHONHASHSEED": seed, "CAKE_CACHE": ""}
    return subprocess.run(
        [sys.executable, "-m", "cake_core", "rules", *args], cwd=where, env=environ, check=True, capture_output=True, text=True
    ).stdout


def test_verdicts_and_steps_are_the_same_in_every_process(repo):
    repo.rule("free-run", ORDERED.replace("kind: safety", "kind: style"), bad_idle=IDLE, good_runs=GOOD)  # not on all of Cake's kernels
    one = asked_apart(repo.root, "1", "diff", "--base", "main", "-j1", "--json")
    assert one == asked_apart(repo.root, "2", "diff", "--base", "main", "-j2", "--json")
    (cost,) = json.loads(one)["difference"]["costs"]
    assert cost["rule"] == "acme/free-run" and cost["now"]["steps"] > 0 and cost["before"] is None


def test_what_was_judged_is_kept_by_content(repo, cake, tmp_path, monkeypatch):
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path / "kept"))
    loosened(repo)
    first = cake("diff", "--base", "main", "--json").output
    kept = sorted((tmp_path / "kept" / "verdicts").glob("*.json"))
    assert kept
    times = [p.stat().st_mtime_ns for p in kept]
    assert cake("diff", "--base", "main", "--json").output == first
    assert [p.stat().st_mtime_ns for p in kept] == times, "it was judged again"
    for p in kept:  # a file that was tampered with is no verdict
        p.write_text(p.read_text().replace("violated", "proved"))
    assert cake("diff", "--base", "main", "--json").output == first
    repo.change("rules/small-role/rule.yaml", "require: r.warps > 0", "require: r.warps > 1")
    assert cake("diff", "--base", "main").output.startswith("No pack differs")


def test_a_process_that_dies_has_no_verdict():
    """Not one that was found, nor a proof."""
    assert apart(lambda: os._exit(9)).verdict == Outcome.ERROR
    assert apart(lambda: 1 / 0).verdict == Outcome.ERROR
    assert apart(lambda: Tally((("proved", 1),))).verdict == Outcome.PROVED


# --- stats -------------------------------------------------------------------------------------------------------


def test_stats_names_the_most_expensive_first(repo, cake):
    repo.rule("free-run", ORDERED, bad_idle=IDLE, good_runs=GOOD)
    result = cake("stats", "acme", "--pack", str(repo.pack), "--json")
    assert result.exit_code == 0, result.output
    rules = json.loads(result.output)["stats"]
    assert [r["rule"] for r in rules] == ["acme/free-run", "acme/drafted", "acme/few-warps", "acme/small-role"]
    assert (rules[0]["findings"], rules[0]["unknown"], rules[0]["texts"]) == (1, 0, 2) and rules[0]["steps"] >= rules[0]["most"] > 0
    assert (rules[3]["findings"], rules[3]["steps"], rules[3]["dearest"]) == (1, 0, None)


def test_stats_over_a_corpus(repo, cake):
    result = cake("stats", "acme/small-role", "--pack", str(repo.pack), "--corpus", "kernels")
    assert result.exit_code == 0 and "1 rule, 3 times judged, 1 finding, 0 unknown, 0 steps" in result.output, result.output


# --- JSON --------------------------------------------------------------------------------------------------------

SCHEMA = Path(diagnostics.__file__).parent / "schema" / "diagnostics.schema.json"


@pytest.mark.parametrize("command", [("diff", "--base", "main"), ("review", "--base", "main"), ("stats", "acme"), ("list",)])
def test_json_follows_the_schema(command, repo, cake):
    loosened(repo)
    repo.rule("free-run", ORDERED, bad_idle=IDLE, good_runs=GOOD)
    more = ("--pack", str(repo.pack)) if command[0] in ("stats", "list") else ()
    found = json.loads(cake(*command, *more, "--json").output)
    jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert {"diff": "difference", "list": "listed"}.get(command[0], command[0]) in found and found["schema_version"] == 1


# --- the comment -------------------------------------------------------------------------------------------------


def test_the_comment_of_a_pull_request(repo, cake):
    loosened(repo)
    result = cake("review", "--base", "main", "--markdown", "comment.md")
    said = (repo.root / "comment.md").read_text()
    assert result.exit_code == 1 and result.output.endswith("refused\n")
    assert said.startswith("## Rule review: refused\n") and "| `acme` | 1.2.0 | 1.2.0 | none | major |" in said
    assert "**review/loosened** `packs/cake_rules_acme/rules/small-role/rule.yaml:2`" in said
    assert "| `acme/small-role` | loosened | major |" in said


def test_what_a_branch_wrote_is_no_markup(repo, cake):
    repo.change("rules/small-role/rule.yaml", "owner: A. Person", "owner: '` @everyone <img src=x> [a](http://b) | c'")
    cake("review", "--base", "main", "--markdown", "comment.md")
    lines = [line for line in (repo.root / "comment.md").read_text().splitlines() if "@everyone" in line]
    assert lines and all("``" in line for line in lines)


@pytest.mark.parametrize("text", ["a", "`", "a`b", "``", "", "a\n# b", "a|b"])
def test_code_is_one_span_on_one_line(text):
    shown = code(text)
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    assert "\n" not in shown and shown.endswith(fence) and fence not in shown[len(fence) : -len(fence)]
    assert "|" not in cell(text).replace("\\|", "")


def test_a_comment_that_cant_be_written(repo, cake):
    result = cake("review", "--base", "main", "--markdown", "no/such/folder/c.md")
    assert result.exit_code == 2 and "no/such/folder/c.md" in result.output


# --- git ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["diff", "review"])
def test_where_there_is_no_repository(command, cake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    result = cake(command, "--base", "main")
    assert result.exit_code == 2 and "lies in no git repository" in result.output


@pytest.mark.parametrize("ref", ["nowhere", "--all", "-h", "main:README.md", ""])
def test_a_version_that_is_not_there(ref, repo, cake):
    result = cake("review", f"--base={ref}")
    assert result.exit_code == 2 and "is no commit of this repository" in result.output


def test_without_git(repo, cake, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = cake("review", "--base", "main")
    assert result.exit_code == 3 and "review/no-git" in result.output


def test_histories_that_have_nothing_in_common(repo, cake):
    repo.git("checkout", "-q", "--orphan", "other")
    repo.commit()
    result = cake("review", "--base", "main")
    assert result.exit_code == 2 and "no commit in common" in result.output


def test_a_repository_without_a_pack(repo, cake):
    repo.git("rm", "-qr", "packs")
    repo.commit()
    repo.git("branch", "-f", "main")
    result = cake("review", "--base", "main")
    assert result.exit_code == 2 and "there is no rule pack in the repository" in result.output


def test_a_folder_outside_of_the_repository(repo, cake, tmp_path):
    result = cake("review", "--base", "main", "--pack", str(tmp_path))
    assert result.exit_code == 2 and "lies outside of the repository" in result.output


def test_attributes_and_hooks_of_a_branch_have_no_say(repo, cake):
    """What an archive would leave out, and what a filter would change, is read as it is."""
    (repo.root / ".gitattributes").write_text("*.yaml export-ignore\n*.cake filter=evil\n")
    repo.git("config", "filter.evil.smudge", "false")
    loosened(repo)
    repo.commit()
    found = json.loads(cake("review", "--base", "main", "--head", "HEAD", "--json").output)
    assert "review/loosened" in {d["code"] for d in found["diagnostics"]}
