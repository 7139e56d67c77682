"""The loaded function on a device, and a launch made ready: configuration, argument block, grid."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from cake_core.artifact import LaunchInfo
from cake_core.frozen import frozen
from cake_core.runtime.binding import Binding, Signature
from cake_core.runtime.driver import WRONG_CONTEXT, Driver, name_of
from cake_core.runtime.elements import ELEMENTS, scalar_cell
from cake_core.runtime.errors import DriverError, LaunchError
from cake_core.runtime.loader import CUBIN, PTX, LoadedArtifact
from cake_core.runtime.maps import TensorMaps
from cake_core.runtime.views import View

PORTABLE_CLUSTER = 8  # a larger cluster must be allowed for each function (CUDA C++ Programming Guide, thread block clusters)
MAX_GRID = 2**31 - 1  # blocks along x (CUDA C++ Programming Guide, technical specifications)


@frozen
class Loaded:
    """The kernel's function in one context. `resident`: clusters that the device holds at once."""

    context: Any
    device: int
    function: Any
    resident: int


def image_for(driver: Driver, artifact: LoadedArtifact, device: int) -> str:
    """Which file of the artifact the device runs: the binary on exactly the compute capability that it was built for, the text of a
    portable kernel on a higher one, where the driver compiles it; the text of one that was read for its text. Raises DriverError for any other device."""
    m = artifact.manifest
    if not artifact.cubin:
        return PTX
    found, wanted = driver.compute_capability(device), tuple(m.compute_capability)
    if found == wanted:
        return CUBIN
    if artifact.ptx is not None and found > wanted:
        return PTX
    message = "'{}' is built for {} (compute capability {}.{}), device {} is '{}' with {}.{}".format(
        m.kernel, m.arch, *wanted, device, driver.device_name(device), *found
    )
    why = "its text is compiled by the driver on higher capabilities only" if artifact.ptx is not None else None
    raise DriverError("runtime/device-mismatch", message, why=why, fix="build the kernel for this device with '--arch'")


def load_library(driver: Driver, artifact: LoadedArtifact, image: str) -> Any:
    """One image as a library: loaded once for all contexts. The driver finds out by itself which kind of image it is."""
    data = artifact.cubin if image == CUBIN else artifact.ptx + b"\0"
    return driver.call("cuLibraryLoadData", data, [], [], 0, [], [], 0)


