"""Expressions with names written out, or with some of their parts exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache

from cake_core.ir.build import binary
from cake_core.ir.nodes import Binary, Call, Expr, Name

Env = dict[str, Expr]


def inline(e, env: Env):
    """An expression (or a part of one) with names written out and constants folded."""
    match e:
        case Name(id):
            return env.get(id, e)
        case Binary(op, a, b):
            x, y = inline(a, env), inline(b, env)
            return e if x is a and y is b else replace(binary(op, x, y), span=e.span, type=e.type)
        case tuple():
            return _same_or([inline(x, env) for x in e], e)
    changed = {}
    for name in _parts(e.__class__):
        if (new := inline(old := getattr(e, name), env)) is not old:
            changed[name] = new
    return replace(e, **changed) if changed else e


def _same_or(new: list, old: tuple) -> tuple:
    """The old one, if nothing in it is new."""
    return old if all(a is b for a, b in zip(new, old, strict=True)) else tuple(new)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields that hold expressions, or what is made of some; none of what is no dataclass."""
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "type", "function")) if is_dataclass(kind) else ()


def calls_in(e) -> Iterator[Call]:
    """The calls in an expression, or in anything that is made of some."""
    if isinstance(e, Call):
        yield e
    if isinstance(e, tuple):
        for x in e:
            yield from calls_in(x)
    else:
        for name in _parts(e.__class__):
            yield from calls_in(getattr(e, name))


def swapped(e, by: dict[int, Expr]):
    """An expression (or a part of one) with others in place of some of its parts, which are told by identity."""
    if id(e) in by:
        return by[id(e)]
    if isinstance(e, tuple):
        return _same_or([swapped(x, by) for x in e], e)
    changed = {}
    for name in _parts(e.__class__) if by else ():
        if (new := swapped(old := getattr(e, name), by)) is not old:
            changed[name] = new
    return replace(e, **changed) if changed else e
