"""Reads what a GPU array says of itself, whatever library made it, without importing that library.

Torch tensors are asked directly (their DLPack export costs ten times as much, and bf16 has no array-interface string);
then `__cuda_array_interface__`; then `__dlpack__`. Nothing is copied and no host synchronisation is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

from cake_core.runtime import dlpack
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import BY_DLPACK, BY_TORCH, BY_TYPESTR, Element
from cake_core.runtime.errors import LaunchError


class View(NamedTuple):
    """One array. `strides` in elements; `device` an ordinal, or None for an array without memory (an extent of 0).

    `order`: the producer's stream that the launch must come after (None: nothing to wait for). `keep`: what holds the
    memory.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elem: Element
    device: int | None
    readonly: bool
    order: int | None
    keep: Any


def packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def library(array: Any) -> str:
    """"torch", "cupy", .. : the package that the array's class comes from."""
    return type(array).__module__.partition(".")[0]


def is_torch(array: Any) -> bool:
    """A torch tensor, or an object of a subclass of it (Parameter, user classes)."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def describe(name: str, array: Any, stream: int, driver: Driver) -> View:
    """The view of argument `name`, to be used on `stream` (a handle). Raises LaunchError."""
    if is_torch(array):
        return _torch(name, array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None and (interface["typestr"] in BY_TYPESTR or not hasattr(array, "__dlpack__")):
        return _array_interface(name, array, interface, driver)
    if hasattr(array, "__dlpack__"):
        return _dlpack(name, array, stream)
    if interface is None:
        what = f"'{name}' is a {type(array).__name__}, which is no GPU array"
        raise LaunchError("runtime/not-an-array", what, fix="pass an object with '__dlpack__' or '__cuda_array_interface__'")
    return _array_interface(name, array, interface, driver)


def wait_for(view: View, stream: int, driver: Driver) -> None:
    """What comes into `stream` from now on runs after the work that the array's producer names; the host does not wait."""
    if view.order is not None and view.device is not None and (view.order or 1) != (stream or 1):  # 1: the legacy stream too
        with driver.active(driver.context(view.device)):
            driver.order_after(view.order, stream)


def _not_on_gpu(name: str, where: str) -> LaunchError:
    return LaunchError("runtime/not-on-gpu", f"'{name}' is on {where}, not on a GPU", fix="copy it to the GPU first")


def _bad_elem(name: str, what: object) -> LaunchError:
    return LaunchError("runtime/element-type", f"'{name}' has elements of type '{what}', which no kernel takes")


_torch_elements: dict[Any, Element | None] = {}  # by dtype object: its text costs more than the rest of the view


def _torch(name: str, tensor: Any) -> View:
    if not tensor.is_cuda:
        raise _not_on_gpu(name, f"device '{tensor.device}'")
    elem = _torch_elements.get(tensor.dtype) or _torch_elements.setdefault(tensor.dtype, BY_TORCH.get(str(tensor.dtype)))
    if elem is None:
        raise _bad_elem(name, tensor.dtype)
    try:
        strides = tensor.stride()
    except (RuntimeError, NotImplementedError):
        raise LaunchError("runtime/strides", f"'{name}' is a {tensor.layout} tensor without strides") from None
    return View(tensor.data_ptr(), tuple(tensor.shape), tuple(strides), elem, tensor.get_device(), False, None, tensor)


def _array_interface(name: str, array: Any, interface: dict, driver: Driver) -> View:
    """CUDA Array Interface, versions 2 and 3 (Numba documentation)."""
    elem = BY_TYPESTR.get(interface["typestr"])
    if elem is None:
        raise _bad_elem(name, interface["typestr"])
    if interface.get("mask") is not None:
        raise LaunchError("runtime/not-an-array", f"'{name}' has a mask, which no kernel takes")
    pointer, readonly = interface["data"]
    shape = tuple(interface["shape"])
    strides = packed_strides(shape)
    if interface.get("strides") is not None:
        in_bytes = tuple(interface["strides"])
        if any(s % elem.bytes for s in in_bytes):
            raise LaunchError("runtime/strides", f"'{name}' has strides of {in_bytes} bytes, not whole elements of {elem.bytes}")
        strides = tuple(s // elem.bytes for s in in_bytes)
    empty = not pointer or not prod(shape)
    device = None if empty else driver.pointer_device(pointer)
    return View(pointer or 0, shape, strides, elem, device, bool(readonly), interface.get("stream"), array)


def _dlpack(name: str, array: Any, stream: int) -> View:
    kind, ordinal = array.__dlpack_device__()
    if int(kind) not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        raise _not_on_gpu(name, "the host" if int(kind) in (dlpack.CPU, dlpack.CUDA_HOST) else f"a device of DLPack type {int(kind)}")
    on = stream or 1  # DLPack: 1 is the legacy default stream; 0 is not allowed
    try:
        try:
            capsule = array.__dlpack__(stream=on, max_version=(1, 0))
        except TypeError:  # a producer of before DLPack 1.0
            capsule = array.__dlpack__(stream=on)
        parsed = dlpack.parse(capsule)
    except (ValueError, BufferError, TypeError) as error:
        raise LaunchError("runtime/not-an-array", f"'{name}' can't be read through DLPack: {error}") from None
    elem = BY_DLPACK.get(parsed.dtype)
    if elem is None:
        raise _bad_elem(name, "DLPack code {}, {} bits, {} lanes".format(*parsed.dtype))
    strides = packed_strides(parsed.shape) if parsed.strides is None else parsed.strides
    return View(parsed.pointer, parsed.shape, strides, elem, int(ordinal), parsed.readonly, None, (array, capsule))


# --- streams ---------------------------------------------------------------------------------------------------


def stream_handle(stream: Any) -> int:
    """The handle of a stream: an integer, a torch or cupy stream, a `__cuda_stream__`, or one of cuda.bindings."""
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):  # torch, cupy, numba and cuda.core
        value = getattr(stream, name, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    try:
        return int(stream)
    except (TypeError, ValueError):
        what = f"'stream' is a {type(stream).__name__}, which is no CUDA stream"
        raise LaunchError("runtime/stream", what, fix="pass a stream of torch, cupy or cuda.core, or its handle as an integer") from None


def current_stream(arrays: list[Any]) -> Callable[[], int]:
    """Where to launch when the caller names no stream: torch's (then cupy's) current stream on the array's device if
    such arrays are given, else the legacy default stream. Asked anew at each launch."""
    for array in arrays:
        if is_torch(array) and array.is_cuda:
            torch, device = sys.modules["torch"], array.get_device()
            raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # no Stream object is built
            return partial(raw, device) if raw else lambda: torch.cuda.current_stream(device).cuda_stream
    if any(library(a) == "cupy" for a in arrays):
        cupy = sys.modules["cupy"]
        return lambda: cupy.cuda.get_current_stream().ptr
    return lambda: 0
