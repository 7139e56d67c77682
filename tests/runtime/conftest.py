"""A fake GPU behind the runtime's one seam: a module with the driver's functions and the real structs and enums.

Device memory is host memory, so copies, poison and guard bands are real; a launch calls `api.program` with the launch's
configuration and the decoded argument block. Every call is recorded.
"""

import ctypes
import hashlib
import struct
import types
from dataclasses import replace

import pytest
from cuda.bindings import driver as real

from cake_core.artifact import Check, EntryParamInfo, LaunchInfo, Manifest, ParamInfo, TensorMapInfo
from cake_core.runtime import driver as driver_module

OK = real.CUresult.CUDA_SUCCESS


class FakeMap:
    """What cuTensorMapEncodeTiled returned: its arguments, and 128 bytes at an address."""

    def __init__(self, *args):
        self.args = args
        self.buffer = ctypes.create_string_buffer(128)

    def getPtr(self):  # noqa: N802 - the name in cuda.bindings
        return ctypes.addressof(self.buffer)


class FakeApi:
    def __init__(self, devices=1, capability=(9, 0), multiprocessors=132, resident=66, blocks_per_sm=2, init=OK):
        self.calls, self.memory, self.launches = [], {}, []
        self.devices, self.capability, self.multiprocessors = devices, capability, multiprocessors
        self.resident, self.blocks_per_sm, self.init = resident, blocks_per_sm, init
        self.contexts, self.program, self.fail, self.clock = [], None, {}, 0.0
        self.maps = {}

    def __getattr__(self, name):
        if name.startswith(("CU", "cuuint")):
            return getattr(real, name)
        handler = getattr(type(self), f"_{name}", None)
        if handler is None:
            raise AttributeError(name)

        def call(*args):
            self.calls.append((name, args))
            if queue := self.fail.get(name):
                return (queue.pop(0),)
            value = handler(self, *args)
            return (OK,) if value is None else (OK, value)

        self.__dict__[name] = call
        return call

    def count(self, name):
        return sum(n == name for n, _ in self.calls)

    def _cuInit(self, flags): ...
    def _cuDriverGetVersion(self): return 13000
    def _cuDeviceGetCount(self): return self.devices
    def _cuDeviceGet(self, ordinal): return ordinal
    def _cuDeviceGetName(self, size, device): return b"Fake GPU" + b"\0" * 8
    def _cuDevicePrimaryCtxRetain(self, device): return 100 + device
    def _cuCtxGetCurrent(self): return self.contexts[-1] if self.contexts else 0
    def _cuCtxGetDevice(self): return self.contexts[-1] - 100
    def _cuCtxPushCurrent(self, context): self.contexts.append(context)
    def _cuCtxPopCurrent(self): return self.contexts.pop()
    def _cuCtxSynchronize(self): ...
    def _cuPointerGetAttribute(self, attribute, pointer): return 0
    def _cuLibraryLoadData(self, *args): return "library"
    def _cuLibraryGetKernel(self, library, name): return "kernel"
    def _cuKernelGetFunction(self, kernel): return f"function in {self._cuCtxGetCurrent()}"
    def _cuFuncSetAttribute(self, *args): ...
    def _cuOccupancyMaxActiveClusters(self, function, config): return self.resident
    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function, threads, shared): return self.blocks_per_sm
    def _cuEventCreate(self, flags): return types.SimpleNamespace(at=None)
    def _cuEventDestroy(self, event): ...
    def _cuStreamWaitEvent(self, *args): ...
    def _cuStreamSynchronize(self, stream): ...
    def _cuStreamQuery(self, stream): ...

    def _cuEventRecord(self, event, stream):
        event.at = self.clock

    def _cuEventElapsedTime(self, start, end):
        return end.at - start.at

    def _cuDeviceGetAttribute(self, attribute, device):
        a = real.CUdevice_attribute
        return {
            a.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: self.capability[0],
            a.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: self.capability[1],
            a.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: self.multiprocessors,
            a.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 232448,
        }[attribute]

    def _cuMemAlloc(self, nbytes):
        buffer = ctypes.create_string_buffer(nbytes + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[address] = buffer
        return address

    def _cuMemFree(self, pointer):
        del self.memory[pointer]

    def _cuMemsetD8(self, pointer, byte, nbytes):
        ctypes.memset(pointer, byte, nbytes)

    def _cuMemcpyHtoD(self, pointer, data, nbytes):
        ctypes.memmove(pointer, bytes(memoryview(data)), nbytes)

    def _cuMemcpyDtoH(self, host, pointer, nbytes):
        host[:] = ctypes.string_at(pointer, nbytes)

    def _cuTensorMapEncodeTiled(self, kind, rank, address, extents, strides, box, steps, interleave, swizzle, promotion, fill):
        """Refuses by assertion what the driver refuses (CUDA driver API, cuTensorMapEncodeTiled)."""
        size = {"UINT8": 1, "FLOAT32": 4, "INT32": 4, "UINT32": 4}.get(kind.name.rpartition("_")[2], 2)
        extents, strides, box, steps = ([int(x) for x in xs] for xs in (extents, strides, box, steps))
        assert 1 <= rank <= 5 and len(extents) == len(box) == len(steps) == rank and len(strides) == max(rank - 1, 1)
        assert address and address % 16 == 0
        assert all(1 <= n <= 2**32 for n in extents) and all(1 <= n <= 256 for n in box) and all(n == 1 for n in steps)
        assert all(n % 16 == 0 and 0 < n < 2**40 for n in strides)
        inner, span = size * box[0], int(swizzle.name.rpartition("_")[2].removesuffix("B").replace("NONE", "0"))
        assert inner % 16 == 0 and (not span or inner <= span)
        made = FakeMap(kind, rank, address, extents, strides, box, steps, interleave, swizzle, promotion, fill)
        self.maps[made.getPtr()] = made
        return made

    def _cuLaunchKernelEx(self, config, function, params, extra):
        self.launches.append((config, function, params))
        self.clock += 0.25
        if self.program:
            self.program(config, params)


def cells(params, count):
    """The first `count` 8-byte cells of an argument block, as unsigned integers."""
    pointers = (ctypes.c_void_p * count).from_address(params)
    return [struct.unpack("<Q", ctypes.string_at(p, 8))[0] for p in pointers]


@pytest.fixture
def api():
    return FakeApi()


@pytest.fixture
def gpu(api):
    """The fake GPU, in place; one context of device 0 is current, as after any array library's start."""
    api.contexts.append(100)
    with driver_module.use(api):
        yield api


def elf(payload=b"code"):
    """A whole 64-bit ELF file with one null and one progbits section."""
    sections = struct.pack("<IIQQQQIIQQ", *[0] * 10) + struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(payload), 0, 0, 1, 0)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(payload), 0, 64, 0, 0, 64, 2, 0) + payload + sections


