"""What hostile packs are refused with, what they may cost, and that no mangled file ends in anything but findings."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hostile import ATTACKS, HEAD, MESSAGE, PACK
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError, render
from cake_core.rules import find_packs, judge, load_pack, load_rule, rulebook
from cake_core.rules.check import Scope, checked
from cake_core.rules.engine import MAX_BAD
from cake_core.rules.evaluate import MAX_STEPS, Evaluator, Undecidable
from cake_core.rules.matching import matches
from cake_core.rules.parser import parse, passage
from cake_core.rules.sorts import fact
from cake_core.rules.verdict import Outcome

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are measured with wait4")

#: What is allowed, on a busy machine too; of memory half of it, without what the process had before.
SECONDS, MIB = 10.0, 256
#: Of a rule that is only long.
SILENT = ("many_values",)


@pytest.fixture(scope="module")
def ends() -> dict[str, dict]:
    run = subprocess.run([sys.executable, str(Path(__file__).with_name("hostile.py"))], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return {d["attack"]: d for d in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_in_a_finding_within_the_budget(ends, attack):
    end = ends[attack]
    assert end["end"] in ("refused", "told") if attack not in SILENT else end["end"] == "silent", end
    assert all(c.startswith(("rules/", "acme/")) for c in end["codes"]) and (end["codes"] or attack in SILENT)
    assert end["seconds"] < SECONDS and end["mib"] < MIB, end


@pytest.mark.parametrize("attack, code, said", [
    ("doubled_facts", "rules/budget", f"looks at more than {MAX_STEPS:,} facts and expressions"),
    ("doubled_predicates", "rules/budget", "what is left of a condition has more than"),
    ("six_events_and_nothing", "rules/budget", "looks at more than"),
    ("many_greedy_rules", "rules/budget", "is over its budget"),
    ("fifo", "rules/pack", "is no file of at most"),
    ("text_as_fifo", "rules/pack", "is no file of at most"),
    ("nested_plus", "rules/automaton", "more than 400 parts"),
    ("thousands_of_rules", "rules/pack", "more than 500 rules"),
    ("solver_without_end", "rules/value", "at most 10000000"),
    ("laughs", "rules/yaml", "aliases"),
    ("bell", "rules/yaml", "U+0007"),
])  # fmt: skip
def test_what_is_too_much_is_said(ends, attack, code, said):
    assert code in ends[attack]["codes"] and said in ends[attack]["said"]


def written(folder: Path, **rules: str) -> Path:
    (folder / "pack.yaml").write_text(PACK)
    for slug, text in rules.items():
        (folder / "rules" / slug).mkdir(parents=True)
        (folder / "rules" / slug / "rule.yaml").write_text(text.replace("%s", slug, 1))
    return folder


def test_a_pack_with_one_hostile_rule_is_not_there_at_all(tmp_path):
    with pytest.raises(CakeError):
        load_pack(written(tmp_path, good=HEAD + "match: {k: {kernel: {}}}\n" + MESSAGE + "require: true\n", bad="{" * 1000))


def test_a_rule_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rule.yaml")
    with pytest.raises(CakeError, match="is no file"):
        load_rule(tmp_path / "rule.yaml")


def test_a_project_with_hundreds_of_packs_is_told_before_one_is_read(tmp_path):
    for n in range(200):
        (tmp_path / f"pack{n}").mkdir()
    with pytest.raises(CakeError, match="has 200 packs, 32 are read") as error:
        find_packs((), tmp_path)
    assert [d.code for d in error.value.diagnostics] == ["rules/pack"]


# --- budgets -----------------------------------------------------------------------------------------------------

DERIVED = """cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  role a: 1 warp at 0 {
%s  }
}
"""


def pack_rules(folder, **rules):
    return sorted(load_pack(written(folder, **rules)).rules, key=lambda r: r.id)


def test_a_rule_over_its_budget_is_an_error_and_the_others_are_judged(tmp_path, rows_from):
    rows = rows_from(DERIVED % ("    warp.sync\n" * 30))
    greedy = HEAD + "match: {a: {event: {}}, b: {event: {}}, c: {event: {}}, d: {event: {}}, e: {event: {}}}\n" + MESSAGE + "require: a.order >= 0\n"
    rules = pack_rules(tmp_path, greedy=greedy, modest=HEAD + "match: {a: {event: {}}}\n" + MESSAGE + "require: a.order >= 0\n")
    first, second = judge(rules, rows)
    assert first.outcome is Outcome.ERROR and first.finding.code == "rules/budget" and first.finding.severity == "error"
    assert second.outcome is Outcome.PROVED and second.matches == 30


def test_a_pack_can_not_look_at_more_by_having_more_rules(tmp_path, rows_from, monkeypatch):
    monkeypatch.setattr("cake_core.rules.engine.MAX_OF_PACK", 60_000)
    rows = rows_from(DERIVED % ("    warp.sync\n" * 14))
    text = HEAD + "match: {a: {event: {}}, b: {event: {}}, c: {event: {}}}\n" + MESSAGE + "where: a.order + b.order + c.order < 0\nrequire: false\n"
    greedy = pack_rules(tmp_path, **{f"r{n}": text for n in range(8)})
    mine = rulebook().rules[:3]
    found = judge([*greedy, *mine], rows)
    together = [v for v in found if v.finding is not None and "together" in v.finding.message]
    assert together and all(v.finding.code == "rules/budget" and v.rule.pack == "acme" for v in together)
    assert [v.outcome for v in found[-3:]] == [v.outcome for v in judge(mine, rows)], "another pack's budget is its own"


def test_a_rule_that_finds_without_end_says_so(tmp_path, rows_from):
    rows = rows_from(DERIVED % ("    warp.sync\n" * 40))
    (rule,) = pack_rules(tmp_path, all=HEAD + 'match: {a: {event: {}}, b: {event: {}}}\nmessage: "{a.order} and {b.order}"\nrequire: false\n')
    found = judge([rule], rows, most=None)
    assert len(found) == MAX_BAD + 1 and found[-1].finding.code == "rules/budget"
    assert len(judge([rule], rows)) == 20


def test_facts_are_joined_by_equal_columns_as_they_are_matched_one_by_one(tmp_path, rows_from):
    """What `where` joins by is what it would find by looking at every pair; and it looks at fewer."""
    body = "".join(f"    if N > {n} {{\n      warp.sync\n    }}\n    warp.sync\n" for n in range(12))
    rows = rows_from(DERIVED % body)
    cases = {
        "order": "a.order == b.order", "turned": "b.op == a.op and b.order <= a.order", "fact": "a.role == b.role", "deep": "a.role.id == b.role.id",
        "none": "a.event.op == b.op", "loc": "a.loc == b.loc", "word": "a.part == b.part and a.order < 3",
    }  # fmt: skip
    text = HEAD + "match: {a: {meet: {}}, b: {event: {}}}\n" + MESSAGE + "where: WHERE\nrequire: true\n"
    for slug, where in cases.items():
        folder = tmp_path / slug
        folder.mkdir()
        for form, said in ((f"{slug}1", where), (f"{slug}2", where.replace("==", "<=", 0) + " or false")):
            (folder / form).mkdir()
        (joined,) = pack_rules(folder / f"{slug}1", r=text.replace("WHERE", where))
        (plain,) = pack_rules(folder / f"{slug}2", r=text.replace("WHERE", f"({where}) or 1 > 2"))
        ends, steps = [], []
        for rule in (joined, plain):
            evaluator = Evaluator(rows, rule.definitions)
            ends.append([(env["a"].id, env["b"].id) for env, _ in matches(rule.shape, rows, evaluator)])
            steps.append(evaluator.steps)
        assert ends[0] == ends[1] and ends[0], where
        if slug in ("order", "loc"):
            assert steps[0] < steps[1] / 2, (where, steps)


def test_what_goes_over_facts_joins_them_too(rows_from):
    """The same numbers from fewer looks, also where the other side has no value."""
    rows = rows_from(DERIVED % ("    warp.sync\n    for i in 0 .. N {\n      warp.sync\n    }\n" * 10))
    scope = Scope({"a": fact("meet")}, {})
    for where in (
        "b.order == a.order",
        "a.op == b.op and b.order < a.order",
        "b.loop == a.loop",
        "b.loop.var == a.loop.var and b.loop != none",
        "b.id == a.event.id",
    ):
        ends = []
        for condition in (where, f"({where}) or 1 > 2"):
            node = checked(parse(passage(f"count(b in event where {condition})")), scope, None)
            evaluator = Evaluator(rows, {})
            values = []
            for row in rows["meet"]:
                try:
                    values.append(evaluator.value(node, {"a": row}))
                except Undecidable as error:
                    values.append(str(error))
            ends.append((values, evaluator.steps))
        assert ends[0][0] == ends[1][0], where
        if where == "b.order == a.order":
            assert ends[0][1] < ends[1][1] / 4, ends


# --- mangled files -----------------------------------------------------------------------------------------------

RULES = [r.path for r in rulebook().rules]
PACKS = [p.folder / "pack.yaml" for p in rulebook().packs]
#: What is put in where a piece is taken out.
PUT = b"|[|{|}|: |\n  - |*|&a |!!x |\t|\x00|\xff|'|\"|>|((((|forall x in event: |999999999999999999999999999999".split(b"|")


@st.composite
def mangled(draw, files) -> bytes:
    """A built-in file with pieces left out, doubled, exchanged and put in."""
    data = bytearray(draw(st.sampled_from(files)).read_bytes())
    other = draw(st.sampled_from(files)).read_bytes()
    for _ in range(draw(st.integers(1, 4))):
        rng = random.Random(draw(st.integers(0, 2**32)))
        a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        b = min(b, a + rng.choice((1, 4, 40, 400)))
        c = rng.randrange(len(other))
        data[a:b] = draw(st.sampled_from([*PUT, bytes(data[a:b]) * 2, other[c : c + 60]]))
    return bytes(data)


def findings_of(load, *args) -> tuple:
    """(what is loaded or None, its findings), which every format can tell."""
    try:
        return load(*args), ()
    except CakeError as error:
        assert all(d.code.startswith("rules/") for d in error.diagnostics)
        for form in ("text", "concise", "json", "sarif", "github"):
            assert render(error.diagnostics, (), form)
        return None, error.diagnostics


@pytest.fixture(scope="module")
def small(rows_from):
    return rows_from(DERIVED % "    warp.sync\n    for i in 0 .. N {\n      warp.sync\n    }\n")


@settings(deadline=None, max_examples=120)
@given(data=mangled(RULES))
def test_no_mangled_rule_ends_in_anything_but_findings(small, data):
    """A rule that is one nevertheless is judged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rule.yaml")
        path.write_bytes(data)
        rule, _ = findings_of(load_rule, path)
        if rule is not None:
            assert judge([rule], small)


