"""The two ways of searching against each other: vector clocks over few schedules, and all interleavings without clocks.

They share the steps, and neither the synchronisation nor the search for races.
"""

import random
import time
from pathlib import Path

import pytest
from machine_texts import read
from mutants import mutants

from cake_core.machine import Kind, Scenario, replay
from cake_core.machine.clocks import layout_of
from cake_core.machine.explore import orders
from cake_core.machine.schedule import Schedule
from cake_core.machine.states import Search
from cake_core.machine.threads import cluster_of
from cake_core.machine.worlds import worlds

ROOT = Path(__file__).resolve().parents[2] / "kernels" / "gemm"

SIZES = [
    ("ring", {"R": 4}),
    ("lagged", {"M": 64, "N": 64, "K": 256}),
    ("turns", {"R": 2}),
    ("multicast", {"M": 2, "N": 2}),
    ("groups", {"R": 1, "N": 4}),
    ("epilogue", {"R": 3}),
    ("columns", {"M": 256, "K": 128}),
]

#: Only clocks tell of these; an arrival that no one waits for changes no interleaving.
CLOCKS = {Kind.INIT, Kind.FENCE, Kind.EXIT, Kind.TENSOR, Kind.IN_FLIGHT, Kind.OVERRUN, Kind.PHASE, Kind.UNWRITTEN}


def alone(fault) -> bool:
    """Between steps of one agent, which the search over states leaves to the clocks."""
    a, b = fault.first, fault.second
    return a is not None and b is not None and (a.role, a.instance, a.warp, a.cta) == (b.role, b.instance, b.warp, b.cta)


def both(facts, sizes):
    scenario = Scenario(sizes)
    world = next(iter(worlds(facts, scenario, 0)))
    cluster = cluster_of(facts, world)
    layout = layout_of(cluster)
    clocks = [f for order in orders(cluster, 0) for f in Schedule(cluster, layout, order).run()]
    search = Search(cluster, 20_000, time.monotonic() + 20, False)
    return clocks, search.run(), search.limit


def disagreement(facts, sizes) -> str:
    clocks, states, limit = both(facts, sizes)
    if states and not clocks:
        return f"only an interleaving: {states[0]}"
    told = [f for f in clocks if f.kind not in CLOCKS and not alone(f)]
    return f"only the clocks: {told[0]}" if told and not states and not limit else ""


@pytest.mark.parametrize(("name", "sizes"), SIZES, ids=[n for n, _ in SIZES])
def test_both_find_the_same_mutants(facts, name, sizes):
    checked = {m.name: disagreement(m.facts, sizes) for m in mutants(facts(name))}
    assert len(checked) > 5
    assert {m: d for m, d in checked.items() if d} == {}


@pytest.mark.parametrize(("name", "sizes"), SIZES, ids=[n for n, _ in SIZES])
def test_both_find_the_same_of_two_mutations(facts, name, sizes):
    draw = random.Random(name)
    first = draw.sample(list(mutants(facts(name))), 4)
    for m in first:
        for n in draw.sample(list(mutants(m.facts)), 4):
            assert disagreement(n.facts, sizes) == "", f"{m.name}, {n.name}"


#: What a mutant must be to show in any kernel: other mutants may be harmless where another order covers them.
SERIOUS = {"parity", "drop arrive", "bytes", "copy bytes", "count", "drop init", "twice commit", "drop commit"}
KERNELS = {
    "gemm_sm90": ({"M": 200, "N": 512, "K": 384}, 2),
    "gemm_sm100": ({"M": 300, "N": 512, "K": 512}, 1),
    "gemm_sm100_pair": ({"M": 200, "N": 768, "K": 512}, 1),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_broken_in_a_kernel_shows(name):
    sizes, step = KERNELS[name]
    facts = read((ROOT / f"{name}.cake").read_text(encoding="utf-8"))
    broken = [m for m in mutants(facts) if m.kind in SERIOUS][::step]
    assert len(broken) > 5
    missed = [m.name for m in broken if not replay(m.facts, Scenario(sizes), mode="adversarial").faults]
    assert missed == []
