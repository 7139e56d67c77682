"""The other core: it finds what would be found without it, and its end is no one's loss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.prove.beside import Beside, cores
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, asking, judge, rulebook
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
RULES = tuple(r for r in rulebook().rules if asking(r))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("CAKE_CACHE", "")


@pytest.fixture(scope="module")
def rows():
    path = ROOT / "kernels/gemm/gemm_sm100.cake"
    front = frontend(Source(str(path), path.read_text(encoding="utf-8")), REGISTRY)
    return rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)


def proved(rows, cores: int) -> Prover:
    prover = Prover(rows, RULES, cores)
    found = judge(RULES, rows, prover)
    assert all(v.outcome in (Outcome.PROVED, Outcome.INAPPLICABLE) for v in found)
    return prover


def test_two_cores_prove_what_one_proves(rows):
    alone, both = proved(rows, 1), proved(rows, 2)
    assert (alone._addresses, alone._sweeps) == (None, None) and both._addresses is not None and both._sweeps is not None
    assert both._proofs.fresh >= alone._proofs.fresh
    assert both._asked._cuts.asked < alone._asked._cuts.asked  # a part of the sweep was asked elsewhere
    assert both._memory is None and alone._memory is not None  # and so were addresses
    both.close()


@pytest.mark.parametrize("dies", ["at once", "between", "before it tells"])
def test_a_copy_that_dies_leaves_its_part_here(rows, monkeypatch, dies):
    if dies == "at once":
        monkeypatch.setattr(Prover, "_of_addresses", lambda self, beside: None)
        monkeypatch.setattr(Prover, "_of_order", lambda self, beside: None)
    elif dies == "between":
        monkeypatch.setattr(Beside, "exchange", lambda self, kind, mine: os._exit(1) if self.half else self.hear(kind))
    else:
        monkeypatch.setattr(Beside, "tell", lambda self, kind, what: os._exit(1) if self.half and kind == "proved" else tell(self, kind, what))
    both = proved(rows, 2)
    both.close()


tell = Beside.tell


def test_the_copy_is_gone_when_the_work_is_done(rows):
    both = proved(rows, 2)
    children = [both._addresses.child, both._sweeps.child]
    both.close()
    for child in children:
        with pytest.raises(OSError):
            os.kill(child, 0)
    both.close()  # and once more is no fault


def test_findings_are_the_same():
    path = ROOT / "tests/corpus/F2-slot-released-before-product/bad_sm100.cake"
    source = Source(str(path), path.read_text(encoding="utf-8"))
    found = []
    for n in (1, 2):
        with pytest.raises(CakeError) as error:
            build(source, REGISTRY, prove=True, cores=n)
        found.append(error.value.diagnostics)
    assert found[0] == found[1]


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("2", 2), ("64", 2), ("0", 1)])
def test_cores_are_as_the_environment_says(monkeypatch, given, expected):
    monkeypatch.setenv("CAKE_CORES", given)
    assert cores() == expected


@pytest.mark.parametrize("given", ["", "many", "-1"])
def test_what_is_no_number_says_nothing(monkeypatch, given):
    monkeypatch.setenv("CAKE_CORES", given)
    assert cores() in (1, 2)


@pytest.mark.parametrize("name, copies", [("gemm/gemm_sm80", 2), ("gemm/gemm_sm90", 2), ("rmsnorm/rmsnorm", 0)])
def test_where_copies_are_waited_for_another_process_proves_a_part(monkeypatch, name, copies):
    """By a barrier or in groups. Where there is little to prove, a copy costs more than it saves."""
    started = []
    monkeypatch.setattr(Beside, "start", lambda work: started.append(work.__name__))
    path = ROOT / "kernels" / f"{name}.cake"
    front = frontend(Source(str(path), path.read_text(encoding="utf-8")), REGISTRY, "sm90")
    Prover(rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY), RULES, 2).begin()
    assert started == ["_of_addresses", "_of_order"][:copies]
