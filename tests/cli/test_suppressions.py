"""Findings that are let pass, by comments of a text and by a baseline: advice alone, each with a reason, and never more than there is."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.artifact import Manifest
from cake_core.check.suppressions import Allow, Suppressions
from cake_core.cli.app import app
from cake_core.diagnostics import Diagnostic
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.rules import Outcome, Verdict, load_pack
from cake_core.rules.schema import Kind
from cake_core.source import Source, Span
from cake_core.syntax import format_text

SARIF = Path(__file__).resolve().parents[1] / "data" / "sarif-schema-2.1.0.json"
PACK = """schema: 1
name: acme
namespace: acme
version: "0.1.0"
suites: {default: [{status: stable}]}
removed: [{id: acme/old, since: "0.1", reason: "it said what few says", replaced_by: acme/few}]
"""
RULE = """schema: 1
id: acme/few
title: Few warps
kind: KIND
level: error
status: stable
precision: high
since: "0.1"
owner: acme
match: {r: {role: {}}}
require: r.warps > 1
message: "role '{r.id}' has one warp"
why: We want more.
"""
TEXT = """cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  role a: 1 warp at 0 {
    warp.sync
  }
  role b: 1 warp at 1 {
    warp.sync
  }
}
"""
A, B = "  role a: 1 warp at 0 {", "  role b: 1 warp at 1 {"


@pytest.fixture
def cake(tmp_path, monkeypatch):
    """`cake(text, *arguments)`: `cake check` on `k.cake`, with a pack whose one rule, an error, wants roles of two warps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAKE_CACHE", "")

    def pack(kind: str = "performance", more: str = "", folder: str = "pack") -> str:
        rule = tmp_path / folder / "rules" / "few"
        rule.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "pack.yaml").write_text(PACK)
        (rule / "rule.yaml").write_text(RULE.replace("KIND", kind) + more)
        return folder

    def run(text: str, *args: str, kind: str = "performance", more: str = "", command: str = "check"):
        Path("k.cake").write_text(text)
        return CliRunner().invoke(app, [command, "k.cake", "--pack", pack(kind, more), *args], prog_name="cake")

    return run


def allow(text: str, line: str, comment: str, above: bool = True) -> str:
    assert line in text
    return text.replace(line, f"  {comment}\n{line}" if above else f"{line} {comment}")


BOTH = allow(allow(TEXT, A, "# cake: allow[acme/few] reason: it only waits"), B, "# cake: allow[acme/few] reason: it too", above=False)


def test_a_finding_is_let_pass_on_its_line_and_on_the_line_above(cake):
    assert cake(TEXT).exit_code == 1 and cake(TEXT).stdout.count("error[acme/few]") == 2
    found = cake(BOTH)
    assert found.exit_code == 0 and "error" not in found.stdout
    assert "let pass  1 finding of acme/few: it only waits" in found.stdout and "1 finding of acme/few: it too" in found.stdout


def test_what_one_comment_lets_pass_no_other_line_has(cake):
    found = cake(allow(TEXT, A, "# cake: allow[acme/few] reason: it only waits"))
    assert found.exit_code == 1 and found.stdout.count("error[acme/few]") == 1 and "role 'b' has one warp" in found.stdout


def test_the_comment_speaks_of_the_next_line_with_anything_in_it(cake):
    text = allow(TEXT, A, "# cake: allow[acme/few] reason: it only waits\n\n  # and this is the role")
    assert cake(text).stdout.count("error[acme/few]") == 1


def test_the_formatter_keeps_it_where_it_is(cake):
    text = format_text(Source("k.cake", BOTH.replace("  role", "     role")))
    assert text.count("# cake: allow") == 2 and cake(text).exit_code == 0


