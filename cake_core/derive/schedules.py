"""Tile schedules written out: the items of a kernel as a loop over a linear index, with the item's coordinates as `let`s.

S9: one finite sequence, identical in all roles; the CTAs of a cluster differ only along the cluster's axis. Without a
raster the first dimension runs fastest; `raster = g` walks groups of g tiles (g clusters) of the first dimension,
inside a group the first dimension fastest, then the second.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_core.ir.build import add, binary, call, div, lift, mod, mul
from cake_core.ir.nodes import Binding, Block, Expr, For, Int, Let, Name, Stmt, Tiles, Word, Words
from cake_core.ir.plan import launch_statement
from cake_core.source import Span


@dataclass(frozen=True, slots=True)
class Schedule:
    """An expanded tile schedule. `prologue`: kernel-level lets and the launch line."""

    name: str
    index: str
    total: Expr
    persistent: bool
    prologue: Block
    coordinates: tuple[tuple[str, Expr], ...]  # lets of the linear index, in order
    item: tuple[Expr, ...]  # one coordinate a dimension

    def loop(self, pattern: tuple[str, ...], body: Block, at: Span) -> Block:
        """The items of one CTA: a loop (persistent) or the one item of its cluster."""
        lets: tuple[Stmt, ...] = tuple(Let((Binding(n, e),), span=at) for n, e in self.coordinates)
        lets += (Let(tuple(Binding(n, e) for n, e in zip(pattern, self.item, strict=True)), span=at),)
        if not self.persistent:
            return (Let((Binding(self.index, Name("cluster.id")),), span=at), *lets, *body)
        words = Words((Word("step", Name("cluster.count")),))
        return (For((self.index,), Name("cluster.id"), self.total, words, (*lets, *body), span=at),)


def expand(tiles: Tiles, cluster_axis: str | None, cluster: int, fresh) -> Schedule:
    """Write `tiles` out. `fresh(name)` returns a name that the text does not use yet."""
    t, at = tiles.name, tiles.span
    dims = [a for a in tiles.schedule.args if a.is_dim]
    raster = next((a.value.value for a in tiles.schedule.args if a.name == "raster"), None)
    split = cluster if cluster > 1 else 1
    index = fresh(f"{t}_i")
    counts: list[tuple[str, Expr]] = []
    for d in dims:
        # the first dimension counts clusters: a cluster takes `split` neighbours of it
        count = call("ceildiv", d.value, split) if split > 1 and d.name == cluster_axis else d.value
        counts.append((fresh(f"{t}_{d.name}"), count))
    total_name = fresh(f"{t}_total")
    total: Expr = Name(counts[0][0])
    for name, _ in counts[1:]:
        total = mul(total, name)
    lets = [Let(tuple(Binding(n, e) for n, e in counts), span=at), Let((Binding(total_name, total),), span=at)]
    persistent = tiles.schedule.name == "persistent"
    ctas = tiles.words.get("ctas")
    launch = launch_statement(total_name, persistent, ctas.value if isinstance(ctas, Int) else None)
    coordinates, item = _coordinates(t, index, [n for n, _ in counts], raster, fresh)
    if split > 1:
        item[0] = add(mul(item[0], split), Name(f"cluster.{cluster_axis}"))
    return Schedule(t, index, Name(total_name), persistent, (*lets, launch), tuple(coordinates), tuple(item))


def _coordinates(t: str, index: str, counts: list[str], raster: int | None, fresh) -> tuple[list[tuple[str, Expr]], list[Expr]]:
    i = Name(index)
    if len(counts) == 1:
        return [], [i]
    if raster is None:
        item: list[Expr] = []
        rest: Expr = i
        for n, count in enumerate(counts):
            last = n + 1 == len(counts)
            item.append(rest if last else mod(rest, count))
            rest = div(rest, count)
        return [], item
    first, second = counts
    group, start, height, inside = (fresh(f"{t}_{x}") for x in ("group", "start", "height", "inside"))
    lets = [
        (group, mul(lift(second), raster)),  # items in a full group
        (start, mul(div(i, group), raster)),  # first tile of this group
        (height, call("clamp", binary("-", first, start), 1, raster)),  # the last group may be lower; never 0, so divisions by it are cheap
        (inside, mod(i, group)),
    ]
    return lets, [add(start, mod(Name(inside), height)), div(Name(inside), height)]
