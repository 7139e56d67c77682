"""Formulas over parameters and elements of inputs, on the host: for tables of items and for contracts (see artifact.py).

Values are integers, floats of 64 bits, or arrays of int64, one element an item; `/` of integers floors and `%` takes the divisor's sign, as
in the language.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from cake_core.runtime.formula import DEPTH, FormulaError

if TYPE_CHECKING:
    import numpy

ABOUT = ("monotone", "finite")


def evaluate(tree: object, values: Mapping[str, Any], inputs: Mapping[str, numpy.ndarray], depth: int = 0) -> Any:
    """The value of a formula. Raises FormulaError with a plain reason, ZeroDivisionError, IndexError outside an input."""
    if depth > DEPTH:
        raise FormulaError(f"a formula is nested more than {DEPTH} deep")
    match tree:
        case bool() | int():
            return tree
        case float():
            return as_f32(tree)
        case str():
            if tree not in values:
                raise FormulaError(f"a formula names '{tree}', which is not known")
            return values[tree]
        case ["monotone", str(tensor)]:
            x = _input(inputs, tensor)
            return bool((x[1:] >= x[:-1]).all())
        case ["finite", str(tensor)]:
            import numpy

            return bool(numpy.isfinite(_input(inputs, tensor)).all())
        case ["at", str(tensor), *indices]:
            return _element(_input(inputs, tensor), tensor, [evaluate(i, values, inputs, depth + 1) for i in indices])
        case [str(op), *rest]:
            return _apply(op, [evaluate(a, values, inputs, depth + 1) for a in rest])
    raise FormulaError(f"{tree!r} is no formula")


def as_f32(x: float) -> float:
    """A literal, or a parameter, as the kernel has it."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def names_in(tree: object) -> Iterator[str]:
    """Names of parameters in a formula."""
    match tree:
        case str():
            yield tree
        case [("monotone" | "finite"), _]:
            return
        case ["at", _, *rest] | [str(), *rest]:
            for part in rest:
                yield from names_in(part)


def inputs_in(tree: object) -> Iterator[str]:
    """Inputs that a formula reads."""
    match tree:
        case [("monotone" | "finite"), str(tensor)]:
            yield tensor
        case ["at", str(tensor), *rest]:
            yield tensor
            for part in rest:
                yield from inputs_in(part)
        case [str(), *rest]:
            for part in rest:
                yield from inputs_in(part)


def _input(inputs: Mapping[str, Any], tensor: str) -> Any:
    if tensor not in inputs:
        raise FormulaError(f"a formula reads '{tensor}', which is not given")
    return inputs[tensor]


def _element(x: numpy.ndarray, tensor: str, indices: list[Any]) -> Any:
    import numpy

    if len(indices) != x.ndim:
        raise FormulaError(f"a formula indexes '{tensor}' {len(indices)} times; it has {x.ndim} dimensions")
    for i, extent in zip(indices, x.shape, strict=True):
        at = numpy.asarray(i)
        if at.size and (at.min() < 0 or at.max() >= extent):
            raise IndexError(f"a formula reads '{tensor}' outside its {extent} elements")
    found = x[tuple(indices)]
    return found if isinstance(found, numpy.ndarray) else found.item()


def _apply(op: str, args: list[Any]) -> Any:
    import numpy as np

    match op, args:
        case (("and" | "or"), [_, _, *_]):
            return reduce(np.logical_and if op == "and" else np.logical_or, args)
        case "not", [a]:
            return np.logical_not(a)
        case "if", [test, then, other]:
            return np.where(test, then, other)
        case (("/" | "%" | "ceildiv"), [a, b]):
            if np.any(np.asarray(b) == 0):
                raise ZeroDivisionError("a formula divides by zero")
            divide = np.true_divide if np.result_type(a, b).kind == "f" else np.floor_divide
            return {"/": lambda: divide(a, b), "%": lambda: np.mod(a, b), "ceildiv": lambda: -np.floor_divide(np.negative(a), b)}[
                op
            ]()
        case str(), [_, _, *rest] if op in _ELEMENTWISE and (not rest or op in ("+", "*", "min", "max")):
            return reduce(getattr(np, _ELEMENTWISE[op]), args)
    raise FormulaError(f"a formula applies '{op}' to {len(args)} arguments")


_ELEMENTWISE = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "min": "minimum",
    "max": "maximum",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
