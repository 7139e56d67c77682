"""Two versions of a rule compared as logic: which is looser, which the same, and that what is not shown counts as looser."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cake_core.review.compare import Direction, accepts_no_more, changes, judged
from cake_core.review.git import Entry, Version
from cake_core.review.snapshot import pack_folders
from cake_core.review.steps import Step, asked, next_version, step
from cake_core.rules import find_packs, load_pack, load_rule
from cake_core.rules.automaton import automaton

HEAD = """schema: 1
id: acme/one
title: One
kind: safety
level: error
status: stable
precision: proof
since: "1.0"
owner: A. Person
message: it is wrong
help: do it right
why: It is.
"""
RELATION = (
    HEAD
    + """define:
  wide: {of: {x: access}, as: x.buffer.swizzle >= 64}
match: {a: {access: {space: [shared, tensor], mode: write}}, b: {access: {}}}
where: |
  a.buffer == b.buffer and a.order < b.order
require: |
  implies(same_slot(a, b) and overlap(a, b), ordered(a, b)) and a.threads >= 32
"""
)
#: What has no value is looked at before it is asked for.
FAILS = RELATION.replace("a.threads >= 32", "(a.threads >= 32 or a.threads == none)")
PATH = (
    HEAD
    + """shape: path
from: {access: {space: shared, mode: write}}
to: {access: {space: shared, proxy: [async, tensor]}}
where: from.buffer == to.buffer
must_pass: [{fence: {kind: proxy_async}}, {fence: {kind: async_view}}]
of: anyone
within: agent
"""
)
PROTOCOL = (
    HEAD
    + """shape: protocol
resource: {kernel: {}}
events:
  alloc: {reserve: {}}
  use: {access: {space: tensor}}
  dealloc: {free: {}}
