"""`cake rules lint`: each thing that it says, the text that gives it and the one beside it that does not."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.rules import find_packs, load_pack
from cake_core.rules.lint import lint

RULE = """schema: 1
id: acme/small-role
title: A role of one warp
kind: style
level: warning
status: stable
precision: proof
since: "0.1"
owner: someone
match: {r: {role: {}}}
require: r.warps > 1
message: "role '{r.id}' is small"
help: make it larger
why: It is.
references: [{title: "A document, section 1"}]
"""


@pytest.fixture
def pack(small_pack):
    def write(rule: str, define: str = "", **others: str):
        return small_pack({slug.replace("_", "-"): {"rule.yaml": text} for slug, text in {"small-role": rule, **others}.items()}, define)

    return write


def said(root) -> list[tuple[str, str]]:
    loaded = load_pack(root)
    return [(d.code, d.message) for d in lint([loaded], loaded.rules)]


def test_of_a_finished_rule_nothing_is_said(pack):
    assert said(pack(RULE)) == []


@pytest.mark.parametrize(
    "old, new, code, message",
    [
        ("It is.", "TODO.", "rules/unfinished", "'acme/small-role' still says TODO, in 'why'"),
        ("owner: someone", "owner: TODO", "rules/unfinished", "'acme/small-role' still says TODO, in 'owner'"),
        ("\"role '", "\"Role '", "rules/style", "'message' of 'acme/small-role' begins with a capital"),
        ('is small"', 'is small."', "rules/style", "'message' of 'acme/small-role' ends with a period"),
        ("\"role '{r.id}' is small\"", "\"use larger roles than '{r.id}'\"", "rules/style", "'message' of 'acme/small-role' is advice"),
        ("\"role '{r.id}' is small\"", "'role \"{r.id}\" is small'", "rules/style", "'message' of 'acme/small-role' has double quotes"),
        ("A role of", "a role of", "rules/style", "'title' of 'acme/small-role' begins in lower case"),
        ("A role of one warp", f"A {'long ' * 20}title", "rules/style", "'title' of 'acme/small-role' has 107 characters"),
        ("make it larger", "Make it larger", "rules/style", "'help' of 'acme/small-role' begins with a capital"),
        ("It is.", "It is", "rules/style", "'why' of 'acme/small-role' does not end its last sentence"),
        (
            'section 1"',
            'section 1", url: "https://x.org/blob/main/a.md"',
            "rules/style",
            "'references' of 'acme/small-role' links to a page that changes",
        ),
        ('references: [{title: "A document, section 1"}]\n', "", "rules/incomplete", "'acme/small-role' has no 'references'"),
        ("help: make it larger\n", "fix: make it larger\n", "rules/incomplete", "'acme/small-role' has no 'help'"),
        ("precision: proof", "precision: heuristic", "rules/incomplete", "'acme/small-role' has no 'limits'"),
        (
            "require:",
            'define: {unused: {of: {r: role}, as: "r.warps > 2"}}\nrequire:',
            "rules/unused",
            "'acme/small-role' defines 'unused' and does not use it",
        ),
        (
            "require:",
            "where: r.pad == 2 and r.warps < r.threads\nrequire:",
            "rules/pattern",
            "a condition of 'acme/small-role' could stand in the pattern of 'r'",
        ),
        ("require:", "where: r.pad in [1, 2]\nrequire:", "rules/pattern", "a condition of 'acme/small-role' could stand in the pattern of 'r'"),
    ],
)
def test_each_thing_is_said_of_the_text_that_has_it(pack, old, new, code, message):
    assert old in RULE
    assert said(pack(RULE.replace(old, new))) == [(code, message)]


def test_what_is_used_or_no_pattern_is_left_alone(pack):
    define = 'define: {small: {of: {r: role}, as: "r.warps < 2"}}\n'
    assert said(pack(RULE.replace("require: r.warps > 1", 'require: "not small(r)"'), define)) == []
    assert said(pack(RULE, define)) == [("rules/unused", "no rule of the pack 'acme' uses 'small'")]
    assert said(pack(RULE.replace("require:", "where: r.pad == r.warps and r.id != 'a' and r.pad > 2\nrequire:"))) == []


def test_a_slug_names_the_hazard(pack):
    assert ("rules/style", "the slug 'check-roles' says a check") in said(pack(RULE, check_roles=RULE.replace("small-role", "check-roles")))


def test_rules_that_say_the_same_are_found_whatever_their_variables_are_called(pack):
    more = (
        RULE.replace("small-role", "odd-role")
        .replace("{r: {", "{q: {")
        .replace("{r.id}", "{q.id}")
        .replace("r.warps > 1", "q.pad == 0 and q.warps > 1")
    )
    assert ("rules/overlap", "'acme/small-role' requires nothing that 'acme/odd-role' does not") in said(pack(RULE, odd_role=more))
    other = more.replace("q.warps > 1", "q.warps > 2")
    assert said(pack(RULE, odd_role=other)) == []
    narrower = more.replace("require:", "where: q.pad < q.warps\nrequire:")
    assert said(pack(RULE, odd_role=narrower)) == [], "one that matches less says something else"


def test_the_command_counts_and_ends_as_it_says(pack):
    def cake(*args):
        return CliRunner().invoke(app, ["rules", "lint", "--pack", str(root), "acme", *args], prog_name="cake")

    root = pack(RULE)
    assert (cake().exit_code, cake().output) == (0, "1 rule: nothing to say\n")
    root = pack(RULE.replace("It is.", "It is"))
    assert cake().exit_code == 0 and cake("--strict").exit_code == 1 and cake().output.endswith("1 rule: 1 warning\n")
    assert json.loads(cake("--json").output)["diagnostics"][0]["code"] == "rules/style"
    root = pack(RULE.replace("It is.", "TODO."))
    assert cake().exit_code == 1 and "1 rule: 1 error\n" in cake().output


def test_of_the_built_in_packs_nothing_is_said():
    packs = find_packs(local=None)
    rules = [r for p in packs for r in p.rules]
    assert len(rules) > 80 and lint(packs, rules) == ()
