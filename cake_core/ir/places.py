"""A tile expression taken apart: what it names, which slot, which part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

from cake_core.frozen import frozen
from cake_core.ir.nodes import All, Attr, Expr, Index, Int, Name, Slice
from cake_core.ir.types import Tile, Value


@frozen
class Part:
    """One dimension of the last bracket group: start and size. `size` None: a single index, the dimension is gone."""

    lo: Expr
    size: Expr | int | None


@frozen
class Place:
    """`slots`: one index a slot dimension that was given. `parts`: one a dimension of the shape, empty if not indexed."""

    name: str
    slots: tuple[Expr, ...]
    parts: tuple[Part, ...]
    transposed: bool = False

    @property
    def sizes(self) -> tuple:
        return tuple(p.size for p in self.parts if p.size is not None)


def root(expr: Expr) -> Name | None:
    """The name that a tile expression starts from."""
    while isinstance(expr, Index | Attr):
        expr = expr.base
    return expr if isinstance(expr, Name) else None


def place_of(expr: Expr, declared: Tile) -> Place:
    """Take `expr` apart; `declared` is the type of its root name, whose bracket groups the indices consume in order."""
    groups: list[tuple[Expr, ...]] = []
    transposed = False
    while isinstance(expr, Index | Attr):
        if isinstance(expr, Index):
            groups.append(expr.indices)
        else:
            transposed = True
        expr = expr.base
    assert isinstance(expr, Name)
    groups.reverse()
    slot_groups = len(declared.groups) - 1
    slots = tuple(i for g in groups[:slot_groups] for i in g)
    shape = declared.shape
    given = groups[slot_groups] if len(groups) > slot_groups else (All(),) * len(shape)
    return Place(expr.id, slots, tuple(_part(i, d) for i, d in zip(given, shape, strict=True)), transposed)


def _part(index: Expr, dim) -> Part:
    match index:
        case All():
            return Part(Int(0), dim)
        case Slice(lo, size):
            return Part(lo, size.value if isinstance(size, Int) else size)
        case _:
            return Part(index, None)


def names(node) -> Iterator[Name]:
    """The names in an expression, in text order."""
    if isinstance(node, Name):
        yield node
    elif isinstance(node, tuple):
        for x in node:
            yield from names(x)
    elif isinstance(node, Expr):
        for part in _parts(node.__class__):
            yield from names(getattr(node, part))


@cache
def _parts(kind: type[Expr]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "type"))


def fragments_in(expr: Expr) -> tuple[Name, ...]:
    """The register tiles that an expression names: they say how its elements lie over the threads."""
    return tuple(n for n in names(expr) if isinstance(n.type, Tile) and n.type.space == "frag" or isinstance(n.type, Value) and n.type.spread)
