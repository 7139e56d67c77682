"""What a GPU wrote, by what the emulator writes: micro-kernels of every family, recorded by `bench/emulator_micro.py` as digests of their outputs."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import pytest

from cake_core.emulate.device import Api
from cake_core.emulate.turns import Turns
from cake_core.runtime import driver

BENCH = Path(__file__).resolve().parents[2] / "bench"
RECORD = json.loads((BENCH / "results" / "emulator_micro_sample.json").read_text(encoding="utf-8"))


@cache
def micro() -> tuple:
    """The modules that say what a case is, and which there are."""
    sys.path.insert(0, str(BENCH))
    try:
        from micro import case, families
    finally:
        sys.path.remove(str(BENCH))
    return case, families


@cache
def listed(module: str) -> dict:
    return {case.name: case for case in micro()[1].of_module(module)}


def test_every_module_is_in_the_record():
    assert {module for module, _, _ in RECORD["cases"]} >= set(micro()[1].MODULES) - {"approximate"}  # their bits are open
    assert "H200" in RECORD["environment"]["gpu"]


@pytest.mark.parametrize("module", sorted({module for module, _, _ in RECORD["cases"]}))
def test_the_emulator_writes_what_the_gpu_wrote(module, offered):
    digest, run = micro()[0].digest, micro()[0].run
    wrong = {}
    for _, name, digests in (c for c in RECORD["cases"] if c[0] == module):
        case, told = listed(module)[name], []
        with driver.use(Api(offered.emulates, (9, 0), lambda grid, told=told: told.extend(grid.findings), Turns)) as cuda:
            found = run(case, cuda)
        mine = {n: digest(case.outputs[n], found[n]) for n in digests}
        if mine != digests or told:
            wrong[case.name] = mine, digests, told
    assert not wrong