@pytest.mark.parametrize(
    "comment, code, said",
    [
        ("# cake: allow[acme/few]", "rules/suppression", "nothing says why 'acme/few' is let pass"),
        ("# cake: allow[acme/few] reason:", "rules/suppression", "nothing says why"),
        ("# cake: allow[acme/few] because", "rules/suppression", "nothing says why"),
        ("# cake: allow[acme/fex] reason: r", "rules/suppression", "did you mean 'acme/few'?"),
        ("# cake: allow[zzzz/qqqq] reason: r", "rules/suppression", "there is no rule 'zzzz/qqqq'"),
        ("# cake: allow[acme/old] reason: r", "rules/suppression", "it said what few says"),
        ("# cake: allow[acme/few, ] reason: r", "rules/suppression", "is nothing that a comment tells cake"),
        ("# cake: alow[acme/few] reason: r", "rules/suppression", "is nothing that a comment tells cake"),
        ("# cake: allow acme/few reason: r", "rules/suppression", "is nothing that a comment tells cake"),
        ("# cake: allow[core/slot-race] reason: r", "rules/suppression-refused", "kind safety"),
        ("# cake: allow[core/shared-capacity] reason: r", "rules/suppression-refused", "kind legality"),
    ],
)
def test_a_comment_that_lets_nothing_pass_is_an_error(cake, comment, code, said):
    found = cake(allow(TEXT, A, comment))
    assert found.exit_code == 1 and f"error[{code}]" in found.stdout and said in found.stdout and "k.cake:6:3" in found.stdout


@pytest.mark.parametrize("kind", ["safety", "legality"])
@pytest.mark.parametrize("command", ["check", "build"])
def test_safety_and_legality_are_never_let_pass(cake, kind, command):
    found = cake(BOTH, kind=kind, command=command)
    said = found.stdout if command == "check" else found.stderr
    assert found.exit_code == 1 and said.count("error[rules/suppression-refused]") == 2 and said.count("error[acme/few]") == 2
    assert not Path("out").exists()


def test_advice_that_a_proof_leans_on_is_not_let_pass(cake):
    found = cake(BOTH, more="covers: [deadlock]\n")
    assert found.exit_code == 1 and "it covers deadlock" in found.stdout and "error[acme/few]" in found.stdout


@pytest.mark.parametrize("kind", ["performance", "portability", "style"])
def test_advice_is_let_pass_and_stands_in_the_manifest(cake, kind):
    built = cake(BOTH, "--format", "json", "-o", "out", kind=kind, command="build")
    assert built.exit_code == 0
    manifest = json.loads(Path("out", "manifest.json").read_text())
    assert manifest["suppressed"] == [
        {"rule": "acme/few", "line": 7, "reason": "it only waits"},
        {"rule": "acme/few", "line": 10, "reason": "it too"},
    ]
    assert Manifest.from_json(Path("out", "manifest.json").read_text()).suppressed == tuple(manifest["suppressed"])


@pytest.mark.parametrize("outcome, passes", [(Outcome.VIOLATED, True), (Outcome.UNKNOWN, True), (Outcome.ERROR, False), (Outcome.PROVED, False)])
def test_what_is_undecided_is_let_pass_and_what_is_broken_is_not(cake, outcome, passes):
    """An undecided answer has another code and is the rule's all the same; a rule without an answer is to be mended."""
    cake(TEXT)
    (rule,) = load_pack(Path("pack")).rules
    at = Span("k.cake", 7, 3, 7, 9)
    suppressions = Suppressions((Allow("acme/few", "so", 7, replace(at, line=6)),), frozenset({"acme/few"}))
    verdict = Verdict(rule, outcome, finding=Diagnostic("rules/undecided", "m", at))
    assert (suppressions.of(verdict) is not None) is passes
    assert suppressions.of(replace(verdict, rule=replace(rule, kind=Kind.SAFETY))) is None


def test_a_rule_that_is_broken_fails_whatever_is_let_pass(cake):
    found = cake(BOTH, more="assume: 1 / (r.warps - 1) > 0\n")
    assert found.exit_code == 3 and "error[rules/failed]" in found.stdout


