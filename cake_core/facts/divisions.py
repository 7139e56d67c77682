"""Which thread of an instance touches which element of a tile, where the fragment that the tile goes to or comes from says so.

Two statements that divide equal tiles in one way have each thread (or each warp, where its lanes exchange what they hold) touch the same
elements in both, so that its own order is enough between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod

from cake_core import effects as declared
from cake_core.effects import Effect
from cake_core.facts.banks import of_matrices, of_threads
from cake_core.facts.schema import Act, Division, Region
from cake_core.facts.sectors import moved
from cake_core.ir.build import lift
from cake_core.ir.nodes import Declaration, Index, Int, Name, Stmt
from cake_core.ir.places import root
from cake_core.ir.plan import BufferPlan, layout_words
from cake_core.ir.types import Tile, element_of


def divided(
    s: Stmt,
    effects: Sequence[Effect],
    acts: tuple[Act, ...],
    fragments: Mapping[str, Declaration],
    warps: int,
    registry,
    buffers: Mapping[str, BufferPlan],
    tensors: Mapping[str, Tile],
) -> tuple[Act, ...]:
    """`acts`, those of `effects`, with how they divide tiles of shared memory and what turns that takes at its banks, and with what they move of global
    memory. `tensors`: types of the parameters."""
    out = []
    for e, a in zip(effects, acts, strict=True):
        if isinstance(e, declared.Access) and e.divided is not None and a.region.memory in ("shared", "global"):
            a = replace(a, **_shared_out(s, a.region, e, fragments, warps, registry, {**buffers, **tensors}[a.region.name]))
        out.append(a)
    return tuple(out)


def _shared_out(
    s: Stmt, touched: Region, e: declared.Access, fragments: Mapping[str, Declaration], warps: int, registry, buffer: BufferPlan | Tile
) -> dict:
    """`division` and `turns` of an access of `touched`, a part of `buffer`, by `warps` warps; of a tensor, what is `moved`. `fragments`: declarations by
    name. Nothing where it is not known, as where several fragments, or parts of one, are concerned; the rows of matrices lie alike in any."""
    found = {"turns": of_matrices(touched, buffer)} if e.divided == "warp" else {}
    sizes = tuple(x.size.value if isinstance(x.size, Int) else None for x in touched.box if not x.single)
    held = {}
    for used in _used(s):
        if (d := fragments.get(root(used).id)) is None:
            continue
        if isinstance(used, Index) or len(d.declared.groups) != 1:
            return found
        shape = tuple(n.value if isinstance(n, Int) else None for n in d.declared.groups[-1])
        named = d.words.get("layout")
        layout = registry.layouts.get(named.id) if isinstance(named, Name) else None
        if shape == sizes:
            words = layout_words(d)
            held[str((named, sorted(words.items())))] = layout, words, shape, element_of(d.declared)
    if len(held) != 1 or (one := next(iter(held.values())))[0] is None:
        return found
    layout, words, shape, elem = one
    count = layout.elements(shape, warps, words, elem)
    if count is None:
        return found
    if count * 32 * warps == prod(shape):  # else several threads hold an element
        found["division"] = Division(e.divided, f"{layout.name} {sorted(words.items())} {list(shape)} over {warps} warps")
    if e.width is not None and isinstance(buffer, Tile):
        found["moved"] = moved(touched, e.width, layout, words, shape, warps, tuple(map(lift, buffer.shape)), buffer.elem.bytes)
    elif e.width is not None and e.divided == "thread":
        found["turns"] = of_threads(touched, e.width, layout, words, shape, warps, buffer)
    return found


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
