"""The tables of docs/emulator.md are those of the records, and nothing in the records is wrong."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cake_core.runtime.companion import load_companion

DOCS = Path(__file__).resolve().parents[2] / "docs"


def made():
    spec = importlib.util.spec_from_file_location("docs_emulator", DOCS / "emulator.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", made().TABLES)
def test_the_table_is_that_of_the_record(name):
    page, (start, end) = (DOCS / "emulator.md").read_text(encoding="utf-8"), made().marks(name)
    assert page.split(start)[1].split(end)[0].strip() == made().TABLES[name](), "write it anew: python docs/emulator.py --write"


def test_nothing_recorded_is_wrong():
    of = made().recorded
    assert of("emulator_micro")["differ"] == 0 and sum(f["cases"] for f in of("emulator_micro")["families"].values()) >= 2000
    assert of("emulator")["bad"] == [] and of("emulated_sm100")["wrong"] == 0
    assert all(row[executor]["within"] for row in of("on_cpu")["kernels"] for executor in of("on_cpu")["most_s"])


def test_every_kernel_is_recorded_on_every_shape_of_its_companion():
    ran = {(c["kernel"], json.dumps(c["shape"], sort_keys=True)) for r in ("emulator", "emulated_sm100") for c in made().recorded(r)["cases"]}
    kernels = sorted((DOCS.parent / "kernels").glob("*/*.cake"))
    shapes = [(p.stem, json.dumps(s, sort_keys=True)) for p in kernels for s in load_companion(p.with_suffix(".py")).call("shapes")]
    assert len(kernels) >= 20 and [s for s in shapes if s not in ran] == []
