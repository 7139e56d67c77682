"""Verdicts are the same on every machine and in every run: budgets are steps, no clock decides, and what was kept changes nothing."""

from __future__ import annotations

import ast
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from formats import assert_told

from cake_core import smt
from cake_core.diagnostics import CakeError, Severity
from cake_core.diagnostics.json import diagnostic_object
from cake_core.facts import facts_of, rows_of
from cake_core.machine import Scenario, explore
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.prove import answers, effort, entailment, solve
from cake_core.prove.memory import Memory
from cake_core.prove.solve import Cuts
from cake_core.rules import Standing
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
RIGHT = ROOT / "tests" / "corpus" / "C-02-slot-freed-before-it-is-read" / "good.cake"
#: Texts whose findings come from queries, from replays, and from arithmetic on addresses.
WRONG = ("C-02-slot-freed-before-it-is-read/bad", "C-27-drain-counts-one-too-many/bad", "C-68-index-product-wraps/bad")


def findings(path: Path) -> list[dict]:
    try:
        found = build(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY, prove=True).diagnostics
    except CakeError as error:
        found = error.diagnostics
    assert_told(found)
    return [diagnostic_object(d) for d in found]


def wrong(name: str) -> Path:
    return ROOT / "tests" / "corpus" / f"{name}.cake"


@pytest.mark.parametrize(
    "path", sorted(p for room in ("prove", "rules", "check", "facts") for p in (ROOT / "cake_core" / room).glob("*.py")), ids=str
)
def test_no_clock_is_read_where_verdicts_are_made(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    calls = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    assert not names & {"time", "datetime"} and not calls & {"alarm", "setitimer", "settimeout"} and "timeout" not in words


def test_a_replay_does_not_look_at_the_clock(monkeypatch):
    """A clock that leaps an hour each time it is read ends nothing."""
    front = frontend(Source("k.cake", RIGHT.read_text()), REGISTRY)
    facts = facts_of(front.typed, REGISTRY, front.arch)
    sizes = {n: 64 for n in facts.scalars}
    calm = explore(facts, Scenario(sizes), limit_states=50, limit_picks=10_000, seconds=None)
    hours = itertools.count(step=3600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    assert explore(facts, Scenario(sizes), limit_states=50, limit_picks=10_000, seconds=None) == calm
    assert explore(facts, Scenario(sizes), limit_states=50, seconds=10.0).limit == "10.0 seconds"


def test_picks_end_a_replay_where_they_are_used_up():
    front = frontend(Source("k.cake", RIGHT.read_text()), REGISTRY)
    facts = facts_of(front.typed, REGISTRY, front.arch)
    sizes = {n: 64 for n in facts.scalars}
    few = explore(facts, Scenario(sizes), limit_picks=7, seconds=None, mode="adversarial")
    assert few.limit == "7 picks" and few.schedules == 1
    assert not explore(facts, Scenario(sizes), seconds=None, mode="adversarial").limit


def test_a_budget_that_is_used_up_is_an_error_and_the_same_each_time(monkeypatch, tmp_path):
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path))
    monkeypatch.setattr(answers, "Cuts", partial(Cuts, rlimit=1))
    first = findings(RIGHT)
    assert {d["code"] for d in first} == {"rules/undecided"} and {d["severity"] for d in first} == {"error"}
    assert all("gave up" in d["message"] and "--allow-unproved" in d["fix"] for d in first)
    assert findings(RIGHT) == first
    monkeypatch.undo()
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path))
    assert findings(RIGHT) == [], "what was not decided was not kept"


@pytest.mark.parametrize("name", WRONG)
def test_kept_proofs_change_no_finding(name, monkeypatch, tmp_path):
    """Cold, warm, and without a cache: what is told is the same, to the last number of a witness."""
    monkeypatch.setenv("CAKE_CACHE", "")
    without = findings(wrong(name))
    assert any(d["severity"] == "error" for d in without)
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path))
    cold = findings(wrong(name))
    assert list(tmp_path.rglob("*.json")), "something was proved and kept"
    assert findings(wrong(name)) == cold == without


