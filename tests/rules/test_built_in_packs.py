"""The built-in packs: every rule has texts that break it and texts that keep it, and tells of the former what the golden files say.

Rules that ask predicates are judged by the prover.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from formats import assert_told

from cake_core.diagnostics.text import render
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, asking, find_packs, judge
from cake_core.rules.schema import Kind, Level, Status
from cake_core.source import Source

ROOT = Path(__file__).parents[2]
PACKS = {p.name: p for p in find_packs(local=None) if p.distribution.startswith("cake-compiler ")}
RULES = {r.id: r for p in PACKS.values() for r in p.rules}
ASKING = {id for id, r in RULES.items() if asking(r)}
#: Of numbers that are read from memory: tables that a schedule adds, and messages, are not yet known to hold what they do. And what is
#: a policy: it is judged where it is asked for.
PREVIEW = {"core/loaded-index", "core/loaded-overflow", "core/loaded-race", "core/refill-fence"}
#: What stops no build, beside advice on speed: hints, and what does nothing.
HINTS = {"core/counter-reset": Level.WARNING, "core/idle-role": Level.WARNING, "sm90/uneven-wait": Level.WARNING}
#: They ask whether there is anything to prove.
VACUITY = {"core/contradiction", "core/idle-role"}
BAD = [(id, p) for id, r in RULES.items() for p in sorted(r.path.parent.glob("bad_*.cake"))]
GOOD = [(id, p) for id, r in RULES.items() for p in sorted(r.path.parent.glob("good_*.cake"))]


@pytest.mark.parametrize("id, path", BAD, ids=[f"{id}/{p.stem}" for id, p in BAD])
def test_a_bad_text_is_found(id, path, rows_from, golden_text):
    text = path.read_text()
    rows = rows_from(text, path.name)
    found = judge([RULES[id]], rows, Prover(rows))
    assert {v.outcome for v in found} == {Outcome.VIOLATED}
    findings = [v.finding for v in found]
    assert all(d.code == id and d.span is not None and d.span.line for d in findings)
    assert_told(findings)
    told = render(findings, {path.name: Source(path.name, text)}, color=False)
    assert "?" not in re.sub(r"^ *\d* \|.*$", "", told, flags=re.MULTILINE), "a value of a message is missing"
    golden_text(path.with_suffix(".diag"), told)


@pytest.mark.parametrize("id, path", GOOD, ids=[f"{id}/{p.stem}" for id, p in GOOD])
def test_a_good_text_reaches_the_rule_and_keeps_it(id, path, rows_from):
    rows = rows_from(path.read_text(), path.name)
    (verdict,) = judge([RULES[id]], rows, Prover(rows))[:1]
    assert verdict.outcome is Outcome.PROVED
    assert verdict.matches > 0
    stable = [r for i, r in RULES.items() if r.status is Status.STABLE and i not in ASKING and r.kind is not Kind.PERFORMANCE]
    assert [v.rule.id for v in judge(stable, rows) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "machine" / "texts").glob("*.cake")), ids=lambda p: p.stem)
def test_what_the_machine_runs_without_a_fault_breaks_no_rule_about_text(path, rows_from):
    rules = [r for i, r in RULES.items() if i not in ASKING and r.kind is not Kind.PERFORMANCE and r.status is Status.STABLE]
    found = judge(rules, rows_from(path.read_text(), path.name))
    assert [v.rule.id for v in found if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []


@pytest.mark.parametrize("id", RULES)
def test_a_bad_and_a_good_text_differ_in_one_statement(id):
    def distance(a: Path, b: Path) -> int:
        lines = difflib.ndiff([s.strip() for s in a.read_text().splitlines()], [s.strip() for s in b.read_text().splitlines()])
        changes = [line for line in lines if line[0] in "+-"]
        return max(sum(c[0] == "-" for c in changes), sum(c[0] == "+" for c in changes))

    assert min(distance(a, b) for i, a in BAD if i == id for j, b in GOOD if j == id) <= 2, "no near miss"


@pytest.mark.parametrize("id", RULES)
def test_rules_are_written_in_one_style(id):
    rule = RULES[id]
    first = next((p for p in rule.message.pieces if isinstance(p, str) and p), "")
    assert not first or not first[0].isupper() or first.startswith("CTA")
    assert not (isinstance(rule.message.pieces[-1], str) and rule.message.pieces[-1].endswith("."))
    assert rule.why.endswith(".") and not rule.title.endswith(".") and rule.help is not None
    if rule.kind is Kind.PERFORMANCE:
        assert rule.level in (Level.WARNING, Level.INFO), "advice fails no build"
        assert rule.limits, "advice says where it is silent"
    else:
        assert rule.level is HINTS.get(id, Level.ERROR) and rule.kind in (Kind.SAFETY, Kind.LEGALITY, *([Kind.PORTABILITY] if id in HINTS else []))
    assert rule.status is (Status.PREVIEW if id in PREVIEW else Status.STABLE)
    assert bool(rule.covers) == (id in ASKING - VACUITY or id == "core/refill-fence"), "what is proved of order covers a category"
    assert rule.owner and rule.references, "whom to ask, and what it is from"


def test_every_kernel_of_the_zoo_keeps_every_stable_rule(offered):
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.syntax import parse

    reached = set()
    stable = [r for r in RULES.values() if r.status is Status.STABLE and not asking(r)]  # tests/prove has the others
    for path in sorted(ROOT.glob("kernels/*/*.cake")):
        source = Source(path.name, path.read_text())
        for target in parse(source).kernels[0].targets:
            front = frontend(source, offered, target)
            for v in judge(stable, rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)):
                assert v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE), (path.name, target, v.rule.id, v.finding)
                reached |= {v.rule.id} if v.outcome is Outcome.PROVED else set()
    assert {r.id for r in stable} - reached <= {
        *("core/counter-reset", "core/global-proxy-fence", "core/grid-order", "core/masked-garbage", "core/meeting", "core/resident-ctas", "core/signal-in-flight"),
        *("performance/late-launch", "sm100/resident-columns", "sm90/serial-products", "sm90/uneven-wait"),
    }


@pytest.mark.parametrize("name", PACKS)
def test_the_readme_lists_every_rule(name):
    page = (ROOT / "rules" / name / "README.md").read_text()
    rows = [f"| [`{r.id}`](cake_rules_{name}/rules/{r.id.partition('/')[2]}/rule.yaml) | {r.status} | {r.title} |" for r in PACKS[name].rules]
    assert [line for line in page.splitlines() if line.startswith("| [")] == rows
    assert (ROOT / "rules" / name / "CHANGELOG.md").is_file()


def test_there_are_enough_of_them():
    assert {p.parent.name for p in ROOT.glob("rules/*/README.md")} == set(PACKS) == {"core", "performance", "ptx", "sm80", "sm90", "sm100"}
    assert sum(r.status is Status.STABLE for r in RULES.values()) >= 60