@settings(deadline=None, max_examples=80)
@given(data=mangled(PACKS))
def test_no_mangled_pack_ends_in_anything_but_findings(data):
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), one=HEAD + "match: {k: {kernel: {}}}\n" + MESSAGE + "require: true\n")
        Path(folder, "pack.yaml").write_bytes(data)
        pack, found = findings_of(load_pack, Path(folder))
        assert (pack is None) == bool(found)


# --- kernels -----------------------------------------------------------------------------------------------------


def nested(depth: int, innermost: str, inside: str) -> str:
    heads = "".join(f"    for i{n} in 0 .. 2 {{\n" for n in range(depth))
    return f"{heads}    for last in {innermost} {{\n{inside}    }}\n" + "    }\n" * depth


PATH = HEAD + "from: start\nto: end\nmust_pass: {meet: {scope: warp}}\n" + MESSAGE
ONCE = HEAD + "shape: protocol\nresource: {kernel: {}}\nevents: {sync: {meet: {scope: warp}}}\nautomaton: sync+\n" + MESSAGE


@pytest.mark.parametrize("text", [PATH, ONCE], ids=["path", "protocol"])
@pytest.mark.parametrize("depth", [2, 6, 40])
@pytest.mark.parametrize("innermost, outcome", [("0 .. 2", Outcome.PROVED), ("0 .. N", Outcome.VIOLATED)])
def test_loops_in_loops_cost_no_more_than_their_text(tmp_path, rows_from, text, depth, innermost, outcome):
    """Followed trip by trip, forty loops of two trips would be 2^40 ways; and a loop of two trips runs, however it is followed."""
    (rule,) = pack_rules(tmp_path, r=text)
    start = time.process_time()
    (found,) = judge([rule], rows_from(DERIVED % nested(depth, innermost, "    warp.sync\n")))
    assert found.outcome is outcome and time.process_time() - start < SECONDS


def test_contracts_are_bounded_in_number(rows_from):
    """What reads them compares them with one another; 3000 took a minute."""
    text = DERIVED % "    warp.sync\n"
    said = lambda n: text.replace("{\n", "".join(f"  require N > {i - 5000}\n" for i in range(n)) + "{\n", 1)  # noqa: E731
    assert len(rows_from(said(256)).facts.requires) == 256
    with pytest.raises(CakeError) as error:
        rows_from(said(3000))
    (d,) = error.value.diagnostics
    assert (d.code, d.span.line) == ("type/too-many-contracts", 4 + 256) and "3000 conditions" in d.message