def test_machines_are_told_what_was_let_pass(cake):
    data = json.loads(cake(BOTH, "--format", "json").stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(data)
    assert [(s["rule"], s["kind"], s["reason"], s["at"]["line"]) for s in data["suppressed"]] == [
        ("acme/few", "inSource", "it only waits", 6),
        ("acme/few", "inSource", "it too", 10),
    ]
    assert data["outcome"] == "clean" and data["diagnostics"] == []
    log = json.loads(cake(BOTH, "--format", "sarif").stdout)
    jsonschema.Draft4Validator(json.loads(SARIF.read_text())).validate(log)
    results = log["runs"][0]["results"]
    assert [r["suppressions"][0]["justification"] for r in results] == ["it only waits", "it too"]
    assert {r["suppressions"][0]["kind"] for r in results} == {"inSource"}


def test_a_comment_that_is_not_needed_is_told(cake):
    text = allow(BOTH, "    warp.sync", "# cake: allow[acme/few] reason: nothing is here")
    found = cake(text)
    assert found.exit_code == 0 and found.stdout.count("warning[rules/suppression-unused]") == 2
    built = cake(text, "-o", "out", command="build")
    assert built.exit_code == 0 and built.stderr.count("warning[rules/suppression-unused]") == 2


def test_a_comment_that_another_target_needs_is_not_told_as_useless(cake):
    text = BOTH.replace("target sm90", "target sm90\n  target sm80")
    assert cake(text, "--arch", "sm80").exit_code == 0
    applies = "applies: {capability: [tma]}\n"
    both = cake(text, more=applies)
    assert both.exit_code == 0 and "unused" not in both.stdout, both.stdout
    one = cake(text.replace("sm90\n  target ", ""), more=applies)
    assert one.stdout.count("rules/suppression-unused") == 2


def test_a_comment_for_a_rule_in_preview_waits_for_it(cake):
    rule = Path("pack/rules/few/rule.yaml")
    assert cake(BOTH).exit_code == 0
    rule.write_text(rule.read_text().replace("status: stable", "status: preview"))
    found = CliRunner().invoke(app, ["check", "k.cake", "--pack", "pack"])
    assert found.exit_code == 0 and "unused" not in found.stdout
    found = CliRunner().invoke(app, ["check", "k.cake", "--pack", "pack", "--preview"])
    assert found.exit_code == 0 and "let pass" in found.stdout


def test_more_findings_than_are_shown_are_let_pass_each_by_itself(cake):
    """Twenty of a rule are shown; one that no comment lets pass is shown behind twenty that are."""
    roles = "".join(f"  role r{n}: 1 warp at {n} {{ # cake: allow[acme/few] reason: many\n    warp.sync\n  }}\n" for n in range(24))
    text = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n" + roles + "}\n"
    assert cake(text).exit_code == 0
    last = "  role r23: 1 warp at 23 { # cake: allow[acme/few] reason: many"
    found = cake(text.replace(last, last.partition(" #")[0]))
    assert found.exit_code == 1 and "role 'r23' has one warp" in found.stdout


@pytest.mark.parametrize(
    "comment, said",
    [
        ("# cake: allow[acme/few] reason: r", "more than 500 findings pass"),
        ("# cake: allow[zzzz/qqqq%d] reason: r", "there is no rule 'zzzz/qqqq0'"),
        ("# cake: allow[core/slot-race] reason: r", "can't be let pass"),
        (f"# cake: allow[{', '.join(['acme/few'] * 600)}] reason: r", "more than 500 findings pass"),
    ],
)
def test_thousands_of_comments_are_told_in_a_few_findings(cake, comment, said):
    many = "\n".join(comment.replace("%d", str(n)) for n in range(3000 if len(comment) < 100 else 30))
    start = time.process_time()
    found = cake(allow(TEXT, A, many))
    assert found.exit_code == 1 and said in found.stdout and found.stdout.count("rules/suppression") <= 21
    assert time.process_time() - start < 5


# --- the baseline ------------------------------------------------------------------------------------------------


def counts() -> dict:
    return json.loads(Path("cake-baseline.json").read_text())["counts"]


def test_a_baseline_lets_pass_what_it_counts_and_tells_what_is_new(cake):
    assert cake(TEXT, "--write-baseline").exit_code == 0 and counts() == {"k.cake": {"acme/few": 2}}
    found = cake(TEXT, "--baseline", "cake-baseline.json")
    assert found.exit_code == 0 and "let pass  2 findings of acme/few: the baseline counts it" in found.stdout
    assert cake(TEXT).exit_code == 1, "nothing is let pass unasked"
    third = TEXT.replace(B, f"  role c: 1 warp at 2 {{\n    warp.sync\n  }}\n{B}")
    found = cake(third, "--baseline", "cake-baseline.json")
    assert found.exit_code == 1 and found.stdout.count("error[acme/few]") == 3 and "stale" not in found.stdout
    log = json.loads(cake(TEXT, "--baseline", "cake-baseline.json", "--format", "sarif").stdout)
    assert [r["suppressions"][0]["kind"] for r in log["runs"][0]["results"]] == ["external"] * 2


