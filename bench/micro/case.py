"""What a micro-kernel is: a PTX text for sm_90a with one entry, its arrays, its launch, and how much of what it writes is determined.

A case runs wherever the functions of the CUDA driver API are (`cake_core.runtime.driver`): on a GPU, whose driver compiles the text, or in the
emulator, which executes it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from cake_core.runtime.driver import Driver

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


@dataclass(frozen=True)
class Exact:
    """Every bit. `nan`: of floats, any bits of a NaN are as good as any other."""

    nan: bool = False


@dataclass(frozen=True)
class Near:
    """Floats that the ISA leaves open: so many steps of the type between two at the most."""

    steps: int


@dataclass(frozen=True, eq=False)
class Within:
    """Floats within a distance, one number or one an element: sums whose order is the unit's own."""

    distance: Any


@dataclass(frozen=True)
class Map:
    """A tensor map on an array, in the terms of cuTensorMapEncodeTiled: innermost dimension first, `strides` in bytes from the second on."""

    array: str
    kind: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...] = ()
    swizzle: str = "NONE"
    interleave: str = "NONE"
    fill: str = "NONE"


@dataclass(frozen=True, eq=False)
class Case:
    """`family` and `form` name it. `params` in the order of the entry `k`: arrays (what they hold before), numpy scalars, maps of arrays, which
    may also be arrays that are no parameter (`more`). `outputs`: what is compared, and how."""

    family: str
    form: str
    text: str
    params: Mapping[str, Any]
    outputs: Mapping[str, Exact | Near | Within]
    block: int = 32
    grid: int = 1
    cluster: int = 1
    dynamic: int = 0
    more: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.family}/{self.form}"


def entry(params: str, body: str, head: str = "") -> str:
    """A module with the entry `k`. `params`: "A D n:u32 M:map", pointers where nothing else is said; they are loaded into %A, %D, %n."""
    declared, loads, registers = [], [], []
    for p in params.split():
        name, _, kind = p.partition(":")
        if kind == "map":
            declared.append(f".param .align 64 .b8 {name}[128]")
            continue
        kind = kind or "u64"
        declared.append(f".param .{kind} {name}")
        registers.append(f".reg .b{kind[1:]} %{name};")
        loads.append(f"ld.param.{kind} %{name}, [{name}];")
    return "\n".join((HEAD + head, f".visible .entry k({', '.join(declared)})", "{", *registers, *loads, body, "ret;", "}", ""))


def run(case: Case, cuda: Driver) -> dict[str, np.ndarray]:
    """The outputs of a case. Raises DriverError, and what the emulator raises."""
    api = cuda.api
    library = cuda.call("cuLibraryLoadData", case.text.encode() + b"\0", [], [], 0, [], [], 0)
    function = cuda.call("cuKernelGetFunction", cuda.call("cuLibraryGetKernel", library, b"k"))
    if case.dynamic > 48 * 1024:
        cuda.call("cuFuncSetAttribute", function, api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, case.dynamic)
    arrays = {n: a for n, a in (*case.params.items(), *case.more.items()) if isinstance(a, np.ndarray)}
    places = {n: int(cuda.call("cuMemAlloc", a.nbytes)) for n, a in arrays.items()}
    for n, a in arrays.items():
        data = np.ascontiguousarray(a).view(np.uint8).tobytes()
        cuda.call("cuMemcpyHtoD", places[n], data, len(data))
    kept, pointers = [], []
    for n, value in case.params.items():
        if isinstance(value, Map):
            made = _encoded(cuda, value, places[value.array])
            kept.append(made)
            pointers.append(int(made.getPtr()))
            continue
        cell = ctypes.create_string_buffer(places[n].to_bytes(8, "little") if n in places else np.asarray(value).tobytes().ljust(8, b"\0"), 8)
        kept.append(cell)
        pointers.append(ctypes.addressof(cell))
    block = (ctypes.c_void_p * len(pointers))(*pointers)
    cuda.call("cuLaunchKernelEx", _configuration(api, case), function, ctypes.addressof(block), 0)
    cuda.call("cuCtxSynchronize")
    found = {}
    for n in case.outputs:
        host = bytearray(arrays[n].nbytes)
        cuda.call("cuMemcpyDtoH", host, places[n], len(host))
        found[n] = np.frombuffer(bytes(host), arrays[n].dtype).reshape(arrays[n].shape)
    for place in places.values():
        cuda.call("cuMemFree", place)
    return found


