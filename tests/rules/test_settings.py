"""`cake.toml`: levels, suites, needed packs and waivers; what a suite and a level can't do to a stable rule of safety or legality."""

from __future__ import annotations

import json
import string
from pathlib import Path

import hypothesis
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from cake_core import load
from cake_core.cli.app import app
from cake_core.diagnostics import CakeError, Severity
from cake_core.rules import rulebook
from cake_core.rules.schema import Level, Need
from cake_core.rules.settings import project, settings

TEXT = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 1 warp at 0 {\n    warp.sync\n  }\n}\n"
RULE = """schema: 1
id: acme/{slug}
title: A role of one warp
kind: {kind}
level: {level}
status: {status}
precision: high
since: "0.1"
owner: someone
match: {{r: {{role: {{}}}}}}
require: r.warps > 1
message: "role '{{r.id}}' has one warp"
why: It is small.
"""
PACK = """schema: 1
name: acme
namespace: acme
version: "0.3.0"
suites: {default: [{status: stable, kind: style}, {status: stable, kind: legality}], most: [{kind: style}, {kind: performance}, {kind: portability}]}
removed: [{id: acme/gone, since: "0.2", reason: it told of what is right, replaced_by: acme/hint}]
"""
WAIVER = '[[rules.waivers]]\nrule = "acme/law"\nlevel = "warning"\nreason = "one warp is what this machine has"\nowner = "A. Person"\n'


def rule(slug: str, kind: str, level: str = "warning", status: str = "stable", more: str = "") -> str:
    return RULE.format(slug=slug, kind=kind, level=level, status=status) + more


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A project with a pack of its own: `law` ends a build, `hint`, `early` and `idea` are advice, in preview and a draft."""
    pack = tmp_path / ".cake" / "rules" / "acme"
    for slug, text in {
        "law": rule("law", "legality", "error"),
        "hint": rule("hint", "style", more="related: [{id: acme/hnt, type: renamed}]\n"),
        "early": rule("early", "performance", status="preview"),
        "idea": rule("idea", "portability", status="draft"),
        "late": rule("late", "style", "info", "deprecated", 'until: "0.9"\nreplaced_by: acme/hint\n'),
    }.items():
        (pack / "rules" / slug).mkdir(parents=True)
        (pack / "rules" / slug / "rule.yaml").write_text(text)
    (pack / "pack.yaml").write_text(PACK)
    (tmp_path / "k.cake").write_text(TEXT)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(folder):
    """`said(toml)`: what the file says, as a project's settings."""

    def write(text: str):
        (folder / "cake.toml").write_text(text)
        return settings()

    return write


def book(of=None, **how):
    return rulebook(settings=of, **how)


def levels(of) -> dict[str, str]:
    return {r.id.removeprefix("acme/"): str(r.level) for r in of.rules if r.id.startswith("acme/")}


def refused(run, *args, **kwargs):
    with pytest.raises(CakeError) as caught:
        run(*args, **kwargs)
    return caught.value.diagnostics


def cake(*args):
    return CliRunner().invoke(app, list(map(str, args)))


# --- what the file may say ---------------------------------------------------------------------------------------


def test_a_file_is_read(said):
    of = said('[rules]\nsuite = "most"\npacks = ["core", {name = "acme", version = ">=0.3"}]\n[rules.levels]\n"acme/hint" = "info"\n' + WAIVER)
    assert of.suite == "most" and of.packs == (Need("core"), Need("acme", ">=0.3"))
    assert [(s.name, s.level) for s in of.levels] == [("acme/hint", Level.INFO)]
    assert of.waivers[0].to_dict() == {
        "rule": "acme/law",
        "level": "warning",
        "reason": "one warp is what this machine has",
        "owner": "A. Person",
    }


