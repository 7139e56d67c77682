"""DLPack capsules by ctypes: read one from any library, and make one for our own arrays.

Layouts after dlpack.h 1.1 (DLTensor, DLManagedTensor, DLManagedTensorVersioned). A capsule is never consumed here: it
stays alive beside the view, and its own destructor frees it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a capsule says. `strides` in elements, None where packed."""

    pointer: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]  # code, bits, lanes
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    readonly: bool


_api = ctypes.pythonapi
_valid = _api.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get = _api.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def parse(capsule: Any) -> Parsed:
    """Read a capsule named "dltensor" or "dltensor_versioned". Raises ValueError for anything else (a used one too)."""
    if _valid(capsule, b"dltensor"):
        tensor, readonly = Managed.from_address(_get(capsule, b"dltensor")).tensor, False
    elif _valid(capsule, b"dltensor_versioned"):
        managed = ManagedVersioned.from_address(_get(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise ValueError(f"a capsule of DLPack version {managed.major}.{managed.minor}; version 1 is read")
        tensor, readonly = managed.tensor, bool(managed.flags & READ_ONLY)
    else:
        raise ValueError("no DLPack capsule, or one that was consumed already")
    n = tensor.ndim
    return Parsed(
        (tensor.data or 0) + tensor.byte_offset,
        (tensor.device_type, tensor.device_id),
        (tensor.code, tensor.bits, tensor.lanes),
        tuple(tensor.shape[:n]) if n else (),
        tuple(tensor.strides[:n]) if n and tensor.strides else None,
        readonly,
    )


# --- making capsules -------------------------------------------------------------------------------------------

_alive: dict[int, tuple] = {}  # address of a Managed to all that it needs


# In the destructor the object is being freed: its address may be passed on, a new reference may not be made.
_raw_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_raw_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


@Deleter
def _release(address: int, alive: dict = _alive) -> None:
    alive.pop(address, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int, valid: Any = _raw_valid, get: Any = _raw_get, alive: dict = _alive) -> None:
    """Destructor of a capsule: if nobody consumed it (its name is unchanged), the tensor goes with it."""
    if valid(capsule, b"dltensor"):
        alive.pop(get(capsule, b"dltensor"), None)


# A capsule may outlive this module, in the frames of an exception that ends the process: the code of its destructor stays, and asks for no global name.
for _kept in (_release, _destroy):
    _api.Py_IncRef(ctypes.py_object(_kept))
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def make(owner: Any, pointer: int, device: tuple[int, int], dtype: tuple[int, int], shape: tuple[int, ...], lanes: int = 1) -> Any:
    """A capsule "dltensor" of a packed array; it keeps `owner` alive until its consumer lets go."""
    n = len(shape)
    strides = [prod(shape[i + 1 :]) for i in range(n)]  # stated even though packed: DLPack 1.2 forbids a null
    extents = (ctypes.c_int64 * max(2 * n, 1))(*shape, *strides)
    first = ctypes.addressof(extents)
    at = lambda i: ctypes.cast(first + 8 * i, ctypes.POINTER(ctypes.c_int64))  # noqa: E731
    managed = Managed(DLTensor(pointer or None, *device, n, *dtype, lanes, at(0), at(n), 0), None, _release)
    address = ctypes.addressof(managed)
    _alive[address] = (managed, extents, owner)
    return _new(address, b"dltensor", ctypes.cast(_destroy, ctypes.c_void_p))
