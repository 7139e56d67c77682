"""What the host needs to make the table of a ragged schedule's items: formulas of the schedule, for the manifest."""

from __future__ import annotations

from cake_core.artifact import PlanInfo
from cake_core.ir.formula import formula
from cake_core.ir.nodes import Binding, Kernel, Let, Param, Tiles
from cake_core.ir.places import names
from cake_core.ir.schedule import ROWS, read_schedule


def plan_info(kernel: Kernel, added: tuple[Param, ...]) -> PlanInfo | None:
    """Of an elaborated schedule-form kernel; `added`: the parameters that its schedule added. None where it takes no table.

    Raises CakeError where the cost of an item is no formula of parameters and inputs.
    """
    schedules = ((s, read_schedule(s)) for s in kernel.body if isinstance(s, Tiles))
    tiles, asked = next(((s, a) for s, a in schedules if a.order is not None and a.order.table), (None, None))
    if asked is None:
        return None
    count, table = (p.name for p in added)
    axis, cluster = (kernel.cluster.axis.name, kernel.cluster.axis.value.value) if kernel.cluster else (None, 1)
    split = asked.split(axis, cluster)
    lets = {b.name: b.value for s in kernel.body if isinstance(s, Let) for b in s.bindings}
    scalars = frozenset(p.name for p in kernel.params if p.mode is None)
    inputs = frozenset(p.name for p in kernel.params if p.mode == "in")
    carried = _needed(tuple(b for s in tiles.body or () for b in s.bindings), asked.order.cost)
    known = scalars | set(asked.parts)
    values = []
    for b in carried:
        values.append((b.name, formula(b.value, lets, known, inputs)))
        known |= {b.name}
    return PlanInfo(
        table=table,
        count=count,
        offsets=asked.ragged.offsets,
        groups=formula(asked.ragged.groups, lets, scalars),
        block=asked.ragged.block * split.get(ROWS, 1),
        dims=tuple((d.name, formula(d.value, lets, scalars)) for d in asked.dims),
        lets=tuple(values),
        order=asked.order.name,
        cost=formula(asked.order.cost, lets, known, inputs),
        section=asked.order.section,
        step=next((n for name, n in split.items() if name != ROWS), 1),
    )


def _needed(carried: tuple[Binding, ...], cost) -> tuple[Binding, ...]:
    """The values that the cost is made of, directly or by way of others."""
    used, kept = {n.id for n in names(cost)}, []
    for b in reversed(carried):
        if b.name in used:
            kept.append(b)
            used |= {n.id for n in names(b.value)}
    return tuple(reversed(kept))
