"""Pairs of the corpus, on data: the bad text goes wrong as the event machine says at the same sizes, the good one does not."""

from pathlib import Path

import numpy as np
import pytest
from simulated_texts import PLOTS, launch, simulator

from cake_core.ir.build import lift
from cake_core.machine import Kind, Scenario, explore
from cake_core.machine.scenarios import value
from cake_core.primitive.simulated import dtypes
from cake_core.simulate.findings import code_of
from cake_core.source import Source
from cake_core.syntax import parse

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
#: Sizes at which the bad text goes wrong, and a code that it is found by.
CASES = {
    "C-01-barrier-counts-other-warps": ({"R": 1}, "core/named-barrier"),
    "C-02-slot-freed-before-it-is-read": ({"T": 5, "C": 1, "R": 1}, "core/slot-race"),
    "C-08-ring-parity-on-single-barrier": ({"M": 1, "N": 4, "K": 576}, "core/wait-phase"),
    "C-12-leader-arrives-for-slower-warps": ({"R": 5}, "core/slot-race"),
    "C-13-generic-stores-before-bulk-store": (None, "core/missing-proxy-fence"),
    "C-18-barrier-not-visible-in-cluster": (None, "core/barrier-init-visible"),
    "C-20-stage-released-in-flight": ({"M": 1, "N": 4, "K": 576}, "core/slot-race"),
    "C-23-tensor-load-not-waited-for": ({"M": 7, "N": 288, "K": 8}, "core/slot-refill"),
    "C-24-tensor-store-published-early": (None, "core/tensor-fence-before"),
    "C-29-multicast-into-reading-peer": ({"M": 1, "N": 5}, "core/slot-race"),
    "C-34-tensor-memory-not-allocated": (None, "core/tensor-allocation"),
    "C-41-arrives-twice-in-one-generation": ({"R": 1, "N": 3}, "core/named-barrier"),
    "C-48-exit-while-peer-reads": (None, "core/cluster-exit"),
    "C-50-arrivals-of-one-cta-in-a-cluster": ({"M": 1, "N": 5}, "core/deadlock"),
    "M2-pair-commits-to-one-cta": (None, "core/deadlock"),
}
#: Of tensors and of registers, of which the event machine knows nothing.
BEYOND = {
    "C-66-table-read-at-minus-one": (None, "core/index-bounds"),
    "M7-product-without-its-fence": ({"M": 1, "N": 8, "K": 72}, "core/register-fence"),
}


def given(text: str, sizes: dict | None) -> tuple[str, dict, dict]:
    """Target, scalars and random inputs."""
    arch = parse(Source("k", text)).kernels[0].targets[-1]
    made = simulator(text, arch)
    if sizes is None:
        from cake_core.machine import scenarios_of

        sizes = next(dict(s.params) for s in scenarios_of(made.facts) if s.cluster == 0)
    params = {**{p.name: 0.5 for p in made.room.kernel.params if p.mode is None}, **sizes}
    rng, arrays = np.random.default_rng(0), {}
    for p in made.room.kernel.params:
        if p.mode in ("in", "inout"):
            shape, dtype = tuple(value(lift(e), sizes) for e in p.declared.groups[-1]), dtypes()[p.declared.name]
            arrays[p.name] = np.zeros(shape, dtype) if dtype.kind in "iu" else rng.standard_normal(shape).astype(np.float32).astype(dtype)
    return arch, params, arrays


def codes(text: str, sizes: dict | None) -> set[str]:
    arch, params, arrays = given(text, sizes)
    return {c for plot in PLOTS for c in launch(text, params, arrays, plot, arch, most=1).codes}


@pytest.mark.parametrize("name", [*CASES, *BEYOND])
def test_the_bad_text_goes_wrong_and_the_good_one_does_not(name):
    sizes, code = {**CASES, **BEYOND}[name]
    bad, good = ((CORPUS / name / f"{which}.cake").read_text(encoding="utf-8") for which in ("bad", "good"))
    assert code in codes(bad, sizes)
    assert codes(good, sizes) == set()


@pytest.mark.parametrize("name", sorted(CASES)[::3])
def test_what_is_found_is_what_the_machine_finds(name):
    """By the same clocks: the simulator has one schedule where the machine has a dozen."""
    text = (CORPUS / name / "bad.cake").read_text(encoding="utf-8")
    arch, params, _ = given(text, CASES[name][0])
    facts = simulator(text, arch).facts
    scenario = Scenario({n: v for n, v in params.items() if isinstance(v, int)})
    machine = {code_of(f, facts) for f in explore(facts, scenario, mode="adversarial").faults}
    assert codes(text, CASES[name][0]) <= machine


def test_every_kind_of_fault_has_a_code():
    from cake_core.simulate.findings import CODES

    assert CODES.keys() == set(Kind)
