"""The core pack: every rule has texts that break it and texts that keep it, and tells of the former what the golden files say.

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
from cake_core.rules.check import asks
from cake_core.rules.schema import Kind, Level, Relation, Status
from cake_core.source import Source

(PACK,) = [p for p in find_packs(local=None) if p.name == "core"]
RULES = {r.id.partition("/")[2]: r for r in PACK.rules}
ASKING = {slug for slug, r in RULES.items() if isinstance(r.shape, Relation) and asks(r.shape.require, r.definitions)}
#: Of numbers that are read from memory: tables that a schedule adds, and messages, are not yet known to hold what they do. And what is
#: a policy: it is judged where it is asked for.
PREVIEW = {"loaded-index", "loaded-overflow", "loaded-race", "refill-fence"}
#: What stops no build: hints, and what is slow or does nothing.
HINTS = {"bank-conflict": Level.WARNING, "counter-reset": Level.WARNING, "idle-fence": Level.INFO, "idle-role": Level.WARNING}
#: They ask whether there is anything to prove.
VACUITY = {"contradiction", "idle-role"}
FOLDERS = {slug: r.path.parent for slug, r in RULES.items()}
BAD = [(slug, p) for slug, f in FOLDERS.items() for p in sorted(f.glob("bad_*.cake"))]
GOOD = [(slug, p) for slug, f in FOLDERS.items() for p in sorted(f.glob("good_*.cake"))]
ids = [f"{slug}/{p.stem}" for slug, p in BAD]


@pytest.mark.parametrize("slug, path", BAD, ids=ids)
def test_a_bad_text_is_found(slug, path, rows_from, golden_text):
    text = path.read_text()
    rows = rows_from(text, path.name)
    found = judge([RULES[slug]], rows, Prover(rows))
    assert {v.outcome for v in found} == {Outcome.VIOLATED}
    findings = [v.finding for v in found]
    assert all(d.code == f"core/{slug}" and d.span is not None and d.span.line for d in findings)
    assert_told(findings)
    told = render(findings, {path.name: Source(path.name, text)}, color=False)
    assert "?" not in re.sub(r"^ *\d* \|.*$", "", told, flags=re.MULTILINE), "a value of a message is missing"
    golden_text(path.with_suffix(".diag"), told)


@pytest.mark.parametrize("slug, path", GOOD, ids=[f"{slug}/{p.stem}" for slug, p in GOOD])
def test_a_good_text_reaches_the_rule_and_keeps_it(slug, path, rows_from):
    rows = rows_from(path.read_text(), path.name)
    (verdict,) = judge([RULES[slug]], rows, Prover(rows))[:1]
    assert verdict.outcome is Outcome.PROVED
    assert verdict.matches > 0
    stable = [r for s, r in RULES.items() if s not in ASKING]
    assert [v.rule.id for v in judge(stable, rows) if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []


@pytest.mark.parametrize("slug", RULES)
def test_a_bad_and_a_good_text_differ_in_one_statement(slug):
    def distance(a: Path, b: Path) -> int:
        lines = difflib.ndiff([s.strip() for s in a.read_text().splitlines()], [s.strip() for s in b.read_text().splitlines()])
        changes = [line for line in lines if line[0] in "+-"]
        return max(sum(c[0] == "-" for c in changes), sum(c[0] == "+" for c in changes))

    assert min(distance(a, b) for s, a in BAD if s == slug for t, b in GOOD if t == slug) <= 2, "no near miss"


@pytest.mark.parametrize("slug", RULES)
def test_rules_are_written_in_one_style(slug):
    rule = RULES[slug]
    first = next((p for p in rule.message.pieces if isinstance(p, str) and p), "")
    assert not first or not first[0].isupper() or first.startswith("CTA")
    assert not (isinstance(rule.message.pieces[-1], str) and rule.message.pieces[-1].endswith("."))
    assert rule.why.endswith(".") and not rule.title.endswith(".") and rule.help is not None
    assert rule.level is HINTS.get(slug, Level.ERROR)
    assert rule.kind in (Kind.SAFETY, Kind.LEGALITY) or slug in HINTS
    assert rule.status is (Status.PREVIEW if slug in PREVIEW else Status.STABLE)
    assert bool(rule.covers) == (slug in ASKING - VACUITY or slug == "refill-fence"), "what is proved of order covers a category"


def test_every_kernel_of_the_zoo_keeps_every_stable_rule(offered):
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.syntax import parse

    reached = set()
    stable = [r for r in PACK.rules if r.status is Status.STABLE and not asking(r)]  # tests/prove has the others
    for path in sorted(Path(__file__).parents[2].glob("kernels/*/*.cake")):
        source = Source(path.name, path.read_text())
        for target in parse(source).kernels[0].targets:
            front = frontend(source, offered, target)
            for v in judge(stable, rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)):
                assert v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE), (path.name, target, v.rule.id, v.finding)
                reached |= {v.rule.id} if v.outcome is Outcome.PROVED else set()
    assert {r.id for r in stable} - reached <= {"core/counter-reset", "core/grid-order", "core/masked-garbage", "core/meeting", "core/resident-ctas", "core/signal-in-flight"}


def test_the_readme_lists_every_rule():
    page = (Path(__file__).parents[2] / "rules" / PACK.name / "README.md").read_text()
    rows = [f"| [`{r.id}`](cake_rules_core/rules/{slug}/rule.yaml) | {r.status} | {r.title} |" for slug, r in RULES.items()]
    assert [line for line in page.splitlines() if line.startswith("| [")] == rows
