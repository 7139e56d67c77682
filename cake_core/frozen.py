"""`@frozen`: a frozen dataclass with slots, whose class costs a tenth of what `@dataclass(frozen=True, slots=True)` costs.

`dataclass` writes six methods of each class as text and compiles them when the module is imported. A command that runs for
some tenths of a second imports some hundred such classes and makes objects of half of them. Here the standard `dataclass`
still gathers the fields, defaults and slots, so `fields`, `replace`, `asdict` and `match` work as ever; comparing, hashing
and printing are functions that all classes share, and `__init__` is compiled for a class when its first object is made.

It stands for the classes of the core. What a plugin subclasses (`Primitive` and its kinds) is a plain frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import dataclass_transform

#: Names of the generated `__init__` that no field can have.
_SET, _FACTORY, _DEFAULT, _MISSING = "_set_{}", "_factory_{}", "_default_{}", "_missing_"


@dataclass_transform(frozen_default=True)
def frozen(cls: type | None = None, /, *, kw_only: bool = False, order: bool = False):
    """As `dataclass(frozen=True, slots=True, kw_only=kw_only, order=order)`. Methods that the class defines stay its own."""
    return _made(cls, kw_only, order) if cls is not None else lambda cls: _made(cls, kw_only, order)


def _made(cls: type, kw_only: bool, order: bool) -> type:
    own = cls.__dict__.keys()
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # `dataclass` would look up the signature for it
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    key = _key([f.name for f in fields(made) if f.compare])
    methods = _SHARED | {"__eq__": _equal(key), "__hash__": _hash(key), "__init__": _first_init(made)}
    if order:
        methods |= {name: _ordered(name, key) for name in ("__lt__", "__le__", "__gt__", "__ge__")}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _key(names: list[str]) -> Callable[[object], tuple]:
    """The values of these attributes as a tuple."""
    match names:
        case []:
            return lambda _: ()
        case [name]:
            value = attrgetter(name)
            return lambda x: (value(x),)
    return attrgetter(*names)


# --- what all classes share


def _equal(key: Callable) -> Callable:
    def __eq__(self, other):
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(key: Callable) -> Callable:
    def __hash__(self):
        return hash(key(self))

    return __hash__


def _ordered(compare: str, key: Callable) -> Callable:
    def method(self, other):
        return getattr(key(self), compare)(key(other)) if other.__class__ is self.__class__ else NotImplemented

    return method


def _repr(self):
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _set(self, name, value):
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self, name):
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self):
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self, state):
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_SHARED = {
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}


# --- the one method that is compiled, for a class of which an object is made


def _first_init(cls: type) -> Callable:
    def __init__(self, *args, **more):
        cls.__init__ = _init(cls)
        cls.__init__(self, *args, **more)

    return __init__


def _init(cls: type) -> Callable:
    """`__init__(self, field, .., *, field, ..)`, which sets the slots past `__setattr__`."""
    names, positional, named, body = {_MISSING: MISSING}, [], [], []
    for f in fields(cls):
        factory, default = f.default_factory is not MISSING, f.default is not MISSING
        value = f.name
        if factory:
            names[_FACTORY.format(f.name)] = f.default_factory
            value = f"{_FACTORY.format(f.name)}() if {f.name} is {_MISSING} else {f.name}" if f.init else f"{_FACTORY.format(f.name)}()"
        elif default:
            names[_DEFAULT.format(f.name)] = f.default
            value = f.name if f.init else _DEFAULT.format(f.name)
        if f.init:
            given = f"{f.name}={_MISSING}" if factory else f"{f.name}={_DEFAULT.format(f.name)}" if default else f.name
            (named if f.kw_only else positional).append(given)
        if f.init or factory or default:
            names[_SET.format(f.name)] = getattr(cls, f.name).__set__
            body.append(f"{_SET.format(f.name)}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(("self", *positional, *(["*"] if named else []), *named))
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)  # noqa: S102 - as dataclasses does
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made
