"""What reaches the driver: configuration, grid, argument block, maps; caches, streams, contexts, threads, faults."""

import ctypes
import gc
import struct
import threading
from dataclasses import replace

import numpy as np
import pytest
from cuda.bindings import driver as cu

from cake_core.artifact import LaunchInfo
from cake_core.runtime import DeviceArray, DriverError, LaunchError, driver as driver_module, load
from cake_core.runtime.lru import Lru
from cake_core.runtime.maps import MAPS


@pytest.fixture
def matmul(artifact, fakes, gpu, torch):
    return load(artifact(fakes.MATMUL))


@pytest.fixture
def scale(artifact, fakes, gpu):
    return load(artifact(fakes.SCALE))


def floats(cell):
    return struct.unpack("<f", struct.pack("<I", cell & 0xFFFFFFFF))[0]


# --- what is launched


def test_the_configuration(gpu, matmul, torch):
    d = torch.tensor(512, 512)
    assert matmul(torch.tensor(512, 64), torch.tensor(512, 64), d, stream=42) is d
    (config, function, params), = gpu.launches
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (2 * 2 * 2, 1, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (384, 1, 1)
    assert config.sharedMemBytes == 230464 and int(config.hStream) == 42
    assert config.numAttrs == 1 and config.attrs[0].id == cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    cluster = config.attrs[0].value.clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (2, 1, 1)
    (attribute, ) = [a for n, a in gpu.calls if n == "cuFuncSetAttribute"]
    assert attribute[1:] == (cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 230464)


@pytest.mark.parametrize("cluster", [1, 2])
def test_a_kernel_that_waits_for_the_grid_before_it_may_start_early(gpu, artifact, fakes, torch, cluster):
    k = load(artifact(fakes.SCALE, launch=LaunchInfo(256, cluster, 0, "R", False, starts_early=True)))
    k(fakes.Array((3, 16), pointer=0x5000), fakes.Array((3, 16), pointer=0x7000), 1.0)
    config = gpu.launches[-1][0]
    ids = cu.CUlaunchAttributeID
    wanted = [ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] * (cluster > 1) + [ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION]
    assert config.numAttrs == len(wanted) and [a.id for a in config.attrs] == wanted
    assert config.attrs[-1].value.programmaticStreamSerializationAllowed == 1


def test_the_argument_block(gpu, scale, matmul, fakes, torch):
    y = fakes.Array((3, 16), pointer=0x7000)
    scale(fakes.Array((3, 16), pointer=0x5000), y, -0.75)
    x_pointer, y_pointer, rows, columns, by = fakes.cells(gpu.launches[-1][2], 5)
    assert (x_pointer, y_pointer, rows, columns, floats(by)) == (0x5000, 0x7000, 3, 16, -0.75)
    matmul(torch.tensor(16, 64), torch.tensor(8, 64))
    pointers = (ctypes.c_void_p * 6).from_address(gpu.launches[-1][2])
    assert [gpu.maps[p].args[1] for p in pointers[:3]] == [2, 2, 2]
    assert fakes.cells(gpu.launches[-1][2], 6)[3:] == [16, 8, 64]


def test_zeros_of_both_signs_are_two_launches(gpu, scale, fakes):
    x, y = fakes.Array((3, 16), pointer=0x5000), fakes.Array((3, 16), pointer=0x7000)
    for by in (0.0, -0.0, float("nan"), float("nan")):
        scale(x, y, by)
    assert [struct.pack("<f", floats(fakes.cells(p, 5)[4])) for _, _, p in gpu.launches[:2]] == [struct.pack("<f", 0.0), struct.pack("<f", -0.0)]
    assert gpu.launches[2][2] == gpu.launches[3][2]


@pytest.mark.parametrize("rows, blocks", [(1, 1), (100, 100), (264, 264), (265, 264), (10**6, 264)])
def test_a_persistent_grid_is_bounded_by_what_is_resident(gpu, scale, fakes, rows, blocks):
    scale(fakes.Array((rows, 8)), fakes.Array((rows, 8), pointer=1 << 40), 1.0)
    assert gpu.launches[-1][0].gridDimX == blocks  # 2 a multiprocessor, 132 of them
    assert gpu.launches[-1][0].numAttrs == 0


def test_a_persistent_grid_of_clusters(gpu, matmul, torch):
    matmul(torch.tensor(8192, 64), torch.tensor(8192, 64))
    assert gpu.launches[-1][0].gridDimX == 66 * 2
    matmul(torch.tensor(1, 64), torch.tensor(8, 64))
    assert gpu.launches[-1][0].gridDimX == 2
    assert gpu.count("cuOccupancyMaxActiveClusters") == 1


@pytest.mark.parametrize("cluster, ctas, blocks", [(1, 1, 132), (1, 3, 264), (2, 1, 132), (4, 1, 132)])
def test_a_bound_on_residency(gpu, artifact, fakes, cluster, ctas, blocks):
    k = load(artifact(fakes.SCALE, launch=LaunchInfo(256, cluster, 0, "R", True, ctas)))
    k(fakes.Array((10**6, 8)), fakes.Array((10**6, 8), pointer=1 << 40), 1.0)
    assert gpu.launches[-1][0].gridDimX == blocks


@pytest.mark.parametrize("cluster, allowed", [(8, False), (16, True)])
def test_a_cluster_beyond_the_portable_size_is_allowed_first(gpu, artifact, fakes, cluster, allowed):
    k = load(artifact(fakes.SCALE, launch=LaunchInfo(256, cluster, 0, "R", True)))
    k(fakes.Array((4, 8)), fakes.Array((4, 8), pointer=1 << 40), 1.0)
    asked = [a[1:] for n, a in gpu.calls if n == "cuFuncSetAttribute"]
    assert ((cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) in asked) == allowed


def test_a_plain_grid_is_its_items(gpu, artifact, fakes):
    k = load(artifact(fakes.SCALE, launch=LaunchInfo(256, 2, 0, ["*", "R", 3], False)))
    k(fakes.Array((1000, 8)), fakes.Array((1000, 8), pointer=1 << 40), 1.0)
    assert gpu.launches[-1][0].gridDimX == 6000


def test_a_grid_too_large(gpu, artifact, fakes):
    k = load(artifact(fakes.SCALE, launch=LaunchInfo(256, 2, 0, ["*", ["*", "R", "R"], 10**6], False)))
    with pytest.raises(LaunchError, match="runtime/grid"):
        k(fakes.Array((1000, 8)), fakes.Array((1000, 8), pointer=1 << 40), 1.0)


def test_no_work_items_no_launch(gpu, scale, fakes):
    y = fakes.Array((0, 8), pointer=0)
    assert scale(fakes.Array((0, 8), pointer=0), y, 1.0) is y
    p = scale.prepare(fakes.Array((0, 8), pointer=0), y, 1.0)
    assert p() is y and p.blocks == 0
    assert gpu.launches == []


# --- tensor maps


def test_a_map_is_encoded_innermost_first(gpu, matmul, torch):
    matmul(torch.tensor(512, 64, pointer=0x10000, strides=(128, 1)), torch.tensor(8, 64))
    (kind, rank, address, extents, strides, box, steps, interleave, swizzle, promotion, fill) = next(a for n, a in gpu.calls if n == "cuTensorMapEncodeTiled")
    assert (kind.name, rank, address) == ("CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 2, 0x10000)
    numbers = lambda xs: [int(x) for x in xs]  # noqa: E731
    assert (numbers(extents), numbers(strides), numbers(box), numbers(steps)) == ([64, 512], [256], [64, 128], [1, 1])
    assert interleave.name.endswith("INTERLEAVE_NONE") and swizzle.name.endswith("128B") and promotion.name.endswith("L2_256B") and fill.name.endswith("FILL_NONE")
    swizzles = [a[8].name for n, a in gpu.calls if n == "cuTensorMapEncodeTiled"]
    assert [s.rpartition("_")[2] for s in swizzles] == ["128B", "128B", "NONE"]


def test_an_extent_of_zero_gets_a_legal_map_on_living_memory(gpu, matmul, torch):
    d = torch.tensor(16, 8, pointer=0x40000)
    matmul(torch.tensor(16, 0, pointer=0), torch.tensor(8, 0, pointer=0), d)
    for name, (_, rank, address, extents, strides, *_) in [c for c in gpu.calls if c[0] == "cuTensorMapEncodeTiled"][:2]:
        assert address == 0x40000 and [int(x) for x in extents] == [1, 1] and [int(x) for x in strides] == [16]
    assert len(gpu.launches) == 1


def test_maps_are_encoded_once_and_forgotten_in_order(gpu, matmul, torch):
    a, b, d = torch.tensor(16, 64), torch.tensor(8, 64), torch.tensor(16, 8)
    for _ in range(3):
        matmul(a, b, d)
    assert gpu.count("cuTensorMapEncodeTiled") == 3
    matmul(a, b, torch.tensor(16, 8))
    assert gpu.count("cuTensorMapEncodeTiled") == 4
    for i in range(MAPS + 5):
        matmul(a, b, torch.tensor(16, 8, pointer=(1 << 30) + 4096 * i))
    assert len(matmul._maps.cache) == MAPS and len(matmul._launches) <= matmul._launches.size


# --- outputs


def test_an_output_left_out_is_of_the_first_arrays_kind(gpu, matmul, scale, torch, fakes):
    d = matmul(torch.tensor(16, 64), torch.tensor(8, 64))
    assert isinstance(d, torch.Tensor) and d.shape == (16, 8) and d.dtype == "torch.bfloat16"
    y = scale(fakes.Array((4, 8)), by=2.0)
    assert isinstance(y, DeviceArray) and y.shape == (4, 8) and y.elem.name == "f32"


def test_several_outputs_come_as_a_tuple(gpu, artifact, fakes, torch):
    params = (fakes.size("n"), fakes.tensor("P", "out", "n"), fakes.tensor("X", "in", "n"), fakes.tensor("Q", "inout", "n"))
    k = load(artifact(fakes.SCALE, params=params, entry_params=(), requires=(), launch=replace(fakes.SCALE.launch, items=1)))
    q = torch.tensor(8)
    p, same = k(X=torch.tensor(8), Q=q)
    assert same is q and p.shape == (8,)
    with pytest.raises(LaunchError, match="'Q'"):
        k(X=torch.tensor(8))


def test_a_kernel_computes_through_our_own_arrays(gpu, scale, fakes):
    """End to end on the fake GPU: the program reads and writes by the pointers of the argument block."""

    def program(config, params):
        x, y, rows, columns, by = fakes.cells(params, 5)
        n = rows * columns
        source, target = (ctypes.c_float * n).from_address(x), (ctypes.c_float * n).from_address(y)
        for i in range(n):
            target[i] = source[i] * floats(by)

    gpu.program = program
    x = DeviceArray((5, 8), "f32", 0, driver_module.driver())
    x.copy_from(np.arange(40, dtype=np.float32))
    assert (scale(x, by=0.5).numpy() == np.arange(40).reshape(5, 8) / 2).all()


# --- prepared launches, streams


def test_a_prepared_launch_does_nothing_but_launch(gpu, matmul, torch):
    a, b, d = torch.tensor(16, 64), torch.tensor(8, 64), torch.tensor(16, 8)
    p = matmul.prepare(A=a, B=b, D=d)
    assert gpu.launches == [] and p.outputs is d and p.blocks == 2
    p()
    before = len(gpu.calls)
    for stream in (None, None):
        assert p(stream) is d
    assert [n for n, _ in gpu.calls[before:]] == ["cuLaunchKernelEx"] * 2
    assert len({int(params) for _, _, params in gpu.launches}) == 1


def test_a_prepared_launch_follows_the_stream(gpu, matmul, torch):
    p = matmul.prepare(A=torch.tensor(16, 64), B=torch.tensor(8, 64))
    p()
    torch.streams[0] = 70
    p()
    p(71)
    p(cu.CUstream(72))
    p(0)
    assert [int(c.hStream) for c, _, _ in gpu.launches] == [7, 70, 71, 72, 0]


def test_a_prepared_launch_keeps_its_arrays(gpu, scale):
    x = DeviceArray((5, 8), "f32", 0, driver_module.driver())
    p = scale.prepare(x, by=1.0)
    del x
    gc.collect()
    assert len(gpu.memory) == 2
    del p
    gc.collect()
    assert gpu.memory == {}


def test_a_call_after_the_first_allocates_and_waits_for_nothing(gpu, matmul, torch):
    a, b, d = torch.tensor(16, 64), torch.tensor(8, 64), torch.tensor(16, 8)
    matmul(a, b, d)
    before = len(gpu.calls)
    matmul(a, b, d)
    assert [n for n, _ in gpu.calls[before:]] == ["cuLaunchKernelEx"]


def test_work_of_a_producers_stream_comes_first(gpu, scale, fakes):
    scale(fakes.Array((4, 8), stream=33), by=1.0, stream=44)
    names = [n for n, _ in gpu.calls]
    record, wait = (next(a for n, a in gpu.calls if n == name) for name in ("cuEventRecord", "cuStreamWaitEvent"))
    assert int(record[1]) == 33 and int(wait[0]) == 44 and names.index("cuStreamWaitEvent") < names.index("cuLaunchKernelEx")
    before = gpu.count("cuStreamWaitEvent")
    for stream, launch in ((1, 0), (44, 44), (None, 44)):  # the same stream, or nothing to wait for
        scale(fakes.Array((4, 8), stream=stream), by=1.0, stream=launch)
    assert gpu.count("cuStreamWaitEvent") == before


# --- contexts, devices, faults


def test_the_current_context_is_used_and_left_alone(gpu, scale, fakes):
    scale(fakes.Array((4, 8)), by=1.0)
    assert gpu.count("cuDevicePrimaryCtxRetain") == 0 and gpu.contexts == [100]


def test_without_a_current_context_the_primary_one_is(gpu, scale, fakes):
    gpu.contexts.clear()
    gpu.fail["cuLaunchKernelEx"] = [cu.CUresult.CUDA_ERROR_INVALID_CONTEXT]
    scale(fakes.Array((4, 8)), by=1.0)
    assert gpu.count("cuLaunchKernelEx") == 2 and len(gpu.launches) == 1 and gpu.contexts == []


def test_another_devices_context_is_put_aside(artifact, fakes, torch):
    api = fakes.FakeApi(devices=2)
    api.contexts.append(100)
    with driver_module.use(api):
        k = load(artifact(fakes.MATMUL))
        api.fail["cuLaunchKernelEx"] = [cu.CUresult.CUDA_ERROR_INVALID_HANDLE]
        k(torch.tensor(16, 64, device=1), torch.tensor(8, 64, device=1))
    assert api.launches[0][1] == "function in 101" and api.contexts == [100]


def test_a_device_that_the_artifact_is_not_built_for(artifact, fakes, torch):
    with driver_module.use(fakes.FakeApi(capability=(8, 0))):
        with pytest.raises(DriverError) as raised:
            load(artifact(fakes.MATMUL))(torch.tensor(16, 64), torch.tensor(8, 64))
    d = raised.value.diagnostic
    assert d.code == "runtime/device-mismatch" and all(w in d.message for w in ("fake", "9.0", "Fake GPU", "8.0"))


# --- which image of an artifact a device runs


def loaded_images(api):
    return [args[0] for name, args in api.calls if name == "cuLibraryLoadData"]


@pytest.mark.parametrize("capability, image", [((9, 0), "kernel.cubin"), ((9, 1), "kernel.ptx"), ((10, 0), "kernel.ptx"), ((12, 0), "kernel.ptx")])
def test_a_portable_kernel_runs_its_text_on_higher_capabilities(artifact, fakes, torch, capability, image):
    folder = artifact(fakes.MATMUL, portable=True)
    with driver_module.use(fakes.FakeApi(capability=capability)) as cuda:
        load(folder)(torch.tensor(16, 64), torch.tensor(8, 64))
        (data,) = loaded_images(cuda.api)
        assert len(cuda.api.launches) == 1
    stored = (folder / image).read_bytes()
    assert data == (stored if image == "kernel.cubin" else stored + b"\0")  # the driver reads a text up to its zero byte


@pytest.mark.parametrize("portable, capability", [(False, (9, 1)), (False, (10, 0)), (False, (8, 9)), (True, (8, 9)), (True, (8, 0))])
def test_no_image_for_a_device(artifact, fakes, torch, portable, capability):
    with driver_module.use(fakes.FakeApi(capability=capability)) as cuda:
        with pytest.raises(DriverError) as raised:
            load(artifact(fakes.MATMUL, portable=portable))(torch.tensor(16, 64), torch.tensor(8, 64))
        assert loaded_images(cuda.api) == []
    d = raised.value.diagnostic
    assert d.code == "runtime/device-mismatch" and "{}.{}".format(*capability) in d.message
    assert (d.why is not None) == portable


def test_devices_of_both_kinds_run_one_portable_kernel(artifact, fakes, torch):
    """Each image is loaded once, whatever the number of calls."""

    class Mixed(fakes.FakeApi):
        def _cuDeviceGetAttribute(self, attribute, device):
            self.capability = (9, 0) if device == 0 else (12, 0)
            return super()._cuDeviceGetAttribute(attribute, device)

        def _cuPointerGetAttribute(self, attribute, pointer):
            return int(pointer >= 0xA000000)

    with driver_module.use(Mixed(devices=2)) as cuda:
        k = load(artifact(fakes.MATMUL, portable=True))
        for device in (0, 1, 0, 1):
            at = 0xA000000 if device else 0x9000000
            k(*(torch.tensor(*s, pointer=at + i * 0x100000, device=device) for i, s in enumerate(((16, 64), (8, 64), (16, 8)))))
        images = loaded_images(cuda.api)
        assert sorted(i[:4] for i in images) == [b".ver", b"\x7fELF"] and len(cuda.api.launches) == 4


@pytest.mark.parametrize("result", ["CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"])
@pytest.mark.parametrize("function", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"])
def test_a_text_that_the_driver_does_not_take(artifact, fakes, torch, function, result):
    with driver_module.use(fakes.FakeApi(capability=(10, 0))) as cuda:
        cuda.api.fail[function] = [getattr(cu.CUresult, result)]
        with pytest.raises(DriverError) as raised:
            load(artifact(fakes.MATMUL, portable=True))(torch.tensor(16, 64), torch.tensor(8, 64))
    d = raised.value.diagnostic
    assert d.code == "runtime/text-refused" and result in d.message and "driver" in d.fix


def test_no_driver(artifact, fakes, torch, monkeypatch):
    monkeypatch.setattr(driver_module, "_driver", None)

    class Absent(fakes.FakeApi):
        def cuInit(self, flags):
            raise RuntimeError("the library libcuda.so.1 was not found")

    for api, word in ((Absent(), "no NVIDIA driver"), (fakes.FakeApi(), "CUDA_ERROR_NO_DEVICE")):
        api.fail["cuInit"] = [cu.CUresult.CUDA_ERROR_NO_DEVICE]
        monkeypatch.setattr(driver_module, "_bindings", lambda: api)
        with pytest.raises(DriverError) as raised:
            load(artifact(fakes.MATMUL))(torch.tensor(16, 64), torch.tensor(8, 64))
        assert raised.value.diagnostic.code == "runtime/no-gpu" and word in raised.value.diagnostic.message


def test_no_bindings(monkeypatch):
    import sys

    monkeypatch.setattr(driver_module, "_driver", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(DriverError) as raised:
        driver_module.driver()
    assert raised.value.diagnostic.code == "runtime/no-gpu" and "cuda-python" in raised.value.diagnostic.fix


@pytest.mark.parametrize(
    "function, result, code",
    [
        ("cuLaunchKernelEx", "CUDA_ERROR_ILLEGAL_ADDRESS", "device-fault"),
        ("cuLaunchKernelEx", "CUDA_ERROR_INVALID_CLUSTER_SIZE", "driver"),
        ("cuLibraryLoadData", "CUDA_ERROR_NO_BINARY_FOR_GPU", "device-mismatch"),
        ("cuLibraryGetKernel", "CUDA_ERROR_NOT_FOUND", "no-entry"),
        ("cuTensorMapEncodeTiled", "CUDA_ERROR_INVALID_VALUE", "driver"),
        ("cuFuncSetAttribute", "CUDA_ERROR_INVALID_VALUE", "driver"),
    ],
)
def test_what_the_driver_refuses(gpu, matmul, torch, function, result, code):
    gpu.fail[function] = [getattr(cu.CUresult, result)]
    with pytest.raises(DriverError) as raised:
        matmul(torch.tensor(16, 64), torch.tensor(8, 64))
    d = raised.value.diagnostic
    assert d.code == f"runtime/{code}" and result in f"{d.message} {d.why}"
    matmul(torch.tensor(16, 64), torch.tensor(8, 64))  # a refused call leaves nothing half made


def test_a_block_that_does_not_fit(artifact, fakes, torch):
    for change, api in (({"launch": replace(fakes.MATMUL.launch, shared_bytes=232449)}, fakes.FakeApi()), ({}, fakes.FakeApi(resident=0))):
        with driver_module.use(api), pytest.raises(DriverError) as raised:
            load(artifact(fakes.MATMUL, **change))(torch.tensor(16, 64), torch.tensor(8, 64))
        assert raised.value.diagnostic.code in ("runtime/shared-memory", "runtime/does-not-fit")


# --- threads


def test_many_threads_share_a_kernel(gpu, matmul, torch):
    a, b = torch.tensor(16, 64), torch.tensor(8, 64)
    outputs = [torch.tensor(16, 8) for _ in range(8)]
    start, errors = threading.Barrier(8), []

    def work(d):
        try:
            start.wait()
            for stream in range(20):
                assert matmul(a, b, d, stream=stream + 1) is d
        except Exception as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(d,)) for d in outputs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == [] and len(gpu.launches) == 160
    assert gpu.count("cuLibraryLoadData") == 1 and gpu.count("cuFuncSetAttribute") == 1


def test_a_bounded_cache_stays_bounded_and_returns_what_it_holds():
    cache, start, wrong = Lru(16), threading.Barrier(8), []

    def work(seed):
        start.wait()
        for i in range(3000):
            key = (seed * 7 + i * 13) % 40
            if cache.get(key, lambda: ("value", key)) != ("value", key) or len(cache) > 17:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and len(cache) == 16


def test_the_entry_unused_for_longest_goes_first():
    cache = Lru(2)
    for key in "abac":
        cache.get(key, lambda: key)
    assert cache.find("b") is None and cache.find("a") == "a" and cache.find("c") == "c"
