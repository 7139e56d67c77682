"""Reductions into memory, element by element, for those who execute instructions that combine a value with what is there.

PTX ISA, Parallel Synchronization and Communication Instructions (red) and Data Movement (Asynchronous copy with reduction): `inc` is
`old >= new ? 0 : old + 1`, `dec` is `old == 0 || old > new ? new : old - 1`; floating-point `add` rounds to nearest even; `min` and `max` give the other
operand where one is NaN, and take +0 for greater than -0. Subnormal numbers are kept. Of two NaNs the result is the canonical one, and so is the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: Element types, and the type of numpy or of ml_dtypes that computes them.
ELEMENTS = {
    "u8": "uint8", "b8": "uint8", "s8": "int8", "u16": "uint16", "b16": "uint16", "s16": "int16",
    "u32": "uint32", "b32": "uint32", "s32": "int32", "u64": "uint64", "b64": "uint64", "s64": "int64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
}  # fmt: skip

#: The NaN that arithmetic gives (PTX ISA, Floating Point Instructions: canonical NaN).
NANS = {"float16": 0x7FFF, "bfloat16": 0x7FFF, "float32": 0x7FFFFFFF}

OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def of_numbers(choose: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The lesser or greater (`choose`: numpy's minimum or maximum) of two floats; of a number and a NaN, quiet or signaling, the number (PTX ISA, min,
    max). numpy's fmin and fmax give a NaN for some that are signaling."""
    import numpy as np

    def change(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        made = choose(x, y)
        if np.isnan(made).any():
            made = np.where(np.isnan(x), y, np.where(np.isnan(y), x, made))
        return made

    return change


def reduction(operation: str, type: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Combines bytes: uint8 (.., n) of what is there and of what comes, n a multiple of the element's bytes. None: there is no such reduction."""
    name = ELEMENTS.get(type)
    if name is None:
        return None
    change = _floats(operation, name) if "float" in name else _integers(operation, name)
    if change is None:
        return None
    kind = _dtype(name)

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        import numpy as np

        with np.errstate(all="ignore"):
            made = change(np.ascontiguousarray(old).view(kind), np.ascontiguousarray(new).view(kind))
        return np.ascontiguousarray(made, kind).view(np.uint8).reshape(old.shape)

    return combine


def _dtype(name: str) -> np.dtype:
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _integers(operation: str, name: str) -> Callable | None:
    import numpy as np

    one = np.dtype(name).type(1)
    return {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "inc": (lambda old, new: np.where(old >= new, 0, old + one)) if name == "uint32" else None,
        "dec": (lambda old, new: np.where((old == 0) | (old > new), new, old - one)) if name == "uint32" else None,
    }.get(operation)


def _floats(operation: str, name: str) -> Callable | None:
    import numpy as np

    kind = _dtype(name)
    bits = np.dtype(f"uint{8 * kind.itemsize}")
    wide = np.float64 if name == "float64" else np.float32
    nan = np.array(NANS[name], bits).view(kind) if name in NANS else kind.type(np.nan)

    def add(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        made = old + new
        return np.where(np.isnan(made), nan, made)

    def extreme(pick: Callable, tie: Callable) -> Callable:
        def change(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            a, b = old.astype(wide), new.astype(wide)
            made = pick(a, b).astype(kind)
            tied = tie(old.view(bits), new.view(bits)).view(kind)  # zeros of both signs; other equal values have equal bits
            return np.where(a == b, tied, np.where(np.isnan(a) & np.isnan(b), nan, made))

        return change

    return {"add": add, "min": extreme(of_numbers(np.minimum), np.bitwise_or), "max": extreme(of_numbers(np.maximum), np.bitwise_and)}.get(operation)
