"""Expressions of facts as functions of an environment: integers and conditions at concrete parameters.

Arithmetic is exact: scenarios are small, and that 32 bits suffice is another obligation. A name whose value is not known holds an
`Unknown`; what asks for it chooses a value, the same one for all that hold the same `Unknown`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

from cake_core.frozen import frozen
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Index, Int, Name, Option, Unary
from cake_core.ir.places import root

Env = list
Value = Callable[[Env], int]

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}
CALLS = {
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "clamp": lambda x, lo, hi: min(max(x, lo), hi),
    "i32": lambda a: a,
    "u32": lambda a: a & 0xFFFFFFFF,
}


@frozen
class Unknown:
    """A value of which nothing is known but where it comes from."""

    origin: tuple


class Opaque(Exception):
    """An expression on which the machine has no hold: of floats, or of what registers hold."""


class MachineError(Exception):
    """The scenario cannot be executed: a parameter without value, a division by zero, a loop that does not end."""


class Endless(MachineError):
    """Someone goes on for ever, or for longer than the machine looks."""


@dataclass(slots=True)
class Names:
    """Slots of an environment by name; `constants`: names that have one value in the whole scenario."""

    constants: dict[str, int]
    slots: dict[str, int] = field(default_factory=dict)

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))


@dataclass(slots=True)
class Compiler:
    """Turns expressions into closures; Opaque where that can't be. `load(tensor, indices)` gives elements of `in` tensors; `choose(origin)` a value for an Unknown;
    `draw(tensor, n)` the n-th number that a counter gives out."""

    names: Names
    load: Callable[[str, tuple[int, ...]], int]
    choose: Callable[[tuple], int]
    draw: Callable[[str, int], int]

    def value(self, e: Expr) -> Value:
        found = self._fold(e)
        if isinstance(found, int):
            return lambda env: found
        return found

    def constant(self, e: Expr) -> int | None:
        """The value, where it is the same everywhere in the scenario."""
        found = self._fold(e)
        return found if isinstance(found, int) else None

    def _fold(self, e: Expr) -> int | Value:
        match e:
            case Int(v) | Bool(v):
                return v
            case Name(id):
                return self._name(id)
            case Unary(op, a):
                x = self._fold(a)
                act = {"-": operator.neg, "+": operator.pos, "not": operator.not_}[op]
                return act(x) if isinstance(x, int) else lambda env: act(x(env))
            case Binary(op, a, b):
                return self._binary(op, self._fold(a), self._fold(b))
            case Cond(t, a, b):
                test, then, other = self._fold(t), self.value(a), self.value(b)
                if isinstance(test, int):
                    return self._fold(a) if test else self._fold(b)
                return lambda env: then(env) if test(env) else other(env)
            case Call() if e.name in CALLS:
                act, args = CALLS[e.name], [self._fold(a) for a in e.positional]
                if all(isinstance(a, int) for a in args):
                    return act(*args)
                args = [self.value(a) for a in e.positional]
                return lambda env: act(*[a(env) for a in args])
            case Call():
                return self._read(e)
        raise Opaque

    def _name(self, name: str) -> int | Value:
        if name in self.names.constants:
            return self.names.constants[name]
        slot, choose = self.names.slot(name), self.choose

        def read(env: Env) -> int:
            v = env[slot]
            if v.__class__ is Unknown:
                return choose(v.origin)
            if v is None:
                raise MachineError(f"'{name}' has no value")
            return v

        return read

    @staticmethod
    def _binary(op: str, x: int | Value, y: int | Value) -> int | Value:
        act = BINARY[op]
        if isinstance(x, int) and isinstance(y, int):
            if op in ("/", "%") and y == 0:
                raise MachineError("a division by zero")
            return act(x, y)
        if isinstance(y, int):
            if op in ("/", "%") and y == 0:
                raise MachineError("a division by zero")
            return lambda env: act(x(env), y)
        if isinstance(x, int):
            return lambda env: act(x, y(env))
        if op == "and":
            return lambda env: bool(x(env)) and bool(y(env))
        if op == "or":
            return lambda env: bool(x(env)) or bool(y(env))
        return lambda env: act(x(env), y(env))

    def _read(self, e: Call) -> Value:
        """A function of its arguments: an element of a tensor, or any other value that is the same for the same arguments."""
        place = e.positional[0] if e.positional else None
        if isinstance(place, Index) and root(place) is not None:
            tensor, indices, load = root(place).id, tuple(map(self.value, place.indices)), self.load
            return lambda env: load(tensor, tuple(i(env) for i in indices))
        given = tuple(self.value(a.value if isinstance(a, Option) else a) for a in e.args)
        name, choose = e.name, self.choose
        return lambda env: choose((name, *(a(env) for a in given)))
