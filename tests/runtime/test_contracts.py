"""Contracts about data, from the text to the verdict: a built artifact, a fake GPU that runs the check's PTX, data that stay there."""

import ctypes
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from cake_core import artifact as artifacts
from cake_core.artifact import HOLDS
from cake_core.assemble import find_assembler
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime import ArtifactError, DeviceArray, DriverError, LaunchError, driver as driver_module, load
from cake_core.source import Source

MACHINE = Path(__file__).resolve().parents[1] / "kernels" / "rowwise.py"
TEXT = """cake 1
kernel groups(E: i32, T: i32, most: f32, OFF: in i32[E + 1], X: in f32[T, 8], Y: out f32[T, 8])
  require 1 <= E, E <= 1024, 0 <= T, T <= 65536
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF), finite(X), X[T - 1, 0] <= most, T / OFF[1] > 0
  target sm90
{
  role main: 1 warp {
  }
}
"""


@pytest.fixture(scope="module")
def machine():
    spec = importlib.util.spec_from_file_location("rowwise_of_checks", MACHINE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    registry = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
    folder = tmp_path_factory.mktemp("contracts") / "groups"
    artifacts.write(folder, build(Source("groups.cake", TEXT), registry, "sm90", assembler=find_assembler()).files)
    return folder


@pytest.fixture
def gpu_of(gpu, machine):
    """The fake GPU, which runs the check of a kernel."""

    def runs(kernel):
        info = kernel.manifest.device_check
        ptx = (kernel.artifact.folder / "assumes.ptx").read_text()

        def program(config, params):
            pointers = (ctypes.c_void_p * len(info.entry_params)).from_address(params)
            tensors, scalars = {}, {}
            for e, p in zip(info.entry_params, pointers, strict=True):
                if e.kind == "scalar":
                    kind = ctypes.c_float if e.type == "f32" else ctypes.c_int32
                    scalars[e.ref] = kind.from_address(p).value
                    continue
                address = ctypes.c_uint64.from_address(p).value
                size = len(gpu.memory[address]) - 256 if address else 0
                tensors[e.ref or "$verdicts"] = np.frombuffer((ctypes.c_uint8 * size).from_address(address) if size else b"", np.uint8)
            assert config.blockDimX == info.threads and config.sharedMemBytes == 0
            machine.Grid(ptx, 1, info.threads // 32, 0, scalars, tensors).run(config.gridDimX)

        gpu.program = program
        return gpu

    return runs


def device(values, elem="i32"):
    values = np.asarray(values, {"i32": np.int32, "f32": np.float32}[elem])
    array = DeviceArray(values.shape, elem, 0, driver_module.driver())
    if values.size:
        array.copy_from(values)
    return array


def x(rows=4, at=None, value=0.0):
    found = np.ones((rows, 8), np.float32)
    if at is not None:
        found[at] = value
    return found


def check(kernel, off, x, most=1.0, wrap=device, **more):
    arguments = {"OFF": wrap(off, "i32"), "X": wrap(x, "f32"), "most": most}
    kernel.check(**arguments, **more)


def on_host(values, elem):
    return np.asarray(values, {"i32": np.int32, "f32": np.float32}[elem])


CASES = [
    ([0, 2, 4], x(), 1.0, None, None),
    ([1, 2, 4], x(), 1.0, "OFF[0] == 0", None),
    ([0, 2, 5], x(), 1.0, "OFF[E] == T", None),
    ([0, 3, 2, 4], x(), 1.0, "monotone(OFF)", "OFF[2] breaks it"),
    ([0, 2, 4], x(at=(2, 7), value=np.nan), 1.0, "finite(X)", "X[2, 7] breaks it"),
    ([0, 2, 4], x(at=(1, 0), value=-np.inf), 1.0, "finite(X)", "X[1, 0] breaks it"),
    ([0, 2, 4], x(), 0.5, "X[T - 1, 0] <= most", None),
    ([0, 0, 4], x(), 1.0, "T / OFF[1] > 0", "divides by zero"),
    ([0, 0], x(0), 1.0, "X[T - 1, 0] <= most", "outside"),
]


@pytest.mark.parametrize("where", ["device", "host"])
@pytest.mark.parametrize(("off", "data", "most", "broken", "says"), CASES)
def test_both_checks_say_the_same(folder, gpu_of, where, off, data, most, broken, says):
    kernel = load(folder)
    gpu = gpu_of(kernel)
    wrap = device if where == "device" else on_host
    if broken is None:
        check(kernel, off, data, most, wrap)
    else:
        with pytest.raises(LaunchError) as caught:
            check(kernel, off, data, most, wrap)
        d = caught.value.diagnostic
        assert d.code == "runtime/assume" and broken in d.message and (says is None or says in f"{d.message} {d.why}")
    assert len(gpu.launches) == (where == "device")


def test_no_data_leave_the_device(folder, gpu_of):
    kernel = load(folder)
    gpu = gpu_of(kernel)
    check(kernel, [0, 2, 4], x())
    (back,) = [args for name, args in gpu.calls if name == "cuMemcpyDtoH"]
    assert len(back[0]) == 8 * len(kernel.manifest.assumes) and bytes(back[0]) == HOLDS.to_bytes(8, "little") * len(kernel.manifest.assumes)


def test_it_runs_in_the_caller_s_stream_and_is_loaded_once(folder, gpu_of):
    kernel = load(folder)
    gpu = gpu_of(kernel)
    for stream in (7, 7, 8):
        check(kernel, [0, 2, 4], x(), stream=stream)
    assert [int(config.hStream) for config, *_ in gpu.launches] == [7, 7, 8]
    assert gpu.count("cuLibraryLoadData") == 1
    order = [name for name, _ in gpu.calls if name in ("cuStreamWaitEvent", "cuLaunchKernelEx", "cuStreamSynchronize", "cuMemcpyDtoH")]
    assert order[:4] == ["cuStreamWaitEvent", "cuLaunchKernelEx", "cuStreamSynchronize", "cuMemcpyDtoH"]


def test_one_input_in_host_memory_is_read_there(folder, gpu_of):
    kernel = load(folder)
    gpu = gpu_of(kernel)
    kernel.check(OFF=np.array([0, 2, 4]), X=device(x(), "f32"), most=1.0)
    with pytest.raises(LaunchError, match="monotone"):
        kernel.check(OFF=np.array([0, 5, 4]), X=device(x(), "f32"), most=1.0)
    assert gpu.launches == []


@pytest.mark.parametrize(
    ("off", "data", "code"),
    [
        (lambda: device([0, 2, 4]), lambda: device(np.ones((4, 7)), "f32"), "runtime/shape"),
        (lambda: device([0.0, 2, 4], "f32"), lambda: device(x(), "f32"), "runtime/element-type"),
    ],
)
def test_what_the_check_can_t_read(folder, gpu, off, data, code):
    with pytest.raises(LaunchError) as caught:
        load(folder).check(OFF=off(), X=data(), most=1.0)
    assert caught.value.diagnostic.code == code and gpu.launches == []


def test_inputs_of_two_devices_are_refused(folder, gpu, monkeypatch):
    off, data = device([0, 2, 4]), device(x(), "f32")
    monkeypatch.setattr(type(gpu), "_cuPointerGetAttribute", lambda api, attribute, pointer: int(pointer == data.pointer))
    with pytest.raises(LaunchError) as caught:
        load(folder).check(OFF=off, X=data, most=1.0)
    assert caught.value.diagnostic.code == "runtime/devices" and gpu.launches == []


def test_strided_inputs_are_refused(folder, gpu, fakes):
    strided = fakes.Array((4, 8), strides=(64, 4))
    with pytest.raises(LaunchError) as caught:
        load(folder).check(OFF=device([0, 2, 4]), X=strided, most=1.0)
    assert caught.value.diagnostic.code == "runtime/strides"


def test_another_device_is_refused(folder, gpu):
    gpu.capability = (8, 0)
    with pytest.raises(DriverError) as caught:
        check(load(folder), [0, 2, 4], x())
    assert caught.value.diagnostic.code == "runtime/device-mismatch"


@pytest.mark.parametrize(("change", "code"), [(None, "no-ptx"), (b"changed", "hash")])
def test_a_text_that_is_damaged(folder, tmp_path, change, code):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    if change is None:
        (tmp_path / "assumes.ptx").unlink()
    else:
        (tmp_path / "assumes.ptx").write_bytes(change)
    with pytest.raises(ArtifactError) as caught:
        load(tmp_path)
    assert caught.value.diagnostic.code == f"runtime/artifact-{code}"


def test_a_kernel_without_contracts_has_no_check(artifact, fakes, gpu):
    kernel = load(artifact(fakes.SCALE))
    assert kernel.manifest.device_check is None
    kernel.check(X=device(np.ones((2, 4)), "f32"), by=1.0)
    assert gpu.launches == []
