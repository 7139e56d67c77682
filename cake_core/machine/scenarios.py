"""Small sizes at which the event machine is asked: found by trying, so that trips and items come out as none, one, as many as a ring has slots, and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from random import Random

from cake_core.facts.schema import Facts, Loop, walk
from cake_core.ir.nodes import Binary, Call, Cond, Expr, Int, Name, Unary
from cake_core.ir.places import names
from cake_core.machine.outcome import Scenario
from cake_core.machine.values import BINARY, CALLS, MachineError

#: Sizes that are tried for a parameter, beside sums and multiples of the text's own numbers.
SMALL = (1, 2, 3, 4, 5)
TRIES = 4000
#: Iterations of all loops of all items together: what one scenario may cost.
COST = 60
#: The only cluster of a launch.
FIRST = {"cluster.id": 0, "cluster.count": 1}


def about_rings(slots: int) -> tuple[tuple[int, int], ...]:
    """(items, trips) of interest where a ring has so many slots."""
    return (2, 1), (1, slots + 1), (2, slots + 1), (3, 2), (5, 1), (1, 2 * slots + 1), (2, 0), (1, 0), (3, slots), (2, 2 * slots + 1)


def scenarios_of(
    facts: Facts, most: int = 6, seed: int = 0, tries: int = TRIES, wanted: Callable[[int], tuple[tuple[int, int], ...]] = about_rings
) -> tuple[Scenario, ...]:
    """Scenarios of one cluster at up to `most` sizes, cheapest first, that differ in how often the loops run. Raises MachineError where no small sizes
    satisfy the kernel's `require`s."""
    found: dict[tuple[int, int], tuple[int, dict]] = {}
    for sizes in _sizes(facts, Random(seed), tries):
        try:
            if not all(value(e, sizes) for e in facts.requires):
                continue
            items = value(facts.launch.items, sizes)
            inner = max(_trips(facts, sizes), default=0)
        except MachineError:
            continue
        turns = items if facts.launch.persistent else min(items, 1)
        cost = turns * (1 + inner)
        key = min(turns, 5), min(inner, 12)
        if items > 0 and cost <= COST and (key not in found or (cost, sum(sizes.values())) < (found[key][0], sum(found[key][1].values()))):
            found[key] = cost, sizes
    if not found:
        raise MachineError("no small sizes satisfy the kernel's 'require's: name some")
    chosen = _spread(found, facts, most, wanted)
    return tuple(s for k in sorted(chosen, key=lambda k: found[k][0]) for s in _clusters(facts, found[k][1]))


def some_sizes(facts: Facts, most: int, seed: int = 0, tries: int = TRIES // 4) -> list[dict[str, int]]:
    """Up to `most` sizes that satisfy the kernel's `require`s and give a cluster something to do, from the smallest on, those between left out evenly."""
    found: dict[tuple[int, ...], dict[str, int]] = {}
    for sizes in _sizes(facts, Random(seed), tries):
        try:
            if all(value(e, sizes) for e in facts.requires) and value(facts.launch.items, sizes) > 0:
                found[tuple(sizes.values())] = sizes
        except MachineError:
            continue
    ordered = sorted(found.values(), key=lambda s: (sum(s.values()), tuple(s.values())))
    return ordered if len(ordered) <= most else [ordered[len(ordered) * n // most] for n in range(most)]


def _clusters(facts: Facts, sizes: dict[str, int]) -> Iterator[Scenario]:
    """One cluster takes all items; where each has one of its own, the first and the last are looked at."""
    yield Scenario(sizes)
    if not facts.launch.persistent and (items := value(facts.launch.items, sizes)) > 1:
        yield Scenario(sizes, items - 1, items)


def _spread(found: dict, facts: Facts, most: int, wanted: Callable[[int], tuple]) -> list[tuple[int, int]]:
    """(items, trips) that are nearest to what is of interest: about the slots of a ring."""
    slots = max([b.slots for b in facts.barriers.values()] + [prod(b.slots) for b in facts.buffers.values()], default=1)
    out: dict[tuple[int, int], None] = {}
    for items, trips in wanted(slots):
        out[min(found, key=lambda k: (abs(k[0] - min(items, 5)) * 2 + abs(k[1] - min(trips, 12)), k))] = None
        if len(out) == most:
            break
    return list(out)


def _sizes(facts: Facts, draw: Random, tries: int) -> Iterator[dict[str, int]]:
    """Sizes to try: by a parameter, multiples of the numbers that stand beside it."""
    steps = {n: {1} for n in facts.scalars}
    bounds = [facts.launch.items, *(x for r in facts.roles for l in walk(r.body) if isinstance(l, Loop) for x in (l.lo, l.hi)), *facts.requires]
    for e in bounds:
        _steps(e, steps)
    for _ in range(tries if facts.scalars else 1):
        sizes = {}
        for n, own in steps.items():
            step = draw.choice(sorted(own))
            sizes[n] = max(0, draw.choice((0, 1, 2, 3, 4, 5, 6, 7, 9)) * step + draw.choice((0, 0, 0, step // 2, 1)))
        yield sizes


def _steps(e, steps: dict[str, set[int]]) -> None:
    match e:
        case Call(args=args) if e.name == "ceildiv" and isinstance(args[1], Int):
            for n in names(args[0]):
                if n.id in steps:
                    steps[n.id].add(args[1].value)
        case Binary("/" | "%", a, Int(v)) if 1 < v <= 1024:
            for n in names(a):
                if n.id in steps:
                    steps[n.id].add(v)
    match e:
        case Call():
            parts = e.positional
        case Binary(_, a, b):
            parts = (a, b)
        case Unary(_, a):
            parts = (a,)
        case Cond(t, a, b):
            parts = (t, a, b)
        case _:
            parts = ()
    for x in parts:
        _steps(x, steps)


def _trips(facts: Facts, sizes: dict[str, int]) -> Iterator[int]:
    """Trips of the loops whose bounds the sizes decide alone."""
    for r in facts.roles:
        for node in walk(r.body):
            if isinstance(node, Loop) and all(n.id != "cluster.count" for n in names(node.step)):  # those over items go by the launch
                try:
                    lo, hi, step = (value(x, sizes | FIRST) for x in (node.lo, node.hi, node.step))
                except MachineError:
                    continue
                if step > 0:
                    yield max(0, -((lo - hi) // step))


def value(e: Expr, sizes: dict[str, int]) -> int:
    """An expression over parameters. Raises MachineError where it is of something else."""
    match e:
        case Int(v):
            return v
        case Name(id) if id in sizes:
            return sizes[id]
        case Unary("-", a):
            return -value(a, sizes)
        case Unary("not", a):
            return not value(a, sizes)
        case Binary(op, a, b) if op in BINARY:
            x, y = value(a, sizes), value(b, sizes)
            if op in ("/", "%") and y == 0:
                raise MachineError("a division by zero")
            return BINARY[op](x, y)
        case Cond(t, a, b):
            return value(a if value(t, sizes) else b, sizes)
        case Call() if e.name in CALLS:
            return CALLS[e.name](*(value(a, sizes) for a in e.positional))
    raise MachineError("a size that depends on more than parameters")
