"""Workspaces: zeros before a launch, memory of the runtime, one a stream; and what `cake run` says where a kernel leaves one dirty."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from cake_core.artifact import EntryParamInfo, Manifest
from cake_core.runtime import load
from cake_core.runtime.execute import run_artifact
from cake_core.runtime.workspace import stream_key

COMPANION = """
import numpy as np
tolerance = {"Y": (0.0, 0.0)}
def shapes(): return [{"R": 3, "C": 8}, {"R": 2, "C": 8}]
def inputs(shape, rng): return {"X": np.ones((shape["R"], shape["C"]), np.float32), "by": 1.0}
def reference(inputs): return {"Y": inputs["X"].astype(np.float64)}
"""


@pytest.fixture
def manifest(fakes):
    work = fakes.tensor("WORK", "workspace", "R", elem="i32", contiguous=True)
    return replace(
        fakes.SCALE, params=(*fakes.SCALE.params, work), entry_params=(*fakes.SCALE.entry_params, EntryParamInfo("pointer", "WORK"))
    )


@pytest.fixture
def scale(artifact, manifest, gpu):
    return load(artifact(manifest))


def arrays(fakes, rows=3):
    return {"X": fakes.Array((rows, 16), pointer=0x50000), "Y": fakes.Array((rows, 16), pointer=0x70000), "by": 1.0}


def pointers(gpu, fakes):
    """Where the workspace of each launch was."""
    return [fakes.cells(params, 6)[5] for _, _, params in gpu.launches]


def words(address, n):
    return np.frombuffer((ctypes.c_char * (4 * n)).from_address(address), np.int32)


def test_it_is_a_parameter_that_no_caller_names(scale, fakes):
    assert "WORK" not in scale.signature and scale.manifest.hidden == {"WORK"} == scale.manifest.workspaces
    with pytest.raises(Exception, match="no parameter 'WORK'"):
        scale(**arrays(fakes), WORK=fakes.Array((3,), "<i4"))
    assert Manifest.from_json(scale.manifest.to_json()) == scale.manifest


def test_what_a_call_returns_are_the_outputs(scale, fakes):
    given = arrays(fakes)
    assert scale(**given) is given["Y"]


def test_it_holds_zeros_and_is_made_once_a_stream(gpu, scale, fakes):
    seen = []
    gpu.program = lambda config, params: seen.append(words(fakes.cells(params, 6)[5], 3).copy())
    for stream in (5, 6, 5, 0, 1, 6):
        scale(**arrays(fakes), stream=stream)
    a, b, again, legacy, same, b_again = pointers(gpu, fakes)
    assert a == again and b == b_again and legacy == same and len({a, b, legacy}) == 3
    assert all((w == 0).all() for w in seen)
    allocated = gpu.count("cuMemAlloc")
    scale(**arrays(fakes), stream=5)
    assert gpu.count("cuMemAlloc") == allocated == 3


def test_a_larger_one_replaces_it(gpu, scale, fakes):
    for rows in (3, 5, 4):
        scale(**arrays(fakes, rows), stream=5)
    first, larger, smaller = pointers(gpu, fakes)
    assert larger == smaller and gpu.count("cuMemAlloc") == 2


def test_a_prepared_launch_takes_that_of_the_stream(gpu, scale, fakes):
    scale(**arrays(fakes), stream=5)
    p = scale.prepare(**arrays(fakes))
    for stream in (5, 6, 5, 6):
        p(stream)
    made, a, b, *again = pointers(gpu, fakes)
    assert made == a != b and again == [a, b]


def test_the_per_thread_stream_is_another_one_in_each_thread():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(stream_key, 2).result() != stream_key(2) == stream_key(2)
        assert pool.submit(stream_key, 7).result() == stream_key(7) and stream_key(0) == stream_key(1)


@pytest.mark.parametrize("left", [0, 1])
def test_run_says_what_a_kernel_left(gpu, artifact, manifest, fakes, tmp_path, left):
    found = []

    def program(config, params):
        x, y, rows, columns, _, work = fakes.cells(params, 6)
        words(y, rows * columns)[:] = words(x, rows * columns)
        found.append(words(work, rows).copy())
        words(work, rows)[rows - 1] = left

    gpu.program = program
    (tmp_path / "scale.py").write_text(COMPANION)
    report = run_artifact(artifact(manifest), tmp_path / "scale.py", None, 1)
    assert report.ok is not bool(left) and all(o.ok for r in report.results for o in r.outputs)
    assert [bool(r.fault) for r in report.results] == [bool(left)] * 2
    assert all((w == 0).all() for w in found)  # of each shape: what one left does not reach the next
    if left:
        assert report.results[0].fault == "runtime/workspace: 'WORK' does not hold zeros behind the launch"