def tensor(name, mode, *shape, elem="bf16", contiguous=False, align=16):
    return ParamInfo(name, "tensor", elem, mode, shape, contiguous, align)


def size(name, elem="i32"):
    return ParamInfo(name, "scalar", elem)


MATMUL = Manifest(
    kernel="matmul",
    entry="matmul",
    arch="fake",
    target="fake",
    compute_capability=(9, 0),
    params=(size("M"), size("N"), size("K"), tensor("A", "in", "M", "K"), tensor("B", "in", "N", "K"), tensor("D", "out", "M", "N")),
    entry_params=(*(EntryParamInfo("map", i) for i in range(3)), *(EntryParamInfo("scalar", n) for n in "MNK")),
    tensor_maps=(
        TensorMapInfo("map_A", "A", "bf16", (128, 64), 128),
        TensorMapInfo("map_B", "B", "bf16", (128, 64), 128),
        TensorMapInfo("map_D", "D", "bf16", (64, 64), 0),
    ),
    launch=LaunchInfo(384, 2, 230464, ["*", ["ceildiv", ["ceildiv", "M", 128], 2], ["ceildiv", "N", 256]], True),
    requires=(
        Check(["and", ["<=", 1, "M"], ["<=", 1, "N"]], "1 <= M, 1 <= N"),
        Check(["and", ["==", ["%", "N", 8], 0], ["==", ["%", "K", 8], 0]], "N % 8 == 0, K % 8 == 0"),
    ),
    constants={},
    unproved=("races",),
)