def _configuration(api: Any, case: Case) -> Any:
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = case.grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = case.block, 1, 1
    config.sharedMemBytes, config.hStream = case.dynamic, api.CUstream(0)
    if case.cluster > 1:
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = case.cluster, 1, 1
        config.attrs, config.numAttrs = [attribute], 1
    return config


def _encoded(cuda: Driver, m: Map, address: int) -> Any:
    api, rank = cuda.api, len(m.extents)
    return cuda.call(
        "cuTensorMapEncodeTiled",
        getattr(api.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{m.kind}"),
        rank,
        address,
        [api.cuuint64_t(n) for n in m.extents],
        [api.cuuint64_t(n) for n in m.strides] or [api.cuuint64_t(16)],  # of one dimension the driver wants one that it does not read
        [api.cuuint32_t(n) for n in m.box],
        [api.cuuint32_t(n) for n in m.steps or (1,) * rank],
        getattr(api.CUtensorMapInterleave, f"CU_TENSOR_MAP_INTERLEAVE_{m.interleave}"),
        getattr(api.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{m.swizzle}"),
        api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        getattr(api.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{m.fill}"),
    )


def digest(how: Exact | Near | Within, found: np.ndarray) -> str | None:
    """What is determined of an output, in 16 digits: its bits, with one NaN for all where any is as good; None where the bits are open."""
    if not isinstance(how, Exact):
        return None
    bits = found.view(f"u{found.dtype.itemsize}")
    if how.nan:
        with np.errstate(invalid="ignore"):
            none = np.isnan(found.astype(np.float64))
        bits = np.where(none, bits.dtype.type(-1 & (1 << 8 * bits.itemsize) - 1), bits)
    return sha256(np.ascontiguousarray(bits).tobytes()).hexdigest()[:16]


def rounded(x: np.ndarray, of: Any) -> np.ndarray:
    """Numbers in a type. To one of ml_dtypes by float32: of its releases some round a float64 at once and some twice, and a record is of one input."""
    of = np.dtype(of)
    return (x.astype(np.float32) if of.kind == "V" else x).astype(of)


# --- comparison ----------------------------------------------------------------------------------------------------


def steps(a: np.ndarray) -> np.ndarray:
    """Numbers in the order of the values of a float type, one a step; both zeros are 0."""
    bits = a.view(f"i{a.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{a.dtype.itemsize}").min - bits, bits)


def compared(how: Exact | Near | Within, mine: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """Elements, those that differ in a bit, the largest difference (in steps of the type or, of sums, in units of what is admitted), and
    whether it is admitted."""
    bits = f"u{mine.dtype.itemsize}"
    differ = mine.view(bits) != theirs.view(bits)
    found = {"elements": int(mine.size), "differ": int(differ.sum()), "worst": 0.0}
    if not differ.any():
        return found | {"ok": True}
    if mine.dtype.kind == "f" or mine.dtype.kind == "V" and mine.dtype.name in ("bfloat16",):
        with np.errstate(all="ignore"):
            x, y = mine.astype(np.float64), theirs.astype(np.float64)
        both, one = np.isnan(x) & np.isnan(y), np.isnan(x) != np.isnan(y)
        if isinstance(how, Within):
            with np.errstate(all="ignore"):
                off = np.where(both | (x == y), 0.0, np.abs(x - y) / np.broadcast_to(np.asarray(how.distance, np.float64), x.shape))
            found["worst"] = float(np.nan_to_num(off, nan=np.inf).max())
            return found | {"ok": not one.any() and found["worst"] <= 1}
        off = np.where(both, 0, np.abs(steps(mine) - steps(theirs)))
        found["worst"] = float(off.max())
        if isinstance(how, Near):
            return found | {"ok": not one.any() and found["worst"] <= how.steps}
        if how.nan:
            return found | {"ok": not (differ & ~both).any()}
    else:
        found["worst"] = float(np.abs(mine.astype(np.float64) - theirs.astype(np.float64)).max())
    return found | {"ok": False}
