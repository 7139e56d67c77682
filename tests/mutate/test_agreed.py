"""Texts on which proof, checks and event machine once disagreed."""

from __future__ import annotations

from pathlib import Path

from cake_core.facts import facts_of
from cake_core.machine import Kind, scenarios_of
from cake_core.mutate import Judge, Outcome
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.rules.predicates import Standing
from cake_core.source import Source

TEXTS = Path(__file__).resolve().parents[1] / "machine" / "texts"
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})

LOAD = "        tma.load s[i] <- X[t_i, 0 +: 256] signal full[i]\n"
STORE = "        tma.store Y[t_i, 0 +: 256] <- d[n % 2]\n        tma.store.commit\n"
INIT = "    mbarrier.init full\n    mbarrier.init empty\n    fence.mbarrier_init\n"


def case(name: str, old: str, new: str):
    text = (TEXTS / f"{name}.cake").read_text(encoding="utf-8")
    assert old in text
    front = frontend(Source("kernel.cake", text.replace(old, new, 1)), REGISTRY)
    return Judge(REGISTRY, front.arch, scenarios_of(facts_of(front.typed, REGISTRY, front.arch))).case(None, front.derived)


def test_an_engine_gets_a_copy_of_each_thread_that_asks_for_one():
    """The machine took it for one copy, the proof for one a warp."""
    found = case("ring", LOAD + "      }\n", "      }\n" + LOAD[2:])
    assert found.proof[1].standing is not Standing.PROVED
    assert found.proof[1].reason == "'full' expects 1024 bytes a phase, and gets 32768"
    assert "31744 bytes" in str(found.fault)


def test_what_other_threads_store_the_leader_does_not_wait_for():
    """The machine let the first warp alone issue what stood under no guard."""
    found = case("epilogue", "      if leader {\n" + STORE + "      }\n", STORE.replace("        ", "      "))
    assert found.outcome is Outcome.REJECTED
    assert found.proof[0] == "race" and found.fault.kind in (Kind.ASYNC, Kind.RACE, Kind.IN_FLIGHT)


def test_one_thread_initialises_a_barrier():
    """Checks counted the statements, not the threads."""
    found = case("ring", "  if leader {\n" + INIT + "  }\n", INIT.replace("    ", "  "))
    assert found.outcome is Outcome.CHECKED
    assert "core/barrier-init" in found.codes and found.fault.kind is Kind.INIT


PROLOGUE = (
    "    for j in 0 .. 2 {\n      if j < N {\n        cp.async s[j] <- X[cluster.id, j, 0 +: 256] by 16\n      }\n      cp.async.commit\n    }\n"
)


def test_groups_that_a_loop_starts_with_none_in_flight():
    """Slots 0 and 1 are not filled, and the third one is there in time: the proof lost count of groups of which the first wait is for none.
    What is wrong is that the first two are read."""
    found = case("groups", PROLOGUE, "")
    assert found.outcome is Outcome.REJECTED and found.proof[0] == "unwritten"
    late = case("groups", PROLOGUE + "    for j in 0 .. N {\n      cp.async.wait 1\n", "    for j in 0 .. N {\n      cp.async.wait 2\n")
    assert late.outcome is Outcome.REJECTED and late.proof[0] == "race"


def test_arrivals_that_differ_from_place_to_place_are_not_proved():
    """The proof took the first place's number for all."""
    one = "      if warp.leader {\n        mbarrier.arrive empty[i]\n      }\n"
    inner = one.replace("\n", "\n  ").rstrip(" ")
    found = case("ring", one, f"      if t_i < 2 {{\n  {inner}      }} else {{\n        mbarrier.arrive empty[i]\n      }}\n")
    assert found.proof[1].standing is Standing.UNKNOWN and "gets 1 at one place of work and 32 at another" in found.proof[1].reason
    assert found.outcome is Outcome.CHECKED and "core/arrival-count" in found.codes