def test_a_count_that_is_too_high_fails_until_it_is_pruned(cake):
    cake(TEXT, "--write-baseline")
    mended = TEXT.replace("1 warp at 1", "2 warps at 1")
    found = cake(mended, "--baseline", "cake-baseline.json")
    assert (
        found.exit_code == 1 and "error[rules/baseline-stale]" in found.stdout and "2 findings of 'acme/few' in 'k.cake', there is 1" in found.stdout
    )
    assert cake(mended, "--baseline", "cake-baseline.json", "--prune-baseline").exit_code == 0 and counts() == {"k.cake": {"acme/few": 1}}
    assert cake(mended, "--baseline", "cake-baseline.json").exit_code == 0
    assert cake(TEXT, "--baseline", "cake-baseline.json").exit_code == 1, "what was pruned is new again"


def test_pruning_never_counts_more(cake):
    Path("cake-baseline.json").write_text('{"schema": 1, "counts": {"k.cake": {"acme/few": 1}}}')
    assert cake(TEXT, "--prune-baseline").exit_code == 1 and counts() == {"k.cake": {"acme/few": 1}}


def test_texts_and_rules_that_are_gone_are_stale(cake):
    Path("cake-baseline.json").write_text('{"schema": 1, "counts": {"gone.cake": {"acme/few": 1}, "k.cake": {"acme/few": 2, "acme/away": 1}}}')
    found = cake(TEXT, "--baseline", "cake-baseline.json")
    assert found.exit_code == 1 and found.stdout.count("rules/baseline-stale") == 2 and "gone.cake" in found.stdout and "acme/away" in found.stdout
    assert cake(TEXT, "--prune-baseline").exit_code == 0 and counts() == {"k.cake": {"acme/few": 2}}


def test_texts_that_were_not_looked_at_keep_their_counts(cake):
    Path("other.cake").write_text(TEXT)
    Path("cake-baseline.json").write_text('{"schema": 1, "counts": {"other.cake": {"acme/few": 2}}}')
    assert cake(TEXT, "--write-baseline").exit_code == 0 and counts() == {"k.cake": {"acme/few": 2}, "other.cake": {"acme/few": 2}}
    assert cake(TEXT, "--baseline", "cake-baseline.json").exit_code == 0


@pytest.mark.parametrize("kind", ["safety", "legality"])
def test_safety_is_never_counted(cake, kind):
    found = cake(TEXT, "--write-baseline", kind=kind)
    assert found.exit_code == 1 and "error[acme/few]" in found.stdout and not Path("cake-baseline.json").exists()
    Path("cake-baseline.json").write_text('{"schema": 1, "counts": {"k.cake": {"acme/few": 2}}}')
    found = cake(TEXT, "--baseline", "cake-baseline.json", kind=kind)
    assert found.exit_code == 3 and "error[rules/baseline]" in found.stdout and f"kind {kind}" in found.stdout


def test_a_text_with_errors_is_not_counted(cake):
    found = cake(TEXT.replace("launch 1", "launch M"), "--write-baseline")
    assert found.exit_code == 1 and not Path("cake-baseline.json").exists()


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no JSON"),
        ("\x00", "no JSON"),
        ("[]", "'schema' and 'counts'"),
        ('{"schema": 1}', "'schema' and 'counts'"),
        ('{"schema": 1, "counts": {}, "more": 1}', "'schema' and 'counts'"),
        ('{"schema": 2, "counts": {}}', "schema 1"),
        ('{"schema": true, "counts": {}}', "schema 1"),
        ('{"schema": 1, "counts": {"a": 1}}', "no counts by rule"),
        ('{"schema": 1, "counts": {"a": {"acme/few": 0}}}', "no positive integer"),
        ('{"schema": 1, "counts": {"a": {"acme/few": true}}}', "no positive integer"),
        ('{"schema": 1, "counts": {"a": {"acme/few": 1, "acme/few": 2}}}', "stands twice"),
        ("[" * 100000, "no JSON"),
    ],
)
def test_a_damaged_baseline_is_refused(cake, text, said):
    Path("cake-baseline.json").write_text(text)
    found = cake(TEXT, "--baseline", "cake-baseline.json")
    assert found.exit_code == 3 and "error[rules/baseline]" in found.stdout and said in found.stdout


def test_options_of_a_baseline_that_mean_nothing_are_refused(cake):
    assert cake(TEXT, "--baseline", "nowhere.json").exit_code == 2
    assert cake(TEXT, "--write-baseline", "--arch", "sm90").exit_code == 2
    assert cake(TEXT, "--write-baseline", "--prune-baseline").exit_code == 2
    assert CliRunner().invoke(app, ["check", "-", "--write-baseline"], input=TEXT).exit_code == 2