SCALE = Manifest(
    kernel="scale",
    entry="scale",
    arch="fake",
    target="fake",
    compute_capability=(9, 0),
    params=(
        size("R"),
        size("C"),
        tensor("X", "in", "R", "C", elem="f32", contiguous=True),
        tensor("Y", "out", "R", "C", elem="f32", contiguous=True),
        size("by", "f32"),
    ),
    entry_params=(*(EntryParamInfo("pointer", n) for n in "XY"), *(EntryParamInfo("scalar", n) for n in ("R", "C", "by"))),
    tensor_maps=(),
    launch=LaunchInfo(256, 1, 64, "R", True),
    requires=(Check(["<=", "C", 8192], "C <= 8192"),),
    constants={},
)


TEXT = b".version 8.6\n.target sm_90\n"


def write_artifact(folder, manifest, cubin=None):
    cubin = elf() if cubin is None else cubin
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {"kernel.cubin": hashlib.sha256(cubin).hexdigest(), "kernel.ptx": hashlib.sha256(TEXT).hexdigest()}
    (folder / "kernel.ptx").write_bytes(TEXT)
    (folder / "kernel.cubin").write_bytes(cubin)
    (folder / "manifest.json").write_text(replace(manifest, hashes=hashes).to_json())
    return folder


@pytest.fixture
def artifact(tmp_path):
    """Writes an artifact: `artifact(manifest, **changes)`."""
    return lambda manifest, cubin=None, **changes: write_artifact(tmp_path / manifest.kernel, replace(manifest, **changes), cubin)


class Array:
    """A GPU array of any shape and address, as some library would export it by the array interface."""

    def __init__(self, shape, typestr="<f4", pointer=0x100000, strides=None, readonly=False, **more):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (pointer, readonly), "strides": strides, "version": 3, **more,
        }


class Tensor:
    """Stands for torch.Tensor: what the fast path asks for, and nothing else."""

    def __init__(self, shape, dtype="torch.bfloat16", pointer=0x100000, strides=None, device=0):
        self.shape, self.dtype, self.pointer, self.ordinal = shape, Dtype(dtype), pointer, device
        self.is_cuda, self.device = device >= 0, f"cuda:{device}" if device >= 0 else "cpu"
        strides = strides or [1] * len(shape)
        self.strides = tuple(strides)

    def data_ptr(self): return self.pointer
    def stride(self): return self.strides
    def get_device(self): return self.ordinal


class Dtype(str):
    __slots__ = ()


def packed(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for torch in sys.modules: tensors, allocation, and a current stream a device."""
    import sys

    made = types.ModuleType("torch")
    made.Tensor, made.streams, made.addresses = Tensor, {0: 7, 1: 8}, iter(range(0x9000000, 0xF000000, 0x100000))
    made._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: made.streams[device])
    for name in ("bfloat16", "float32", "float16", "int32", "uint32", "bool"):
        setattr(made, name, f"torch.{name}")
    made.empty = lambda shape, dtype, device: Tensor(shape, dtype, next(made.addresses), packed(shape), int(device[-1]))
    made.tensor = lambda *shape, dtype="torch.bfloat16", pointer=None, strides=None, device=0: Tensor(
        shape, dtype, next(made.addresses) if pointer is None else pointer, strides or packed(shape), device
    )
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.fixture
def fakes():
    """What tests need by name: the manifests and functions of this file."""
    return types.SimpleNamespace(
        MATMUL=MATMUL, SCALE=SCALE, Array=Array, FakeApi=FakeApi, cells=cells, elf=elf, tensor=tensor, size=size, write_artifact=write_artifact
    )
