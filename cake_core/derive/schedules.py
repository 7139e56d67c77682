"""Tile schedules written out: the items of a kernel as a loop over a linear index, with the item's coordinates as `let`s.

S9: one finite sequence, identical in all roles; the CTAs of a cluster differ only along the cluster's axis. Without a
raster the first dimension runs fastest; `raster = g` walks groups of g tiles (g clusters) of the first dimension,
inside a group the first dimension fastest, then the second. `ragged.py` beside this file has the ragged schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cake_core.derive.expand import substitute
from cake_core.frozen import frozen
from cake_core.ir.build import add, binary, call, div, lift, mod, mul
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Assign, Binding, Block, Expr, For, If, Let, Name, Param, Stmt, Tiles, Var, Word, Words
from cake_core.ir.places import names
from cake_core.ir.schedule import read_schedule
from cake_core.ir.visit import own_expressions
from cake_core.source import Span


@frozen
class Schedule:
    """An expanded tile schedule. `prologue`: kernel-level lets."""

    name: str
    index: str
    total: Expr
    persistent: bool
    prologue: Block
    coordinates: tuple[tuple[str, Expr], ...]  # lets of the linear index, in order
    item: tuple[Expr, ...]  # one coordinate a part of the item
    parts: tuple[str, ...]  # what the item's own values call its coordinates
    carried: tuple[Binding, ...] = ()  # those values
    params: tuple[Param, ...] = ()  # parameters that the schedule adds to the kernel
    requires: tuple[Expr, ...] = ()  # what the host checks of them
    start: Block = ()  # of every role, in front of its loop over items
    seek: Block = ()  # what finds the item of a linear index
    guard: Expr | None = None  # whether there is one
    sparing: bool = False  # coordinates that a role does not use are left out
    fetch: Callable[[Expr | str], tuple[Binding, ...]] = lambda index: ()  # variables that coordinates are made of, read one item ahead
    ahead: str = ""  # a name for the index of that item
    following: tuple[Binding, ...] = ()  # the coordinates of the cluster's next item, and what they are computed from
    following_start: Block = ()  # as `start`, where a role asks for them
    following_seek: Block = ()  # as `seek`, in the item at hand

    def carried_as(self, pattern: tuple[str, ...]) -> tuple[Binding, ...]:
        """The item's values, its coordinates being called as in a loop's pattern."""
        env = {own: Name(n) for own, n in zip(self.parts, pattern, strict=True) if own != n}
        return tuple(replace(b, value=substitute(b.value, env)) for b in self.carried) if env else self.carried

    def loop(self, pattern: tuple[str, ...], carried: tuple[Binding, ...], body: Block, at: Span) -> Block:
        """The items of one CTA: a loop (persistent) or the one item of its cluster. `carried`: the item's values, derived."""
        used = {n.id for s in walk(body) for e in own_expressions(s) for n in names(e)}
        carried = needed(carried, used)
        parts = tuple(Binding(n, e) for n, e in zip(pattern, self.item, strict=True))
        if self.sparing:
            parts = needed(parts, used | {n.id for b in carried for n in names(b.value)})
        lets: tuple[Stmt, ...] = tuple(Let((Binding(n, e),), span=at) for n, e in self.coordinates)
        lets += tuple(Let((p,), span=at) for p in parts) if self.sparing else (Let(parts, span=at),)
        lets += tuple(Let((b,), span=b.span) for b in carried)
        following = needed(self.following, used)
        read = {n.id for p in (*parts, *following) for n in names(p.value)}
        if ahead := needed(self.fetch(self.ahead), read):
            last = binary("-", self.total, 1)  # behind it there is none: it is read again, and not used
            lets += (Let((Binding(self.ahead, call("min", add(self.index, "cluster.count"), last)),), span=at),)
            lets += tuple(Assign(Name(b.name), b.value, span=at) for b in ahead)
        if following:
            lets += (*(replace(s, span=at) for s in self.following_seek), *(Let((b,), span=at) for b in following))
        item = (*lets, *body)
        if not self.persistent:
            return (Let((Binding(self.index, Name("cluster.id")),), span=at), *item)
        if self.guard is not None:
            item = (If(self.guard, item, span=at),)
        words = Words((Word("step", Name("cluster.count")),))
        first = needed(self.fetch(Name("cluster.id")), read)
        start = (*(Var((b,), span=at) for b in first), *(replace(s, span=at) for s in (*self.start, *(self.following_start if following else ()))))
        seek = tuple(replace(s, span=at) for s in self.seek)
        return (*start, For((self.index,), Name("cluster.id"), self.total, words, (*seek, *item), span=at))

    def next(self, name: str) -> str | None:
        """What `t.next.D`, a coordinate of the next item, is called in the derived form; None for another name."""
        coordinates = (b.name for b in self.following[-len(self.parts) :])
        known = {f"{self.name}.next.{part}": n for part, n in zip(self.parts, coordinates, strict=bool(self.following))}
        return known.get(name)


