"""Ragged schedules written out: items of B rows of groups whose ends stand in a tensor of offsets.

The host can't know how many items there are without the offsets, and those lie on the device. Two ways to find the item of a
linear index:

    table   the kernel takes a table of its items, made by the host in any order: one more scalar and one more tensor
    scan    every role walks the offsets itself. A CTA's items come in rising order, so the walk only goes on from where it is:
            in all, each role reads each offset once, whatever the number of its items
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.derive.schedules import Schedule, carried_by, linear, product
from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.build import add, assign, binary, call, div, index, mod, mul
from cake_core.ir.nodes import (
    Assume,
    Binary,
    Binding,
    Block,
    Cond,
    Expr,
    For,
    If,
    Index,
    Int,
    Kernel,
    Let,
    Name,
    Param,
    Tiles,
    TypeExpr,
    Var,
    While,
    Words,
)
from cake_core.ir.schedule import RAGGED_PARTS, ROWS, Ragged, read_schedule
from cake_core.ir.schedule import Schedule as Asked

OFFSET_BYTES = 4


#: Items of a table, at most: a number of one and as many clusters behind it fit into 32 bits.
MOST_ITEMS = 2**30

#: The variable that holds one more than the group at hand.
GROUP = "next"


def expand_ragged(tiles: Tiles, kernel: Kernel, axis: str | None, cluster: int, fresh) -> Schedule:
    """Write a ragged schedule out. Raises CakeError where nothing bounds the number of items."""
    order = read_schedule(tiles).order
    return _table(tiles, axis, cluster, fresh) if order is not None and order.table else _scan(tiles, kernel, axis, cluster, fresh)


def read(tensor: str, *at) -> Expr:
    """One element of an input, the same for all threads."""
    return call("load", index(tensor, *at), by=OFFSET_BYTES)


# --- a table of items ------------------------------------------------------------------------------------------------


def _table(tiles: Tiles, axis: str | None, cluster: int, fresh) -> Schedule:
    t, at, asked = tiles.name, tiles.span, read_schedule(tiles)
    split = asked.split(axis, cluster)
    count, table, i = fresh(f"{t}_count"), fresh(f"{t}_items"), fresh(f"{t}_i")
    width = 2 + len(asked.dims)
    params = (
        Param(count, None, TypeExpr("i32", span=at), span=at),
        Param(table, "in", TypeExpr("i32", ((Name(count), Int(width)),), span=at), span=at),
    )
    # The next item's row is read while this one is worked on. The host writes no negative number, which is said so: divisions
    # of what may be negative cost more. A row is that of a cluster's first CTA.
    columns = tuple(fresh(f"{t}_{part}") for part in (RAGGED_PARTS[0], RAGGED_PARTS[1], *(d.name for d in asked.dims)))
    b, row, *others = (call("max", name, 0) for name in columns)
    r0 = add(row, mul(f"cluster.{axis}", asked.ragged.block)) if ROWS in split else row
    others = [add(e, f"cluster.{axis}") if d.name in split else e for e, d in zip(others, asked.dims, strict=True)]
    item = (b, r0, read(asked.ragged.offsets, add(b, 1)), *others)
    more = binary("<", add(i, "cluster.count"), count)
    return Schedule(
        t,
        i,
        Name(count),
        True,
        (),
        (),
        item,
        asked.parts,
        carried_by(tiles),
        params=params,
        requires=tuple(replace(e, span=at) for e in (binary("<=", 0, count), binary("<=", count, MOST_ITEMS))),
        sparing=True,
        ahead=fresh(f"{t}_ahead"),
        fetch=lambda at: tuple(Binding(name, read(table, at, n)) for n, name in enumerate(columns)),
        following=_next_item(t, asked, (), item, more, fresh),
    )


def _next_item(t: str, asked: Asked, found: tuple[Binding, ...], item: tuple[Expr, ...], there: Expr, fresh) -> tuple[Binding, ...]:
    """The coordinates of the cluster's next item, of which `found` is what they are made of. Where there is none it has no rows:
    r0 is r1."""
    b, r0, r1, *others = item
    end = fresh(f"{t}_next_end")
    values = (b, Cond(there, r0, Name(end)), Name(end), *others)
    coordinates = tuple(Binding(fresh(f"{t}_next_{part}"), e) for part, e in zip(asked.parts, values, strict=True))
    return (*found, Binding(end, r1), *coordinates)


# --- a scan in each role ---------------------------------------------------------------------------------------------


@frozen
class Found:
    """What finds the item of a number `i`: variables with their start, statements, `let`s, and what they say."""

    start: Block
    seek: Block
    lets: tuple[Binding, ...]
    item: tuple[Expr, ...]
    there: Expr  # whether there is one


def _scan(tiles: Tiles, kernel: Kernel, axis: str | None, cluster: int, fresh) -> Schedule:
    """Items group by group (`group_major`), inside a group its blocks fastest; or, without an order, all blocks fastest."""
    t, at, asked = tiles.name, tiles.span, read_schedule(tiles)
    split = asked.split(axis, cluster)
    ragged = replace(asked.ragged, block=asked.ragged.block * split.get(ROWS, 1))  # a cluster's item
    i, bound = fresh(f"{t}_i"), fresh(f"{t}_total")
    counts = tuple(fresh(f"{t}_{d.name}") for d in asked.dims)
    sizes = tuple(call("ceildiv", d.value, split[d.name]) if d.name in split else d.value for d in asked.dims)
    lets = [Let(tuple(Binding(n, e) for n, e in zip(counts, sizes, strict=True)), span=at)] if counts else []
    rows = rows_of(ragged, kernel, tiles)
    blocks = div(add(rows, mul(ragged.groups, ragged.block - 1)), ragged.block)  # at most: each group's last block may be shorter
    lets.append(Let((Binding(bound, mul(blocks, product(counts)) if counts else blocks),), span=at))

    major = asked.order is not None and asked.order.name == "group_major"
    total = fresh(f"{t}_rows") if counts and not major else None  # blocks of all groups
    counted = (Var((Binding(total, Int(0)),)), _count(ragged, total, fresh(f"{t}_g"))) if total is not None else ()
    finding = lambda name, of: _finding(name, of, asked, ragged, split, axis, counts, total, fresh)  # noqa: E731
    here, ahead = finding(t, i), fresh(f"{t}_next_i")
    there = finding(f"{t}_next", ahead)
    return Schedule(
        t,
        i,
        Name(bound),
        True,
        tuple(lets),
        tuple((b.name, b.value) for b in here.lets),
        here.item,
        asked.parts,
        carried_by(tiles),
        start=(*counted, *here.start),
        seek=here.seek,
        guard=here.there,
        sparing=True,
        following=_next_item(t, asked, there.lets, there.item, there.there, fresh),
        following_start=there.start,
        following_seek=(Let((Binding(ahead, add(i, "cluster.count")),)), *there.seek),
    )


def _finding(
    t: str, i: str, asked: Asked, ragged: Ragged, split: dict[str, int], axis: str | None, counts: tuple[str, ...], total: str | None, fresh
) -> Found:
    """`total`: the variable that holds the blocks of all groups, where those run fastest; None: a group's."""
    following, before, behind = (fresh(f"{t}_{x}") for x in (GROUP, "before", "behind"))
    start: Block = (Var(tuple(Binding(x, Int(0)) for x in (following, before, behind))),)
    each = product(counts) if counts and total is None else Int(1)  # items a block of rows, where the walk counts items
    inside = fresh(f"{t}_inside")
    group = binary("-", following, 1)
    if total is None:
        height = fresh(f"{t}_height")
        seek: Block = (_walk(ragged, Name(i), following, before, behind, each),)
        lets = (
            Binding(inside, call("max", binary("-", i, before), 0)),
            # as of no negative number: divisions by it are cheap
            Binding(height, call("max", div(binary("-", behind, before), each), 1)),
        )
        block = mod(Name(inside), height) if counts else Name(inside)
        others = linear(div(Name(inside), height), counts) if counts else ()
        there = binary("<", i, behind)
    else:
        line = fresh(f"{t}_line")
        at_row = mod(Name(i), call("max", total, 1))
        again = tuple(assign(x, Int(0)) for x in (following, before, behind))
        seek = (
            Let((Binding(line, at_row),)),
            If(binary("<", line, before), again),  # the next line of blocks begins
            _walk(ragged, Name(line), following, before, behind, each),
        )
        lets = (Binding(inside, call("max", binary("-", line, before), 0)),)
        block = Name(inside)
        others = linear(div(Name(i), call("max", total, 1)), counts)
        there = binary("<", i, mul(total, product(counts)))
    first = add(read(ragged.offsets, group), mul(block, ragged.block))
    r0 = add(first, mul(f"cluster.{axis}", asked.ragged.block)) if ROWS in split else first
    others = tuple(add(mul(e, split[d.name]), f"cluster.{axis}") if d.name in split else e for e, d in zip(others, asked.dims, strict=True))
    return Found(start, seek, lets, (group, r0, read(ragged.offsets, following), *others), there)


