"""A plain array on the GPU, for outputs when no array library is at hand, and for `cake run`."""

from __future__ import annotations

import weakref
from math import prod
from typing import TYPE_CHECKING, Any

from cake_core.runtime import dlpack
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.errors import DriverError
from cake_core.runtime.host import BITS
from cake_core.runtime.views import packed_strides

if TYPE_CHECKING:
    import numpy


class DeviceArray:
    """A packed, row-major array in device memory of its own, freed with its last reference.

    Offers `__dlpack__` and, for element types that it has a string for (not bf16, e4m3, e5m2, ue8m0, e2m1x2), `__cuda_array_interface__`; `numpy()`
    copies to the host. The memory is of `device`'s primary or current context.
    """

    def __init__(self, shape: tuple[int, ...], elem: str, device: int, driver: Driver, memory: Memory | None = None, offset: int = 0):
        self.shape = tuple(shape)
        self.elem = ELEMENTS[elem]
        self.device = device
        self.strides = packed_strides(self.shape)
        self.nbytes = prod(self.shape) * self.elem.bytes
        self._memory = memory or Memory(self.nbytes, device, driver)
        self.pointer = self._memory.pointer + offset if self.nbytes else 0

    def __repr__(self) -> str:
        return f"DeviceArray({self.elem}{list(self.shape)}, device={self.device}, pointer={self.pointer:#x})"

    def __getattr__(self, name: str) -> Any:
        if name == "__cuda_array_interface__" and self.elem.typestr is not None:
            return {"shape": self.shape, "typestr": self.elem.typestr, "data": (self.pointer, False), "strides": None, "version": 3, "stream": None}
        raise AttributeError(f"'DeviceArray' object of {self.elem} has no attribute '{name}'")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CUDA, self.device)

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A capsule of version 0 (DLPack lets a producer answer with an older version than asked for). The runtime
        holds no work of its own in flight beyond what the caller's stream orders, so there is nothing to wait for."""
        return dlpack.make(self, self.pointer, self.__dlpack_device__(), self.elem.dlpack, self.shape, self.elem.lanes)

    def copy_from(self, data: bytes | numpy.ndarray) -> None:
        """Fill from packed host bytes of the same size; returns when the copy is done."""
        if (size := memoryview(data).nbytes) != self.nbytes:
            raise ValueError(f"{size} bytes for an array of {self.nbytes}")
        self._memory.write(self.pointer, data)

    def numpy(self) -> numpy.ndarray:
        """A copy on the host, after all work in the context's legacy stream. Types that numpy does not have come as unsigned bits."""
        import numpy

        kind = self.elem.typestr or BITS[self.elem.name]
        return numpy.frombuffer(self._memory.read(self.pointer, self.nbytes), kind).reshape(self.shape)


class Memory:
    """Device memory of `nbytes` bytes; `pointer` is 0 where that is 0. Raises DriverError (runtime/out-of-memory)."""

    def __init__(self, nbytes: int, device: int, driver: Driver):
        self.nbytes = nbytes
        self.driver = driver
        self.context = driver.context(device)
        self.pointer = 0
        if nbytes:
            with driver.active(self.context):
                self.pointer = int(driver.call("cuMemAlloc", nbytes))
            weakref.finalize(self, _free, driver, self.context, self.pointer)

    def fill(self, byte: int) -> None:
        if self.nbytes:
            with self.driver.active(self.context):
                self.driver.call("cuMemsetD8", self.pointer, byte, self.nbytes)

    def write(self, pointer: int, data: Any) -> None:
        if nbytes := memoryview(data).nbytes:
            with self.driver.active(self.context):
                self.driver.call("cuMemcpyHtoD", pointer, data, nbytes)

    def read(self, pointer: int, nbytes: int) -> bytearray:
        host = bytearray(nbytes)
        if nbytes:
            with self.driver.active(self.context):
                self.driver.call("cuMemcpyDtoH", host, pointer, nbytes)
        return host


def _free(driver: Driver, context: Any, pointer: int) -> None:
    try:
        with driver.active(context):
            driver.call("cuMemFree", pointer)
    except DriverError:
        pass  # the context is gone or faulted, and its memory with it
