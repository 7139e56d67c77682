"""Texts on which proof, checks and event machine once disagreed."""

from __future__ import annotations

from pathlib import Path

from cake_core.facts import facts_of
from cake_core.machine import Kind
from cake_core.mutate import Judge, Outcome, scenarios_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
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
    assert found.outcome is Outcome.REJECTED
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
