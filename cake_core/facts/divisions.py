"""Which thread of an instance touches which element of a tile, where the fragment that the tile goes to or comes from says so.

Two statements that divide equal tiles in one way have each thread (or each warp, where its lanes exchange what they hold) touch the same
elements in both, so that its own order is enough between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod

from cake_core import effects as declared
from cake_core.effects import Attribute, Effect
from cake_core.facts.schema import Act, Division, Region
from cake_core.ir.nodes import Declaration, Index, Int, Name, Stmt
from cake_core.ir.places import root
from cake_core.ir.plan import layout_words
from cake_core.ir.types import Tile, element_of


def divided(s: Stmt, effects: Sequence[Effect], acts: tuple[Act, ...], fragments: Mapping[str, Declaration], warps: int, registry) -> tuple[Act, ...]:
    """`acts`, those of `effects` but for attributes, with how they divide tiles of shared memory."""
    out = []
    for e, a in zip((e for e in effects if not isinstance(e, Attribute)), acts, strict=True):
        if isinstance(e, declared.Access) and e.divided is not None and a.region.memory == "shared":
            a = replace(a, division=division(s, a.region, e.divided, fragments, warps, registry))
        out.append(a)
    return tuple(out)


def division(s: Stmt, touched: Region, among: str, fragments: Mapping[str, Declaration], warps: int, registry) -> Division | None:
    """How `s` divides the tile `touched` over `warps` warps, `among` threads or warps. `fragments`: declarations by name. None: not known,
    as where several fragments, or parts of one, are concerned, or several threads hold an element."""
    sizes = tuple(x.size.value if isinstance(x.size, Int) else None for x in touched.box if not x.single)
    maps = set()
    for e in _used(s):
        if (d := fragments.get(root(e).id)) is None:
            continue
        if isinstance(e, Index) or len(d.declared.groups) != 1:
            return None
        shape = tuple(n.value if isinstance(n, Int) else None for n in d.declared.groups[-1])
        if shape == sizes:
            maps.add(_map(d, shape, warps, registry))
    return Division(among, found) if len(maps) == 1 and (found := maps.pop()) is not None else None


def _map(d: Declaration, shape: tuple[int, ...], warps: int, registry) -> str | None:
    named = d.words.get("layout")
    layout = registry.layouts.get(named.id) if isinstance(named, Name) else None
    if layout is None:
        return None
    words = layout_words(d)
    held = layout.elements(shape, warps, words, element_of(d.declared))
    if held is None or held * 32 * warps != prod(shape):
        return None
    return f"{layout.name} {sorted(words.items())} {list(shape)} over {warps} warps"


def _used(node):
    """Names of tiles in registers, and places inside of them, in a statement."""
    match node:
        case Name() | Index() if isinstance(node, Name) or isinstance(root(node).type, Tile) and root(node).type.space == "frag":
            yield node
        case tuple():
            for x in node:
                yield from _used(x)
        case _ if is_dataclass(node):
            for f in fields(node):
                if f.name not in ("span", "type"):
                    yield from _used(getattr(node, f.name))
