"""What is recorded of mutants: the tables of docs/mutants.md are those of the files, and a GPU contradicts no verdict that accepts."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
DEVICE = json.loads((ROOT / "bench" / "results" / "mutants_device.json").read_text(encoding="utf-8"))


def tables():
    spec = importlib.util.spec_from_file_location("docs_mutants", ROOT / "docs" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_files():
    made = tables()
    for start, end, text in ((made.START, made.END, made.table()), (made.DEVICE_START, made.DEVICE_END, made.device_table())):
        assert PAGE.split(start)[1].split(end)[0].strip("\n") == text, "write it anew: python docs/mutants.py --write"


def test_none_is_missed_and_none_is_an_alarm():
    rows = json.loads((ROOT / "docs" / "mutants.json").read_text(encoding="utf-8"))
    judged = Counter(o for row in rows.values() for counts in row["counts"].values() for o, n in counts.items() for _ in range(n))
    assert judged["missed"] == judged["alarm"] == 0 and judged["unrun"] <= 1  # a pick of moe_grouped_dynamic of which 'math' never ends
    assert judged.total() >= 370 + 2000
    assert {m["outcome"] for row in rows.values() for m in row["apart"]} <= {"unrun"}


def test_one_command_judges_every_row(monkeypatch):
    made = tables()
    monkeypatch.setattr(made, "judge_of", lambda name: (None, [], None))
    rows = json.loads((ROOT / "docs" / "mutants.json").read_text(encoding="utf-8"))
    assert rows.keys() <= {title for title, *_ in made.everything()} and len(made.everything()) >= 40
    judged = {Path(folder).name for folder, *_ in made.KERNELS.values()}
    assert {p.stem for p in (ROOT / "kernels").glob("*/*.cake")} - judged == {"scale_shift", "silu_mul_bias"}  # which have nothing to change


def test_what_is_accepted_is_right_on_the_gpu():
    found = Counter((m["verdict"], m["outcome"]) for m in DEVICE["mutants"])
    accepted = [m for m in DEVICE["mutants"] if m["verdict"] == "accepted"]
    assert [m["name"] for m in accepted if m["outcome"] != "right"] == []
    assert len(accepted) >= 12 and all(not m["codes"] for m in accepted)
    wrong = sum(n for (verdict, outcome), n in found.items() if verdict == "refused" and outcome in ("wrong", "fault", "hang", "varies"))
    assert wrong >= 25 and all(m["codes"] for m in DEVICE["mutants"] if m["verdict"] == "refused")
    assert all(m["outcome"] == "right" for m in (*DEVICE["controls"], *DEVICE["controls_afterwards"]))


def test_every_run_of_an_accepted_mutant_was_made():
    """With all delays that the assembler takes, at all sizes, each several times."""
    for m in DEVICE["mutants"]:
        if m["verdict"] == "accepted":
            runs = len(m["delays"]) * len(DEVICE["sizes"][Path(m["kernel"]).name])
            assert m["launches"] == runs * DEVICE["repeats"] and len(m["delays"]) >= 2, m["name"]
