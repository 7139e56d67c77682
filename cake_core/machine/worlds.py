"""Values that a scenario leaves open: elements of `in` tensors, and what else comes from memory.

A world answers every question the same way each time. Elements that control depends on get small values that satisfy the kernel's
contracts (`assume`), found by search; the worlds of a seed differ in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import pairwise, product
from math import prod
from random import Random

from cake_core.facts.schema import Facts
from cake_core.ir.nodes import Binary, Call, Expr, Index, Int, Name, Unary
from cake_core.ir.places import root
from cake_core.machine.outcome import Scenario
from cake_core.machine.values import BINARY, CALLS, MachineError

#: Elements of all tensors that are searched at most, tries of the search, and values for what nothing is known of.
ELEMENTS, TRIES, ANY = 64, 20_000, (0, 1, 2, -1)

Key = tuple[str, tuple[int, ...]]


class _Open(Exception):
    """An element that has no value yet."""


@dataclass(slots=True)
class World:
    """`table`: chosen elements. `asked`: what else was asked for, with the answers. `open`: whether anything was left to choice."""

    scenario: Scenario
    draw: Random
    table: dict[Key, int]
    asked: dict[tuple, int] = field(default_factory=dict)
    open: bool = False

    def load(self, tensor: str, indices: tuple[int, ...]) -> int:
        given = self.scenario.loads(tensor, indices) if self.scenario.loads is not None else None
        if given is not None:
            return given
        self.open = True
        return self.table[tensor, indices] if (tensor, indices) in self.table else self.choose((tensor, indices))

    def draw_number(self, tensor: str, n: int) -> int:
        """The n-th number that this cluster takes of a counter: as if all clusters took turns, where the scenario says nothing else."""
        if self.scenario.draws is not None:
            return self.scenario.draws(tensor, n)
        return self.scenario.cluster + n * self.scenario.clusters

    def choose(self, origin: tuple) -> int:
        self.open = True
        if origin not in self.asked:
            self.asked[origin] = self.draw.choice(ANY) if self.asked else 0
        return self.asked[origin]


def worlds(facts: Facts, scenario: Scenario, seed: int, most: int = 4, read: frozenset[str] | None = None) -> Iterator[World]:
    """Up to `most` worlds; one alone where the scenario answers all that control asks of memory. `read`: `tables_of(facts)`, where it is known."""
    read = tables_of(facts) if read is None else read
    for k in range(most):
        draw = Random(seed * 7919 + k)
        world = World(scenario, draw, _table(facts, scenario, read, draw, k))
        yield world
        if not world.open:
            return


def tables_of(facts: Facts) -> frozenset[str]:
    """The `in` tensors of which elements stand in expressions of the facts."""
    inputs = {t.name for t in facts.tensors if t.mode == "in"}
    return frozenset(_read(facts) & inputs) if inputs else frozenset()


def _table(facts: Facts, scenario: Scenario, tables: frozenset[str], draw: Random, k: int) -> dict[Key, int]:
    """Elements of the tensors that control reads. Raises MachineError where no small values satisfy the contracts."""
    read = sorted(tables)
    if scenario.loads is not None or not read:
        return {}
    shapes = {t.name: tuple(_number(d, scenario.params, {}) for d in t.shape) for t in facts.tensors if t.name in read}
    if sum(map(prod, shapes.values())) > ELEMENTS:
        return {}
    keys = [(n, i) for n in read for i in product(*map(range, shapes[n]))]
    sizes = sorted({v for v in scenario.params.values() if 0 <= v <= 1 << 20})
    values = sorted({0, 1, 2, *sizes, *(v // 2 for v in sizes), *(v // 3 for v in sizes)})
    conditions = [e for e in facts.assumes if any(n in read for n in _tensors(e))]
    chosen: dict[Key, int] = {}
    tries = 0

    def search(at: int) -> bool:
        nonlocal tries
        if at == len(keys):
            return True
        order = list(values)
        if k:
            draw.shuffle(order)
        for v in order:
            tries += 1
            if tries > TRIES:
                return False
            chosen[keys[at]] = v
            if all(_holds(e, scenario.params, chosen, shapes) for e in conditions) and search(at + 1):
                return True
        del chosen[keys[at]]
        return False

    if not search(0):
        raise MachineError(f"no small values of {', '.join(read)} satisfy the kernel's `assume`s: give `loads`")
    return chosen


def _holds(e: Expr, params, chosen: dict[Key, int], shapes) -> bool:
    """Whether a contract holds so far; one about elements without value, or of another form, does."""
    try:
        if isinstance(e, Call) and e.name == "monotone":
            name = root(e.positional[0]).id
            line = [chosen[name, (i,)] for i in range(shapes[name][0]) if (name, (i,)) in chosen]
            return all(a <= b for a, b in pairwise(line))
        return bool(_number(e, params, chosen))
    except (_Open, MachineError):
        return True


def _number(e: Expr, params, chosen: dict[Key, int]) -> int:
    match e:
        case Int(v):
            return v
        case Name(id):
            if id not in params:
                raise MachineError(f"the scenario gives no value for '{id}'")
            return params[id]
        case Unary("-", a):
            return -_number(a, params, chosen)
        case Unary("not", a):
            return not _number(a, params, chosen)
        case Binary(op, a, b) if op in BINARY:
            return BINARY[op](_number(a, params, chosen), _number(b, params, chosen))
        case Call() if e.name in CALLS:
            return CALLS[e.name](*(_number(a, params, chosen) for a in e.positional))
        case Index(Name(id), indices):
            key = id, tuple(_number(i, params, chosen) for i in indices)
            if key in chosen:
                return chosen[key]
            raise _Open
    raise MachineError("a contract that the machine does not read")


def _read(facts: Facts) -> set[str]:
    """Tensors of which elements stand in expressions."""
    return {n for part in (facts.before, facts.after, *(r.body for r in facts.roles)) for n in _tensors(part)}


def _tensors(node) -> Iterator[str]:
    match node:
        case Index() if root(node) is not None:
            yield root(node).id
        case Call() if node.name == "monotone":
            yield root(node.positional[0]).id
    if isinstance(node, tuple):
        for x in node:
            yield from _tensors(x)
    elif is_dataclass(node):
        for f in fields(node):
            if f.name not in ("span", "type", "plan"):
                yield from _tensors(getattr(node, f.name))
