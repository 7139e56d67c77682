"""Mutants of small texts, on data: all that the event machine finds is found, and beside it what only data and tensors show."""

from pathlib import Path

import numpy as np
import pytest
from simulated_texts import PLOTS, front, registry, tensors_of

from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.build import lift
from cake_core.machine import Scenario, explore
from cake_core.machine.scenarios import value
from cake_core.mutate import mutants
from cake_core.primitive.simulated import dtypes
from cake_core.simulate import Simulator
from cake_core.simulate.findings import code_of

TEXTS = Path(__file__).resolve().parents[1] / "machine" / "texts"
#: Sizes; the least number of mutants; those that the machine, which has no tensors and no registers, says nothing of.
CASES = {
    "ring": ({"R": 5}, 45, {}),
    "groups": ({"R": 1, "N": 7}, 25, {"drop guard, if cp.async": {"core/index-bounds"}}),
    "epilogue": ({"R": 5}, 30, {"trip, for t_i: +1": {"core/index-bounds"}}),
    "windows": ({}, 35, {"swap, assign and tcgen05.st": {"runtime/uninitialised-read"}}),
}


def inputs_of(kernel, sizes: dict) -> dict:
    rng = np.random.default_rng(0)
    shapes = {p.name: (tuple(value(lift(e), sizes) for e in p.declared.groups[-1]), p) for p in kernel.params if p.mode in ("in", "inout")}
    return {n: rng.standard_normal(s).astype(np.float32).astype(dtypes()[p.declared.name]) for n, (s, p) in shapes.items()}


@pytest.mark.parametrize("name", CASES)
def test_what_the_machine_finds_is_found(name):
    sizes, least, beyond = CASES[name]
    f = front((TEXTS / f"{name}.cake").read_text(encoding="utf-8"))
    given, more, judged = inputs_of(f.typed, sizes), {}, 0
    for edit in mutants(f.derived, f.typed, registry()):
        try:
            typed = elaborate(edit.kernel, registry(), f.arch, derived=True, overrides={})
        except CakeError:
            continue
        judged += 1
        made = Simulator.of(typed, registry(), f.arch)
        facts = made.facts
        expected = {code_of(x, facts) for x in explore(facts, Scenario(sizes), mode="adversarial", seconds=None).faults}
        try:
            found = {code_of(x, facts) for plot in PLOTS for x in made.run(sizes, tensors_of(typed, sizes, given), plot, most=1)}
        except CakeError as error:
            found = {error.diagnostics[0].code}
        assert found or not expected, f"{edit.operator}, {edit.what}: the machine finds {expected}"
        if found and not expected:
            more[f"{edit.operator}, {edit.what}"] = found
    assert more == beyond
    assert judged >= least