@pytest.mark.parametrize(
    "text, code, line, message",
    [
        ("[rules]\nsuite = 'most", "config/toml", 2, "no TOML"),
        ("[rules]\nsuite = 1\n", "config/value", 2, "'suite' is a text"),
        (f"[rules]\nsuite = {'9' * 5000}\n", "config/toml", 2, "no TOML"),
        (f"[rules]\nsuite = {'[' * 5000}\n", "config/toml", 2, "no TOML"),
        ("[rules]\nsuit = 'most'\n", "config/key", 2, "no key 'suit'"),
        ("[rule]\n", "config/key", 1, "no key 'rule'"),
        ("rules = 3\n", "config/value", 1, "'rules' is a table"),
        ("[rules]\npacks = 'core'\n", "config/value", 2, "'packs' is a list"),
        ("[rules]\npacks = [1]\n", "config/value", 2, "a list of names"),
        ("[rules]\npacks = [{name = 'core', version = '~1'}]\n", "config/value", 2, "'~1' is no bound"),
        ("[rules]\npacks = [{name = 'core', versoin = '1'}]\n", "config/key", 2, "no key 'versoin'"),
        ("[rules]\nlevels = []\n", "config/value", 2, "'levels' is a table"),
        ("[rules.levels]\n'acme/hint' = 'of'\n", "config/value", 2, "a level is one of"),
        ("[rules.levels]\n'acme/hint' = []\n", "config/value", 2, "a level is one of"),
        ("[[rules.waivers]]\nrule = 'acme/law'\nlevel = 'info'\nreason = 'r'\n", "config/key", 2, "lacks the key 'owner'"),
        ("[[rules.waivers]]\nrule = 'acme/law'\nlevel = 'info'\nreason = ' '\nowner = 'o'\n", "config/value", 2, "'reason' is a text"),
        ("[[rules.waivers]]\nlevel = 'info'\n", "config/key", 1, "lacks the key 'rule'"),
        (WAIVER + WAIVER, "config/value", 2, "said twice"),
        (WAIVER + "[rules.levels]\n'acme/law' = 'error'\n", "config/value", 2, "said twice"),
    ],
)
def test_what_is_wrong_with_a_file(said, text, code, line, message):
    found = refused(said, text)
    assert any((d.code, d.span.line) == (code, line) and d.span.file == "cake.toml" and message in d.message for d in found), found
    result = cake("check", "k.cake")
    assert result.exit_code == 2 and code in result.output and "Traceback" not in result.output


def test_no_text_and_no_file(folder, said):
    (folder / "cake.toml").write_bytes(b"\xff")
    assert refused(settings)[0].message == "'cake.toml' is not UTF-8"
    (folder / "cake.toml").unlink()
    (folder / "cake.toml").mkdir()
    assert "is no file" in refused(settings)[0].message


def test_all_that_is_wrong_is_told_at_once(said):
    found = refused(said, "[rules]\nsuite = 1\npacks = 2\n[rules.levels]\n'a/b' = 'x'\n'a/c' = 'y'\n")
    assert len(found) == 4


def test_the_file_is_that_of_the_folder_or_above_it_within_the_repository(folder, said, monkeypatch):
    said('[rules]\nsuite = "most"\n')
    inner = folder / "kernels" / "copy"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert project() == folder and settings().suite == "most" and settings().span.file == "../../cake.toml"
    assert "acme/law" in {r.id for r in book(settings()).rules}, "the packs of the project are beside the file"
    (folder / "kernels" / ".git").mkdir()
    assert project() == inner and settings().suite == "default"


