"""Texts beside rules: what `cake rules test` takes for right, and what it says of the rest."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.cli.host import offered
from cake_core.rules import Outcome, judge, load_rule, rulebook
from cake_core.rules.offered import unoffered
from cake_core.rules.probes import probe
from cake_core.rules.trial import trial

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
why: It is.
"""
GOOD = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  role a: 2 warps at 0 {\n    warp.sync\n  }\n}\n"
BAD = GOOD.replace("2 warps", "1 warp")
DIAG = """warning[acme/small-role]: role 'a' is small
 --> bad_one.cake:6:3
"""


@pytest.fixture
def folder(small_pack):
    def write(**texts: str):
        return small_pack({"small-role": {name.replace("__", "."): text for name, text in texts.items()}})

    return write


def cake(*args: str):
    return CliRunner().invoke(app, ["rules", *args], prog_name="cake")


def test_a_rule_with_its_texts_is_right(folder):
    root = folder(rule__yaml=RULE, bad_one__cake=BAD, good_two__cake=GOOD)
    first = cake("test", "acme", "--pack", str(root))
    assert first.exit_code == 1 and "'bad_one.diag' is not what is told" in first.output and "no such file" in first.output
    assert cake("test", "acme", "--pack", str(root), "--update").exit_code == 0
    written = (root / "rules" / "small-role" / "bad_one.diag").read_text()
    assert written.startswith(DIAG)
    again = cake("test", "acme/small-role", "--pack", str(root))
    assert again.exit_code == 0 and again.output == "1 rule, 2 texts, 0 wrong\n"
    found = json.loads(cake("test", "acme", "--pack", str(root), "--json").output)
    assert found["rules"] == [
        {
            "rule": "acme/small-role",
            "bad": 1,
            "good": 1,
            "gaps": 0,
            "undecided": 0,
            "probes": {"vacuity": True, "kill": True, "reach": True},
            "ok": True,
        }
    ]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"bad_one__cake": GOOD}, "'bad_one.cake' is proved, not violated"),
        ({"good_two__cake": BAD}, "'good_two.cake' is violated, not proved"),
        ({"rule__yaml": RULE.replace("r.warps > 1", "true")}, "'bad_one.cake' is proved"),
        ({"rule__yaml": RULE.replace("r.warps > 1", "false")}, "'good_two.cake' is violated"),
        ({"rule__yaml": RULE.replace("require:", "where: r.warps > 9\nrequire:")}, "'good_two.cake' is inapplicable"),
        ({"rule__yaml": RULE.replace("r.warps > 1", "max(i.number for i in instance where i.number > 9) > 1")}, "is error"),
        ({"good_two__cake": GOOD.replace("warp.sync", "warp.sync\n    warp.sync\n    warp.sync\n    warp.sync")}, "no near miss"),
        ({"bad_one__cake": "cake 1\nkernel"}, "has no facts"),
        ({"bad_one__diag": DIAG + "more\n"}, "is not what is told"),
        ({"near__cake": GOOD}, "'near.cake' is neither bad nor good"),
        ({"rule__yaml": RULE.replace("r.warps > 1", " * ".join(["r.warps * 999999999999999999"] * 9) + " > 1")}, "more than 256 bits"),
        ({"rule__yaml": RULE.replace("r.warps > 1", "ceildiv(1, r.warps - 1) > 0")}, "a division by zero"),
    ],
)
def test_what_is_wrong_is_told(folder, change, said):
    texts = {"rule__yaml": RULE, "bad_one__cake": BAD, "good_two__cake": GOOD} | change
    root = folder(**texts)
    result = cake("test", "acme", "--pack", str(root))
    assert result.exit_code == 1 and said in result.output and "Traceback" not in result.output


@pytest.mark.parametrize(
    "match, said",
    [
        ("{r: {role: {pad: 3}}}", "no fact fits 'r', a role with pad 3: the one there has not that 'pad'"),
        ("{r: {role: {}}, b: {barrier: {}}}", "no fact fits 'b', a barrier: the kernel has no barrier"),
        ("{r: {role: {}}, e: {event: {op: warp.sync, by: leader}}}", "no fact fits 'e', an event with op warp.sync, by leader: "),
        ("{r: {role: {}}}\nwhere: r.warps > 9", "there are facts for each pattern, and 'where' hold of none together"),
        ("{r: {role: {}}}\napplies: {capability: [tcgen05]}", "the target does not offer 'tcgen05'"),
    ],
)
def test_what_a_text_lacks_to_reach_the_rule_is_told(folder, match, said):
    root = folder(rule__yaml=RULE.replace("{r: {role: {}}}", match), bad_one__cake=BAD, good_two__cake=GOOD)
    result = cake("test", "acme", "--pack", str(root))
    assert result.exit_code == 1 and "'good_two.cake' is inapplicable, not proved" in result.output and said in " ".join(result.output.split())


