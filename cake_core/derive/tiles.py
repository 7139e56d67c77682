"""The tile schedules of a kernel, written out: each apart, and what they share, which is the launch.

A kernel with several schedules is launched with as many clusters as its longest one could use; each cluster takes its part of every
schedule, and of a shorter one some clusters may have none.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.derive.dynamic import OnDemand
from cake_core.derive.ragged import expand_ragged
from cake_core.derive.schedules import Schedule, expand
from cake_core.diagnostics import Related, fail
from cake_core.ir.build import call
from cake_core.ir.nodes import Block, Expr, For, Int, Kernel, Op, Require, Tiles
from cake_core.ir.plan import launch_statement
from cake_core.ir.schedule import read_schedule


def tiles_of(kernel: Kernel) -> dict[str, Tiles]:
    """The schedules by name, in text order."""
    return {s.name: s for s in kernel.body if isinstance(s, Tiles)}


def expanded(kernel: Kernel, axis: str | None, cluster: int, fresh) -> dict[str, Schedule | OnDemand]:
    """The schedules of an elaborated kernel, by name; what is drawn on demand is not told apart yet. Raises CakeError."""
    return {
        name: expand_ragged(s, kernel, axis, cluster, fresh) if read_schedule(s).ragged is not None else expand(s, axis, cluster, fresh)
        for name, s in tiles_of(kernel).items()
    }


def on_demand_of(kernel: Kernel) -> dict[str, Tiles]:
    """Those whose items are drawn from a counter."""
    return {name: s for name, s in tiles_of(kernel).items() if read_schedule(s).counter is not None}


def same_order(kernel: Kernel) -> None:
    """Raises CakeError where two roles go over schedules on demand in different orders: each draws its next item when all roles have
    begun the one before, so each of the two would wait for the other."""
    drawn = on_demand_of(kernel)
    met: dict[tuple[str, str], tuple[str, For]] = {}
    for role in kernel.roles:
        loops = [s for s in role.body if isinstance(s, For) and s.hi is None and s.lo.id in drawn]
        for n, first in enumerate(loops):
            for second in loops[n + 1 :]:
                names = (first.lo.id, second.lo.id)
                if (other := met.get(names[::-1])) is not None:
                    raise fail(
                        "derive/on-demand",
                        f"role '{role.name}' goes over '{names[0]}' and then '{names[1]}', role '{other[0]}' the other way round",
                        second.span,
                        role=role.name,
                        related=(Related(f"'{other[0]}' does so here", other[1].span),),
                        why="an item on demand is drawn when all roles have begun the one before it: each of the two waits for the other",
                        fix="go over them in one order",
                    )
                met.setdefault(names, (role.name, second))


def prologue(kernel: Kernel, schedules: dict[str, Schedule]) -> Block:
    """The kernel's lets of its schedules, and the launch line."""
    tiles = tiles_of(kernel)
    if not schedules:
        return (_at(launch_statement(Int(1), False), kernel.span),)
    total: Expr | None = None
    for s in schedules.values():
        total = s.total if total is None else call("max", total, s.total)
    ctas = next((n for s in tiles.values() if (n := read_schedule(s).ctas) is not None), None)
    launch = launch_statement(total, any(s.persistent for s in schedules.values()), ctas)
    lets = (s for x in schedules.values() for s in x.prologue)
    return (*lets, _at(launch, next(iter(tiles.values())).span))


def _at(launch: Op, span) -> Op:
    return replace(launch, span=span, operands=tuple(replace(e, span=span) for e in launch.operands))


def contracted(kernel: Kernel, schedules: dict[str, Schedule]) -> Kernel:
    """The kernel with the parameters that its schedules add, and what is required of them."""
    params = (p for s in schedules.values() for p in s.params)
    added = tuple(e for s in schedules.values() for e in s.requires)
    has = kernel.clause(Require)
    clauses = tuple(replace(c, exprs=(*c.exprs, *added)) if c in has[-1:] else c for c in kernel.clauses)
    if added and not has:
        clauses = (Require(added, span=added[0].span), *clauses)
    return replace(kernel, params=(*kernel.params, *params), clauses=clauses)