def test_a_working_directory_that_is_gone_is_no_internal_error(folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert settings().suite == "default" and cake("rules", "list").exit_code == 0


@hypothesis.settings(max_examples=150, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(string.printable)), min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused(said, damage):
    text = list(f'[rules]\nsuite = "most"\npacks = ["core", {{name = "acme", version = ">=0.3"}}]\n[rules.levels]\n"acme/hint" = "info"\n{WAIVER}')
    for at, char in damage:
        text[at % len(text)] = char
    try:
        rulebook(settings=said("".join(text)))
    except CakeError as error:
        assert all(d.code.partition("/")[0] in ("config", "rules") for d in error.diagnostics)


# --- what is judged ----------------------------------------------------------------------------------------------


def test_a_suite_takes_up_hints_and_never_lets_go_of_the_law(folder):
    assert levels(book()) == {"law": "error", "hint": "warning", "late": "info"}
    assert levels(book(suite="most")) == {"law": "error", "hint": "warning", "late": "info", "early": "warning"}
    assert {r.id for r in book().rules if r.id.startswith("core/")} == {r.id for r in book(suite="most").rules if r.id.startswith("core/")}
    (found,) = refused(book, suite="mots")
    assert found.code == "config/unknown-suite" and found.fix == "did you mean 'most'?"


def test_a_suite_of_the_command_is_before_that_of_the_file(said):
    of = said('[rules]\nsuite = "most"\n')
    assert book(of).suite == "most" and book(of, suite="default").suite == "default"


def test_a_draft_is_judged_if_it_is_named(said):
    assert "idea" not in levels(book(preview=True)) and "early" in levels(book(preview=True))
    assert levels(book(also=("acme/idea",)))["idea"] == "warning"
    assert levels(book(said("[rules.levels]\n'acme/idea' = 'info'\n")))["idea"] == "info"
    (found,) = refused(book, also=("acme/ida",))
    assert found.code == "config/unknown-rule" and found.fix == "did you mean 'acme/idea'?"


def test_levels_of_a_rule_are_before_those_of_its_namespace(said):
    of = said("[rules.levels]\nacme = 'error'\n'acme/hint' = 'info'\n")
    assert levels(book(of)) == {"law": "error", "hint": "info", "late": "error"}
    assert book(of).notes == ()


@pytest.mark.parametrize(
    "text, code, message",
    [
        ("'acme/law' = 'warning'", "config/waiver", "'warning' is below its level 'error'"),
        ("'core/arrival-count' = 'off'", "config/waiver", "'core/arrival-count' is a stable rule of"),
        ("core = 'warning'", "config/waiver", "stable rules of safety or legality below their level"),
        ("acme = 'off'", "config/waiver", "1 stable rule of safety or legality below their level: 'acme/law'"),
        ("'acme/hnit' = 'info'", "config/unknown-rule", "there is no rule 'acme/hnit'"),
        ("acem = 'info'", "config/unknown-rule", "no pack has the namespace 'acem'"),
        ("'acme/gone' = 'info'", "config/unknown-rule", "gone since version 0.2 of the pack 'acme'"),
    ],
)
def test_what_a_level_can_not_do(said, text, code, message):
    (found,) = refused(book, said(f"[rules.levels]\n{text}\n"))
    assert (found.code, found.span.line) == (code, 2) and message in found.message, found


def test_an_old_name_is_taken_and_told(said):
    of = book(said("[rules.levels]\n'acme/hnt' = 'info'\n'acme/late' = 'warning'\n"))
    assert levels(of) == {"law": "error", "hint": "info", "late": "warning"}
    assert [(d.code, d.severity, d.message) for d in of.notes] == [
        ("config/old-rule", Severity.WARNING, "rule 'acme/hnt' is called 'acme/hint' now"),
        ("config/old-rule", Severity.WARNING, "rule 'acme/late' is deprecated: version 0.9 of the pack 'acme' is without it"),
    ]


def test_a_rule_has_one_level_by_whatever_names(said):
    found = refused(book, said("[rules.levels]\n'acme/hnt' = 'info'\n'acme/hint' = 'error'\n"))
    assert ("config/value", 3) in [(d.code, d.span.line) for d in found] and "as 'acme/hnt' and as 'acme/hint'" in found[0].message + found[
        -1
    ].message


def test_a_pack_that_the_project_needs_must_be_there(said):
    (found,) = refused(book, said("[rules]\npacks = ['acne']\n"))
    assert found.code == "rules/pack" and found.fix == "did you mean 'acme'?"
    (found,) = refused(book, said("[rules]\npacks = [{name = 'acme', version = '>=1'}]\n"))
    assert found.code == "rules/pack" and "there is 0.3.0 of" in found.message
    assert cake("check", "k.cake").exit_code == 3


# --- waivers -----------------------------------------------------------------------------------------------------


def test_a_waiver_lets_pass_and_everything_says_so(folder, said, capfd):
    assert cake("check", "k.cake").exit_code == 1
    said(WAIVER)
    result = cake("check", "k.cake")
    assert result.exit_code == 0 and "warning[acme/law]" in result.output
    assert "  waived    acme/law, warning: one warp is what this machine has (A. Person)" in result.output
    built = cake("build", "k.cake", "--json", "-o", folder / "art")
    manifest = json.loads(built.output)["builds"][0]["manifest"]
    assert manifest["waived"] == [{"rule": "acme/law", "level": "warning", "reason": "one warp is what this machine has", "owner": "A. Person"}]
    assert manifest["compiler"]["suite"] == "default"
    assert load(folder / "art").manifest.waived == tuple(manifest["waived"])
    assert "these rules waived: acme/law" in capfd.readouterr().err
    (kernel,) = json.loads(cake("check", "k.cake", "--json").output)["files"][0]["kernels"]
    assert kernel["waived"] == manifest["waived"]


@pytest.mark.parametrize(
    "change, code, message",
    [
        (("acme/law", "acme/hint"), "config/waiver", "'acme/hint' needs no waiver"),
        (('"warning"', '"error"'), "config/waiver", "waives nothing: 'error' is not below 'error'"),
        (("acme/law", "acme/lawn"), "config/unknown-rule", "there is no rule 'acme/lawn'"),
        (("acme/law", "acme/gone"), "config/unknown-rule", "gone since version 0.2"),
    ],
)
def test_what_is_no_waiver(said, change, code, message):
    (found,) = refused(book, said(WAIVER.replace(*change)))
    assert (found.code, found.span.line) == (code, 2) and message in found.message


def test_a_category_that_a_waived_rule_covers_is_not_proved(folder, said):
    """To waive a rule is not to prove what it covers: that is left open, and takes a permission of its own."""
    said(WAIVER.replace("acme/law", "core/slot-race").replace('"warning"', '"off"'))
    result = cake("check", "k.cake", "--rule", "acme/law")
    assert result.exit_code == 1 and "rules/not-analysed" not in result.output, "the law is violated first"
    said(WAIVER.replace("acme/law", "core/slot-race").replace('"warning"', '"off"') + WAIVER)
    result = cake("check", "k.cake")
    assert result.exit_code == 1 and "error[rules/not-analysed]" in result.output and "left open: data races" in result.output
    (race,) = [r for r in rulebook().rules if r.id == "core/slot-race"]
    left = [c.replace(" ", "-") for c in race.covers]
    assert cake("check", "k.cake", *(w for c in left for w in ("--allow-unproved", c))).exit_code == 0


def test_rules_are_listed_at_the_levels_that_the_project_has_them(folder, said):
    said("[rules.levels]\n'acme/hint' = 'error'\n" + WAIVER)
    rows = {r["id"]: (r["level"], r["judged"]) for r in json.loads(cake("rules", "list", "--json").output)["listed"]["rules"]}
    assert rows["acme/hint"] == ("error", True) and rows["acme/law"] == ("warning", True) and rows["acme/idea"] == ("warning", False)


def test_what_a_deprecated_rule_finds_says_that_it_will_go(folder):
    said = " ".join(cake("check", "k.cake").output.split())
    assert "rule 'acme/late' is deprecated: version 0.9 of the pack 'acme' is without it; use 'acme/hint' instead" in said


def test_the_file_of_the_docs_is_one(said):
    page = (Path(__file__).resolve().parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")
    (block,) = [b.partition("```")[0] for b in page.split("```toml\n")[1:] if b.startswith("[rules]")]
    of = book(said(block))
    assert [w.rule for w in of.waivers] == ["core/register-budget"] and of.notes == ()
