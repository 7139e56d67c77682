"""The CUDA driver API, through cuda.bindings: the one seam between the runtime and a GPU.

Nothing is imported or initialised before `driver()` is first called. Tests put another module with the same functions
in its place by `use(module)`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cake_core.runtime.errors import DriverError

# Driver results that mean more than "refused": name to (diagnostic code, what to do). A device fault is sticky: the
# context can't be used after it.
_FAULT = ("runtime/device-fault", "the CUDA context is lost; start a new process, and run under compute-sanitizer to find the access")
_REFUSED = ("runtime/text-refused", "install a newer driver, or build the kernel for this device with '--arch'")
_CODES: dict[str, tuple[str, str | None]] = {
    "CUDA_ERROR_OUT_OF_MEMORY": ("runtime/out-of-memory", "free arrays, or use a smaller shape"),
    "CUDA_ERROR_NO_DEVICE": ("runtime/no-gpu", "run on a machine with an NVIDIA GPU"),
    "CUDA_ERROR_INVALID_DEVICE": ("runtime/no-gpu", "name a device that exists"),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": ("runtime/device-mismatch", "build the artifact for this device"),
    **dict.fromkeys(("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"), _REFUSED),
    **dict.fromkeys(
        (
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "CUDA_ERROR_MISALIGNED_ADDRESS",
            "CUDA_ERROR_INVALID_ADDRESS_SPACE",
            "CUDA_ERROR_INVALID_PC",
            "CUDA_ERROR_LAUNCH_FAILED",
            "CUDA_ERROR_LAUNCH_TIMEOUT",
            "CUDA_ERROR_ASSERT",
        ),
        _FAULT,
    ),
}
#: Results of a launch whose function or stream belongs to a context that is not current in this thread.
WRONG_CONTEXT = frozenset({"CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED"})


class Driver:
    """Calls of the driver API with their results checked, and the contexts that the runtime holds."""

    def __init__(self, api: Any):
        self.api = api
        self._primary: dict[int, Any] = {}
        self._lock = threading.Lock()
        try:
            (status,) = api.cuInit(0)
        except RuntimeError as error:  # cuda.bindings: the driver library was not found
            why = str(error).splitlines()[0] if str(error) else None
            raise DriverError("runtime/no-gpu", "no NVIDIA driver is installed", why=why, fix="install the NVIDIA driver") from None
        if int(status) != 0:
            raise DriverError("runtime/no-gpu", f"the CUDA driver can't be initialised: {name_of(status)}", fix=_CODES["CUDA_ERROR_NO_DEVICE"][1])

    def call(self, function: str, *args: Any) -> Any:
        """Call `function`; its value, a tuple of several, or None. Raises DriverError that names the function and the result."""
        status, *values = getattr(self.api, function)(*args)
        if int(status) != 0:
            self.refuse(function, status)
        return values[0] if len(values) == 1 else tuple(values) or None

    def refuse(self, function: str, status: Any) -> None:
        """Raise the DriverError of a result that is not success."""
        name = name_of(status)
        code, fix = _CODES.get(name, ("runtime/driver", None))
        raise DriverError(code, f"the driver answers {name} to {function}", fix=fix)

    # --- devices and contexts

    def device_count(self) -> int:
        return self.call("cuDeviceGetCount")

    def device(self, ordinal: int) -> Any:
        if not 0 <= ordinal < (count := self.device_count()):
            raise DriverError("runtime/no-gpu", f"there is no GPU {ordinal}; this machine has {count}", fix=_CODES["CUDA_ERROR_INVALID_DEVICE"][1])
        return self.call("cuDeviceGet", ordinal)

    def attribute(self, ordinal: int, name: str) -> int:
        """A device attribute by the name behind CU_DEVICE_ATTRIBUTE_."""
        return self.call("cuDeviceGetAttribute", getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), self.device(ordinal))

    def device_name(self, ordinal: int) -> str:
        return self.call("cuDeviceGetName", 256, self.device(ordinal)).split(b"\0")[0].decode()

    def compute_capability(self, ordinal: int) -> tuple[int, int]:
        return self.attribute(ordinal, "COMPUTE_CAPABILITY_MAJOR"), self.attribute(ordinal, "COMPUTE_CAPABILITY_MINOR")

    def primary(self, ordinal: int) -> Any:
        """The primary context of a device, retained once for the life of the process."""
        with self._lock:
            if ordinal not in self._primary:
                self._primary[ordinal] = self.call("cuDevicePrimaryCtxRetain", self.device(ordinal))
            return self._primary[ordinal]

    def current(self) -> Any | None:
        """The context that is current in this thread."""
        context = self.call("cuCtxGetCurrent")
        return context if int(context) else None

    def context(self, ordinal: int) -> Any:
        """The current context if it is of the device, otherwise the device's primary one."""
        context = self.current()
        return context if context is not None and int(self.call("cuCtxGetDevice")) == ordinal else self.primary(ordinal)

    @contextmanager
    def active(self, context: Any) -> Iterator[None]:
        """`context` is current inside."""
        current = self.current()
        if current is not None and int(current) == int(context):
            yield
            return
        self.call("cuCtxPushCurrent", context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def pointer_device(self, pointer: int) -> int:
        """Ordinal of the device that `pointer` belongs to. Raises DriverError for a pointer that no device knows."""
        return int(self.call("cuPointerGetAttribute", self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer))

    def order_after(self, earlier: int, later: int) -> None:
        """What is launched into stream `later` from now on runs after what is in stream `earlier`; the host does not wait."""
        event = self.call("cuEventCreate", self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        try:
            self.call("cuEventRecord", event, self.api.CUstream(earlier))
            self.call("cuStreamWaitEvent", self.api.CUstream(later), event, 0)
        finally:
            self.call("cuEventDestroy", event)


def name_of(status: Any) -> str:
    """A result's name; the number of one that this version of cuda.bindings does not know."""
    return getattr(status, "name", None) or f"CUresult {int(status)}"


_lock = threading.Lock()
_driver: Driver | None = None


def driver() -> Driver:
    """The process's driver, initialised on the first call. Raises DriverError (runtime/no-gpu)."""
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = Driver(_bindings())
    return _driver


def _bindings() -> Any:
    try:
        from cuda.bindings import driver as bindings
    except ImportError as error:
        why = str(error)
        raise DriverError("runtime/no-gpu", "the CUDA bindings for Python can't be imported", why=why, fix="install 'cuda-python'") from None
    return bindings


@contextmanager
def use(module: Any) -> Iterator[Driver]:
    """Run with another module in place of cuda.bindings.driver (for tests)."""
    global _driver
    saved, _driver = _driver, Driver(module)
    try:
        yield _driver
    finally:
        _driver = saved