def test_a_good_text_of_another_kernel_is_not_asked_for(folder):
    """No text has two kernels, so none could show what the pattern of the one leaves out."""
    rule = RULE.replace("{r: {role: {}}}", "{k: {kernel: {pair: false}}, r: {role: {pad: 0}}}")
    root = folder(rule__yaml=rule, bad_one__cake=BAD, good_two__cake=GOOD)
    cake("test", "acme", "--pack", str(root), "--update")
    said = cake("test", "acme", "--pack", str(root), "--thorough").output
    assert "'pad' in the pattern of 'r'" in said and "in the pattern of 'k'" not in said


def test_a_finding_names_the_folder_of_its_text(folder):
    root = folder(rule__yaml=RULE, bad_one__cake=BAD, good_two__cake="cake 1\nkernel")
    (root / "rules" / "small-role" / "good_three.cake").write_bytes(b"\xff")
    said = cake("test", "acme", "--pack", str(root)).output
    for name in ("bad_one", "good_two", "good_three"):
        assert f"--> {root}/rules/small-role/{name}.cake:" in said
    assert "byte 0xff is not UTF-8" in said and "Traceback" not in said


#: A rule of each shape, a text that breaks it and one that keeps it.
PATH = RULE.replace(
    "match: {r: {role: {}}}\nrequire: r.warps > 1",
    "from: {access: {space: shared, mode: write}}\nto: {access: {space: shared, mode: read}}\nmust_pass: {meet: {}}",
).replace("{r.id}", "{to.role}")
PROTOCOL = RULE.replace(
    "match: {r: {role: {}}}\nrequire: r.warps > 1", "resource: {kernel: {}}\nevents: {a: {access: {mode: write}}, b: {meet: {}}}\nautomaton: (b a)*"
).replace("'{r.id}'", "'{came}'")
SHARED = """cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  shared s: f32[32] at 0
  role a: 1 warp at 0 {
    frag x: f32[32] vec 1 layout vector
    store s <- x by 4
    warp.sync
    x = load(s, by = 4)
  }
}
"""
MET = SHARED.replace("    store s", "    warp.sync\n    store s").replace("    warp.sync\n    x = load", "    x = load")


@pytest.mark.parametrize(
    "rule, bad, good",
    [(RULE, BAD, GOOD), (PATH, SHARED.replace("    warp.sync\n", ""), SHARED), (PROTOCOL, SHARED.replace("    warp.sync\n", ""), MET)],
    ids=["relation", "path", "protocol"],
)
def test_every_shape_is_probed(folder, rule, bad, good):
    root = folder(rule__yaml=rule, bad_one__cake=bad, good_two__cake=good)
    cake("test", "acme", "--pack", str(root), "--update")
    (found,) = json.loads(cake("test", "acme", "--pack", str(root), "--json").output)["rules"]
    assert found["ok"] and found["probes"] == {"vacuity": True, "kill": True, "reach": True}, cake("test", "acme", "--pack", str(root)).output


def test_a_probe_finds_what_verdicts_do_not(folder, rows_from):
    """What is assumed never holds: the require is met at once, and no text reaches it."""
    path = folder(
        rule__yaml=RULE.replace("{role: {}}", "{require: {}}")
        .replace("require: r.warps > 1", "assume: r.expr and not r.expr\nrequire: true")
        .replace("{r.id}", "x")
    )
    text = GOOD.replace("  target", "  require N > 3\n  target")
    rule, rows = load_rule(path / "rules" / "small-role" / "rule.yaml"), rows_from(text)
    assert [v.outcome for v in judge([rule], rows)] == [Outcome.PROVED]
    assert probe(rule, [], [(rows, None)])["reach"] == "no good text is told even where nothing is enough"
    assert probe(rule, [(rows, None)], [])["vacuity"] == "nothing in a bad text is what the rule matches"


@pytest.mark.parametrize(
    "rule, texts, said",
    [
        (RULE.replace("r.warps > 1", "r.warps > 1 and r.pad < 9"), {}, ["a part of 'require': every bad text is told without it too"]),
        (RULE.replace("r.warps > 1", "r.warps > 1 and r.pad < 9"), {"bad_padded__cake": GOOD.replace("2 warps at 0", "2 warps at 0 pad 10")}, []),
        (RULE.replace("require:", "where: r.id != 'b'\nrequire:"), {}, ["a part of 'where': no good text is told without it"]),
        (
            RULE.replace("require:", "where: r.id != 'b'\nrequire:"),
            {"good_b__cake": GOOD.replace("\n}\n", "\n  role b: 1 warp at 2 {\n    warp.sync\n  }\n}\n")},
            [],
        ),
        (RULE.replace("{role: {}}", "{role: {pad: 0}}"), {}, ["'pad' in the pattern of 'r': no good text is told without it"]),
    ],
)
def test_a_thorough_test_says_what_no_text_needs(folder, rule, texts, said):
    root = folder(rule__yaml=rule, bad_one__cake=BAD, good_two__cake=GOOD, **texts)
    cake("test", "acme", "--pack", str(root), "--update")
    assert cake("test", "acme", "--pack", str(root)).exit_code == 0
    found = json.loads(cake("test", "acme", "--pack", str(root), "--thorough", "--json").output)
    assert [d["message"].partition("no text needs, ")[2] for d in found["diagnostics"]] == said
    assert found["rules"][0]["ok"] and all(d["code"] == "rules/untested" and d["severity"] == "note" for d in found["diagnostics"])


