"""`run_artifact` and `bench_artifact` on the fake GPU: right kernels pass, each kind of wrong one is reported as what it is."""

import ctypes
import json
from dataclasses import replace

import numpy as np
import pytest
from cuda.bindings import driver as cu

from cake_core.artifact import LaunchInfo
from cake_core.runtime import DriverError, LaunchError
from cake_core.runtime import execute
from cake_core.runtime.compare import GUARD
from cake_core.runtime.execute import bench_artifact, run_artifact

COMPANION = '''
import numpy as np
tolerance = {"Y": (1e-6, 0.0)}
def shapes(): return [{"R": 3, "C": 8}, {"R": 1, "C": 1}, {"R": 0, "C": 8}]
def inputs(shape, rng): return {"X": rng.standard_normal((shape["R"], shape["C"]), dtype=np.float32), "by": 0.5}
def reference(inputs): return {"Y": inputs["X"].astype(np.float64) * 0.5}
def flops(shape): return shape["R"] * shape["C"]
'''


@pytest.fixture
def companion(tmp_path):
    def write(text=COMPANION):
        path = tmp_path / "scale.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def folder(artifact, fakes):
    return artifact(fakes.SCALE)


def program(fakes, change=lambda y, n: None, factor=1.0):
    """A kernel that scales right (times `factor`), then does `change(y pointer, elements)` to memory."""

    def run(config, params):
        x, y, rows, columns, by = fakes.cells(params, 5)
        by = np.frombuffer(np.uint32(by).tobytes(), np.float32)[0] * factor
        n = rows * columns
        source = np.frombuffer((ctypes.c_char * (4 * n)).from_address(x), np.float32)
        np.frombuffer((ctypes.c_char * (4 * n)).from_address(y), np.float32)[:] = source * by
        change(y, n)

    return run


def poke(address, value=0.0, count=1):
    np.frombuffer((ctypes.c_char * (4 * count)).from_address(address), np.float32)[:] = value


def test_a_right_kernel(gpu, fakes, folder, companion):
    gpu.program = program(fakes)
    report = run_artifact(folder, companion(), None, 1)
    assert report.ok and report.reference and report.notes == () and [r.shape for r in report.results] == [{"R": 3, "C": 8}, {"R": 1, "C": 1}, {"R": 0, "C": 8}]
    assert report.device.name == "Fake GPU" and report.device.driver == "13.0"
    (y,) = report.results[0].outputs
    assert (y.name, y.shape, y.elem, y.compared, y.wrong, y.unwritten, y.guard_bytes) == ("Y", (3, 8), "f32", True, 0, 0, 0)
    assert 0 <= y.worst < 1 and y.error_rms < 1e-6
    assert json.loads(report.to_json())["results"][0]["outputs"][0]["name"] == "Y"
    assert len(gpu.launches) == 2  # no work item, no launch


@pytest.mark.parametrize(
    "change, factor, field, count",
    [
        (lambda y, n: None, 1 + 1e-5, "wrong", 24),
        (lambda y, n: poke(y + 4 * 5, np.inf), 1, "wrong", 1),
        (lambda y, n: poke(y + 4 * 5, np.nan), 1, "wrong", 1),
        (lambda y, n: ctypes.memset(y + 4 * 5, 255, 4), 1, "unwritten", 1),
        (lambda y, n: poke(y + 4 * n), 1, "guard_bytes", 4),
        (lambda y, n: poke(y - 4), 1, "guard_bytes", 4),
        (lambda y, n: ctypes.memset(y - GUARD, 0, 1), 1, "guard_bytes", 1),
        (lambda y, n: ctypes.memset(y + 4 * n + GUARD - 1, 0, 1), 1, "guard_bytes", 1),
    ],
    ids=["off", "inf", "nan", "unwritten", "behind", "before", "far before", "far behind"],
)
def test_a_wrong_kernel(gpu, fakes, folder, companion, change, factor, field, count):
    gpu.program = program(fakes, change, factor)
    report = run_artifact(folder, companion(), [{"R": 3, "C": 8}], 1)
    (y,) = report.results[0].outputs
    assert not report.ok and not y.ok and getattr(y, field) == count
    if field in ("wrong", "unwritten"):
        assert y.first_wrong == ((0, 0) if count > 1 else (0, 5))
    json.loads(report.to_json(), parse_constant=pytest.fail)  # no NaN or Infinity, which JSON does not have


