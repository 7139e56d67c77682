"""What a hook may return: each object of a plugin is checked before anything else sees it.

A wrong type is found here, with the plugin's name, and not later inside a pass. Raises `BadOffer` with a plain reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from cake_core.architecture import Architecture, Limit
from cake_core.effects import Attribute
from cake_core.ir.nodes import Op
from cake_core.plugins.registry import KINDS
from cake_core.plugins.types import Command, Origin
from cake_core.primitive import (
    Function,
    Operation,
    Parameter,
    Primitive,
    Space,
    WordSpec,
)
from cake_core.ptx.acts import Reread
from cake_core.ptx.emulated import Emulated

#: Hook to the class of what it returns. `cake_after_pass` observes and returns nothing.
RETURNS: dict[str, type] = {
    "cake_architectures": Architecture,
    "cake_primitives": Primitive,
    "cake_rereads": Reread,
    "cake_emulates": Emulated,
    "cake_commands": Command,
}

#: Limits that the core reads of every target (see `Architecture`).
REQUIRED_LIMITS = (
    "shared_bytes_per_block",
    "registers_per_sm",
    "registers_per_thread",
    "threads_per_block",
    "named_barriers",
    "cluster_ctas",
)

MOST = 10_000  # objects of one hook: a generator without an end must not hang the host


def hook_of(cls: type) -> str:
    """The hook that returns objects of a kind's class."""
    return next(hook for hook, expected in RETURNS.items() if issubclass(cls, expected))


def effects_alone(offered: Mapping[tuple[str, str], object]) -> dict[str, tuple[str, ...]]:
    """Label to the kinds of effects that an operation has which stands alone, without operands: what an index says."""
    return {
        f"{kind}:{name}": _alone(item) if isinstance(item, Operation) else ()
        for (kind, name), item in sorted(offered.items(), key=lambda x: x[0])
    }


def _alone(operation: Operation) -> tuple[str, ...]:
    if operation.operands or operation.arrows:
        return ()
    try:
        return tuple(sorted({type(e).__name__ for e in operation.effects(Op(operation.name)) if not isinstance(e, Attribute)}))
    except Exception:  # noqa: BLE001 - a primitive that fails is told of at its statement
        return ()


class BadOffer(Exception):
    """What is wrong with an object that a plugin returned, in words."""


def offers(hook: str, result: object, origin: Origin) -> Iterator[tuple[str, str, object]]:
    """(kind, name, object with its `source` set) of each object in what `hook` returned."""
    expected = RETURNS[hook]
    if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        raise BadOffer(f"returned {type(result).__name__}, expected an iterable of {expected.__name__}")
    for count, item in enumerate(islice(result, MOST + 1)):
        if count == MOST:
            raise BadOffer(f"returned more than {MOST} objects")
        if not isinstance(item, expected):
            raise BadOffer(f"returned {_type_name(item)} among its objects, expected {expected.__name__}")
        kind = kind_of(item)
        _check_name(kind, item.name)
        _CHECKS.get(kind, _check_primitive)(item)
        yield kind, item.name, replace(item, source=origin)


def kind_of(item: object) -> str:
    for kind, (cls, _, _) in KINDS.items():
        if isinstance(item, cls):
            return kind
    kinds = ", ".join(cls.__name__ for cls, _, _ in KINDS.values() if issubclass(cls, Primitive))
    raise BadOffer(f"returned a {_type_name(item)}, which is none of {kinds}")


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"\S+", name):
        raise BadOffer(f"{KINDS[kind][2]} has the name {name!r}, expected a word")


