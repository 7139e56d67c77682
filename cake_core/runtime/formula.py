"""Launch formulas of the manifest (see artifact.py): checked once at load, then evaluated as closures over the parameters.

`/` floors and `%` takes the divisor's sign, as in the language; `and`, `or` and `if` evaluate what they need only.
Integers have no bound here: a size that leaves 32 bits is refused where it is bound, not wrapped.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce

Value = int | float | bool
Compiled = Callable[[Mapping[str, Value]], Value]


def _divide(a: Value, b: Value) -> Value:
    return a / b if isinstance(a, float) or isinstance(b, float) else a // b


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": operator.mod,
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FOLDED = frozenset({"+", "*", "min", "max"})  # take two or more arguments
_LAZY = {"and": all, "or": any}
DEPTH = 200  # a deeper tree is no formula of ours; it would only exhaust the stack


class FormulaError(ValueError):
    """The tree is not a formula over the given names."""


def compile_formula(tree: object, names: Iterable[str]) -> Compiled:
    """A function from parameter values to the formula's value. Raises FormulaError with a plain reason.

    The function raises ZeroDivisionError where the formula divides by zero.
    """
    return _compile(tree, frozenset(names), 0)


def _compile(tree: object, names: frozenset[str], depth: int) -> Compiled:
    if depth > DEPTH:
        raise FormulaError(f"a formula is nested more than {DEPTH} deep")
    match tree:
        case bool() | int() | float():
            return lambda env: tree
        case str():
            if tree not in names:
                raise FormulaError(f"a formula names '{tree}', which is no scalar parameter")
            return operator.itemgetter(tree)
        case [str(op), *rest]:
            args = [_compile(a, names, depth + 1) for a in rest]
        case _:
            raise FormulaError(f"{tree!r} is no formula")
    match op, args:
        case ("and" | "or"), [_, _, *_]:
            test = _LAZY[op]
            return lambda env: test(a(env) for a in args)
        case "not", [a]:
            return lambda env: not a(env)
        case "if", [test, then, other]:
            return lambda env: then(env) if test(env) else other(env)
        case str(), [a, b] if op in _BINARY:
            f = _BINARY[op]
            return lambda env: f(a(env), b(env))
        case str(), [_, _, *_] if op in _FOLDED:
            f = _BINARY[op]
            return lambda env: reduce(f, (a(env) for a in args))
    raise FormulaError(f"a formula applies '{op}' to {len(args)} arguments")


_BINDS = {"or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}


def formula_text(tree: object, outer: int = 0) -> str:
    """A formula as the language writes it, for messages."""
    match tree:
        case bool():
            return str(tree).lower()
        case ["not", a]:
            return f"not {formula_text(a, 4)}"
        case ["if", test, then, other]:
            text = f"{formula_text(test, 1)} ? {formula_text(then, 1)} : {formula_text(other, 1)}"
            return f"({text})" if outer else text
        case [op, *args] if op in _BINDS:
            level = _BINDS[op]
            text = f" {op} ".join(formula_text(a, level + (i > 0)) for i, a in enumerate(args))
            return f"({text})" if level < outer else text
        case [op, *args]:
            return f"{op}({', '.join(map(formula_text, args))})"
    return str(tree)
