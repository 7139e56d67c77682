"""Whether warps of an instance may go ways of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from cake_core.ir.flow import conjuncts, walk
from cake_core.ir.nodes import Block, Expr, For, If, Name, Stmt, While
from cake_core.ir.places import place_of, root
from cake_core.ir.types import Level, Scalar, Tile
from cake_core.ir.visit import own_expressions


def tells_warps_apart(body: Block) -> bool:
    """Whether a condition, a loop or the place of a tile differs among the warps of an instance: each is then executed by itself."""
    return any(_controls(s) or any(map(_differs, _indices(s))) for s in walk(body))


def _controls(s: Stmt) -> bool:
    match s:
        case If(test) | While(test):
            return any(map(_differs, conjuncts(test)))
        case For():
            return any(map(_differs, (s.lo, s.hi, s.words.get("step"))))
    return False


def _differs(e: Expr | None) -> bool:
    """`leader` and `warp.leader` say who of a warp, or which warp, and are no ways of their own."""
    t = getattr(e, "type", None)
    return isinstance(t, Scalar) and t.level > Level.INSTANCE and not (isinstance(e, Name) and e.id.endswith("leader"))


def _indices(s: Stmt) -> Iterator[Expr]:
    """Indices of the tiles in memory that a statement names; single elements may be others for each warp."""
    for e in own_expressions(s):
        for place in _tiles(e):
            where = place_of(place, root(place).type)
            yield from where.slots
            yield from (part.lo for part in where.parts)


def _tiles(e: Any) -> Iterator[Expr]:
    match e:
        case tuple():
            for x in e:
                yield from _tiles(x)
        case Expr():
            t = e.type
            if isinstance(t, Tile) and t.space != "frag" and t.shape and isinstance(getattr(root(e), "type", None), Tile):
                yield e
            for f in fields(e):
                if f.name not in ("span", "type"):
                    yield from _tiles(getattr(e, f.name))
