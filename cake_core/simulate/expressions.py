"""Typed expressions as functions of an environment: integers, floats of 32 bits, tiles in registers as arrays.

A name has a slot of its own for each place that binds it, so that an environment is a list. Arithmetic on integers is exact: that 32 bits
suffice is another obligation; unsigned ones wrap. What a plugin's function gives is asked of its `simulate`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.diagnostics import fail
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Attr, Binary, Bool, Call, Cond, Expr, Float, Index, Int, Name, Tuple, Unary
from cake_core.ir.places import root
from cake_core.ir.types import Scalar, State, Tile, Value
from cake_core.lower.scalars import as_call
from cake_core.machine.values import BINARY, CALLS, MachineError

if TYPE_CHECKING:
    from cake_core.primitive import Distribution
    from cake_core.simulate.site import Site

Env = list
Compiled = Callable[[Env], Any]

#: Slots that every environment has: who executes (`Actor`), and the numbers of its warps in the instance, [warps, 1].
ACTOR, WARPS = 0, 1
UNSIGNED = 0xFFFFFFFF


@frozen
class Bound:
    """What a name stands for: a slot. `lies`, `type`: of a tile in registers, `fragment` one that is declared."""

    slot: int
    lies: Distribution | None = None
    type: Tile | None = None
    fragment: bool = False


@thawed(eq=False)
class Fragment:
    """A declared fragment: an array a slot, None before anything is written to it. Of states, arrays by field. `touched`: whether threads
    have accessed it since their last fence of registers, or no fence was yet."""

    name: str
    arrays: list
    touched: bool = True

    def whole(self, number: int = 0) -> Any:
        found = self.arrays[number]
        if found is None:
            raise Unwritten(self.name)
        return found


class Unwritten(Exception):
    """A fragment is read that no one has filled: its name."""


def on_registers(e: Expr) -> bool:
    """Whether an expression is a tile in registers."""
    return isinstance(e.type, Value) or isinstance(e.type, Tile) and e.type.space == "frag"


def elem_kind(e: Expr) -> str:
    return e.type.elem.kind if isinstance(e.type, Scalar | Value | Tile) else "int"


class Expressions:
    """Expressions of one statement. `site`: where it stands."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.known: dict[int, tuple[Expr, Compiled]] = {}

    def of(self, e: Expr) -> Compiled:
        """Raises CakeError for what is not simulated."""
        found = self.known.get(id(e))
        if found is None:
            found = self.known[id(e)] = e, self._of(e)
        return found[1]

    def _of(self, e: Expr) -> Compiled:
        match e:
            case Int(v) | Float(v):
                found = np.float32(v) if elem_kind(e) == "float" or isinstance(e, Float) else v
                return lambda env: found
            case Bool(v):
                return lambda env: v
            case Name(id):
                return self._name(e, id)
            case Unary("+", a):
                return self.of(a)
            case Cond(test, then, other):
                return self._choice(*map(self.of, (test, then, other)))
            case Tuple(items):
                parts = tuple(map(self.of, items))
                return lambda env: tuple([p(env) for p in parts])
            case Index() | Attr():
                return self._part(e)
            case Call() | Binary() | Unary():
                return self._computed(e)
        raise self._not(e, "this expression")

    def _not(self, e: Expr, what: str):
        return fail("runtime/not-simulated", f"{what} is not simulated", e.span)

    def _name(self, e: Expr, id: str) -> Compiled:
        bound = self.site.names.get(id)
        if bound is not None:
            slot = bound.slot
            if isinstance(e.type, Tile) and e.type.space == "frag":
                return lambda env: env[slot].whole()
            return lambda env: env[slot]
        if id == "warp":
            return lambda env: env[WARPS]
        if id == "lane":
            return lambda env: np.arange(32)[None, :]
        if id in ("leader", "warp.leader"):
            raise self._not(e, f"'{id}' inside of another condition")
        slot = self.site.room.slots.slots.get(id)
        if slot is None:
            raise self._not(e, f"'{id}'")

        def read(env: Env) -> Any:
            if (v := env[slot]) is None:
                raise MachineError(f"'{id}' has no value")
            return v

        return read

    @staticmethod
    def _choice(test: Compiled, then: Compiled, other: Compiled) -> Compiled:
        def choose(env: Env) -> Any:
            holds = test(env)
            if isinstance(holds, np.ndarray) and holds.size > 1:
                return np.where(holds, then(env), other(env))
            return then(env) if holds else other(env)

        return choose

    # --- tiles in registers ----------------------------------------------------------------------------------------

    def _part(self, e: Expr) -> Compiled:
        """A slot of a fragment, a part of one, or a field of a state."""
        if isinstance(e, Attr) and isinstance(getattr(e.base.type, "elem", None), State):
            state, field = self.of(e.base), e.name
            return lambda env: state(env)[field]
        name = root(e)
        if name is None or not on_registers(e) or name.id not in self.site.names:
            raise self._not(e, "this place as a value")
        spot = self.site.spot(e)
        return lambda env: spot.held(env)

    # --- arithmetic ------------------------------------------------------------------------------------------------

    def _computed(self, e: Expr) -> Compiled:
        if elem_kind(e) != "float" and not on_registers(e):
            match e:
                case Unary("-", a):
                    x = self.of(a)
                    return lambda env: -x(env)
                case Unary("not", a) if isinstance(a.type, Scalar):
                    x = self.of(a)
                    return lambda env: not _plain(x(env)) if not _many(x(env)) else np.logical_not(x(env))
                case Binary(op, a, b) if op in BINARY and "float" not in (elem_kind(a), elem_kind(b)):
                    return self._integers(op, e, a, b)
                case Call() if (
                    e.name in CALLS and all("float" not in elem_kind(x) for x in e.positional) and not any(map(on_registers, e.positional))
                ):
                    return self._called_integers(e)
        call = as_call(e)
        if call is None:
            raise self._not(e, "this expression")
        return self.site.room.called(self.site, call)

    def _integers(self, op: str, e: Binary, a: Expr, b: Expr) -> Compiled:
        x, y, act = self.of(a), self.of(b), BINARY[op]
        if op in ("and", "or"):
            both = op == "and"

            def decide(env: Env) -> Any:
                first = x(env)
                if _many(first):
                    return (np.logical_and if both else np.logical_or)(first, y(env))
                return y(env) if bool(first) is both else first

            return decide
        if isinstance(b, Int):
            v = b.value
            if op in ("/", "%") and v == 0:
                raise MachineError("a division by zero")
            if elem_kind(e) != "uint":
                return lambda env: act(x(env), v)
        if elem_kind(e) == "uint":
            return lambda env: act(x(env), y(env)) & UNSIGNED
        return lambda env: act(x(env), y(env))

    def _called_integers(self, e: Call) -> Compiled:
        act, args = CALLS[e.name], tuple(map(self.of, e.positional))
        over = {"min": np.minimum, "max": np.maximum}

        def call(env: Env) -> Any:
            found = [a(env) for a in args]
            if e.name in over and any(map(_many, found)):
                result, *others = found
                for other in others:
                    result = over[e.name](result, other)
                return result
            if e.name == "clamp" and any(map(_many, found)):
                return np.minimum(np.maximum(found[0], found[1]), found[2])
            return act(*found)

        return call


def _many(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.size > 1


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.ndarray) else x


def single(x: Any) -> Any:
    """The one number that a scalar is for who executes together; of several the first: the machine takes them for one."""
    return (
        x.flat[0].item() if isinstance(x, np.ndarray) else x.item() if isinstance(x, np.generic) else operator.index(x) if isinstance(x, int) else x
    )
