"""`cake run` and `cake bench` as far as no GPU is needed: what they hand to the runtime and what they show of its report."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.cli.run import parse_shape
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.runtime import execute
from cake_core.runtime.errors import DriverError
from cake_core.runtime.report import BenchReport, BenchResult, DeviceInfo, OutputReport, RunReport, ShapeReport, Timing

ROOT = Path(__file__).resolve().parents[2]
GEMM = ROOT / "kernels" / "gemm" / "gemm_sm90.cake"
DEVICE = DeviceInfo(0, "A GPU", (9, 0), 132, "13.0")


def cake(*args, **more):
    return CliRunner().invoke(app, list(map(str, args)), prog_name="cake", **more)


def output(**more) -> OutputReport:
    return OutputReport(**({"name": "D", "shape": (4, 8), "elem": "bf16", "compared": True, "worst": 0.25, "error_rms": 1e-3, "wrong": 0, "unwritten": 0, "guard_bytes": 0} | more))


GOOD = ShapeReport({"M": 4, "N": 8}, True, (output(),))
BAD = ShapeReport({"M": 5, "N": 8}, False, (output(worst=7.0, wrong=3, unwritten=2, guard_bytes=16, first_wrong=(1, 2)),))
FAULT = ShapeReport({"M": 6, "N": 8}, False, (), "runtime/require: 'k' requires N % 16 == 0")


@pytest.fixture
def runs(monkeypatch):
    """Stands for the runtime: records what it was given and returns reports."""
    calls = []

    def answer(results):
        def job(folder, companion, shapes, seed, device=0):
            calls.append((folder, companion, shapes, seed, device, sorted(p.name for p in Path(folder).iterdir())))
            return RunReport("gemm", "t", str(folder), DEVICE, seed, True, all(r.ok for r in results), tuple(results), ("a note",), ("deadlock",))

        monkeypatch.setattr(execute, "run_artifact", job)
        return calls

    return answer


@pytest.fixture
def artifact(tmp_path):
    folder = tmp_path / "art"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    return folder


def test_an_artifact_is_run_as_it_is(runs, artifact):
    calls = runs([GOOD])
    result = cake("run", artifact, "--shape", "M=4,N=8", "--shape", "M=1", "--seed", 7, "--device", 1)
    assert result.exit_code == 0, result.output
    assert calls == [(artifact, None, [{"M": 4, "N": 8}, {"M": 1}], 7, 1, ["manifest.json"])]
    assert "gemm for t on A GPU (compute capability 9.0, driver 13.0), seed 7" in result.stdout
    assert "M=4 N=8" in result.stdout and " ok " in result.stdout and "note: a note" in result.stdout and "Not proved: deadlock" in result.stdout


def test_a_text_is_built_into_a_folder_that_is_gone_afterwards(runs, tmp_path):
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Ptx optimizing assembler V99.1.2'; exit 0; }\necho x > kernel.cubin\n")
    ptxas.chmod(0o755)
    calls = runs([GOOD])
    result = cake("run", GEMM, "--ptxas", ptxas, "--json")
    assert result.exit_code == 0, result.output
    ((folder, companion, shapes, seed, device, files),) = calls
    assert companion == GEMM.with_suffix(".py") and shapes is None and (seed, device) == (0, 0)
    assert "kernel.cubin" in files and not Path(folder).exists()
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    assert data["runs"][0]["artifact"] == str(GEMM), "a scratch folder's name says nothing"


@pytest.mark.parametrize("results, words", [([GOOD, BAD], "WRONG"), ([FAULT], "fault"), ([BAD], "first at [1, 2], 2 unwritten, 16 bytes written outside")])
def test_a_wrong_result_is_a_finding(runs, artifact, results, words):
    runs(results)
    result = cake("run", artifact)
    assert result.exit_code == 1 and words in result.stdout
    assert cake("run", artifact, "--json").exit_code == 1


def test_what_was_not_compared_is_not_called_right(runs, artifact):
    runs([ShapeReport({"M": 4}, True, (output(compared=False, worst=None, error_rms=None),))])
    out = cake("run", artifact).stdout
    assert "not compared" in out and " ok" not in out


@pytest.mark.parametrize("code, expected", [("runtime/no-gpu", 3), ("runtime/driver", 3), ("runtime/device-mismatch", 1), ("runtime/artifact-hash", 1)])
def test_what_the_runtime_raises(monkeypatch, artifact, code, expected):
    def job(*args):
        raise DriverError(code, "it can't be run")

    monkeypatch.setattr(execute, "run_artifact", job)
    result = cake("run", artifact)
    assert result.exit_code == expected and f"error[{code}]: it can't be run" in result.stderr


@pytest.mark.parametrize("command, job", [("run", "run_artifact"), ("bench", "bench_artifact")])
@pytest.mark.parametrize("code", ["runtime/no-gpu", "runtime/device-mismatch"])
def test_if_available_says_that_it_did_not_run_and_ends_clean(monkeypatch, artifact, command, job, code):
    def none(*args):
        raise DriverError(code, "there is no such GPU")

    monkeypatch.setattr(execute, job, none)
    result = cake(command, artifact, "--if-available")
    assert result.exit_code == 0 and not result.stdout
    assert f"note[{code}]: '{artifact}' was not run: there is no such GPU" in result.stderr
    data = json.loads(cake(command, artifact, "--if-available", "--json").stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    assert data["runs"] == [] and data["outcome"] == "clean" and data["diagnostics"][0]["severity"] == "note"


@pytest.mark.parametrize("code, expected", [("runtime/driver", 3), ("runtime/artifact-hash", 1), ("runtime/companion-failed", 1)])
def test_if_available_hides_no_other_error(monkeypatch, artifact, code, expected):
    def job(*args):
        raise DriverError(code, "it can't be run")

    monkeypatch.setattr(execute, "run_artifact", job)
    result = cake("run", artifact, "--if-available")
    assert result.exit_code == expected and f"error[{code}]: it can't be run" in result.stderr


def test_if_available_runs_where_there_is_a_gpu(runs, artifact):
    assert runs([BAD]) == []
    result = cake("run", artifact, "--if-available")
    assert result.exit_code == 1 and "WRONG" in result.stdout


@pytest.mark.parametrize("place", ["", "nowhere", "x" * 300, "x" * 5000, "loop", "loop/a"], ids=lambda p: p[:10])
@pytest.mark.parametrize("command", ["run", "bench"])
def test_a_place_that_holds_nothing(artifact, tmp_path, monkeypatch, command, place):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    for args in ([place], [str(artifact), "--reference", place or "."]):
        result = cake(command, *args)
        assert result.exit_code == 2 and "Could not open file" in result.stderr


def test_options_of_a_build_do_not_go_with_an_artifact(runs, artifact):
    runs([GOOD])
    for option in (["--arch", "t"], ["--kernel", "k"], ["--set", "A=1"]):
        result = cake("run", artifact, *option)
        assert result.exit_code == 2 and "is built already" in result.stderr
    assert cake("run", artifact, "--reference", "nothing.py").exit_code == 2


def test_bench_shows_times_and_rates(monkeypatch, artifact):
    results = (BenchResult({"M": 4}, Timing(171.456, 170.0, 180.0, 56), 100, 1234.56, 10, 801.234), BenchResult({"M": 5}, None, 0, None, None, None, "runtime/out-of-memory: full"))

    def job(folder, companion, shapes, seed, device=0):
        return BenchReport("gemm", "t", str(folder), DEVICE, seed, False, "8 bursts", results)

    monkeypatch.setattr(execute, "bench_artifact", job)
    result = cake("bench", artifact)
    assert result.exit_code == 1
    assert "171.46" in result.stdout and "1234.6" in result.stdout and "801.2" in result.stdout
    assert "runtime/out-of-memory: full" in result.stdout and "8 bursts" in result.stdout


@pytest.mark.parametrize("text, shape", [("M=1", {"M": 1}), ("M=1,N=2", {"M": 1, "N": 2}), (" M = 0 , N = 16 ", {"M": 0, "N": 16})])
def test_shapes(text, shape):
    assert parse_shape(text) == shape


def test_an_artifact_needs_no_parser_and_no_plugin(artifact):
    import subprocess
    import sys

    code = (
        "import sys\nfrom cake_core.cli.app import app\n"
        "try: app.main(['run', sys.argv[1]], prog_name='cake')\nexcept SystemExit: pass\n"
        "print([m for m in ('lark', 'pluggy', 'cake_core.syntax', 'cake_core.pipeline', 'cake_core.plugins') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(artifact)], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("\n[]\n") and "error[runtime/artifact-manifest]" in done.stderr