def load_function(driver: Driver, artifact: LoadedArtifact, image: str, library: Any, context: Any, device: int) -> Loaded:
    """Function, its shared-memory limit and its residency in `context`, which must be current."""
    m, launch = artifact.manifest, artifact.manifest.launch
    try:
        kernel = driver.call("cuLibraryGetKernel", library, m.entry.encode())
    except DriverError as error:
        if error.diagnostic.code == "runtime/text-refused":
            raise
        why = error.diagnostic.message
        raise DriverError("runtime/no-entry", f"'{image}' in '{artifact.folder}' holds no entry '{m.entry}'", why=why) from None
    function = driver.call("cuKernelGetFunction", kernel)
    attributes = driver.api.CUfunction_attribute
    most = driver.attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    if launch.shared_bytes > most:
        message = f"'{m.kernel}' needs {launch.shared_bytes} bytes of shared memory a block, device {device} has {most}"
        raise DriverError("runtime/shared-memory", message)
    driver.call("cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_bytes)
    if launch.cluster > PORTABLE_CLUSTER:
        driver.call("cuFuncSetAttribute", function, attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    resident = resident_clusters(driver, function, launch, driver.attribute(device, "MULTIPROCESSOR_COUNT"))
    if launch.persistent and resident < 1:
        raise DriverError("runtime/does-not-fit", f"no block of '{m.kernel}' fits on a multiprocessor of device {device}")
    return Loaded(context, device, function, resident)


def resident_clusters(driver: Driver, function: Any, launch: LaunchInfo, multiprocessors: int) -> int:
    """Clusters that run at once by the driver's occupancy calculation, and at most `ctas_per_sm` blocks a multiprocessor."""
    if launch.cluster > 1:
        # The query wants a whole configuration; its grid must be a multiple of the cluster, its size does not matter.
        resident = driver.call("cuOccupancyMaxActiveClusters", function, configuration(driver, launch, launch.cluster, 0))
    else:
        a_multiprocessor = driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, launch.threads, launch.shared_bytes)
        resident = a_multiprocessor * multiprocessors
    if launch.ctas_per_sm:
        resident = min(resident, launch.ctas_per_sm * multiprocessors // launch.cluster)
    return resident


def grid_blocks(s: Signature, b: Binding, resident: int) -> int:
    """Blocks of the grid: one cluster a work item, or, persistent, as many as are resident. 0: nothing to launch."""
    launch = s.manifest.launch
    items = max(int(b.items), 0)
    blocks = (min(items, resident) if launch.persistent else items) * launch.cluster
    if blocks > MAX_GRID:
        raise LaunchError("runtime/grid", f"'{s.kernel}' would need a grid of {blocks} blocks; {MAX_GRID} is the limit")
    return blocks


def configuration(driver: Driver, launch: LaunchInfo, blocks: int, stream: int) -> Any:
    api = driver.api
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.threads, 1, 1
    config.sharedMemBytes = launch.shared_bytes
    config.hStream = api.CUstream(stream)
    attributes = []
    if launch.cluster > 1:
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = launch.cluster, 1, 1
        attributes.append(attribute)
    if launch.starts_early:
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    if attributes:
        config.attrs = attributes
        config.numAttrs = len(attributes)
    return config


class ArgumentBlock:
    """The `void**` that a launch takes: one pointer an entry parameter, into maps and 8-byte cells that it owns.

    The driver copies what the pointers point to during the launch call, so a block serves any number of launches and
    threads as long as nobody writes it.
    """

    __slots__ = ("address", "_cells", "_maps", "_pointers")

    def __init__(self, driver: Driver, s: Signature, b: Binding, views: dict[str, View], maps: TensorMaps):
        entries = s.manifest.entry_params
        # Rounded down to what a map asks for; allocations start at larger multiples, so it stays inside.
        spare = next((v.pointer & ~15 for v in views.values() if v.pointer and 0 not in v.shape), 256)
        self._cells = ctypes.create_string_buffer(8 * max(len(entries), 1))
        self._maps = []
        first, pointers = ctypes.addressof(self._cells), []
        elements = {p.name: ELEMENTS[p.elem] for p in s.scalars}
        for i, entry in enumerate(entries):
            pointers.append(first + 8 * i)
            match entry.kind:
                case "map":
                    tensor = maps.infos[entry.ref].tensor
                    made = maps.get(driver, entry.ref, views[tensor].pointer, b.shapes[tensor], b.strides[tensor], spare)
                    self._maps.append(made)
                    pointers[-1] = int(made.getPtr())
                case "pointer":
                    struct.pack_into("<Q", self._cells, 8 * i, views[entry.ref].pointer)
                case "scalar":
                    self._cells[8 * i : 8 * i + 8] = scalar_cell(elements[entry.ref], b.values[entry.ref])
        self._pointers = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        self.address = ctypes.addressof(self._pointers)
        if (told := getattr(driver.api, "bound", None)) is not None:  # a device that runs texts knows parameters by name
            told(self.address, dict(b.values), {n: (v.pointer, b.shapes[n]) for n, v in views.items()})


def relaunch(driver: Driver, loaded: Loaded, config: Any, address: int, status: Any) -> None:
    """A launch that did not succeed: once more with the function's context current, if that was the reason; else raise.

    Asking for the current context before every launch would cost more than the launch may add; a wrong one is always
    refused, since function and stream belong to their context.
    """
    if name_of(status) in WRONG_CONTEXT:
        with driver.active(loaded.context):
            driver.call("cuLaunchKernelEx", config, loaded.function, address, 0)
        return
    driver.refuse("cuLaunchKernelEx", status)
