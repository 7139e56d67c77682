"""What PTX instructions make of numbers, for the machines that run it on numpy: formats, arithmetic of 32 lanes, the swizzle."""

from __future__ import annotations

import ml_dtypes
import numpy as np

LANE = np.arange(32, dtype=np.int64)


def i32(x):
    return (np.asarray(x, np.int64) + 2**31) % 2**32 - 2**31


def u32(x):
    return np.asarray(x, np.int64) % 2**32


def bf16(bits):
    return np.asarray(bits, np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)


def bits16(x):
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.int64)


def truncated(a, b):
    quotient = np.abs(a) // np.maximum(np.abs(b), 1) * np.sign(a) * np.sign(b)
    return np.where(np.asarray(b) == 0, -1, quotient)


def swizzled(at):
    """128 bytes: the 16-byte chunk of a row is XORed with the row's number in its pattern of 8."""
    return at ^ (at >> 7 & 7) << 4


INTEGER = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b,
}
FLOAT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.fmin, "max": np.fmax, "div": np.divide}
FLOAT_ONE = {"ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "neg": np.negative, "sqrt": np.sqrt}
COMPARE = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}


def names(vector: str) -> list[str]:
    return [x.strip() for x in vector.strip("{} ").split(",")]
