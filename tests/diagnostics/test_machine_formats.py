"""JSON against its published schema, SARIF against the whole schema of its standard, GitHub commands."""

from __future__ import annotations

import json

import jsonschema
import pytest
from formats import SARIF, assert_told, validator

from cake_core.diagnostics import Diagnostic, Related, Severity, Witness, render
from cake_core.diagnostics.catalog import core_table
from cake_core.diagnostics.categories import CODES, NAMESPACES, OF_THE_TOOL, Category, category_of
from cake_core.diagnostics.json import SCHEMA_FILE, document
from cake_core.source import NOWHERE, Span

SPAN = Span("dir/a b,c.cake", 3, 5, 4, 2)
FOUND = [
    Diagnostic(
        "type/unknown-name",
        "'x' is 100%\nunknown: a, b",
        SPAN,
        role="math",
        why="so",
        fix="do",
        related=(Related("seen", SPAN), Related("unplaced", NOWHERE)),
    ),
    Diagnostic("acme/own-code", "a stranger's", severity=Severity.WARNING, rule_version="1.2"),
    Diagnostic("type/unknown-name", "a note", Span("b.cake", 1, 2, 1, 7), Severity.NOTE, iteration="k = 0"),
]
SHOWN = Diagnostic(
    "core/slot-race",
    "two meet",
    SPAN,
    witness=Witness((("M", 4),), ("load: is at a, 100%", "math: has ended", "load: has started b"), True, (SPAN, None, Span("b.cake", 1, 2, 1, 7))),
)


def schema() -> dict:
    return json.loads(SCHEMA_FILE.read_text())


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("found", [[], FOUND, FOUND[:1], FOUND[1:2]])
def test_json_is_as_its_schema_says(found):
    data = json.loads(render(found, [], "json"))
    jsonschema.validate(data, schema())
    assert data["outcome"] == ("errors" if any(d.severity is Severity.ERROR for d in found) else "clean")
    assert len(data["diagnostics"]) == len(found)


def test_json_says_all_that_a_finding_says():
    (d,) = json.loads(render(FOUND[:1], [], "json"))["diagnostics"]
    assert d["span"] == {"file": "dir/a b,c.cake", "line": 3, "column": 5, "end_line": 4, "end_column": 2}
    assert (d["code"], d["severity"], d["role"], d["why"], d["fix"]) == ("type/unknown-name", "error", "math", "so", "do")
    assert d["related"] == [{"message": "seen", "span": d["span"]}, {"message": "unplaced", "span": None}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema_version": 2},
        {"outcome": "proved"},
        {"unheard_of": 1},
        {"diagnostics": [{"code": "type/x"}]},
        {"builds": [{"kernel": "k"}]},
        {"files": [{"file": "a", "state": "odd"}]},
    ],
)
def test_the_schema_refuses_what_is_not_of_it(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document([]) | wrong, schema())


def test_sarif_has_the_shape_of_the_standard():
    log = json.loads(render(FOUND, [], "sarif"))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    ids = [r["id"] for r in driver["rules"]]
    assert driver["name"] == "cake" and len(ids) == len(set(ids))
    assert set(core_table()) <= set(ids), "rules that did not fire are listed too"
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            region = place["physicalLocation"]["region"]
            assert all(region[k] >= 1 for k in ("startLine", "startColumn", "endLine", "endColumn"))
    by_level = {r["level"]: r for r in run["results"]}
    assert by_level["error"]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "dir/a%20b%2Cc.cake"
    assert len(by_level["error"]["relatedLocations"]) == 1, "a place that no text has is no location"
    assert by_level["warning"]["locations"] == []


def test_github_commands_are_escaped_and_one_line_each():
    lines = render(FOUND, [], "github").splitlines()
    assert lines[1] == (
        "::error file=dir/a b%2Cc.cake,line=3,endLine=4,title=type/unknown-name::'x' is 100%25%0Aunknown: a, b%0Aseen (dir/a b,c.cake:3:5)%0Aunplaced%0Awhy: so%0Afix: do"
    )
    assert lines[0] == "::notice file=b.cake,line=1,endLine=1,col=2,endColumn=6,title=type/unknown-name::a note"
    assert lines[2] == "::warning title=acme/own-code::a stranger's"