automaton: (alloc use* dealloc)?
"""
)
LOOSER, TIGHTER, SAME, UNKNOWN = Direction.LOOSER, Direction.TIGHTER, Direction.SAME, Direction.UNKNOWN


@pytest.fixture
def rule(tmp_path):
    def read(text: str):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text)
        return load_rule(path)

    return read


CASES = [
    # patterns
    (RELATION, "space: [shared, tensor], mode: write", "space: [shared], mode: write", LOOSER),
    (RELATION, "space: [shared, tensor], mode: write", "mode: write", TIGHTER),
    (RELATION, "space: [shared, tensor]", "space: [tensor, shared]", SAME),
    (RELATION, "b: {access: {}}", "b: {access: {mode: read}}", LOOSER),
    (RELATION, "b: {access: {}}", "b: {access: {}}, k: {kernel: {}}", LOOSER),
    (RELATION, "space: [shared, tensor], mode: write}}", "space: [shared, tensor], mode: write, id: x}}", LOOSER),
    # conditions on facts
    (RELATION, "a.order < b.order", "a.order < b.order and b.guarded", LOOSER),
    (RELATION, "a.order < b.order", "(a.order < b.order or b.guarded)", TIGHTER),
    (RELATION, "a.order < b.order", "b.order > a.order", SAME),
    (RELATION, "a.order < b.order", "a.order <= b.order", TIGHTER),
    (RELATION, "a.order < b.order", "a.order + 1 < b.order", LOOSER),
    (RELATION, "a.order < b.order", "not (a.order >= b.order)", SAME),
    (RELATION, "a.order < b.order", "a.order < b.order and a.mode != read", SAME),  # it is write
    (RELATION, "a.order < b.order", "a.order < b.order and b.mode in [read, write]", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order and b.warp != none", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order and (exists f in fence where f.order > a.order: f.order < b.order)", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order and count(f in fence where f.order > a.order) > 0", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order\nassume: a.order > 0", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order\nassume: a.buffer.swizzle > 0", UNKNOWN),  # and it fails where there is none
    # what is required
    (RELATION, "a.threads >= 32", "a.threads >= 64", TIGHTER),
    (RELATION, "a.threads >= 32", "a.threads >= 16", LOOSER),
    (RELATION, "a.threads >= 32", "a.threads > 31", SAME),
    (RELATION, "a.threads >= 32", "(a.threads >= 32 or wide(a))", LOOSER),
    (RELATION, "a.threads >= 32", "a.threads >= 32 and wide(a)", TIGHTER),
    (RELATION, " and overlap(a, b)", "", TIGHTER),
    (RELATION, "same_slot(a, b) and overlap(a, b)", "same_slot(a, b) and overlap(a, b) and a.guarded", LOOSER),
    (RELATION, "same_slot(a, b) and overlap(a, b)", "overlap(a, b) and same_slot(a, b)", SAME),
    (RELATION, "ordered(a, b)", "ordered(b, a)", UNKNOWN),
    (RELATION, "ordered(a, b)", "happens_before(a, b)", UNKNOWN),
    (RELATION, "a.threads >= 32", "(forall r in role: r.warps > 1)", UNKNOWN),
    # columns without a value, where the rule fails
    (RELATION, "a.threads >= 32", "(a.threads == none or a.threads >= 32)", LOOSER),
    (RELATION, "a.threads >= 32", "implies(a.threads != none, a.threads >= 32)", LOOSER),
    (RELATION, "a.threads >= 32", "(a.threads >= 32 or a.threads == none)", SAME),
    (RELATION, "a.threads >= 32", "(a.guarded ? a.threads >= 32 : true)", LOOSER),
    (FAILS, "a.threads >= 32 or a.threads == none", "a.threads == none or a.threads >= 32", LOOSER),
    (FAILS, "a.threads >= 32 or a.threads == none", "a.threads != none ? a.threads >= 32 : true", LOOSER),
    (FAILS, "(a.threads >= 32 or a.threads == none)", "(a.guarded or a.threads >= 32)", LOOSER),
    (FAILS, "(a.threads >= 32 or a.threads == none)", "(a.threads >= 32 or a.guarded)", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order and (a.threads == none or a.threads > 0)", LOOSER),
    (RELATION, "a.order < b.order", "a.order < b.order and (a.threads > 0 or a.threads == none)", UNKNOWN),
    (PATH, "from.buffer == to.buffer", "from.buffer == to.buffer and from.threads > 0", UNKNOWN),
    # paths
    (PATH, ", {fence: {kind: async_view}}", "", TIGHTER),
    (PATH, "{fence: {kind: async_view}}", "{fence: {}}", LOOSER),
    (PATH, "of: anyone", "of: each writer", TIGHTER),
    (PATH, "within: agent\n", "", TIGHTER),
    (PATH, "proxy: [async, tensor]", "proxy: [async]", LOOSER),
    (PATH, "where: from.buffer == to.buffer\n", "", TIGHTER),
    (PATH, "from: {access: {space: shared, mode: write}}\n", "from: start\n", UNKNOWN),
    # protocols
    (PROTOCOL, "(alloc use* dealloc)?", "(alloc use* dealloc)*", LOOSER),
    (PROTOCOL, "(alloc use* dealloc)?", "alloc use* dealloc", TIGHTER),
    (PROTOCOL, "(alloc use* dealloc)?", "(alloc dealloc | alloc use+ dealloc)?", SAME),
    (PROTOCOL, "use: {access: {space: tensor}}", "use: {access: {space: tensor, mode: read}}", UNKNOWN),
]


@pytest.mark.parametrize(("text", "old", "new", "direction"), CASES)
def test_which_is_looser(rule, text, old, new, direction):
    text = text.replace("where: from.buffer == to.buffer\n", 'where: "true"\n') if new == "from: start\n" else text
    assert old in text
    a, b = rule(text), rule(text.replace(old, new))
    assert judged(a, b) is direction
    back = {LOOSER: TIGHTER, TIGHTER: LOOSER, SAME: SAME, UNKNOWN: UNKNOWN}[direction]
    assert judged(b, a) is back


def test_variables_have_no_names(rule):
    head, _, body = RELATION.partition("match: ")
    other = head + "match: " + re.sub(r"\ba\b", "first", body)
    assert judged(rule(RELATION), rule(other)) is SAME


def test_every_built_in_rule_is_the_same_as_itself():
    """Through the solver, not because the two are written alike."""
    for rule in (r for p in find_packs(local=None) for r in p.rules):
        twin = replace(
            rule, definitions={**rule.definitions, "a_name_that_is_not_used": next(iter(rule.definitions.values()))} if rule.definitions else {}
        )
        assert judged(rule, twin) is SAME, rule.id
        assert changes(rule, twin) == ()


def test_what_grows_beyond_bounds_counts_as_looser(rule):
    names = [f"d{i}" for i in range(16)]
    lines = ["  d0: {of: {x: access}, as: x.order > 1 or x.guarded}"]
    lines += [f"  {b}: {{of: {{x: access}}, as: {a}(x) and {a}(x)}}" for a, b in pairwise(names)]
    text = RELATION.replace("define:\n", "define:\n" + "\n".join(lines) + "\n").replace("a.threads >= 32", "d15(a)")
    big = rule(text)
    assert judged(big, rule(text)) is SAME
    assert judged(big, rule(text.replace("x.order > 1", "x.order > 2"))) is UNKNOWN


@pytest.mark.parametrize(
    ("key", "old", "new", "direction"),
    [
        ("level", "level: error", "level: info", LOOSER),
        ("level", "level: error", 'level: "off"', LOOSER),
        ("status", "status: stable", "status: draft", LOOSER),
        ("kind", "kind: safety", "kind: performance", LOOSER),
        ("kind", "kind: safety", "kind: legality", Direction.WORDS),
        ("covers", "why: It is.", "why: It is.\ncovers: [deadlock]", UNKNOWN),
        ("applies", "why: It is.", "why: It is.\napplies: {capability: [tma]}", LOOSER),
        ("words", "owner: A. Person", "owner: B. Person", Direction.WORDS),
        ("words", "message: it is wrong", "message: '{a.op} is wrong'", Direction.WORDS),
        ("words", "since:", "tags: [x]\nsince:", Direction.WORDS),
    ],
)
def test_what_else_decides(rule, key, old, new, direction):
    text = RELATION if "{a.op}" not in new else RELATION.replace("help: do", "fix: do it\nhelp: do")
    (change,) = changes(rule(text), rule(text.replace(old, new)))
    assert (change.part, change.direction) == (key, direction)


def test_orders_that_an_automaton_accepts():
    names = ("a", "b")
    assert accepts_no_more(automaton("a b"), automaton("a b*"), names)
    assert not accepts_no_more(automaton("a b*"), automaton("a b"), names)
    assert accepts_no_more(automaton("(a | b)*"), automaton("(b | a)*"), names)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("1.2.3", "1.2.3", Step.NONE),
        ("1.2.3", "1.2.4", Step.PATCH),
        ("1.2.3", "1.3.0", Step.MINOR),
        ("1.2.3", "2.0.0", Step.MAJOR),
        ("1.2.3", "1.2.2", None),
        ("0.9.0", "0.10.0", Step.MINOR),
    ],
)
def test_steps(old, new, found):
    assert step(old, new) is found


def test_steps_below_1_0():
    assert asked("0.3.1", Step.MAJOR) is Step.MINOR and asked("1.0.0", Step.MAJOR) is Step.MAJOR
    assert (next_version("0.3.1", Step.MAJOR), next_version("1.3.1", Step.MAJOR), next_version("1.3.1", Step.PATCH)) == ("0.4.0", "2.0.0", "1.3.2")


def test_every_pack_of_this_repository_can_be_read():
    """What a review of it takes for packs are packs: forms of new ones are left out."""
    root = Path(__file__).resolve().parents[2]
    found = sorted(p.relative_to(root).as_posix() for p in root.rglob("pack.yaml") if not {".venv", ".git", "out", "build"} & set(p.parts))
    folders = pack_folders(Version("", tuple(Entry(p, "file") for p in found)))
    assert {f.split("/")[1] for f in folders} == {"core", "ptx", "performance", "sm80", "sm90", "sm100"}
    for folder in folders:
        assert load_pack(root / folder).rules, folder
