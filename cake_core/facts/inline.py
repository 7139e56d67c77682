"""Expressions with names written out, or with some of their parts exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

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
            return tuple(inline(x, env) for x in e)
    if not is_dataclass(e):
        return e
    changed = {}
    for f in fields(e):
        if f.name not in ("span", "type", "function") and (new := inline(old := getattr(e, f.name), env)) is not old:
            changed[f.name] = new
    return replace(e, **changed) if changed else e


def calls_in(e) -> Iterator[Call]:
    """The calls in an expression, or in anything that is made of some."""
    if isinstance(e, Call):
        yield e
    if isinstance(e, tuple):
        for x in e:
            yield from calls_in(x)
    elif is_dataclass(e):
        for f in fields(e):
            if f.name not in ("span", "type", "function"):
                yield from calls_in(getattr(e, f.name))


def swapped(e, by: dict[int, Expr]):
    """An expression (or a part of one) with others in place of some of its parts, which are told by identity."""
    if id(e) in by:
        return by[id(e)]
    if isinstance(e, tuple):
        return tuple(swapped(x, by) for x in e)
    if not is_dataclass(e) or not by:
        return e
    changed = {}
    for f in fields(e):
        if f.name not in ("span", "type", "function") and (new := swapped(old := getattr(e, f.name), by)) is not old:
            changed[f.name] = new
    return replace(e, **changed) if changed else e
