"""README.md is run as it stands: its first command in a copy of the repository, without an index, then the tour, output by output.

`...` in a block of output stands for any lines. The command under 'Run the tests' is run by `.ci/run`, which runs this file.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from newcomer import ROOT, arrive, expected, matches, steps

from cake_core.check.safety import REQUIRED, SAFETY

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def script(path: Path, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return arrive(tmp_path_factory.mktemp("newcomer"))


def test_the_first_command_and_the_tour(place):
    """One test, since each step stands on the one before."""
    assert shutil.which("bash"), "the README's commands are for a shell"
    began = False
    for number, (block, outputs) in enumerate(steps(TEXT)):
        wanted = expected(outputs)
        if block.language == "sh" and "pytest" in block.text:
            continue  # by .ci/run
        if block.language == "sh":
            code, output = place.bash(f"{'. .venv/bin/activate; ' if began else ''}{block.text}", strict=not began)
            assert began or code == 0, output
            began = True
        elif block.mark == "gpu":
            compile(block.text, "README.md", "exec")
            continue
        else:
            output = place.python(block.text)
        assert not outputs and not output or matches(wanted, output), f"block {number}:\n{block.text}\nprinted\n{output}\nand README.md says\n{wanted}"


def test_what_the_readme_runs():
    """The test above ran what it says: two setups, at least six steps, and the steps of a GPU are marked."""
    commands = [b for b, _ in steps(TEXT)]
    assert {b.language for b in commands} == {"sh", "python"}
    assert sum("venv" in b.text and "pip install" in b.text for b in commands) == 2
    assert len(commands) >= 8
    assert [b.mark for b in commands if "torch" in b.text] == ["gpu"]


def test_the_setups_are_one_command_line_each():
    for heading in ("Build a kernel", "Run the tests"):
        text = script(ROOT / ".ci" / "readme.py", "readme").command(heading)
        lines = text.rstrip("\n").split("\n")
        assert all(line.endswith("&&") for line in lines[:-1]), "a line that ends in '&&' goes on; any other ends the command"


def test_the_results_are_those_of_the_files():
    table = script(ROOT / "bench" / "table.py", "table")
    (shown,) = table.MARKS.findall(TEXT)
    assert shown == table.section(table.read()), "write it anew: python bench/table.py --write"


def test_every_result_has_a_row():
    table = script(ROOT / "bench" / "table.py", "table")
    (shown,) = table.MARKS.findall(TEXT)
    rows = [row for result in table.read().values() for row in table.measured(result)]
    assert rows and shown.count("| `") == sum(len(table.ours(row)) for row in rows)
    medians = [side["median_us"] for row in rows for side in row["burst"]["sides"].values()]
    assert all(m > 0 for m in medians)


def test_a_row_shows_the_files_numbers():
    table = script(ROOT / "bench" / "table.py", "table")
    mode = {"sides": {"cake": {"median_us": 10.0, "tflop_per_s": 5.0}, "torch": {"median_us": 12.0, "tflop_per_s": 4.2}}}
    text = table.section({"gemm": {"environment": {"gpu": "G", "libraries": {"torch": "2"}, "date": "2030-01-02 03:04"}, "shapes": [{"M": 8, "causal": True, "burst": mode}]}})
    assert "| `gemm` | M 8, causal | 5.0 TFLOP/s | torch 4.2 TFLOP/s (1.200) |  |" in text.splitlines()


def test_what_was_not_proved_is_said(place):
    """As the page has it: by the kernel that the tour loads, and by the report of the build."""
    assert "`gemm.unproved` lists what was not proved of this kernel; `cake build` and `cake run` print it too" in " ".join(TEXT.split())
    unproved = place.python('import cake_core; print(*cake_core.load("out/gemm").unproved, sep="\\n")').split("\n")
    unproved = [c for c in unproved if c]  # of this kernel nothing is left open
    assert set(unproved) <= set(SAFETY) - set(REQUIRED)
    code, report = place.bash(". .venv/bin/activate; cake build kernels/gemm/gemm_sm90.cake -o out/again")
    assert code == 0 and all(what in report for what in unproved)


@pytest.mark.parametrize("wanted, output, same", [("a\n...\nc\n", "a\nb\nb\nc\n", True), ("a\n...\nc\n", "a\nc\n", True), ("a\n", "a\nb\n", False), ("a.c\n", "abc\n", False), ("...\nb\n", "a\nb\n", True)])
def test_how_outputs_are_compared(wanted, output, same):
    assert matches(wanted, output) is same
