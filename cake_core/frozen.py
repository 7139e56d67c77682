"""`@frozen`: a frozen dataclass whose class costs a tenth of what `@dataclass(frozen=True, slots=True)` costs; `@thawed`: one that can change.

`dataclass` writes six methods of each class as text and compiles them when the module is imported. A command that runs for
some tenths of a second imports some hundred such classes and makes a few objects of most. Here the standard `dataclass` still
gathers the fields, defaults and slots, so `fields`, `replace`, `asdict` and `match` work as ever; comparing, hashing and
printing are functions that all classes share, and `__init__` is compiled for a class when objects of it are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import dataclass_transform

#: Objects of a class that are made without a compiled `__init__`: it costs as much as some twenty of them.
FEW = 16

#: Names in the compiled `__init__` that no field can have.
_SET, _FACTORY, _DEFAULT, _MISSING = "_set_{}", "_factory_{}", "_default_{}", "_missing_"


@dataclass_transform(frozen_default=True)
def frozen(cls: type | None = None, /, *, slots: bool = True, kw_only: bool = False, eq: bool = True, order: bool = False):
    """As `dataclass(frozen=True, slots=slots, kw_only=kw_only, eq=eq, order=order)`. Methods that the class defines stay its own."""

    def make(cls: type) -> type:
        with _taken_for_thawed(cls):
            made, key = _gathered(cls, slots, kw_only)
        made.__dataclass_params__.frozen = True
        methods = _SHARED | ({"__eq__": _equal(key), "__hash__": _hash(key)} if eq else {})
        if order:
            methods |= {name: _ordered(name, key) for name in ("__lt__", "__le__", "__gt__", "__ge__")}
        return _with(made, cls, methods | (_STATE if slots else {}))

    return make if cls is None else make(cls)


@dataclass_transform()
def thawed(cls: type | None = None, /, *, eq: bool = True):
    """As `dataclass(slots=True, eq=eq)`: objects that change. Methods that the class defines stay its own."""

    def make(cls: type) -> type:
        made, key = _gathered(cls, True, False)
        return _with(made, cls, {"__repr__": _repr} | ({"__eq__": _equal(key), "__hash__": None} if eq else {}))

    return make if cls is None else make(cls)


def _gathered(cls: type, slots: bool, kw_only: bool) -> tuple[type, Callable[[object], tuple]]:
    """The class with its fields, and what compares its objects."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # `dataclass` would look up the signature for it
    made = dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    return made, _key([f.name for f in fields(made) if f.compare])


def _with(made: type, cls: type, methods: dict[str, Callable | None]) -> type:
    """With methods, those of `cls` itself excepted."""
    for name, method in (methods | {"__init__": _first_init(made)}).items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


@contextmanager
def _taken_for_thawed(cls: type) -> Iterator[None]:
    """`dataclass` lets only a frozen class inherit from a frozen one, and compiles `__setattr__` for it. Both are ours here."""
    bases = [b.__dataclass_params__ for b in cls.__mro__[1:] if "__dataclass_params__" in b.__dict__ and b.__dataclass_params__.frozen]
    for params in bases:
        params.frozen = False
    try:
        yield
    finally:
        for params in bases:
            params.frozen = True


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


_SHARED = {"__repr__": _repr, "__setattr__": _set, "__delattr__": _delete}
_STATE = {"__getstate__": _get_state, "__setstate__": _set_state}


# --- making objects


def _first_init(cls: type) -> Callable:
    """`__init__` of the first objects: by a loop over the fields. What that can't do is left to the compiled one, errors too."""
    made, known = 0, ()

    def __init__(self, *args, **given):
        nonlocal made, known
        made += 1
        known = known or fields(cls)
        if made > FEW or not _filled(self, cls, known, args, given):
            cls.__init__ = compiled = _init(cls)
            compiled(self, *args, **given)

    return __init__


def _filled(self, cls: type, all_fields: tuple[Field, ...], args: tuple, given: dict) -> bool:
    """Whether the arguments are right, and the object is made of them."""
    values = dict(zip((f.name for f in all_fields if f.init and not f.kw_only), args, strict=False))
    if len(values) < len(args) or values.keys() & given.keys():
        return False
    values |= given
    taken = 0
    for f in all_fields:
        if f.init and f.name in values:
            taken += 1
        elif f.default is not MISSING:
            values[f.name] = f.default
        elif f.default_factory is not MISSING:
            values[f.name] = f.default_factory()
        elif f.init:
            return False
    if taken != len(args) + len(given):
        return False
    for name, value in values.items():
        object.__setattr__(self, name, value)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return True


def _init(cls: type) -> Callable:
    """`__init__(self, field, .., *, field, ..)`, which sets the slots of a frozen class past its `__setattr__`."""
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
            if cls.__dataclass_params__.frozen:
                names[_SET.format(f.name)] = _setter(cls, f.name)
                body.append(f"{_SET.format(f.name)}(self, {value})")
            else:
                body.append(f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(("self", *positional, *(["*"] if named else []), *named))
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)  # noqa: S102 - as dataclasses does
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _setter(cls: type, name: str) -> Callable[[object, object], None]:
    """Of a slot its own, else that of any object."""
    slot = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    if type(slot).__name__ == "member_descriptor":
        return slot.__set__
    return lambda self, value: object.__setattr__(self, name, value)
