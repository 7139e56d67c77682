"""The CI script's helpers: what a run cost, what it may cost, and which skips count as failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / ".ci" / "run"


def script(name: str):
    spec = spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


REPORT, README = script("report"), script("readme")

JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.cli.test_run" name="test_a" time="1.5"/>
<testcase classname="tests.cli.test_run.TestGroup" name="test_b" time="2.0"/>
<testcase classname="tests.test_wheel" name="test_c" time="3.0"/>
<testcase classname="plugins.tma.tests.test_boxes" name="test_d" time="40.0"/>
<testcase classname="arch.acme.tests.test_x" name="test_e" time="0.5"><skipped message="{reason}"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def found(tmp_path):
    def read(reason="permissions do not bind this user"):
        path = tmp_path / "report.xml"
        path.write_text(JUNIT.format(reason=reason))
        return REPORT.cases(path)

    return read


def test_rooms_and_their_seconds(found):
    text, wrong = REPORT.report(found(), {"tests/cli": 1.0, "tests": 3.0, "*": 30.0})
    assert [c.room for c in found()] == ["tests/cli", "tests/cli", "tests", "plugins/tma", "arch/acme"]
    assert wrong == ["room 'tests/cli' took 4 s of 1"]  # 4 s is over three times 1 s; 40 s is not over three times 30 s
    assert text.splitlines()[1].split() == ["plugins/tma", "1", "40.0", "30.0", "over"]
    assert "40.0  plugins/tma/tests/test_boxes.py::test_d" in text


def test_a_room_without_a_budget_is_wrong(found):
    assert "room 'arch/acme' has no budget in docs/ci.md" in REPORT.report(found(), {"tests/cli": 9.0, "tests": 9.0, "plugins/tma": 90.0})[1]


@pytest.mark.parametrize("reason, allowed", [("permissions do not bind this user", True), ("no browser is on this machine", True), ("no assembler wheel", False), ("", False)])
def test_a_skip_needs_a_reason_that_is_the_machines(found, reason, allowed):
    wrong = REPORT.report(found(reason), {"*": 99.0})[1]
    assert (wrong == []) is allowed


def test_a_report_that_is_not_there_or_empty_is_a_failure(tmp_path, capsys):
    assert REPORT.main(str(tmp_path / "none.xml")) == 1
    (tmp_path / "cut.xml").write_text("<testsuites><testsuite>")
    assert REPORT.main(str(tmp_path / "cut.xml")) == 1
    assert REPORT.report([], {"*": 1.0})[1] == ["the report holds no test"]


def test_every_room_has_a_budget_and_they_fit_into_the_limit():
    budgets = REPORT.budgets()
    assert budgets["*"] > 0 and {"tests", "tests/cli", "tests/docs", "tests/lower"} <= budgets.keys()
    listed = {room for room in budgets if room != "*"}
    assert all((ROOT / room).is_dir() for room in listed), "a row names a room that is gone"
    limit = int(re.search(r"^LIMIT_S=(\d+)", RUN.read_text(), re.M)[1])
    assert sum(budgets.values()) < limit <= 15 * 60


def test_the_readmes_commands_are_found(capsys):
    assert "--if-available" in README.command("Build a kernel")
    assert README.command("Run the tests").rstrip().endswith(".venv/bin/pytest")
    with pytest.raises(SystemExit, match="no command under 'Nothing'"):
        README.command("Nothing")


def test_the_script_runs_both_of_them():
    text = RUN.read_text()
    assert set(re.findall(r"command_of '([^']+)'", text)) == {"Build a kernel", "Run the tests"}
    assert os.access(RUN, os.X_OK)
    assert subprocess.run(["bash", "-n", RUN], check=False).returncode == 0


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "x").touch()
    done = subprocess.run([RUN, "--keep", tmp_path], capture_output=True, text=True, check=False, env=os.environ | {"CAKE_CI_TIMED": "1"})
    assert done.returncode == 2 and "is not empty" in done.stderr