def _check_architecture(arch: Architecture) -> None:
    what = f"architecture '{arch.name}'"
    _check_type(arch.target, str, f"{what}: target")
    if not isinstance(arch.ptx_version, str) or not re.fullmatch(r"\d+\.\d+", arch.ptx_version):
        raise BadOffer(f"{what}: ptx_version is {arch.ptx_version!r}, expected a text such as '8.6'")
    capability = arch.compute_capability
    if not (isinstance(capability, tuple) and len(capability) == 2 and all(isinstance(n, int) for n in capability)):
        raise BadOffer(f"{what}: compute_capability is {capability!r}, expected (major, minor)")
    _check_capabilities(arch.capabilities, what)
    _check_type(arch.limits, Mapping, f"{what}: limits")
    for name, limit in arch.limits.items():
        if not (isinstance(limit, Limit) and isinstance(limit.value, int) and isinstance(limit.source, str) and limit.source):
            raise BadOffer(f"{what}: limit '{name}' is {limit!r}, expected a Limit with an integer and its source")
    if missing := [n for n in REQUIRED_LIMITS if n not in arch.limits]:
        raise BadOffer(f"{what}: limits lack " + ", ".join(f"'{n}'" for n in missing))
    if not callable(arch.backend):
        raise BadOffer(f"{what}: backend is {_type_name(arch.backend)}, expected a callable that returns a Backend")


def _check_command(command: Command) -> None:
    _check_type(command.summary, str, f"command '{command.name}': summary")
    if not callable(command.load):
        raise BadOffer(f"command '{command.name}': load is {_type_name(command.load)}, expected a callable that returns a click command")


def _check_reread(reread: Reread) -> None:
    what = f"reread '{reread.name}'"
    if reread.read is not None and not callable(reread.read):
        raise BadOffer(f"{what}: read is {_type_name(reread.read)}, expected a function or None")
    for name in ("acts", "writes", "accesses"):
        _check_type(getattr(reread, name), bool, f"{what}: {name}")


def _check_emulated(emulated: Emulated) -> None:
    what = f"emulated '{emulated.name}'"
    if not isinstance(emulated.make, str) or not re.fullmatch(r"[\w.]+:\w+", emulated.make):
        raise BadOffer(f"{what}: make is {emulated.make!r}, expected 'package.module:function'")
    _check_type(emulated.waits, bool, f"{what}: waits")


def _check_primitive(primitive: Primitive) -> None:
    what = f"{type(primitive).__name__} '{primitive.name}'"
    _check_capabilities(primitive.capabilities, what)
    match primitive:
        case Operation():
            _check_items(primitive.operands, Parameter, f"{what}: operands")
            _check_items(primitive.words, WordSpec, f"{what}: words")
            _check_items(primitive.arrows, str, f"{what}: arrows")
            _check_items(primitive.flags, str, f"{what}: flags")
            _check_items(primitive.immediate, int, f"{what}: immediate")
            if primitive.value is not None:
                _check_type(primitive.value, Parameter, f"{what}: value")
        case Function():
            _check_items(primitive.options, WordSpec, f"{what}: options")
        case Space():
            _check_items(primitive.words, WordSpec, f"{what}: words")


def _check_capabilities(capabilities: object, what: str) -> None:
    """Names of two letters at least: `frozenset("abc")` is a set of letters, and never meant."""
    if not isinstance(capabilities, frozenset | set):
        raise BadOffer(f"{what}: capabilities is {_type_name(capabilities)}, expected a frozenset of names")
    for name in sorted(capabilities, key=repr):
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]+", name):
            raise BadOffer(f"{what}: {name!r} is no capability's name, expected lower-case words joined by '_'")


def _check_items(items: object, cls: type, what: str) -> None:
    _check_type(items, tuple, what)
    for item in items:
        _check_type(item, cls, f"an item of {what}")


def _check_type(value: object, cls: type, what: str) -> None:
    if not isinstance(value, cls):
        raise BadOffer(f"{what} is {_type_name(value)}, expected {cls.__name__}")


def _type_name(value: object) -> str:
    """A class that was not called is told from an object of it."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


_CHECKS = {"arch": _check_architecture, "command": _check_command, "reread": _check_reread, "emulated": _check_emulated}
