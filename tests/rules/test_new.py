"""`cake rules new`: what it writes is right as it stands, says what is still to do, and overwrites nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.rules import packs
from cake_core.rules.scaffold import TEMPLATES

RULES = Path(__file__).parents[2] / "rules" / "core" / "cake_rules_core" / "rules"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cake(*args: str):
    return CliRunner().invoke(app, ["rules", *args], prog_name="cake")


def told(*args: str) -> dict:
    return json.loads(cake(*args, "--json").output)


@pytest.mark.parametrize("shape", ["relation", "path", "protocol"])
def test_a_new_rule_is_a_whole_rule_of_its_shape(here, shape):
    done = told("new", "acme/few-slots", "--shape", shape, "--owner", 'A. "P"', "--author", "bot", "--run", "7")
    assert [Path(f).name for f in done["files"][:5]] == ["__init__.py", "pack.yaml", "README.md", "CHANGELOG.md", "pyproject.toml"]
    assert all((here / f).is_file() for f in done["files"])
    assert cake("test", "acme", "--pack", "cake-rules-acme/cake_rules_acme", "--update").exit_code == 0
    (rule,) = told("test", "acme", "--pack", "cake-rules-acme/cake_rules_acme")["rules"]
    assert rule["ok"] and rule["bad"] == rule["good"] == 1 and all(rule["probes"].values())
    shown = told("show", "acme/few-slots", "--pack", "cake-rules-acme/cake_rules_acme")["rule"]
    assert (shown["shape"], shown["status"], shown["owner"]) == (shape, "draft", "A.  P")
    assert 'kind: agent, run: "7"' in (here / "cake-rules-acme/cake_rules_acme/rules/few-slots/rule.yaml").read_text()


def test_a_second_rule_leaves_the_pack_as_it_is(here):
    told("new", "acme/one")
    (here / "cake-rules-acme" / "README.md").write_text("mine")
    pack = here / "cake-rules-acme" / "cake_rules_acme" / "pack.yaml"
    pack.write_text(pack.read_text().replace("0.1.0", "0.3.2"))
    before = {p: p.read_bytes() for p in here.rglob("*") if p.is_file()}
    files = told("new", "acme/two")["files"]
    assert {Path(f).parts[3] for f in files} == {"two"}
    assert all(p.read_bytes() == was for p, was in before.items())
    assert 'since: "0.3"' in (here / "cake-rules-acme/cake_rules_acme/rules/two/rule.yaml").read_text()


def test_the_working_directory_can_be_the_pack(here, monkeypatch):
    (here / "cake_rules_acme").mkdir()
    monkeypatch.chdir(here / "cake_rules_acme")
    told("new", "acme/one", "--pack", ".")
    assert (here / "pyproject.toml").read_text().count("cake_rules_acme") == 3 and cake("test", "acme", "--pack", ".", "--update").exit_code == 0


def test_a_new_pack_leaves_the_working_directory_as_it_is(here):
    (here / "k.cake").write_text("mine")
    told("new", "acme/one")
    assert sorted(p.name for p in here.iterdir()) == ["cake-rules-acme", "k.cake"]
    first = (here / "cake-rules-acme/cake_rules_acme/rules/one/rule.yaml").read_text().splitlines()[0]
    assert (here / "cake-rules-acme/cake_rules_acme/rules/one" / first.rpartition("$schema=")[2]).is_file()


def test_a_pack_in_the_working_directory_takes_the_rules_of_its_namespace(here):
    told("new", "acme/one", "--pack", "cake_rules_acme")
    assert {Path(f).parts[0] for f in told("new", "acme/two")["files"]} == {"cake_rules_acme"}


def test_a_pack_of_the_project_takes_the_rules_of_its_namespace(here):
    told("new", "acme/one", "--pack", ".cake/rules/acme")
    assert {Path(f).parts[:3] for f in told("new", "acme/two")["files"]} == {(".cake", "rules", "acme")}


@pytest.fixture
def checkout(here, monkeypatch):
    """A copy of a built-in pack in a repository, as the checkout that is in use."""
    folder = here / "rules" / "ptx" / "cake_rules_ptx"
    shutil.copytree(RULES.parents[2] / "ptx" / "cake_rules_ptx", folder)
    (here / "docs" / "schema").mkdir(parents=True)
    (here / "docs" / "schema" / "rule.schema.json").write_text("{}")
    rest = tuple(o for o in packs.offers() if o.name != "ptx")
    offer = packs.Offer("ptx", "cake_rules_ptx", "cake-compiler of this checkout", folder)
    monkeypatch.setattr(packs, "offers", lambda: (*rest, offer))
    monkeypatch.setattr(packs, "_checkout", lambda: (offer,))
    monkeypatch.setattr(packs, "_stale", lambda there, sink: None)
    return folder


def test_a_rule_of_an_installed_pack_goes_into_its_checkout(checkout, here):
    """There, whatever the working directory; what is printed next works as it stands, and the schema is that of the repository."""
    done = cake("new", "ptx/slow-word")
    assert done.exit_code == 0 and "docs/diagnostics.md" in done.output and "'cake rules test ptx/slow-word --update'" in done.output
    first = (checkout / "rules" / "slow-word" / "rule.yaml").read_text().splitlines()[0]
    assert (checkout / "rules" / "slow-word" / first.rpartition("$schema=")[2]).resolve() == here / "docs" / "schema" / "rule.schema.json"
    assert sorted(p.name for p in here.iterdir()) == ["docs", "rules"]
    assert cake("test", "ptx/slow-word", "--update").exit_code == 0


def test_a_folder_that_is_loaded_already_is_the_same_pack(checkout):
    for args in (["--pack", str(checkout)], ["--pack", str(checkout), "--pack", f"{checkout}/../cake_rules_ptx"]):
        again = cake("list", *args, "--json")
        assert again.exit_code == 0 and '"ptx/' in again.output and again.output == cake("list", "--json").output
    assert cake("test", "ptx/issued-by-many", "--pack", str(checkout)).output.startswith("1 rule, ")


def test_what_is_wrong_with_a_rule_is_told_once(checkout):
    path = next(checkout.glob("rules/*/rule.yaml"))
    path.write_text(path.read_text() + "nonsense: 1\n")
    done = CliRunner().invoke(app, ["rules", "test", "ptx", "--pack", str(checkout), "--json"], prog_name="cake")
    assert done.exit_code == 3 and [d["code"] for d in json.loads(done.output)["diagnostics"]] == ["rules/key"]


def test_an_error_in_one_installed_pack_stops_no_test_of_another(checkout):
    """Where no kernel is judged nothing is proved by what is left out; and a kernel is not judged without it."""
    path = next(checkout.glob("rules/*/rule.yaml"))
    path.write_text(path.read_text() + "nonsense: 1\n")
    for command in ("test", "lint"):
        other = cake(command, "sm80/narrow-copy")
        assert other.exit_code == 0 and "1 rule" in other.output and "another pack is left out: a rule has no key 'nonsense'" in other.output
        for own in ((), ("ptx",), ("sm80", "ptx/issued-by-many")):
            assert cake(command, *own).exit_code == 3
    (checkout.parents[2] / "k.cake").write_text("cake 1\nkernel")
    assert CliRunner().invoke(app, ["check", "k.cake"]).exit_code == 3


def test_the_namespace_of_a_pack_that_is_a_copy_is_taken(here, monkeypatch):
    copy = here / "site-packages" / "cake_rules_far"
    shutil.copytree(RULES.parents[2] / "ptx" / "cake_rules_ptx", copy)
    manifest = copy / "pack.yaml"
    manifest.write_text(manifest.read_text().replace("namespace: ptx", "namespace: far"))
    monkeypatch.setattr(packs, "offers", lambda: (packs.Offer("far", "cake_rules_far", "far 1.0", copy),))
    for more in ((), ("--pack", "mine")):
        done = cake("new", "far/one", *more)
        assert done.exit_code == 3 and "is that of the pack 'far' of far 1.0" in done.output
    assert [p.name for p in here.iterdir()] == ["site-packages"]


@pytest.mark.parametrize(
    "args, code, said",
    [
        (["acme/one"], 3, "is there already"),
        (["acme"], 3, "is no id"),
        (["type/x"], 3, "the namespace 'type' is that of codes of the compiler"),
        (["other/x", "--pack", "cake-rules-acme/cake_rules_acme"], 3, "call it 'acme/x'"),
        (["acme/gone"], 3, "was the id of a rule that is removed"),
        (["acme/../up"], 3, "is no id"),
        (["acme/x", "--from", "nowhere.json"], 2, "nowhere.json"),
        (["acme/x", "--from", "bad.json"], 2, "is no JSON"),
        (["acme/x", "--from", "list.json"], 2, "is no object"),
        (["acme/x", "--from", "empty.json"], 2, "holds no finding"),
        (["acme/x", "--from", "nofile.json"], 2, "names no text"),
        (["acme/x", "--from", "fault.json"], 2, "'fault' is one of deadlock"),
        (["acme/x", "--from", "mutants.json"], 2, "of which kernel"),
        (["acme/x", "--from", "/dev/zero"], 2, "is no"),
        (["acme/x", "--from", "device.json"], 1, "limit is"),
        (["acme/x", "--owner", " "], 2, "--owner: it is empty"),
        (["acme/x", "--author", "", "--run", "7"], 2, "--author: it is empty"),
        (["acme/x", "--run", "\n"], 2, "--run: it is empty"),
    ],
)
def test_what_can_not_be_made_is_told_and_nothing_is_written(here, args, code, said):
    told("new", "acme/one")
    (here / "k.cake").write_text((RULES / "threads" / "bad_pad.cake").read_text())
    texts = {
        "bad": "{",
        "list": "[]",
        "empty": "{}",
        "nofile": '{"code": "core/x"}',
        "fault": '{"kernel": "k.cake", "fault": "fire"}',
        "mutants": '{"mutants": []}',
        "device": '{"kernel": "/dev/zero"}',
    }
    for name, text in texts.items():
        (here / f"{name}.json").write_text(text)
    pack = here / "cake-rules-acme" / "cake_rules_acme" / "pack.yaml"
    pack.write_text(pack.read_text().replace("removed: []", 'removed: [{id: acme/gone, since: "0.1", reason: "it went"}]'))
    before = sorted(here.rglob("*"))
    done = cake("new", *args)
    assert done.exit_code == code and said in done.output and sorted(here.rglob("*")) == before


def test_a_rule_is_drafted_from_a_finding(here):
    """Both texts are made smaller by the same steps, the rule tells them apart as it stands, and says what the repaired one has."""
    for name, file in (("bad", "bad_no_fence"), ("good", "good_all_writers")):
        (here / f"{name}.cake").write_text((RULES / "missing-proxy-fence" / f"{file}.cake").read_text())
    found = CliRunner().invoke(app, ["check", "bad.cake", "--json"])
    (here / "finding.json").write_text(found.output)
    done = told("new", "acme/late-fence", "--from", "finding.json", "--fixed", "good.cake")
    assert done["reduced"]["kept"] == "core/missing-proxy-fence" and done["reduced"]["lines"]["after"] < done["reduced"]["lines"]["before"]
    rule = (here / "cake-rules-acme/cake_rules_acme/rules/late-fence/rule.yaml").read_text()
    assert "# only the good text has: fence: " in rule and "# where it goes wrong: access: role main, op tma.store" in rule
    assert "count(x in fence where x.op == 'fence.proxy.async') >= 1" in rule
    assert cake("test", "acme", "--pack", "cake-rules-acme/cake_rules_acme", "--update").exit_code == 0


@pytest.mark.parametrize(
    "good, bad, said",
    [
        ("fence.async|meet", "meet|fence.async", ["# what changed places: fence: ", "automaton: async* sync*", "this tells the two texts apart"]),
        ("meet", "if leader { meet }", ["count(x in meet where x.op == 'warp.sync' and x.by == 'all') >= 1", "this tells the two texts apart"]),
        (
            "bar.sync 1 threads 32|for k in 0 .. 2 { meet }",
            "if N > 1 { bar.sync 1 threads 32 }|for k in 0 .. 2 { meet }",  # the loop has another number
            ["# meet of 'bar.sync': 'guarded' is true in the bad text, false in the good one", "x.guarded == false) >= 1"],
        ),
        ("let a = 3|meet", "let a = 4|meet", ["the two texts differ in expressions alone", "require: false"]),
        (None, "meet", ["there is no good text that this would be told from", "require: false"]),
    ],
)
def test_a_draft_says_what_tells_the_texts_apart_and_no_more(here, good, bad, said):
    words = {"fence.async": "fence.proxy.async", "meet": "warp.sync"}
    for name, body in (("good", good), ("bad", bad)):
        for word, statement in words.items():
            body = body.replace(word, statement) if body else None
        lines = "\n    ".join(body.split("|")) if body else "warp.sync"
        (here / f"{name}.cake").write_text(
            f"cake 1 derived\nkernel k(N: i32)\n  target sm90\n{{\n  launch 1\n  role r: 1 warp at 0 {{\n    {lines}\n  }}\n}}\n"
        )
    (here / "f.json").write_text(json.dumps({"kernel": "bad.cake", "line": 7} | ({"fixed": "good.cake"} if good else {})))
    assert cake("new", "acme/one", "--from", "f.json").exit_code == 0
    rule = (here / "cake-rules-acme/cake_rules_acme/rules/one/rule.yaml").read_text()
    assert [part for part in said if part not in rule] == [], rule
    apart = "this tells the two texts apart" in rule
    tested = cake("test", "acme", "--pack", "cake-rules-acme/cake_rules_acme", "--update")
    assert (tested.exit_code == 0) is apart, "what it says it does"


def test_a_rule_is_drafted_from_a_kernel_that_goes_wrong(here):
    """No finding is there: the event machine shows the fault that stays."""
    text = (RULES / "arrival-count" / "bad_nobody.cake").read_text()
    (here / "hangs.cake").write_text(text)
    line = next(n for n, t in enumerate(text.splitlines(), 1) if "mbarrier.wait ab_empty" in t)
    (here / "f.json").write_text(json.dumps({"kernel": "hangs.cake", "line": line, "what": "hangs"}))
    done = told("new", "acme/hangs", "--from", "f.json", "--tries", "60")
    assert done["reduced"]["kept"] == "deadlock" and "there is no good text" in done["reduced"]["said"]
    rule = (here / "cake-rules-acme/cake_rules_acme/rules/hangs/rule.yaml").read_text()
    assert "# hangs\n" in rule and "match: {at: {wait: {op: 'mbarrier.wait'}}}" in rule


def test_a_rule_is_drafted_from_a_mutant(here):
    """The mutant is made again; the kernel itself is the good text."""
    (here / "k.cake").write_text((TEMPLATES / "relation" / "good_TODO.cake").read_text())
    found = CliRunner().invoke(app, ["mutate", "k.cake", "--operator", "drop", "--json"])
    mutants = json.loads(found.output)["mutants"]
    (here / "m.json").write_text(found.output)
    number = next(n for n, m in enumerate((m for m in mutants if m["operator"] != "none"), 1) if m["machine"])
    done = told("new", "acme/dropped", "--from", "m.json", "--text", "k.cake", "--number", str(number), "--tries", "30")
    assert {Path(f).name for f in done["files"]} >= {"bad_dropped.cake", "good_dropped.cake", "rule.yaml"}
    assert done["reduced"]["kept"]
    assert cake("new", "acme/other", "--from", "m.json", "--text", "k.cake", "--number", "999").exit_code == 2


def test_what_is_said_of_a_failure_steers_no_file(here):
    """The rule can be read, whatever stands in the words of the failure and in the names."""
    (here / "k.cake").write_text((RULES / "threads" / "bad_pad.cake").read_text())
    what = "a\u001b[31m\u202e\u0085b\nmatch: {}\n" + "x" * 70_000 + "\nc" * 9000
    (here / "f.json").write_text(json.dumps({"kernel": "k.cake", "what": what}))
    assert cake("new", "acme/one", "--from", "f.json", "--owner", "A.\u202e \tP\x1b", "--author", "B\x07").exit_code == 0
    shown = told("show", "acme/one", "--pack", "cake-rules-acme/cake_rules_acme")["rule"]
    assert shown["owner"].split() == ["A.", "P"]


def test_a_rule_is_written_whole_or_not_at_all(here, monkeypatch):
    told("new", "acme/one")
    before = sorted(here.rglob("*"))
    opened = open

    def full(path, mode="r", *args, **more):
        if mode == "x" and str(path).endswith("good_TODO.cake"):
            opened(path, mode).close()
            raise OSError(28, "No space left on device", str(path))
        return opened(path, mode, *args, **more)

    monkeypatch.setattr("cake_core.cli.rules_new.open", full, raising=False)
    assert cake("new", "acme/two").exit_code == 2
    assert cake("new", "other/one").exit_code == 2
    assert sorted(here.rglob("*")) == before