def test_kept_proofs_change_no_account(monkeypatch, tmp_path):
    monkeypatch.setenv("CAKE_CACHE", str(tmp_path))
    source = Source("k.cake", RIGHT.read_text())
    cold = build(source, REGISTRY, prove=True)
    warm = build(source, REGISTRY, prove=True)
    assert (warm.account, warm.diagnostics, warm.files) == (cold.account, cold.diagnostics, cold.files)
    assert not any(d.severity is Severity.ERROR for d in warm.diagnostics)


def test_the_order_of_sets_decides_nothing():
    """Two processes whose hashes differ say the same."""
    args = [sys.executable, "-m", "cake_core", "check", "--json", *(str(wrong(n)) for n in WRONG)]

    def said(seed: int) -> dict:
        env = os.environ | {"PYTHONHASHSEED": str(seed), "CAKE_CACHE": ""}
        return json.loads(subprocess.run(args, capture_output=True, text=True, env=env, cwd=ROOT, check=False).stdout)

    first = said(1)
    assert first["outcome"] == "errors" and first == said(2)


def test_an_interrupt_is_no_answer_of_the_solver():
    x, y, z = map(smt.Int, "xyz")
    hard = smt.Solver("QF_NIA", smt.context(), rlimit=2_000_000)
    hard.add(x * x * x + y * y * y + z * z * z == 33, x > 10**6)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hurry = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    try:
        hurry.start()
        with pytest.raises(KeyboardInterrupt):
            hard.check()
            hurry.join()
    finally:
        hurry.cancel()
        signal.signal(signal.SIGINT, before)


def test_products_are_decided_far_below_the_budget():
    """Rows times columns in one index: the hardest arithmetic on addresses in the zoo."""
    path = ROOT / "kernels" / "elementwise" / "scale_shift.cake"
    front = frontend(Source(path.name, path.read_text(encoding="utf-8")), REGISTRY, "sm90")
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    writes = [r for r in rows["access"] if r["space"] == "global" and r["mode"] == "write"]
    with effort.counting() as took:
        assert {Memory(rows).disjoint(w, w).standing for w in writes} == {Standing.PROVED}
    assert took.spent.most < entailment.RLIMIT // 2


BUDGETS = {
    "MOST_AGENTS": (1, "agents that are told apart, and no more than 1 are asked about: 2 roles in 1 CTAs"),
    "MOST_QUESTIONS": (5, "more than 5 questions"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_what_is_asked_of_one_kernel_has_a_bound_that_is_named(name, monkeypatch):
    """One error, and no rule that asks about order is proved."""
    monkeypatch.setenv("CAKE_CACHE", "")
    most, said = BUDGETS[name]
    monkeypatch.setattr(solve, name, most)
    found = [d for d in findings(RIGHT) if d["severity"] == "error"]
    assert [d["code"] for d in found] == ["rules/not-analysed"] and said in found[0]["message"]


def test_a_solver_that_gives_up_is_not_asked_for_ever(monkeypatch):
    """Each that it gave up on is named, and so is that no more was asked."""
    front = frontend(Source(RIGHT.name, RIGHT.read_text(encoding="utf-8")), REGISTRY)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    cuts = Cuts(rows.facts)
    monkeypatch.setattr(solve, "check", lambda solver, how: smt.UNKNOWN)
    keys = list(cuts.protocol.runs)
    told = [cuts.consistent([smt.BoolVal(True)], *keys[:2]) for _ in range(solve.PATIENCE + 1)]
    assert {f.result for f in told} == {solve.Result.UNKNOWN}
    assert all("gave up" in f.reason and "can be at once" in f.reason for f in told[:-1]) and "no more is asked" in told[-1].reason
    before = cuts.asked
    assert "no more is asked" in cuts.consistent([smt.BoolVal(True)], keys[0]).reason and cuts.asked == before


def test_of_many_agents_few_examples_are_made_small(monkeypatch):
    """What is wrong is told all the same."""
    monkeypatch.setenv("CAKE_CACHE", "")
    name = "C-27-drain-counts-one-too-many/bad"
    small = findings(wrong(name))
    assert all(d["witness"] for d in small) and small
    monkeypatch.setattr(solve, "FEW", 0)
    assert findings(wrong(name)) == small
    monkeypatch.setattr(solve, "MOST_EXAMPLES", 0)
    monkeypatch.setattr(solve, "smallest", lambda *of: pytest.fail("made small"))
    assert {d["code"] for d in findings(wrong(name))} == {d["code"] for d in small}
