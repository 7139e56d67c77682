"""Numbers for what is shared: locations (one slot of one buffer in one CTA) and barriers, each made when it is first named."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import prod

from cake_core.facts.schema import QUARTERS, Facts


class OutOfRange(Exception):
    """An index of a slot, a barrier or a rank that does not exist: what, which index, how many there are."""

    def __init__(self, name: str, index: tuple[int, ...], limit: int) -> None:
        super().__init__(f"'{name}' has no place {list(index)}: there are {limit}")
        self.name, self.index = name, index


@dataclass(slots=True, eq=False)
class Location:
    """One slot of a buffer. `lo`, `hi`: its bytes (of tensor memory: columns); `aliases`: locations of other buffers that share some."""

    id: int
    memory: str
    cta: int
    name: str
    slot: tuple[int, ...]
    lo: int
    hi: int
    shape: tuple[int, ...] = ()
    unit: int = 0  # bytes an element where rows lie one behind the other; 0: a box may lie anywhere in the slot
    aliases: list[Location] = field(default_factory=list)

    def span(self, box: tuple[int, ...]) -> tuple[int, int]:
        """Bytes between which a box lies."""
        if not self.unit:
            return self.lo, self.hi
        first = last = 0
        for d, size in enumerate(self.shape):
            first, last = first * size + box[2 * d], last * size + box[2 * d + 1] - 1
        return self.lo + self.unit * first, self.lo + self.unit * (last + 1)


@dataclass(slots=True, eq=False)
class Barrier:
    id: int
    cta: int
    name: str
    index: int
    count: int


@dataclass(slots=True)
class Places:
    facts: Facts
    all: list[Location] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    _by_key: dict[tuple, list[Location]] = field(default_factory=dict)
    _by_name: dict[tuple[str, int, str], list[Location]] = field(default_factory=dict)
    _barriers: dict[tuple[int, str, int], Barrier] = field(default_factory=dict)

    def locations(self, memory: str, cta: int, name: str, slot: tuple[int, ...], owner: tuple | None = None) -> list[Location]:
        """The locations that a region with these slot indices touches: all slots of the dimensions that it does not index."""
        key = (memory, cta, name, slot, owner)
        if (known := self._by_key.get(key)) is not None:
            return known
        if not 0 <= cta < self.facts.cluster:
            raise OutOfRange("cluster", (cta,), self.facts.cluster)
        plan = {"shared": self.facts.buffers, "tensor": self.facts.columns}.get(memory, {}).get(name)
        dims = plan.slots if plan is not None else ()
        if len(slot) == len(dims) or plan is None:
            if any(not 0 <= i < d for i, d in zip(slot, dims, strict=False)):
                raise OutOfRange(name, slot, prod(dims))
            found = [self._make(memory, cta, name, slot, plan)]
        else:
            rest = product(*(range(d) for d in dims[len(slot) :]))
            found = [x for more in rest for x in self.locations(memory, cta, name, (*slot, *more), owner)]
        self._by_key[key] = found
        return found

    def _make(self, memory: str, cta: int, name: str, slot: tuple[int, ...], plan) -> Location:
        lo = hi = unit = 0
        shape: tuple[int, ...] = ()
        if plan is not None:
            number = 0
            for i, d in zip(slot, plan.slots, strict=True):
                number = number * d + i
            if memory == "shared":
                lo = plan.offset + number * plan.slot_bytes
                hi = lo + prod(plan.shape) * plan.elem.bytes
                panels = plan.swizzle and plan.row_bytes > plan.swizzle
                shape, unit = plan.shape, 0 if panels else plan.elem.bytes
            else:
                lo = plan.column + number * plan.slot_columns
                hi = lo + plan.slot_columns
        made = Location(len(self.all), memory, cta, name, slot, lo, hi, shape, unit)
        self.all.append(made)
        if memory != "registers":
            for (kind, where, other), there in self._by_name.items():
                if kind == memory and where == cta and other != name:
                    for x in there:
                        if x.lo < hi and lo < x.hi:
                            x.aliases.append(made)
                            made.aliases.append(x)
            self._by_name.setdefault((memory, cta, name), []).append(made)
        return made

    def barrier(self, cta: int, name: str, index: int) -> Barrier:
        key = (cta, name, index)
        if (known := self._barriers.get(key)) is not None:
            return known
        plan = self.facts.barriers[name]
        if not 0 <= index < plan.slots:
            raise OutOfRange(name, (index,), plan.slots)
        if not 0 <= cta < self.facts.cluster:
            raise OutOfRange("cluster", (cta,), self.facts.cluster)
        made = Barrier(len(self.barriers), cta, name, index, plan.count)
        self.barriers.append(made)
        self._barriers[key] = made
        return made

    def array(self, cta: int, name: str) -> list[Barrier]:
        return [self.barrier(cta, name, i) for i in range(self.facts.barriers[name].slots)]


def overlap(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two boxes of one location share an element."""
    for d in range(0, min(len(a), len(b)), 2):
        if a[d] >= b[d + 1] or b[d] >= a[d + 1]:
            return False
    return True


def apart(memory: str, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether warps of two agents, given as (first in the CTA, how many), reach no byte in common though their tiles overlap: of tensor
    memory, a warp reaches the quarter of the lanes that its number names (PTX ISA, tensor memory, access restrictions)."""
    if memory != "tensor":
        return False
    quarters = [{(first + k) % QUARTERS for k in range(warps)} for first, warps in (one, other)]
    return not quarters[0] & quarters[1]
