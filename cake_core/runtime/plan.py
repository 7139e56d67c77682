"""The table of a launch's items, where a kernel's schedule asks the host for it: made in numpy, from the manifest alone.

Rows of groups are cut into blocks; an item is a block of one group at one point of the schedule's grid. Orders:

    longest_first   by falling cost
    balanced        sections of neighbouring (group, grid point) pairs, one after another; inside a section by falling cost, in rounds
                    of one item a CTA: the costliest item of a round goes to the CTA that has least to do so far

An item is a cluster's, where there are clusters, and so is what is said of CTAs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from cake_core.artifact import Manifest, PlanInfo
from cake_core.frozen import frozen
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.formula import FormulaError
from cake_core.runtime.host_formula import evaluate, inputs_in, names_in

if TYPE_CHECKING:
    import numpy

    from cake_core.runtime.device_array import DeviceArray

MOST = 2**31 - 1  # items: they are counted in i32


@frozen
class Plan:
    """The items of launches with these sizes and offsets, in their order, on the device. Made by `Kernel.plan`.

    `values`: the sizes that it was made for. `items`: [count, columns], as the kernel reads it.
    """

    kernel: str
    values: dict[str, int | float]
    items: DeviceArray
    count: int

    def __repr__(self) -> str:
        return f"<plan of {self.count} items for '{self.kernel}', made for {', '.join(f'{n} = {v}' for n, v in self.values.items())}>"


def check_plan(kernel: str, plan: Plan, values: Mapping[str, int | float]) -> None:
    """Whether a plan fits a launch, as far as sizes tell. Raises LaunchError."""
    if plan.kernel != kernel:
        raise LaunchError("runtime/plan", f"this plan was made for '{plan.kernel}', not for '{kernel}'")
    for name, value in plan.values.items():
        if values[name] != value:
            raise LaunchError(
                "runtime/plan",
                f"this plan was made for {name} = {value}, here {name} = {values[name]}",
                fix="make one with these arguments",
            )


def scalars_of(info: PlanInfo) -> tuple[str, ...]:
    """Scalars that the recipe asks for."""
    own = {"b", "r0", "r1", *(n for n, _ in info.dims), *(n for n, _ in info.lets)}
    trees = (info.groups, *(t for _, t in info.dims), *(t for _, t in info.lets), info.cost)
    return tuple(dict.fromkeys(n for t in trees for n in names_in(t) if n not in own))


def inputs_of(info: PlanInfo) -> tuple[str, ...]:
    """Tensors that the host has to read."""
    return tuple(dict.fromkeys((info.offsets, *(t for tree in (*(t for _, t in info.lets), info.cost) for t in inputs_in(tree)))))


def make_items(m: Manifest, values: Mapping[str, int | float], inputs: Mapping[str, numpy.ndarray], ctas: int) -> numpy.ndarray:
    """The table, int32 [items, 2 + dims]. `inputs` by name; `ctas`: how many clusters a launch has at most. Raises LaunchError."""
    try:
        return _items(m.plan, values, {n: x.astype("int64") for n, x in inputs.items()}, ctas)
    except (FormulaError, ZeroDivisionError, IndexError) as error:
        raise LaunchError("runtime/plan", f"the items of '{m.kernel}' can't be made: {error}") from None


def _items(info: PlanInfo, values: Mapping[str, int | float], inputs: Mapping[str, numpy.ndarray], ctas: int) -> numpy.ndarray:
    import numpy as np

    offsets = inputs[info.offsets]
    groups = int(evaluate(info.groups, values, {}))
    if offsets.shape != (groups + 1,):
        raise LaunchError(
            "runtime/plan",
            f"'{info.offsets}' has {offsets.size} elements, and {groups} groups have {groups + 1} ends",
            resource=info.offsets,
        )
    sizes = np.diff(offsets)
    if groups and (offsets[0] < 0 or sizes.min() < 0):
        raise LaunchError(
            "runtime/plan",
            f"'{info.offsets}' falls, or starts below 0",
            resource=info.offsets,
            why="group g has the rows from element g to element g + 1",
        )
    extents = [int(evaluate(tree, values, {})) for _, tree in info.dims]
    steps = [info.step, *(1 for _ in extents[1:])] if extents else []
    extents = [-(-e // n) for e, n in zip(extents, steps, strict=True)]
    points = prod(extents) if all(e > 0 for e in extents) else 0
    blocks = -(-sizes // info.block)
    count = int(blocks.sum()) * points
    if count > MOST:
        raise LaunchError("runtime/plan", f"{count} items; {MOST} is the limit")

    group = np.repeat(np.arange(groups), blocks)
    number = np.arange(group.size) - np.repeat(np.cumsum(blocks) - blocks, blocks)  # of the block, in its group
    point = np.tile(np.arange(points), group.size)
    b, number = np.repeat(group, points), np.repeat(number, points)
    env: dict[str, Any] = {**values, "b": b, "r0": offsets[b] + number * info.block, "r1": offsets[b + 1] if groups else b}
    rest = point
    for (name, _), extent, step in zip(info.dims, extents, steps, strict=True):  # the first dimension runs fastest
        env[name], rest = rest % max(extent, 1) * step, rest // max(extent, 1)
    for name, tree in info.lets:
        env[name] = evaluate(tree, env, inputs)
    cost = np.broadcast_to(np.asarray(evaluate(info.cost, env, inputs)), b.shape)
    neighbour = b * points + point
    order = ORDERS[info.order](cost, neighbour, env["r0"], info.section, ctas)
    columns = (b, env["r0"], *(env[name] for name, _ in info.dims))
    return np.stack([c[order] for c in columns], axis=1).astype(np.int32) if count else np.zeros((0, len(columns)), np.int32)


# --- orders ----------------------------------------------------------------------------------------------------------


def _longest_first(cost, neighbour, row, section: int, ctas: int):
    import numpy as np

    return np.lexsort((row, neighbour, -cost))


def _balanced(cost, neighbour, row, section: int, ctas: int):
    """CTA c takes the items c, c + n, c + 2n, .. of the table, n being the number of CTAs: one of each round."""
    import numpy as np

    order = np.lexsort((row, neighbour, -cost, neighbour // section))
    n = max(min(order.size, ctas), 1)
    rounds = -(-order.size // n)
    taken = np.full((rounds, n), -1, np.int64)
    load = np.zeros(n, np.int64)
    for r in range(rounds):
        here = order[r * n : (r + 1) * n]
        here = here[np.argsort(-cost[here], kind="stable")]
        idle = np.argsort(load, kind="stable")[: here.size]
        taken[r, idle] = here
        load[idle] += cost[here]
    # The last round may be short: CTAs with an item in it come first, so that no row of the table is empty.
    taken = taken[:, np.argsort(-(taken >= 0).sum(axis=0), kind="stable")]
    return taken[taken >= 0]


ORDERS = {"longest_first": _longest_first, "balanced": _balanced}
