"""The JSON Schemas of rule.yaml and pack.yaml: as they are kept in docs/schema, and as strict as the loader about structure."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.diagnostics import CakeError
from cake_core.rules import load, load_pack, load_rule, packfile, rulebook
from cake_core.rules.fileschema import pack_schema, project_schema, rule_schema
from cake_core.rules.settings import settings
from cake_core.rules.strict import Mapping, Node, Scalar, read

STORED = Path(__file__).resolve().parents[2] / "docs" / "schema"
MADE = {"rule": rule_schema(), "pack": pack_schema(), "project": project_schema()}
BOOK = rulebook()
RULES = {r.id: r for p in BOOK.packs for r in p.rules}
#: Codes of what a file's structure has wrong; an expression, an automaton and a name in one are the loader's alone.
STRUCTURE = {"rules/key", "rules/value", "rules/id", "rules/schema", "rules/unknown-column", "rules/unknown-word"}
#: A rule of each shape, between them with most keys.
SAMPLES = ("core/slot-race", "core/missing-proxy-fence", "core/tensor-lifetime", "core/register-budget", "performance/bank-conflict")


def plain(node: Node):
    match node:
        case Scalar(value):
            return value
        case Mapping(entries):
            return {k.value: plain(v) for k, v in entries}
    return [plain(i) for i in node.items]


def says(which: str, value) -> bool:
    """Whether the schema admits it."""
    return jsonschema.Draft202012Validator(MADE[which]).is_valid(value)


@pytest.mark.parametrize("which", MADE)
def test_the_schema_is_a_schema_and_is_kept_as_it_is_made(which):
    jsonschema.Draft202012Validator.check_schema(MADE[which])
    assert json.loads((STORED / f"{which}.schema.json").read_text(encoding="utf-8")) == MADE[which], "cake rules schema writes it"
    printed = CliRunner().invoke(app, ["rules", "schema", which])
    assert printed.exit_code == 0 and printed.stdout == (STORED / f"{which}.schema.json").read_text(encoding="utf-8")


def test_every_key_that_is_read_is_in_it():
    own = {k for _, keys in load.SHAPES.values() for k in keys}
    assert set(MADE["rule"]["properties"]) == {*load.COMMON, *own} and set(MADE["pack"]["properties"]) == set(packfile.PACK)


@pytest.mark.parametrize("id", RULES)
def test_every_built_in_rule_is_one(id):
    jsonschema.Draft202012Validator(MADE["rule"]).validate(plain(read(RULES[id].path)))


@pytest.mark.parametrize("pack", [p.folder for p in BOOK.packs], ids=lambda p: p.name)
def test_every_built_in_pack_is_one(pack):
    jsonschema.Draft202012Validator(MADE["pack"]).validate(plain(read(pack / "pack.yaml")))


def loaded(tmp_path, value) -> set[str]:
    """The codes that the loader refuses a rule with, none where it takes it."""
    path = tmp_path / "rule.yaml"
    path.write_text(json.dumps(value), encoding="utf-8")  # JSON is YAML
    try:
        load_rule(path)
    except CakeError as error:
        return {d.code for d in error.diagnostics}
    return set()


def changed(value: dict):
    """Files that differ from a right one in one key: left out, misspelt, or with a value of another kind."""
    for key in value:
        yield key, {k: v for k, v in value.items() if k != key}
        yield key, {(k if k != key else k + "x"): v for k, v in value.items()}
        for other in ([], {}, 12, True, "nonsense", "", [12], {"nonsense": 1}, {"nonsense": {}}, ["nonsense"]):
            yield key, value | {key: other}
    yield "more", value | {"more": 1}


@pytest.mark.parametrize("id", SAMPLES)
def test_what_the_loader_refuses_for_its_structure_the_schema_refuses(tmp_path, id):
    """And what the loader takes, it takes. `at` names a variable, and `fix` may be left out where `help` has no braces: these are no structure."""
    right = plain(read(RULES[id].path))
    assert not loaded(tmp_path, right) and says("rule", right)
    refused = 0
    for key, value in changed(right):
        codes, admitted = loaded(tmp_path, value), says("rule", value)
        if not codes:
            assert admitted, (key, value.get(key))
        elif codes <= STRUCTURE and key not in ("at", "fix"):
            refused += 1
            assert not admitted, (key, value.get(key), codes)
    assert refused > 50


@pytest.mark.parametrize(
    "where, value, right",
    [
        (("match", "a"), "access", True),
        (("match", "a"), {"access": {}}, True),
        (("match", "a"), {"access": {"mode": "write"}}, True),
        (("match", "a"), {"access": {"mode": ["write", "read"]}}, True),
        (("match", "a"), {"access": {"role": "none"}}, True),
        (("match", "a"), {"access": {"op": "some.verb"}}, True),
        (("match", "a"), {"access": {"atomic": True}}, True),
        (("match", "a"), {"access": {"mode": "wrote"}}, False),
        (("match", "a"), {"access": {"mood": "write"}}, False),
        (("match", "a"), {"access": {"order": "first"}}, False),
        (("match", "a"), {"access": {"atomic": "yes"}}, False),
        (("match", "a"), {"access": {"lo": 3}}, False),
        (("match", "a"), {"access": {}, "wait": {}}, False),
        (("match", "a"), "acess", False),
        (("match", "9a"), "access", False),
        (("budget",), {"rlimit": 10**12}, False),
        (("authors",), [{"kind": "agent"}], False),
        (("authors",), [{"name": "A", "kind": "robot"}], False),
        (("also",), [{"at": "a", "say": "s", "over": "x in wait"}], False),
        (("also",), [{"say": "s"}], False),
        (("define",), {"twice": {"of": {"x": "int"}, "as": "x + x"}}, True),
        (("define",), {"twice": {"of": {"x": "number"}, "as": "x + x"}}, False),
        (("status",), "removed", False),
        (("until",), "0.2", False),
        (("since",), "1", False),
    ],
)
def test_the_loader_and_the_schema_agree(tmp_path, where, value, right):
    head = {"schema": 1, "id": "acme/x", "title": "t", "kind": "safety", "level": "error", "status": "draft", "precision": "proof", "since": "0.1"}
    rule = head | {"owner": "o", "why": "w", "message": "m", "match": {"a": "access"}, "require": "true"}
    *path, last = where
    inner = rule
    for key in path:
        inner = inner[key]
    inner.pop("a", None) if last == "9a" else None
    inner[last] = value
    assert (not loaded(tmp_path, rule), says("rule", rule)) == (right, right)


@pytest.mark.parametrize(
    "change, right",
    [
        ({}, True),
        ({"requires": {"cake": ">=0.1", "packs": ["core", {"name": "ptx", "version": ">=0.1"}]}}, True),
        ({"suites": {"default": [{"status": "stable"}], "all": []}}, True),
        ({"suites": {}}, False),
        ({"suites": {"default": [{"state": "stable"}]}}, False),
        ({"suites": {"default": [{"status": "stabel"}]}}, False),
        ({"version": "0.1"}, False),
        ({"name": "Acme"}, False),
        ({"removed": [{"id": "acme/gone", "since": "0.1"}]}, False),
        ({"removed": [{"id": "acme/gone", "since": "0.1", "reason": "r"}]}, True),
        ({"requires": {"cakes": ">=0.1"}}, False),
        ({"requires": {"predicates": ["orderd"]}}, False),
        ({"soundness": [{"rules": []}]}, False),
        ({"more": 1}, False),
    ],
)
def test_the_loader_and_the_schema_agree_about_packs(tmp_path, change, right):
    pack = {"schema": 1, "name": "acme", "namespace": "acme", "version": "0.1.0", "suites": {"default": [{"status": "stable"}]}} | change
    (tmp_path / "rules" / "x").mkdir(parents=True)
    rule = {"schema": 1, "id": "acme/x", "title": "t", "kind": "style", "level": "info", "status": "draft", "precision": "high", "since": "0.1"}
    (tmp_path / "rules" / "x" / "rule.yaml").write_text(
        json.dumps(rule | {"owner": "o", "why": "w", "message": "m", "match": {"k": "kernel"}, "require": "true"})
    )
    (tmp_path / "pack.yaml").write_text(json.dumps(pack))
    try:
        load_pack(tmp_path)
        taken = True
    except CakeError:
        taken = False
    assert (taken, says("pack", pack)) == (right, right)


PROJECT = """[rules]
suite = "strict"
packs = ["core", {name = "acme", version = ">=0.1, <0.4"}]
[rules.levels]
performance = "info"
[[rules.waivers]]
rule = "core/register-budget"
level = "warning"
reason = "the assembler was asked"
owner = "A. Person"
"""


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        ("", "", True),
        (PROJECT, "", True),
        ("suite =", "suit =", False),
        ('"strict"', '" "', False),
        ('"strict"', "1", False),
        ('"core", ', "1, ", False),
        ("packs = [", "packs = [[", False),
        ('name = "acme"', 'title = "acme"', False),
        (">=0.1, <0.4", "~1", False),
        (">=0.1, <0.4", "", True),
        (">=0.1, <0.4", " == 0.1 ", True),
        ('= "info"', '= "infos"', False),
        ('performance = "info"', "", True),
        ('owner = "A. Person"\n', "", False),
        ('owner = "A. Person"', "owner = 3", False),
        ('reason = "the', 'until = "2030"\nreason = "the', False),
        ('level = "warning"', 'level = "warn"', False),
        ("[[rules.waivers]]", "[rules.waivers]", False),
        ("[rules]\n", "[build]\n[rules]\n", False),
    ],
)
def test_the_loader_and_the_schema_agree_about_projects(tmp_path, old, new, right):
    text = PROJECT.replace(old, new, 1)
    (tmp_path / "cake.toml").write_text(text)
    try:
        settings(tmp_path)
        taken = True
    except CakeError:
        taken = False
    try:
        admitted = says("project", tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        admitted = False
    assert (taken, admitted) == (right, right)


def test_the_project_of_the_docs_is_one():
    page = (STORED.parent / "packs.md").read_text(encoding="utf-8")
    (example,) = [block.partition("```")[0] for block in page.split("```toml\n") if block.startswith("[rules]")]
    assert says("project", tomllib.loads(example)) and "project.schema.json" in page


@pytest.mark.parametrize("shape", load.SHAPES)
def test_a_new_rule_names_a_schema_that_is_there_and_admits_it(tmp_path, monkeypatch, shape):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["rules", "new", "acme/x", "--shape", shape, "--owner", "A. Person"]).exit_code == 0
    for which, file in (("rule", Path("cake-rules-acme/cake_rules_acme/rules/x/rule.yaml")), ("pack", Path("cake-rules-acme/cake_rules_acme/pack.yaml"))):
        line = file.read_text().splitlines()[0]
        assert line.startswith("# yaml-language-server: $schema=")
        assert json.loads((file.parent / line.partition("=")[2]).read_text()) == MADE[which]
        assert says(which, plain(read(file)))
