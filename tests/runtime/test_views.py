"""What arrays say of themselves: torch's fast path, the array interface, DLPack; and streams."""

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_core.runtime import DeviceArray, LaunchError, dlpack
from cake_core.runtime.elements import ELEMENTS, scalar_cell
from cake_core.runtime.host import BITS, random_bits, to_float64
from cake_core.runtime.views import current_stream, describe, packed_strides, stream_handle


class Exporter:
    """DLPack from a numpy array that claims to be on a GPU (its capsule's device is what `__dlpack_device__` says)."""

    def __init__(self, array, device=(dlpack.CUDA, 0), dtype=None, versions=True):
        self.array, self.device, self.dtype, self.versions = array, device, dtype, versions
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.versions and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(options)
        code = self.dtype or ELEMENTS[{"float32": "f32", "float16": "f16", "int32": "i32", "uint32": "u32", "bool": "bool", "uint16": "bf16"}[self.array.dtype.name]].dlpack
        return dlpack.make(self, self.array.ctypes.data, self.device, code, self.array.shape)


def refused(name, array, gpu):
    with pytest.raises(LaunchError) as raised:
        describe(name, array, 0, gpu)
    return raised.value.diagnostic.code


# --- DLPack


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans(), st.data())
def test_a_capsule_of_numpy_is_read_as_numpy_says(shape, versioned, data):
    array = np.zeros(shape, np.float32)[tuple(slice(None, None, data.draw(st.integers(1, 2))) for _ in shape)]
    parsed = dlpack.parse(array.__dlpack__(max_version=(1, 0)) if versioned else array.__dlpack__())
    assert parsed.shape == array.shape and parsed.pointer == array.ctypes.data
    assert parsed.dtype == (2, 32, 1) and parsed.device == (dlpack.CPU, 0) and not parsed.readonly
    strides = packed_strides(parsed.shape) if parsed.strides is None else parsed.strides
    assert all(n == 1 or a * 4 == b for n, a, b in zip(array.shape, strides, array.strides))


def test_a_read_only_flag_is_read():
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    assert dlpack.parse(array.__dlpack__(max_version=(1, 0))).readonly


def test_a_consumed_capsule_and_no_capsule_are_refused():
    capsule = np.zeros(3).__dlpack__()
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
    for bad in (capsule, None, 7, "x"):
        with pytest.raises(ValueError):
            dlpack.parse(bad)
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"dltensor")  # so that its own destructor runs


@pytest.mark.parametrize("elem", ["f32", "f16", "i32", "u32"])
def test_our_capsules_are_read_by_numpy_and_let_go(elem):
    source = np.arange(6).astype(BITS[elem]).reshape(2, 3)
    gc.collect()
    before = len(dlpack._alive)
    view = np.from_dlpack(Exporter(source, (dlpack.CPU, 0)))
    assert view.dtype == source.dtype and (view == source).all() and len(dlpack._alive) == before + 1
    del view
    gc.collect()
    assert len(dlpack._alive) == before
    capsule = Exporter(source).__dlpack__()  # never consumed
    del capsule
    gc.collect()
    assert len(dlpack._alive) == before


def test_the_launch_stream_is_told_to_the_producer(gpu):
    from cake_core.runtime.driver import driver

    exporter = Exporter(np.zeros((2, 3), np.float32))
    describe("X", exporter, 0, driver())
    describe("X", exporter, 77, driver())
    assert [o["stream"] for o in exporter.asked] == [1, 77]
    old = Exporter(np.zeros((2, 3), np.uint16), versions=False)
    view = describe("X", old, 0, driver())
    assert view.elem.name == "bf16" and view.shape == (2, 3) and view.strides == (3, 1) and view.pointer == old.array.ctypes.data


def test_arrays_that_are_not_on_a_gpu(gpu, torch):
    assert refused("X", np.zeros(3, np.float32), gpu) == "runtime/not-on-gpu"
    assert refused("X", torch.tensor(3, device=-1), gpu) == "runtime/not-on-gpu"
    assert refused("X", Exporter(np.zeros(3, np.float32), (10, 0)), gpu) == "runtime/not-on-gpu"


@pytest.mark.parametrize("thing", [None, 3, "x", [1.0], pytest.param(object(), id="object")], ids=str)
def test_things_that_are_no_array(gpu, thing):
    assert refused("X", thing, gpu) == "runtime/not-an-array"


def test_a_producer_that_fails_is_named(gpu):
    class Broken:
        def __dlpack_device__(self): return (2, 0)
        def __dlpack__(self, **options): raise BufferError("its gradient is needed")

    with pytest.raises(LaunchError, match="'X'.*its gradient is needed"):
        describe("X", Broken(), 0, gpu)


@pytest.mark.parametrize("code", [(5, 64), (2, 64), (1, 8)])
def test_element_types_that_no_kernel_takes(gpu, fakes, torch, code):
    assert refused("X", Exporter(np.zeros(3, np.float32), dtype=code), gpu) == "runtime/element-type"
    assert refused("X", fakes.Array((3,), "<c16"), gpu) == "runtime/element-type"
    assert refused("X", torch.tensor(3, dtype="torch.float64"), gpu) == "runtime/element-type"


# --- the array interface


