"""Inputs as numpy arrays on the host, wherever the caller keeps them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from cake_core.artifact import ParamInfo
from cake_core.runtime import views as arrays
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.host import BITS, to_float64
from cake_core.runtime.views import View, packed_strides

if TYPE_CHECKING:
    import numpy

DLPACK_HOST = (1, 3, 11)  # CPU, and host memory that a GPU can reach (DLPack, DLDeviceType)


def on_host(array: Any) -> bool:
    """Whether an argument is a list, a numpy array or a tensor in host memory."""
    if isinstance(array, list | tuple):
        return True
    if arrays.is_torch(array):
        return not array.is_cuda
    if hasattr(array, "__cuda_array_interface__"):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) in DLPACK_HOST
    return hasattr(array, "__array__")


def device_of(array: Any) -> int | None:
    """Ordinal of the GPU that an array says it lives on."""
    if on_host(array) or not hasattr(array, "__dlpack_device__"):
        return None
    return int(array.__dlpack_device__()[1])


def shape_of(name: str, array: Any, stream: int, driver: Driver) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    return tuple(shape) if shape is not None else arrays.describe(name, array, stream, driver).shape


def read(p: ParamInfo, array: Any, stream: int, driver: Driver) -> numpy.ndarray:
    """The values of one input: integers as they are, floats as f32. A device array is read after all work in `stream`, for
    which the host waits. Raises LaunchError."""
    import numpy

    elem = ELEMENTS[p.elem]
    if on_host(array):
        found = numpy.asarray(array.detach() if arrays.is_torch(array) else array)
        if elem.lo is not None and found.dtype.kind not in "iu" and found.size:
            raise LaunchError("runtime/element-type", f"'{p.name}' holds {found.dtype}, and integers are needed", resource=p.name)
        return found.astype("int64") if elem.lo is not None else found.astype("float32")
    view = packed_view(p, array, stream, driver)
    data = bytearray(prod(view.shape) * elem.bytes)
    if data:
        with driver.active(driver.context(view.device)):
            driver.call("cuStreamSynchronize", driver.api.CUstream(stream))
            driver.call("cuMemcpyDtoH", data, view.pointer, len(data))
    bits = numpy.frombuffer(data, BITS[p.elem]).reshape(view.shape)
    if elem.lo is not None:
        return bits.astype("int64")
    return to_float64(bits, elem).astype("float32")


def packed_view(p: ParamInfo, array: Any, stream: int, driver: Driver) -> View:
    """An input in device memory, contiguous, to be read in `stream` after the work that its producer names. Raises LaunchError."""
    elem = ELEMENTS[p.elem]
    view = arrays.describe(p.name, array, stream, driver)
    if view.elem is not elem:
        raise LaunchError("runtime/element-type", f"'{p.name}' holds {view.elem}, and {elem} is needed", resource=p.name)
    strides = packed_strides(view.shape)
    if prod(view.shape) and any(n > 1 and a != b for n, a, b in zip(view.shape, view.strides, strides, strict=True)):
        raise LaunchError(
            "runtime/strides",
            f"'{p.name}' has the strides {view.strides}; contracts are checked, and plans made, of contiguous arrays",
            fix="pass a contiguous copy",
            resource=p.name,
        )
    arrays.wait_for(view, stream, driver)
    return view
