"""A device in host memory: allocations, tensor maps, and launches; the functions of the CUDA driver API that the runtime calls.

Put in the driver's place (`runtime.driver.use`), so that arguments, contracts, poison and guards are those of a real launch.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from cake_core.emulate.blocks import Code, compiled
from cake_core.emulate.grid import MOST, SHARED_AT, Grid
from cake_core.emulate.layout import refuse_excess
from cake_core.emulate.memory import Memory
from cake_core.emulate.outcome import Finding, Unsupported
from cake_core.emulate.turns import Turns
from cake_core.emulate.watch import Watch
from cake_core.ptx.declared import Variable
from cake_core.ptx.emulated import Emulated, Step, TiledMap
from cake_core.ptx.reader import Entry, PtxSyntaxError, Statement, read

#: Global memory starts here; between allocations lies what belongs to nobody.
FIRST, ALIGN, GAP = 0x7F00_0000_0000, 256, 1 << 16
#: Variables of modules lie below, each module for itself.
MODULES, MODULE = 0x7E00_0000_0000, 1 << 28
MULTIPROCESSORS = 4
_MAGIC = b"tiledmap"
#: Bits of an element, by the driver's name of a map's type in small letters (CUDA driver API, CUtensorMapDataType; numbered as the ISA numbers the types of tensor maps).
KINDS = {
    "uint8": 8, "uint16": 16, "uint32": 32, "int32": 32, "uint64": 64, "int64": 64, "float16": 16, "float32": 32, "float32_ftz": 32, "float64": 64,
    "bfloat16": 16, "tfloat32": 32, "tfloat32_ftz": 32, "16u4_align8b": 4, "16u4_align16b": 4, "16u6_align16b": 6,
}  # fmt: skip


class Device:
    """Memory and maps. `multiprocessors`: so many CTAs of a persistent kernel run at once."""

    def __init__(self, multiprocessors: int = MULTIPROCESSORS) -> None:
        self.multiprocessors = multiprocessors
        self.starts: list[int] = []
        self.memories: dict[int, Memory] = {}
        self.maps: list[TiledMap] = []
        self.top = FIRST

    def allocate(self, size: int, name: str | None = None) -> int:
        """An address; nothing in it is written yet."""
        address = self.top
        self.memories[address] = Memory(name or f"allocation {len(self.starts)} of global memory", size, "global")
        self.starts.append(address)
        self.top = -(-(address + size + GAP) // ALIGN) * ALIGN
        return address

    def load(self, variables: Sequence[tuple[int, Variable]]) -> None:
        """Variables of a module, with their initial values, at their addresses; nothing where they are there already."""
        for address, v in variables:
            if address not in self.memories:
                self.memories[address] = memory = Memory(f"variable '{v.name}'", v.size, "global")
                memory.data[: v.size], memory.written[: v.size] = np.frombuffer(v.bytes, np.uint8), 1
                insort(self.starts, address)

    def free(self, address: int) -> None:
        self.starts.remove(address)
        del self.memories[address]

    def locate(self, address: int, size: int) -> tuple[Memory, int] | None:
        n = bisect_right(self.starts, address) - 1
        if n < 0:
            return None
        start = self.starts[n]
        memory = self.memories[start]
        # What reaches over the end is told of by the memory itself.
        return (memory, address - start) if address < start + memory.size + GAP // 2 else None

    def fill(self, address: int, byte: int, size: int) -> None:
        """Zeros are values; any other byte is a poison, which nobody has written."""
        memory, at = self.locate(address, size)
        memory.data[at : at + size] = byte
        memory.written[at : at + size] = byte == 0

    def put(self, address: int, data: Any) -> None:
        memory, at = self.locate(address, 1)
        data = np.frombuffer(bytes(memoryview(data).cast("B")), np.uint8)
        memory.data[at : at + len(data)] = data
        memory.written[at : at + len(data)] = 1

    def get(self, address: int, size: int) -> bytes:
        memory, at = self.locate(address, 1)
        return memory.data[at : at + size].tobytes()

    def encode(self, map: TiledMap) -> bytes:
        """The 128 bytes of a map: opaque, as they are on a real device."""
        self.maps.append(map)
        return _MAGIC + (len(self.maps) - 1).to_bytes(8, "little") + bytes(112)

    def map_in(self, data: bytes) -> TiledMap | None:
        if data[:8] != _MAGIC or (number := int.from_bytes(data[8:16], "little")) >= len(self.maps):
            return None
        return self.maps[number]


class Program:
    """One kernel's text, ready to be launched. Raises PtxSyntaxError and Unsupported."""

    def __init__(self, text: str, emulates: Mapping[str, Emulated], stops: Sequence[tuple[int, Step]] = ()) -> None:
        self.entry: Entry = read(text)
        refuse_excess(self.entry)
        self.symbols, self.static, self.extern = _laid_out(self.entry)
        self.variables, at = [], MODULES + MODULE * next(_MODULES)
        said = Counter(_NAME.findall(text)) if self.entry.variables else {}
        for v in self.entry.variables:
            if v.space != "local" and v.size and said[v.name] > 1:  # more often than where it is declared
                at = -(-at // max(v.align, 16)) * max(v.align, 16)
                self.variables.append((at, _valued(v)))
                at += v.size + GAP
        self.code: Code = compiled(self.entry, emulates, self.symbols, {v.name: at for at, v in self.variables}, stops)

    def launch(
        self,
        device: Device,
        dims: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        cluster: tuple[int, int, int] = (1, 1, 1),
        dynamic: int = 0,
        turns: Turns | None = None,
        races: bool = True,
        resident: int | None = None,
        most: int = MOST,
        watch: Watch | None = None,
    ) -> Grid:
        """Run a grid to its end; raises Unsupported where an instruction's execution fails. `params`: bytes of the parameters as `Code.params` lays them out; `resident`: clusters at once."""
        device.load(self.variables)
        for memory in device.memories.values():
            if memory.shadow is not None:
                memory.shadow.clear()
        grid = Grid(self.code, dims, cluster, block, params, self.static + dynamic, dynamic, device, turns or Turns(), races, most)
        if (wanted := self.code.threads) is not None and wanted != block:
            grid.findings.add(Finding("emulate/operand", f"a launch of {block} threads; the kernel is for {wanted} (.reqntid)"))
            return grid
        size = cluster[0] * cluster[1] * cluster[2]
        grid.watch = watch
        grid.directives = self.entry.directives
        try:
            grid.run(resident if resident is not None else max(device.multiprocessors // size, 1))
        except (Unsupported, PtxSyntaxError):
            raise
        except Exception as error:  # a plugin's function that fails at what it is given
            line = grid.now.line if grid.now is not None else 0
            bodies = self.entry.body, *(f.code.body for f in self.entry.functions)
            opcode = next((s.opcode for body in bodies for s in body if isinstance(s, Statement) and s.line == line), "?")
            raise Unsupported(line, opcode, f"its execution fails: {type(error).__name__}: {error}") from error
        return grid


_MODULES = count()
_NAME = re.compile(r"%?[\w$]+")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PtxSyntaxError(line, f"byte 0x{data[error.start]:02x} is no text") from None


def _valued(v: Variable) -> Variable:
    """A variable whose initial value is read."""
    try:
        _ = v.bytes
    except ValueError as error:
        raise PtxSyntaxError(1, str(error)) from None
    return v


def _laid_out(entry: Entry) -> tuple[dict[str, int], int, int]:
    """Offset of each shared variable in the CTA's window, bytes of those of known size, and where the launch's own begin."""
    symbols, at = {}, SHARED_AT
    for name, align, size in entry.shared:
        if size is not None:
            at = -(-at // align) * align
            symbols[name] = at
            at += size
    end = -(-at // 16) * 16
    for name, _, size in entry.shared:
        if size is None:
            symbols[name] = end
    return symbols, end - SHARED_AT, end


# --- the driver's functions --------------------------------------------------------------------------------------------


class Status(int):
    name = "CUDA_SUCCESS"


OK = Status(0)


class _Names:
    """An enumeration of the driver: each name stands for itself."""

    def __getattr__(self, name: str) -> str:
        return name


class _Map:
    """What cuTensorMapEncodeTiled gives."""

    def __init__(self, data: bytes) -> None:
        self.buffer = ctypes.create_string_buffer(data, 128)

    def getPtr(self) -> int:
        return ctypes.addressof(self.buffer)


class Api:
    """`launched`: called with the grid of each launch, when it has run. `emulates`: the instructions by name; `stops`: who is called
    in front of a line, by the lanes that come there."""

    def __init__(
        self,
        emulates: Mapping[str, Emulated],
        capability: tuple[int, int],
        launched: Callable[[Grid], None],
        turns: Callable[[], Turns] = Turns,
        races: bool = True,
        multiprocessors: int = MULTIPROCESSORS,
        most: int = MOST,
        watch: Callable[[], Watch | None] = lambda: None,
        stops: Sequence[tuple[int, Step]] = (),
    ) -> None:
        self.emulates, self.capability, self.launched, self.turns, self.races = emulates, capability, launched, turns, races
        self.device, self.most, self.watch, self.stops = Device(multiprocessors), most, watch, stops
        self.programs: dict[bytes, Program] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CUlaunchConfig"):
            return SimpleNamespace
        if name == "CUlaunchAttribute":
            return lambda: SimpleNamespace(id=None, value=SimpleNamespace(clusterDim=SimpleNamespace(x=1, y=1, z=1)))
        if name in ("CUstream", "cuuint64_t", "cuuint32_t"):
            return int
        if name.startswith("CU"):
            return _Names()
        handler = None if name.startswith("_") else getattr(type(self), f"_{name}", None)
        if handler is None:
            raise AttributeError(name)

        def call(*args: Any) -> tuple:
            value = handler(self, *args)
            return (OK,) if value is None else (OK, value)

        return call

    def program(self, data: bytes) -> Program:
        if data not in self.programs:
            self.programs[data] = Program(_text(data.rstrip(b"\0")), self.emulates, self.stops)
        return self.programs[data]

    def _nothing(self, *args: Any) -> None: ...

    _cuInit = _cuCtxPushCurrent = _cuCtxSynchronize = _cuStreamSynchronize = _cuStreamWaitEvent = _nothing
    _cuFuncSetAttribute = _cuEventRecord = _cuEventDestroy = _nothing

    def _zero(self, *args: Any) -> int:
        return 0

    _cuCtxGetCurrent = _cuCtxGetDevice = _cuCtxPopCurrent = _cuDriverGetVersion = _cuPointerGetAttribute = _cuEventCreate = _zero

    def _cuDeviceGetCount(self) -> int:
        return 1

    def _cuDeviceGet(self, ordinal: int) -> int:
        return ordinal

    def _cuDeviceGetName(self, size: int, device: int) -> bytes:
        return b"CPU"

    def _cuDevicePrimaryCtxRetain(self, device: int) -> int:
        return 1

    def _cuDeviceGetAttribute(self, attribute: str, device: int) -> int:
        return {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": self.capability[0],
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": self.capability[1],
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": self.device.multiprocessors,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
        }[attribute]

    def _cuLibraryLoadData(self, data: bytes, *args: Any) -> bytes:
        return data

    def _cuLibraryGetKernel(self, library: bytes, name: bytes) -> Program:
        return self.program(library)

    def _cuKernelGetFunction(self, kernel: Program) -> Program:
        return kernel

    def _cuOccupancyMaxActiveClusters(self, function: Program, config: Any) -> int:
        return max(self.device.multiprocessors // _cluster(config)[0], 1)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *args: Any) -> int:
        return 1

    def _cuMemAlloc(self, size: int) -> int:
        return self.device.allocate(size)

    def _cuMemFree(self, address: int) -> None:
        self.device.free(address)

    def _cuMemsetD8(self, address: int, byte: int, size: int) -> None:
        self.device.fill(address, byte, size)

    def _cuMemcpyHtoD(self, address: int, data: Any, size: int) -> None:
        self.device.put(address, data)

    def _cuMemcpyDtoH(self, host: bytearray, address: int, size: int) -> None:
        host[:] = self.device.get(address, size)

    def _cuTensorMapEncodeTiled(self, kind, rank, address, extents, strides, box, steps, interleave, swizzle, promotion, fill) -> _Map:
        word = kind.removeprefix("CU_TENSOR_MAP_DATA_TYPE_").lower()
        span = swizzle.removeprefix("CU_TENSOR_MAP_SWIZZLE_").removesuffix("B")
        filled = "nan" if fill.endswith("NAN_REQUEST_ZERO_FMA") else "zero"
        made = TiledMap(
            address,
            KINDS[word],
            word,
            tuple(extents),
            tuple(strides[: rank - 1]),
            tuple(box),
            tuple(steps),
            int(span) if span.isdigit() else 0,
            filled,
        )
        return _Map(self.device.encode(made))

    def _cuLaunchKernelEx(self, config: Any, function: Program, params: int, extra: Any) -> None:
        pointers = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        data = bytearray(function.code.param_bytes)
        for n, (name, _) in enumerate(function.entry.params):
            at, (_, size) = function.code.params[name], function.entry.sizes[name]
            data[at : at + size] = ctypes.string_at(pointers[n], size)
        grid = function.launch(
            self.device,
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            bytes(data),
            _cluster(config),
            config.sharedMemBytes,
            self.turns(),
            self.races,
            most=self.most,
            watch=self.watch(),
        )
        self.launched(grid)


def _cluster(config: Any) -> tuple[int, int, int]:
    for attribute in getattr(config, "attrs", ()):
        if attribute.id == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION":
            d = attribute.value.clusterDim
            return d.x, d.y, d.z
    return 1, 1, 1