def test_the_array_interface(gpu, fakes):
    from cake_core.runtime.driver import driver

    view = describe("X", fakes.Array((4, 8), "<f4", 0x1000, strides=(64, 4), readonly=True, stream=5), 0, driver())
    assert view[:4] == (0x1000, (4, 8), (16, 1), ELEMENTS["f32"])
    assert view.readonly and view.order == 5 and view.device == 0
    assert describe("X", fakes.Array((0, 8), "<f4", 0), 0, driver()).device is None  # an empty array has no memory to ask about
    assert refused("X", fakes.Array((4, 8), "<f4", strides=(33, 4)), driver()) == "runtime/strides"
    assert refused("X", fakes.Array((4, 8), "<f4", mask=object()), driver()) == "runtime/not-an-array"


@pytest.mark.parametrize("elem", ELEMENTS)
def test_our_arrays_export_themselves(gpu, elem):
    from cake_core.runtime.driver import driver

    array = DeviceArray((3, 5), elem, 0, driver())
    view = describe("X", array, 0, driver())
    assert view[:4] == (array.pointer, (3, 5), (5, 1), ELEMENTS[elem]) and view.device == 0
    assert hasattr(array, "__cuda_array_interface__") == (elem not in ("bf16", "e4m3", "e5m2", "ue8m0", "e2m1x2"))


def test_our_arrays_keep_bytes_and_free_memory(gpu):
    from cake_core.runtime.driver import driver

    array = DeviceArray((3, 5), "i32", 0, driver())
    array.copy_from(np.arange(15, dtype=np.int32))
    assert (array.numpy() == np.arange(15).reshape(3, 5)).all()
    with pytest.raises(ValueError):
        array.copy_from(b"short")
    empty = DeviceArray((0, 5), "i32", 0, driver())
    assert empty.pointer == 0 and empty.numpy().shape == (0, 5)
    del array, empty
    gc.collect()
    assert gpu.memory == {}


# --- streams


def test_streams_in_every_form(torch, gpu):
    from cuda.bindings import driver as cu

    class Protocol:
        def __cuda_stream__(self): return (0, 11)

    class Cupy:
        ptr = 12

    class Torch:
        cuda_stream = 13

    for stream, handle in ((10, 10), (Protocol(), 11), (Cupy(), 12), (Torch(), 13), (cu.CUstream(14), 14)):
        assert stream_handle(stream) == handle
    with pytest.raises(LaunchError) as raised:
        stream_handle("fast")
    assert raised.value.diagnostic.code == "runtime/stream"


def test_the_current_stream_is_asked_anew(torch, fakes):
    tensors = current_stream([fakes.Array((1,)), torch.tensor(1, device=1)])
    assert tensors() == 8
    torch.streams[1] = 9
    assert tensors() == 9
    assert current_stream([fakes.Array((1,))])() == 0


# --- numbers


@given(st.floats(width=32))
def test_bf16_scalars_are_rounded_to_nearest_even(value):
    import ml_dtypes

    got = np.frombuffer(scalar_cell(ELEMENTS["bf16"], value)[:2], ml_dtypes.bfloat16)[0]
    expected = np.float32(value).astype(ml_dtypes.bfloat16)
    assert (np.isnan(got) and np.isnan(expected)) or got == expected


@pytest.mark.parametrize("elem", ELEMENTS)
def test_host_bits_and_values(elem):
    import ml_dtypes

    bits = random_bits((50, 40), ELEMENTS[elem], np.random.default_rng(1))
    assert bits.dtype == np.dtype(BITS[elem]) and len(np.unique(bits)) > 1
    values = to_float64(bits, ELEMENTS[elem])
    own = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "ue8m0": ml_dtypes.float8_e8m0fnu}.get(elem)
    if elem == "e2m1x2":
        bits, own = np.stack([bits & 15, bits >> 4], axis=-1).reshape(50, 80), ml_dtypes.float4_e2m1fn  # the first in the low half
    assert (values == (bits.view(own) if own else bits).astype(np.float64)).all()


def test_every_scale():
    import ml_dtypes

    bits = np.arange(256, dtype=np.uint8)
    assert np.array_equal(to_float64(bits, ELEMENTS["ue8m0"]), bits.view(ml_dtypes.float8_e8m0fnu).astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("elem", ["e4m3", "e5m2"])
def test_every_pattern_of_eight_bits(elem):
    """All 256 against ml_dtypes; infinities and NaNs are told apart by type."""
    import ml_dtypes

    own = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[elem]
    bits = np.arange(256, dtype=np.uint8)
    assert np.array_equal(to_float64(bits, ELEMENTS[elem]), bits.view(own).astype(np.float64), equal_nan=True)
    near = random_bits((1000,), ELEMENTS[elem], np.random.default_rng(2))
    values = np.random.default_rng(2).standard_normal((1000,), dtype=np.float32)
    step = np.maximum(np.abs(values), 2.0**-6) * 2.0 ** -{"e4m3": 3, "e5m2": 2}[elem]
    assert (np.abs(to_float64(near, ELEMENTS[elem]) - values) <= step).all()


@pytest.mark.parametrize("held", ["raise KeyError(capsule)", "sys.kept = capsule", "sys.kept = [capsule, sys]; sys.kept.append(sys.kept)"])
def test_a_capsule_may_outlive_the_module_that_made_it(held):
    """In an exception that ends the process, in another module, in a ring: the process ends as it would without."""
    text = f"""import sys
from cake_core.runtime.dlpack import make
def run():
    block = bytearray(64)
    capsule = make(block, 4096, (1, 0), (2, 32), (4, 4))
    {held}
run()"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == ("raise" in held), done.stderr
    assert "Exception ignored" not in done.stderr
