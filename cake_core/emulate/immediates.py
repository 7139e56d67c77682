"""Immediate operands as rows of registers: one value for all lanes, of the type that an instruction reads it with."""

from __future__ import annotations

import numpy as np

from cake_core.ptx.emulated import LANES

#: Types of registers that hold more than numpy's words do.
_FLOAT_BITS = {"b16": "float16", "b32": "float32", "b64": "float64"}


def constant(value: float, type: str, dtype: np.dtype) -> np.ndarray:
    if isinstance(value, float):
        if dtype.kind == "f":
            return _full(value, dtype)
        if type not in _FLOAT_BITS:
            return _full(int(np.array(value, np.float32).view(np.uint32)), dtype)
        return _full(np.array(value, _FLOAT_BITS[type]), np.dtype(_FLOAT_BITS[type])).view(dtype)
    if dtype.kind == "b":
        return _full(bool(value), dtype)
    if dtype.kind == "f":
        return _full(float(value), dtype)
    bits = value & (1 << 8 * dtype.itemsize) - 1
    return _full(bits, np.dtype(f"uint{8 * dtype.itemsize}")).view(dtype)


def _full(value, dtype: np.dtype) -> np.ndarray:
    made = np.full(LANES, value, dtype)
    made.flags.writeable = False
    return made