def test_a_gap_is_watched(folder):
    texts = {"rule__yaml": RULE + "limits: Two small roles are not told.\n", "bad_one__cake": BAD, "good_two__cake": GOOD}
    root = folder(**texts, gap_three__cake=GOOD.replace("2 warps", "3 warps"))
    cake("test", "acme", "--pack", str(root), "--update")
    (found,) = json.loads(cake("test", "acme", "--pack", str(root), "--json").output)["rules"]
    assert found["ok"] and found["gaps"] == 1
    folder(gap_three__cake=BAD)
    assert "call it 'bad_three.cake': it is no gap any more" in cake("test", "acme", "--pack", str(root)).output
    folder(gap_three__cake=GOOD, rule__yaml=RULE)
    assert "'acme/small-role' has a gap and no 'limits'" in cake("test", "acme", "--pack", str(root)).output


def test_however_many_processes_judge_the_result_is_the_same(folder):
    root = folder(rule__yaml=RULE, bad_one__cake=GOOD, good_two__cake=GOOD)
    runs = {cake("test", "acme", "core/threads", "core/swizzle", "--pack", str(root), "-j", n, "--json").output for n in ("1", "2", "3")}
    assert len(runs) == 1 and [r["ok"] for r in json.loads(runs.pop())["rules"]] == [False, True, True]


@pytest.mark.parametrize("left", ["bad_one__cake", "good_two__cake"])
def test_a_rule_needs_both_kinds(folder, left):
    root = folder(**{"rule__yaml": RULE, left: BAD if left.startswith("bad") else GOOD})
    result = cake("test", "acme", "--pack", str(root))
    assert result.exit_code == 1 and f"has no {'good' if left.startswith('bad') else 'bad'} text" in result.output


def test_what_a_prover_must_decide_is_left_open_without_one(folder, rows_from):
    root = folder(
        rule__yaml=RULE.replace("{role: {}}", "{kernel: {}}").replace("r.warps > 1", "deadlock_free(r)").replace("{r.id}", "x"),
        bad_one__cake=BAD,
        good_two__cake=GOOD,
    )
    found = trial(load_rule(root / "rules" / "small-role" / "rule.yaml"), lambda source: rows_from(source.text, source.name))
    assert (found.undecided, found.findings) == (2, ())


def test_rules_are_listed(folder):
    root = folder(rule__yaml=RULE)
    result = cake("list", "--pack", str(root))
    assert (
        result.exit_code == 0
        and "acme/small-role" in result.output
        and "core/arrival-count" in result.output
        and "acme 0.1.0: 1 rule," in result.output
    )
    rows = {r["id"]: r for r in json.loads(cake("list", "--pack", str(root), "--json").output)["listed"]["rules"]}
    assert rows["acme/small-role"]["judged"] and rows["acme/small-role"]["level"] == "warning"


def test_a_name_that_is_not_there_is_usage(folder):
    assert cake("test", "nowhere").exit_code == 2
    assert cake("test", "--pack", "/nowhere").exit_code == 3


APPLIES = "applies: {capability: [CAPABILITY]}\n"


@pytest.mark.parametrize(
    "word, told, fix",
    [("tmma", True, "did you mean 'tma'?"), ("clutser", True, "did you mean 'cluster'?"), ("quantum", False, "install the architecture")],
)
def test_a_capability_that_no_architecture_offers_is_told(folder, tmp_path, word, told, fix):
    """An error beside the rule's texts; where rules are judged, a warning if it is misspelt, and nothing if it may be another architecture's."""
    root = folder(rule__yaml=RULE + APPLIES.replace("CAPABILITY", word), bad_one__cake=BAD, good_two__cake=GOOD)
    tested = cake("test", "acme", "--pack", str(root), "-j", "1")
    assert tested.exit_code == 3 and "error[rules/capability]" in tested.output and f"offers '{word}'" in tested.output and fix in tested.output
    text = tmp_path / "k.cake"
    text.write_text(GOOD)
    for command in ("check", "build"):
        found = CliRunner().invoke(app, [command, str(text), "--pack", str(root), *(["-o", str(tmp_path / "out")] if command == "build" else [])])
        assert found.exit_code == 0 and ("warning[rules/capability]" in found.output) is told


def test_a_capability_that_some_architecture_offers_is_not_told(folder, tmp_path):
    root = folder(rule__yaml=RULE + APPLIES.replace("CAPABILITY", "tma"), bad_one__cake=BAD, good_two__cake=GOOD)
    assert "rules/capability" not in cake("test", "acme", "--pack", str(root), "-j", "1").output
    text = tmp_path / "k.cake"
    text.write_text(GOOD.replace("sm90", "sm80"))
    assert "rules/capability" not in CliRunner().invoke(app, ["check", str(text), "--pack", str(root)]).output


def test_what_built_in_rules_ask_of_targets_some_target_offers():
    assert list(unoffered(rulebook().rules, offered())) == []
