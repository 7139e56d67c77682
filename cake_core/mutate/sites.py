"""Where a derived text can be changed: its blocks, each statement beside its elaborated twin, which says what effects it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cake_core.effects import Access, Effect
from cake_core.frozen import frozen
from cake_core.ir.nodes import Block, For, If, Kernel, Role, Stmt
from cake_core.ir.visit import nested
from cake_core.primitive.asking import attributes_of, effects_of
from cake_core.source import Span

PARTS = ("body", "then", "other")


@frozen
class Edit:
    """One change of a text: `what` was changed by the operator named `operator`, at `span`; `kernel`: the changed one, not elaborated."""

    operator: str
    what: str
    span: Span
    kernel: Kernel


@frozen
class Spot:
    """One block of a kernel. `typed`: its statements, elaborated, one for one. `rebuild` gives the kernel with another block here.
    `around`: the statements that it lies in, outermost first."""

    block: Block
    typed: Block
    rebuild: Callable[[Block], Kernel]
    around: tuple[Stmt, ...]

    @property
    def role(self) -> Role | None:
        return next((s for s in self.around if isinstance(s, Role)), None)

    def without(self, i: int) -> Kernel:
        return self.rebuild((*self.block[:i], *self.block[i + 1 :]))

    def instead(self, i: int, *new: Stmt) -> Kernel:
        return self.rebuild((*self.block[:i], *new, *self.block[i + 1 :]))

    def moved(self, i: int, to: int) -> Kernel:
        """Statement `i` put in front of statement `to`, which stands in front of it."""
        return self.rebuild((*self.block[:to], self.block[i], *self.block[to:i], *self.block[i + 1 :]))

    def behind(self, i: int, j: int, k: int) -> Kernel:
        """Statements `i` .. `j - 1` put behind statements `j` .. `k`."""
        return self.rebuild((*self.block[:i], *self.block[j : k + 1], *self.block[i:j], *self.block[k + 1 :]))


def spots(kernel: Kernel, typed: Kernel) -> Iterator[Spot]:
    """All blocks, outer ones first. `typed`: the same kernel, elaborated."""
    yield from _spots(kernel.body, typed.body, lambda new: replace(kernel, body=new), ())


def _spots(block: Block, typed: Block, rebuild: Callable[[Block], Kernel], around: tuple[Stmt, ...]) -> Iterator[Spot]:
    yield Spot(block, typed, rebuild, around)
    for i, (s, t) in enumerate(zip(block, typed, strict=True)):
        for part in PARTS:
            inner = getattr(s, part, None)
            if isinstance(inner, tuple) and inner:

                def put(new: Block, i=i, s=s, part=part) -> Kernel:
                    return rebuild((*block[:i], *_with(s, part, new), *block[i + 1 :]))

                yield from _spots(inner, getattr(t, part), put, (*around, s))


def _with(s: Stmt, part: str, new: Block) -> Block:
    """A statement with another block; none where nothing is left in it."""
    if isinstance(s, If) and not new:
        if part == "other":
            return (replace(s, other=None),)
        if s.other is None:
            return ()
    return (replace(s, **{part: new}),)


def effects(t: Stmt, registry) -> tuple[Effect, ...]:
    """What an elaborated statement does, with what the statements in it do, loops left out; of one that does nothing else, what its plugin says of it."""
    out = list(effects_of(t, registry) or attributes_of(t, registry))
    if not isinstance(t, For | Role):
        for block in nested(t):
            for s in block:
                out += effects(s, registry)
    return tuple(out)


def synchronises(found: tuple[Effect, ...]) -> bool:
    """Whether there is more in it than reads and writes that are complete at once."""
    return any(not isinstance(e, Access) for e in found)