@pytest.mark.parametrize("found", [[], FOUND, [SHOWN], [*FOUND, SHOWN]])
def test_every_format_tells_the_same(found):
    assert_told(found)


@pytest.mark.parametrize("confirmed", [True, False, None])
def test_whether_an_example_was_executed_is_said(confirmed):
    d = Diagnostic("core/index-bounds", "outside", SPAN, witness=Witness((("M", 4),), (), confirmed))
    assert_told([d])
    words = {True: "M = 4; the event machine goes wrong there too", False: "M = 4; not confirmed by the event machine", None: "M = 4; not executed"}
    assert f"for example: {words[confirmed]}" in render([d], [], "text") and words[confirmed] in render([d], [], "github")


@pytest.mark.parametrize(("confirmed", "words"), [(True, "goes wrong there too (race: x)"), (False, "machine, which finds another fault (race: x)")])
def test_which_fault_was_found_is_said(confirmed, words):
    d = Diagnostic("core/deadlock", "hangs", SPAN, witness=Witness((("M", 4),), (), confirmed, fault="race: x"))
    assert_told([d])
    assert words in render([d], [], "text") and words in render([d], [], "github")
    assert json.loads(render([d], [], "json"))["diagnostics"][0]["witness"]["fault"] == "race: x"


def test_a_witness_is_a_flow_an_agent():
    (result,) = json.loads(render([SHOWN], [], "sarif"))["runs"][0]["results"]
    (flow,) = result["codeFlows"]
    assert flow["message"]["text"] == "M = 4; the event machine goes wrong there too"
    assert [(t["id"], [s["executionOrder"] for s in t["locations"]]) for t in flow["threadFlows"]] == [("load", [1, 3]), ("math", [2])]
    assert "physicalLocation" not in flow["threadFlows"][1]["locations"][0]["location"], "who has ended stands nowhere"


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": "2.0.0"},
        {"runs": [{}]},
        {"runs": [{"tool": {"driver": {}}}]},
        {
            "runs": [
                {
                    "tool": {"driver": {"name": "x"}},
                    "results": [{"message": {"text": "m"}, "ruleId": "a/b", "ruleIndex": -2, "level": "error", "locations": []}],
                }
            ]
        },
        {
            "runs": [
                {
                    "tool": {"driver": {"name": "x"}},
                    "results": [{"message": {"text": "m"}, "ruleId": "a/b", "ruleIndex": 0, "level": "fatal", "locations": []}],
                }
            ]
        },
    ],
)
def test_the_schema_of_sarif_refuses_what_is_not_of_it(wrong):
    jsonschema.Draft4Validator.check_schema(json.loads(SARIF.read_text()))
    log = json.loads(render([], [], "sarif"))
    validator(SARIF).validate(log)
    with pytest.raises(jsonschema.ValidationError):
        validator(SARIF).validate(log | wrong)


def test_every_code_has_a_category_or_concerns_the_tool():
    tool = {"config", "plugin", "review", "rules", "runtime"}
    table = core_table()
    for code in table:
        namespace = code.partition("/")[0]
        assert category_of(code) is not None or namespace in tool or code in OF_THE_TOOL, code
    named = {c for codes in CODES.values() for c in codes.split()}
    assert {c for c in named if c.partition("/")[0] not in ("core", "ptx") and c != "type/clip"} <= set(table), "no code that is gone"
    assert len(named) == sum(len(codes.split()) for codes in CODES.values()), "none stands twice"
    assert set(NAMESPACES.values()) | set(CODES) <= set(Category) and len(Category) == 7
    assert category_of("acme/own") is None and category_of("rules/undecided") is Category.PROGRAM_SAFETY
