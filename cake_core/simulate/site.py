"""One statement of a kernel, compiled against the names around it: its expressions, the places that it touches, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from cake_core.derive.distribution import Fragments
from cake_core.facts.schema import Event
from cake_core.frozen import thawed
from cake_core.ir.nodes import Attr, Expr
from cake_core.ir.places import place_of, root
from cake_core.primitive import Distribution
from cake_core.simulate.expressions import Bound, Expressions
from cake_core.simulate.lanes import Holding
from cake_core.simulate.places import Spot

if TYPE_CHECKING:
    from cake_core.simulate.room import Room


@thawed(eq=False)
class Site:
    """`names`: what is bound here. `lies`: how the value that the statement moves lies over the threads, if anything says so. `loops`: index
    names and slots of the loops around. `fragments`: slots of those that it accesses. `run`: of an operation, what it does to data in an
    environment; `leads`: whether the leading lane alone does it."""

    room: Room
    names: dict[str, Bound]
    loops: tuple[tuple[str, int], ...]
    event: Event | None = None
    lies: Distribution | None = None
    run: Callable | None = None
    leads: bool = False
    fragments: tuple[int, ...] = ()
    expressions: Expressions = field(init=False)
    spots: dict[int, tuple[Expr, Spot]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expressions = Expressions(self)

    def spot(self, e: Expr) -> Spot:
        """A tile expression taken apart, its indices compiled."""
        found = self.spots.get(id(e))
        if found is None:
            found = self.spots[id(e)] = e, self._spot(e)
        return found[1]

    def _spot(self, e: Expr) -> Spot:
        bare, transposed = e, False
        while isinstance(bare, Attr):
            bare, transposed = bare.base, not transposed
        name = root(bare)
        memory, declared = self.room.memory_of(name, self.names)
        where = place_of(bare, declared)
        of = self.expressions.of
        parts = tuple((of(p.lo), p.size if p.size is None or isinstance(p.size, int) else of(p.size)) for p in where.parts)
        bound = self.names.get(name.id)
        slot = bound.slot if bound is not None else -1
        return Spot(name.id, memory, declared, tuple(map(of, where.slots)), parts, transposed, slot, self.room.extents_of(name.id))

    def how(self, e: Expr) -> Distribution | None:
        """How the register tile that an expression computes lies over the threads."""
        held = {n: b for n, b in self.names.items() if b.lies is not None}
        return Fragments(self.room.registry, {n: b.lies for n, b in held.items()}, {n: b.type for n, b in held.items()}).of(e)

    def holding(self, d: Distribution) -> Holding:
        return self.room.holding(d)
