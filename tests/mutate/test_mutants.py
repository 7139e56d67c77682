"""Mutants: which there are, what becomes of them, and that judges agree on all of small texts and on a sample of drawn ones (docs/mutants.md)."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.facts import facts_of
from cake_core.machine import Kind, MachineError, Scenario, scenarios_of
from cake_core.machine.scenarios import value
from cake_core.mutate import Judge, Outcome, drawn, mutants
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "tests" / "machine" / "texts"
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


def drawing(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "prove" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generated, wide = drawing("generated"), drawing("generated_wide")


def front(text: str, arch: str | None = None):
    return frontend(Source("kernel.cake", text), REGISTRY, arch)


def of_text(name: str):
    f = front((TEXTS / f"{name}.cake").read_text(encoding="utf-8"))
    return f, Judge(REGISTRY, f.arch, scenarios_of(facts_of(f.typed, REGISTRY, f.arch)))


def told(case) -> str:
    return f"{case.edit and (case.edit.operator, case.edit.what)} {case.outcome}: {case.proof} {case.fault}"


AGREED = (Outcome.REFUSED, Outcome.REJECTED, Outcome.CHECKED, Outcome.SAFE)


@pytest.mark.parametrize("name", ["turns", "ring"])
def test_judges_agree_on_every_mutant(name):
    """Or the proof says that it does not know."""
    f, judge = of_text(name)
    cases = [judge.case(e, e.kernel) for e in mutants(f.derived, f.typed, REGISTRY)]
    assert [told(c) for c in cases if c.outcome not in (*AGREED, Outcome.UNKNOWN)] == []
    found = Counter(c.outcome for c in cases)
    assert found[Outcome.REJECTED] + found[Outcome.CHECKED] > len(cases) // 3 and found[Outcome.SAFE] > 0
    assert judge.case(None, f.derived).outcome is Outcome.SAFE


@pytest.mark.parametrize("seed", range(8))
def test_drawn_kernels_are_safe(seed):
    f = front(generated.text(seed))
    judge = Judge(REGISTRY, f.arch, [Scenario({"R": r, "K": k}) for r, k in generated.SIZES[:4]], states=500)
    assert judge.case(None, f.derived).outcome is Outcome.SAFE


@pytest.mark.parametrize("seed", range(100, 112))
def test_judges_agree_on_drawn_mutants_of_drawn_kernels(seed):
    f = front(generated.text(seed))
    judge = Judge(REGISTRY, f.arch, [Scenario({"R": r, "K": k}) for r, k in generated.SIZES], states=500)
    (edit,) = drawn(f.derived, f.typed, REGISTRY, f.arch, 1, seed, most=2)
    case = judge.case(edit, edit.kernel)
    assert case.outcome in (*AGREED, Outcome.UNKNOWN), told(case)


def test_operators_go_by_effects():
    """Each of these stands once in the ring: what it is called comes from what it does."""
    f, _ = of_text("ring")
    made = Counter((e.operator, e.what) for e in mutants(f.derived, f.typed, REGISTRY))
    for operator, what in (
        ("drop wait", "mbarrier.wait"),
        ("drop block", "if mbarrier.arrive"),
        ("drop copy", "tma.load"),
        ("drop fence", "fence.mbarrier_init"),
        ("drop meeting", "warp.sync"),
        ("twice arrival", "mbarrier.expect"),
        ("bytes", "mbarrier.expect: 2048"),
        ("bytes", "mbarrier.expect: 512"),
        ("count", "empty: count 3"),
        ("slots", "s: 1"),
        ("reset", "fill"),
        ("trip", "for t_i: +1"),
        ("swap", "mbarrier.wait and if mbarrier.expect tma.load"),
        ("early arrival", "if mbarrier.arrive"),
    ):
        assert made[operator, what] >= 1, (operator, what)


def test_no_mutant_is_the_text_itself_or_another_mutant():
    f, _ = of_text("epilogue")
    kernels = [e.kernel for e in mutants(f.derived, f.typed, REGISTRY)]
    assert len(set(kernels)) == len(kernels) and f.derived not in kernels


def test_a_seed_draws_the_same_mutants():
    f, _ = of_text("turns")
    one, two, three = ([(e.operator, e.what) for e in drawn(f.derived, f.typed, REGISTRY, f.arch, 6, seed)] for seed in (3, 3, 4))
    assert one == two != three
    assert any(" + " in operator for operator, _ in one)
    later = [(e.operator, e.what) for e in drawn(f.derived, f.typed, REGISTRY, f.arch, 2, 3, start=4)]
    assert later == one[4:]


def test_a_fault_tells_who_found_it():
    f, judge = of_text("ring")
    edits = {(e.operator, e.what, e.span.line): e for e in mutants(f.derived, f.typed, REGISTRY)}
    edit = next(e for (operator, what, _), e in edits.items() if (operator, what) == ("drop block", "if mbarrier.arrive"))
    case = judge.case(edit, edit.kernel)
    assert case.outcome is Outcome.REJECTED
    assert case.proof[0] == "deadlock" and case.fault.kind is Kind.DEADLOCK and case.at["R"] >= 3
    assert json.loads(json.dumps(case.record()))["outcome"] == "rejected"


def test_what_the_compiler_refuses_has_its_codes():
    f, judge = of_text("ring")
    edit = next(e for e in mutants(f.derived, f.typed, REGISTRY) if e.operator == "place" and e.what.startswith("s:"))
    case = judge.case(edit, edit.kernel)
    assert case.outcome is Outcome.REFUSED and case.codes


def test_scenarios_satisfy_the_requires_and_reach_around_the_ring():
    f = front((TEXTS / "lagged.cake").read_text(encoding="utf-8"))
    facts = facts_of(f.typed, REGISTRY, f.arch)
    found = scenarios_of(facts)
    assert all(value(e, dict(s.params)) for s in found for e in facts.requires)
    trips = {-(-s.params["K"] // 64) for s in found}
    assert 0 in trips and any(3 < t < 6 for t in trips) and any(t > 6 for t in trips)


def test_a_kernel_that_no_small_size_fits_says_so():
    text = (TEXTS / "ring.cake").read_text(encoding="utf-8").replace("require 0 <= R, R <= 65536", "require 60000 <= R, R <= 65536")
    f = front(text)
    with pytest.raises(MachineError, match="no small sizes"):
        scenarios_of(facts_of(f.typed, REGISTRY, f.arch))


def test_the_command_counts_by_operator():
    path = str(TEXTS / "turns.cake")
    found = CliRunner().invoke(app, ["mutate", path, "--operator", "drop meeting", "--at", "R=3", "--json"], standalone_mode=False)
    data = json.loads(found.stdout)
    assert data["scenarios"] == [{"R": 3}]
    assert data["outcomes"]["missed"] == data["outcomes"]["alarm"] == 0 and data["outcomes"]["rejected"] + data["outcomes"]["checked"] >= 2
    assert data["mutants"][0]["operator"] == "none" and data["mutants"][0]["outcome"] == "safe"


def test_the_command_wants_all_sizes():
    found = CliRunner().invoke(app, ["mutate", str(TEXTS / "lagged.cake"), "--at", "M=64"])
    assert found.exit_code == 2 and "'N' has no value" in found.output


@pytest.mark.parametrize("seed", range(8))
def test_wide_drawn_kernels_are_safe(seed):
    f = front(wide.text(seed))
    judge = Judge(REGISTRY, f.arch, [Scenario({"R": r, "K": k}, loads=wide.loads) for r, k in wide.SIZES[:3]], states=500)
    case = judge.case(None, f.derived)
    assert case.outcome is Outcome.SAFE, told(case)


@pytest.mark.parametrize("seed", range(200, 212))
def test_judges_agree_on_drawn_mutants_of_wide_kernels(seed):
    f = front(wide.text(seed))
    judge = Judge(REGISTRY, f.arch, [Scenario({"R": r, "K": k}, loads=wide.loads) for r, k in wide.SIZES], states=500)
    (edit,) = drawn(f.derived, f.typed, REGISTRY, f.arch, 1, seed, most=2)
    case = judge.case(edit, edit.kernel)
    assert case.outcome in (*AGREED, Outcome.UNKNOWN), told(case)


def test_a_ring_that_few_rounds_go_around_has_items_enough():
    """Slots that are kept at each item's end: with rounds by the item's number the ring is full only after five items."""
    text = generated.text(193)
    start = text.index("      if given < seen {")
    f = front(text[:start] + text[text.index("      if leader {", start) :])
    assert "t_i % 3" in text
    case = Judge(REGISTRY, f.arch, [Scenario({"R": r, "K": k}) for r, k in generated.SIZES], states=500).case(None, f.derived)
    assert case.outcome is Outcome.REJECTED and case.fault.kind is Kind.DEADLOCK and case.at["R"] > 5, told(case)


def test_seeds_draw_all_families():
    """Each with what it is for."""
    texts = {f: "".join(wide.text(s) for s in range(40) if wide.family(s) == f) for f in wide.FAMILIES}
    for family, marks in {
        "cluster": ("mask 3", "at 1", "load(L[t_i], by = 4)"),
        "parts": ("role load1", "s[i][0 +: 3, :]", "2 * work.i + 1"),
        "named": ("bar.arrive 3", "bar.sync 2"),
        "columns": ("[:, 32 +: 16]", "role epi1", "tcgen05.dealloc"),
    }.items():
        assert all(m in texts[family] for m in marks), family


def test_what_says_of_itself_only_what_rules_read_changes_places_too():
    text = ROOT / "rules" / "sm100" / "cake_rules_sm100" / "rules" / "alloc-after-permit" / "good_behind.cake"
    f = front(text.read_text(encoding="utf-8"))
    (swapped,) = [m for m in mutants(f.derived, f.typed, REGISTRY) if (m.operator, m.what) == ("swap", "tcgen05.alloc and tcgen05.relinquish")]
    case = Judge(REGISTRY, f.arch, [Scenario({"N": 128})]).case(swapped, swapped.kernel)
    assert (case.outcome, case.codes) == (Outcome.CHECKED, ("sm100/alloc-after-permit",))