def _blocks(ragged: Ragged, group: Expr | str) -> Expr:
    """Blocks of a group's rows."""
    rows = binary("-", read(ragged.offsets, add(group, 1)), read(ragged.offsets, group))
    return call("ceildiv", rows, ragged.block)


def _walk(ragged: Ragged, wanted: Expr, following: str, before: str, behind: str, each: Expr) -> While:
    """On to the group that holds number `wanted`: `before` numbers lie in front of it, `behind` up to its end."""
    ahead = binary("and", binary("<", following, ragged.groups), binary(">=", wanted, behind))
    step = (
        assign(before, Name(behind)),
        assign(behind, add(behind, mul(_blocks(ragged, following), each))),
        assign(following, add(following, 1)),
    )
    return While(ahead, Words(), step)


def _count(ragged: Ragged, total: str, g: str) -> For:
    return For((g,), Int(0), ragged.groups, Words(), (assign(total, add(total, _blocks(ragged, g))),))


def rows_of(ragged: Ragged, kernel: Kernel, tiles: Tiles) -> Expr:
    """How many rows all groups have, by the kernel's contract: `assume OFFSETS[E] == T`."""
    for e in (e for c in kernel.clause(Assume) for e in c.exprs):
        for a, b in ((e.left, e.right), (e.right, e.left)) if isinstance(e, Binary) and e.op == "==" else ():
            if a == Index(Name(ragged.offsets), (ragged.groups,)):
                return b
    raise fail(
        "derive/ragged-rows",
        f"nothing says how many rows the groups of '{ragged.offsets}' have",
        tiles.span,
        resource=ragged.offsets,
        why="a launch must be large enough for all items, and the offsets lie on the device",
        fix=f"write `assume {ragged.offsets}[E] == T` with their number E and a parameter T, or give the schedule an order that the "
        "host makes",
    )
