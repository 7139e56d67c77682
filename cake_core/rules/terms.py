"""Expressions of the kernel inside rules: names of a role are told apart by the fact whose statement they have their value at."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from cake_core.facts import Facts, Row
from cake_core.facts.schema import Branch, Loop, While
from cake_core.ir.nodes import Expr, Name
from cake_core.ir.places import names
from cake_core.ir.printer import expr_text

#: Of each name that was told apart: the fact, and the name in its role.
Origins = dict[str, tuple[Row, str]]


def owned(e, row: Row, facts: Facts, origins: Origins):
    """The expression as it is where `row`'s statement runs. Parameters are the same everywhere; they keep their names where the
    statement runs whatever they are."""
    if isinstance(e, Name):
        if (e.id in facts.scalars or e.id == "cluster.count") and not around(row):
            return e
        name = f"{e.id}@{row.relation}/{row.id}"
        origins[name] = (row, e.id)
        return replace(e, id=name)
    return _each(e, lambda x: owned(x, row, facts, origins))


def plain(name: str) -> str:
    """The name as the text has it."""
    return name.partition("@")[0]


def as_written(e: Expr) -> str:
    """The expression as a person reads it."""
    return expr_text(_plainly(e))


def _plainly(e):
    return replace(e, id=plain(e.id)) if isinstance(e, Name) else _each(e, _plainly)


def _each(e, change):
    if isinstance(e, tuple):
        return tuple(map(change, e))
    if not is_dataclass(e):
        return e
    return replace(e, **{f.name: change(getattr(e, f.name)) for f in fields(e) if f.name not in ("span", "type", "function")})


def names_in(e) -> frozenset[str]:
    return frozenset(n.id for n in names(e))


def around(row: Row) -> list[tuple[Loop | While | Branch, bool]]:
    """The loops and branches around a fact's event, outermost first; of a branch whether it is the first arm."""
    site = row.site
    if site is None or site.role is None:
        return []
    return _search(site.role.body, site.event, []) or []


def _search(block, event, above):
    for node in block:
        if node is event:
            return above
        match node:
            case Loop() | While():
                arms = ((node.body, True),)
            case Branch():
                arms = ((node.then, True), (node.other, False))
            case _:
                continue
        for inner, first in arms:
            if (found := _search(inner, event, [*above, (node, first)])) is not None:
                return found
    return None


def words(value) -> str:
    """A value in a sentence."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Row():
            return value.id
        case Expr():
            return as_written(value)
        case tuple():
            return ", ".join(map(words, value)) or "none"
    return str(value)