@pytest.mark.parametrize("wanted", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_must_agree(gpu, fakes, folder, companion, wanted):
    """An element that the reference says is NaN or infinite is right if the kernel says the same, and wrong otherwise."""
    reference = f'reference(inputs):\n    y = inputs["X"].astype(np.float64) * 0.5\n    y[0, 5] = float("{wanted}")\n    return {{"Y": y}}'
    text = COMPANION.replace('reference(inputs): return {"Y": inputs["X"].astype(np.float64) * 0.5}', reference)
    assert text != COMPANION
    for value, wrong in ((wanted, 0), (1.0, 1)):
        gpu.program = program(fakes, lambda y, n: poke(y + 4 * 5, value))
        (y,) = run_artifact(folder, companion(text), [{"R": 3, "C": 8}], 1).results[0].outputs
        assert (y.wrong, y.unwritten) == (wrong, 0)


def test_a_kernel_that_writes_nothing(gpu, folder, companion):
    (y,) = run_artifact(folder, companion(), [{"R": 3, "C": 8}], 1).results[0].outputs
    assert not y.ok and y.unwritten == y.wrong == 24


def test_the_seed_and_the_shape_decide_the_inputs(gpu, fakes, folder, companion):
    seen = []

    def run(config, params):
        x, _, rows, columns, _ = fakes.cells(params, 5)
        seen.append(ctypes.string_at(x, 4 * rows * columns))

    gpu.program = run
    shape = [{"R": 3, "C": 8}]
    for shapes, seed in ((shape, 1), ([{"R": 1, "C": 1}, *shape], 1), (shape, 2)):
        run_artifact(folder, companion(), shapes, seed)
    assert seen[0] == seen[2] != seen[3]


def test_without_a_companion(gpu, fakes, folder):
    with pytest.raises(LaunchError, match="runtime/no-shapes"):
        run_artifact(folder, None, None, 1)
    gpu.program = program(fakes)
    report = run_artifact(folder, None, [{"R": 3, "C": 8, "by": 2}], 1)
    assert report.ok and not report.reference and "no reference" in report.notes[0] and not report.results[0].outputs[0].compared
    gpu.program = program(fakes, lambda y, n: poke(y + 4 * n))
    assert not run_artifact(folder, None, [{"R": 3, "C": 8, "by": 2}], 1).ok
    gpu.program = None
    assert run_artifact(folder, None, [{"R": 3, "C": 8, "by": 2}], 1).results[0].outputs[0].unwritten == 24


@pytest.mark.parametrize("shape, code", [({"R": 3}, "size-unknown"), ({"R": 3, "C": 8, "Z": 1}, "unknown-argument"), ({"R": 3, "C": 8}, "fault")], ids=str)
def test_a_shape_that_says_too_little_or_too_much(gpu, folder, shape, code):
    if code == "fault":  # `by` is no size: the launch contract itself asks for it
        assert "'by'" in run_artifact(folder, None, [shape], 1).results[0].fault
        return
    with pytest.raises(LaunchError, match=f"runtime/{code}"):
        run_artifact(folder, None, [shape], 1)


def test_a_shape_that_the_contract_refuses_is_one_rows_fault(gpu, fakes, folder, companion):
    gpu.program = program(fakes)
    report = run_artifact(folder, companion(), [{"R": 1, "C": 9000}, {"R": 1, "C": 8}], 1)
    assert [r.ok for r in report.results] == [False, True] and "C <= 8192" in report.results[0].fault
    assert not report.ok


def test_a_device_fault_ends_the_run_with_a_report(gpu, fakes, folder, companion):
    gpu.program = program(fakes)
    gpu.fail["cuCtxSynchronize"] = [cu.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS]
    report = run_artifact(folder, companion(), None, 1)
    assert not report.ok and len(report.results) == 1 and "CUDA_ERROR_ILLEGAL_ADDRESS" in report.results[0].fault
    assert "2 further shapes were not run" in report.notes[-1]


def test_memory_that_is_short_is_one_rows_fault(gpu, fakes, folder, companion):
    gpu.program = program(fakes)
    gpu.fail["cuMemAlloc"] = [cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY]
    assert [r.ok for r in run_artifact(folder, companion(), None, 1).results] == [False, True, True]


@pytest.mark.parametrize(
    "text, code, word",
    [
        ("syntax error here", "companion-failed", "SyntaxError"),
        (COMPANION.replace("def reference", "def refrence"), "companion-incomplete", "'reference'"),
        (COMPANION.replace('"X": rng', '"Z": rng'), "companion-incomplete", "'Z'"),
        (COMPANION.replace('"X": rng', '"by": 1, "R": rng'), "companion-incomplete", ""),
        (COMPANION.replace("np.float32)", "np.float64)"), "companion-failed", "float64[3, 8]"),
        (COMPANION.replace('(shape["R"], shape["C"])', '(shape["C"], shape["R"])'), "companion-failed", "f32[8, 3]"),
        (COMPANION.replace('return {"Y": inputs', 'return {"Z": inputs'), "companion-incomplete", "Y"),
        (COMPANION.replace("* 0.5", "[:1]"), "companion-failed", "the reference of 'Y'"),
        (COMPANION.replace("* 0.5", "/ None"), "companion-failed", "TypeError"),
        (COMPANION.replace('tolerance = {"Y"', 'tolerance = {"Z"'), "companion-incomplete", "'Y'"),
    ],
)
def test_a_companion_that_is_wrong_is_named(gpu, folder, companion, text, code, word):
    with pytest.raises(LaunchError) as raised:
        run_artifact(folder, companion(text), [{"R": 3, "C": 8}], 1)
    assert raised.value.diagnostic.code == f"runtime/{code}" and word in raised.value.diagnostic.message


def test_a_tolerance_may_be_a_function_of_the_inputs(gpu, fakes, folder, companion):
    gpu.program = program(fakes, factor=1.01)
    text = COMPANION.replace('tolerance = {"Y": (1e-6, 0.0)}', 'def tolerance(inputs, expected): return {"Y": np.abs(expected["Y"]) * LIMIT}\n')
    assert run_artifact(folder, companion(text + "LIMIT = 0.02"), [{"R": 3, "C": 8}], 1).ok
    assert not run_artifact(folder, companion(text + "LIMIT = 0.005"), [{"R": 3, "C": 8}], 1).ok


def test_inout_arrays_start_with_the_inputs(gpu, artifact, fakes, companion):
    params = tuple(replace(p, mode="inout") if p.name == "Y" else p for p in fakes.SCALE.params)
    folder = artifact(fakes.SCALE, params=params)
    text = COMPANION.replace('"by": 0.5', '"Y": np.full((shape["R"], shape["C"]), 3, np.float32), "by": 0.5').replace(
        'inputs["X"].astype(np.float64) * 0.5', 'inputs["Y"] + 1'
    )

    def run(config, params):
        _, y, rows, columns, _ = fakes.cells(params, 5)
        poke(y, np.frombuffer(ctypes.string_at(y, 4 * rows * columns), np.float32) + 1, rows * columns)

    gpu.program = run
    assert run_artifact(folder, companion(text), [{"R": 3, "C": 8}], 1).ok


# --- timing


@pytest.fixture(autouse=True)
def no_idling(monkeypatch):
    monkeypatch.setattr(execute.time, "sleep", lambda seconds: None)


def test_a_benchmark(gpu, fakes, folder, companion):
    gpu.program = program(fakes)  # a launch takes 0.25 ms on the fake clock
    report = bench_artifact(folder, companion(), [{"R": 3, "C": 8}], 1)
    (r,) = report.results
    assert report.ok and r.timing.median_us == r.timing.p10_us == r.timing.p90_us == 250 and r.timing.samples == 56
    assert r.bytes == 2 * 3 * 8 * 4 and r.gb_per_s == pytest.approx(192 / 250e-6 / 1e9)
    assert r.flops == 24 and r.tflop_per_s == pytest.approx(24 / 250e-6 / 1e12)
    assert json.loads(report.to_json())["method"]


def test_a_benchmark_of_nothing_says_so(gpu, folder, companion):
    report = bench_artifact(folder, companion(), None, 1)
    assert [bool(r.fault) for r in report.results] == [False, False, True] and "nothing-to-launch" in report.results[2].fault


def test_the_shapes_to_time_are_the_companions_own(gpu, folder, companion):
    text = COMPANION + '\ndef bench_shapes(): return [{"R": 7, "C": 8}]\n'
    assert [r.shape for r in bench_artifact(folder, companion(text), None, 1).results] == [{"R": 7, "C": 8}]


def test_what_concerns_every_shape_is_raised(artifact, fakes, companion):
    from cake_core.runtime import driver as driver_module

    folder = artifact(fakes.SCALE, launch=LaunchInfo(256, 1, 0, "R", True))
    for job in (run_artifact, bench_artifact):
        with driver_module.use(fakes.FakeApi(capability=(10, 0))), pytest.raises(DriverError, match="runtime/device-mismatch"):
            job(folder, companion(), None, 1)
        with driver_module.use(fakes.FakeApi()), pytest.raises(DriverError, match="no GPU 3"):
            job(folder, companion(), None, 1, device=3)


def test_percentiles():
    for n in (1, 2, 7, 56):
        values = sorted(np.random.default_rng(n).random(n))
        for p in (0.1, 0.5, 0.9):
            assert execute._percentile(values, p) == pytest.approx(np.quantile(values, p))
