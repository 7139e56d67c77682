"""Ragged schedules written out: items of B rows of groups whose ends stand in a tensor of offsets.

The host can't know how many items there are without the offsets, and those lie on the device. Two ways to find the item of a
linear index:

    table   the kernel takes a table of its items, made by the host in any order: one more scalar and one more tensor
    scan    every role walks the offsets itself. A CTA's items come in rising order, so the walk only goes on from where it is:
            in all, each role reads each offset once, whatever the number of its items
"""

from __future__ import annotations

from cake_core.derive.schedules import Schedule, carried_by, linear, product
from cake_core.diagnostics import fail
from cake_core.ir.build import add, assign, binary, call, div, index, mod, mul
from cake_core.ir.nodes import (
    Assume,
    Binary,
    Binding,
    Block,
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
from cake_core.ir.plan import launch_statement
from cake_core.ir.schedule import RAGGED_PARTS, Ragged, read_schedule

OFFSET_BYTES = 4


def expand_ragged(tiles: Tiles, kernel: Kernel, fresh) -> Schedule:
    """Write a ragged schedule out. Raises CakeError where nothing bounds the number of items."""
    order = read_schedule(tiles).order
    return _table(tiles, fresh) if order is not None and order.table else _scan(tiles, kernel, fresh)


def read(tensor: str, *at) -> Expr:
    """One element of an input, the same for all threads."""
    return call("load", index(tensor, *at), by=OFFSET_BYTES)


# --- a table of items ------------------------------------------------------------------------------------------------


def _table(tiles: Tiles, fresh) -> Schedule:
    t, at, asked = tiles.name, tiles.span, read_schedule(tiles)
    count, table, i = fresh(f"{t}_count"), fresh(f"{t}_items"), fresh(f"{t}_i")
    width = 2 + len(asked.dims)
    params = (
        Param(count, None, TypeExpr("i32", span=at), span=at),
        Param(table, "in", TypeExpr("i32", ((Name(count), Int(width)),), span=at), span=at),
    )
    # The next item's row is read while this one is worked on. The host writes no negative number, which is said so: divisions
    # of what may be negative cost more.
    columns = tuple(fresh(f"{t}_{part}") for part in (RAGGED_PARTS[0], RAGGED_PARTS[1], *(d.name for d in asked.dims)))
    b, r0, *others = (call("max", name, 0) for name in columns)
    r1 = read(asked.ragged.offsets, add(b, 1))
    return Schedule(
        t,
        i,
        Name(count),
        True,
        (launch_statement(count, True, asked.ctas),),
        (),
        (b, r0, r1, *others),
        asked.parts,
        carried_by(tiles),
        params=params,
        sparing=True,
        ahead=fresh(f"{t}_ahead"),
        fetch=lambda at: tuple(Binding(name, read(table, at, n)) for n, name in enumerate(columns)),
    )


# --- a scan in each role ---------------------------------------------------------------------------------------------


def _scan(tiles: Tiles, kernel: Kernel, fresh) -> Schedule:
    """Items group by group (`group_major`), inside a group its blocks fastest; or, without an order, all blocks fastest."""
    t, at, asked = tiles.name, tiles.span, read_schedule(tiles)
    ragged = asked.ragged
    i, bound, following, before, behind = (fresh(f"{t}_{x}") for x in ("i", "total", "next", "before", "behind"))
    counts = tuple(fresh(f"{t}_{d.name}") for d in asked.dims)
    lets = [Let(tuple(Binding(n, d.value) for n, d in zip(counts, asked.dims, strict=True)), span=at)] if counts else []
    rows = rows_of(ragged, kernel, tiles)
    blocks = div(add(rows, mul(ragged.groups, ragged.block - 1)), ragged.block)  # at most: each group's last block may be shorter
    lets.append(Let((Binding(bound, mul(blocks, product(counts)) if counts else blocks),), span=at))
    prologue: Block = (*lets, launch_statement(bound, True, asked.ctas))

    major = asked.order is not None and asked.order.name == "group_major"
    each = product(counts) if counts and major else Int(1)  # items a block of rows, where the walk counts items
    start: Block = (Var(tuple(Binding(x, Int(0)) for x in (following, before, behind))),)
    seek: Block = (_walk(ragged, Name(i), following, before, behind, each),)
    inside, height = fresh(f"{t}_inside"), fresh(f"{t}_height")
    group = binary("-", following, 1)
    if major or not counts:
        lets_of_item = (
            (inside, call("max", binary("-", i, before), 0)),
            # as of no negative number: divisions by it are cheap
            (height, call("max", div(binary("-", behind, before), each), 1)),
        )
        block = mod(Name(inside), height) if counts else Name(inside)
        others = linear(div(Name(inside), height), counts) if counts else ()
        guard = binary("<", i, behind)
    else:
        total, line = fresh(f"{t}_rows"), fresh(f"{t}_line")
        start = (Var((Binding(total, Int(0)),)), _count(ragged, total, fresh(f"{t}_g")), *start)
        at_row = mod(Name(i), call("max", total, 1))
        again = tuple(assign(x, Int(0)) for x in (following, before, behind))
        seek = (
            Let((Binding(line, at_row),)),
            If(binary("<", line, before), again),  # the next line of blocks begins
            _walk(ragged, Name(line), following, before, behind, each),
        )
        lets_of_item = ((inside, call("max", binary("-", line, before), 0)),)
        block = Name(inside)
        others = linear(div(Name(i), call("max", total, 1)), counts)
        guard = binary("<", i, mul(total, product(counts)))
    r0 = add(read(ragged.offsets, group), mul(block, ragged.block))
    r1 = read(ragged.offsets, following)
    item = (group, r0, r1, *others)
    return Schedule(
        t,
        i,
        Name(bound),
        True,
        prologue,
        lets_of_item,
        item,
        asked.parts,
        carried_by(tiles),
        start=start,
        seek=seek,
        guard=guard,
        sparing=True,
    )


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