def needed(bindings: tuple[Binding, ...], used: set[str]) -> tuple[Binding, ...]:
    """Those of `bindings` that something in `used` asks for, directly or by way of later ones."""
    used, kept = set(used), []
    for b in reversed(bindings):
        if b.name in used:
            kept.append(b)
            used |= {n.id for n in names(b.value)}
    return tuple(reversed(kept))


def expand(tiles: Tiles, cluster_axis: str | None, cluster: int, fresh) -> Schedule:
    """Write a grid out. `fresh(name)` returns a name that the text does not use yet."""
    t, at, asked = tiles.name, tiles.span, read_schedule(tiles)
    split = max(asked.split(cluster_axis, cluster).values(), default=1)
    index = fresh(f"{t}_i")
    counts: list[tuple[str, Expr]] = []
    for d in asked.dims:
        # the first dimension counts clusters: a cluster takes `split` neighbours of it
        count = call("ceildiv", d.value, split) if split > 1 and d.name == cluster_axis else d.value
        counts.append((fresh(f"{t}_{d.name}"), count))
    total_name = fresh(f"{t}_total")
    total = product(tuple(n for n, _ in counts))
    lets = [Let(tuple(Binding(n, e) for n, e in counts), span=at), Let((Binding(total_name, total),), span=at)]
    axis = cluster_axis if split > 1 else None
    locate = lambda of, i: _located(of, i, [n for n, _ in counts], asked.raster, split, axis, fresh)  # noqa: E731
    coordinates, item = locate(t, index)
    return Schedule(
        name=t,
        index=index,
        total=Name(total_name),
        persistent=asked.persistent,
        prologue=tuple(lets),
        coordinates=coordinates,
        item=item,
        parts=asked.parts,
        carried=carried_by(tiles),
        following=_following(index, asked.parts, f"{t}_next", locate, fresh) if asked.persistent else (),
    )


def _located(t: str, index: str, counts: list[str], raster: int | None, split: int, axis: str | None, fresh):
    """The item of a linear index: `let`s on the way, and one coordinate a dimension."""
    coordinates, item = _coordinates(t, index, counts, raster, fresh)
    if axis is not None:
        item[0] = add(mul(item[0], split), Name(f"cluster.{axis}"))
    return tuple(coordinates), tuple(item)


def _following(index: str, parts: tuple[str, ...], t: str, locate, fresh) -> tuple[Binding, ...]:
    """The coordinates of the item that is one round of all clusters further, and what they are computed from. Behind the last
    item they lie past the end: along the last dimension, or with a raster along one of the two."""
    ahead = fresh(f"{t}_i")
    coordinates, item = locate(t, ahead)
    names = [(fresh(f"{t}_{part}"), e) for part, e in zip(parts, item, strict=True)]
    return tuple(Binding(n, e) for n, e in ((ahead, add(index, "cluster.count")), *coordinates, *names))


def carried_by(tiles: Tiles) -> tuple[Binding, ...]:
    return tuple(b for s in tiles.body or () for b in s.bindings)


def product(factors: tuple[str, ...]) -> Expr:
    total: Expr = Name(factors[0])
    for name in factors[1:]:
        total = mul(total, name)
    return total


def linear(i: Expr, counts: tuple[str, ...]) -> tuple[Expr, ...]:
    """Coordinates of number `i`, the first dimension fastest."""
    item: list[Expr] = []
    rest = i
    for n, count in enumerate(counts):
        last = n + 1 == len(counts)
        item.append(rest if last else mod(rest, count))
        rest = div(rest, count)
    return tuple(item)


def _coordinates(t: str, index: str, counts: list[str], raster: int | None, fresh) -> tuple[list[tuple[str, Expr]], list[Expr]]:
    i = Name(index)
    if raster is None:
        return [], list(linear(i, tuple(counts)))
    first, second = counts
    group, start, height, inside = (fresh(f"{t}_{x}") for x in ("group", "start", "height", "inside"))
    lets = [
        (group, mul(lift(second), raster)),  # items in a full group
        (start, mul(div(i, group), raster)),  # first tile of this group
        (height, call("clamp", binary("-", first, start), 1, raster)),  # the last group may be lower; never 0, so divisions by it are cheap
        (inside, mod(i, group)),
    ]
    return lets, [add(start, mod(Name(inside), height)), div(Name(inside), height)]
