"""That two agents of one CTA never touch one element of a tensor, or one after the other: the predicate `exclusive`.

Two executions in one CTA stand at two accesses, as for `disjoint`. From a common element has to follow that one thread did both in the order of
its text: the same instance, and where several threads have parts of a tile, tiles that start at one element and are divided in one way. What is not so
has to be ordered by meetings of threads, where no loop brings one of the two again, or where a common element means the same turns of the loops around both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cake_core.effects import Issuer
from cake_core.facts import Row
from cake_core.facts.schema import Access, AtOnce, Block, Branch, By, Event, Facts, Loop, Region, RoleFacts, While, events, walk
from cake_core.ir.nodes import Int
from cake_core.ir.plan import BufferPlan
from cake_core.ir.types import F32
from cake_core.prove.agents import mentions, of_warp, place
from cake_core.prove.disjoint import Pair
from cake_core.prove.polynomials import Poly
from cake_core.rules.known import happens_before
from cake_core.rules.predicates import PROVED, Answer, Standing, unknown

if TYPE_CHECKING:
    from cake_core.prove.answers import Answers

#: Of two things that are never the same.
NEVER = (Poly.of(0), Poly.of(1))
#: Where a tensor is put to follow the order of its accesses: behind all shared memory.
BEYOND = 1 << 40


def exclusive(a: Row, b: Row, apart: Answer, turns: Callable[[], Answer], answers: Answers) -> Answer:
    """Where addresses do not settle it (`apart`: what they say): order, read off the text where neither comes again, or where `turns` says that they
    come to one element in one turn; else asked of cuts."""
    rows = answers.rows
    if (
        a["loop"] == b["loop"]
        and any(happens_before(rows, *pair).standing is Standing.PROVED for pair in ((a, b), (b, a)))
        and (a["loop"] is None or turns().standing is Standing.PROVED)
    ):
        return PROVED
    if not (a.site.part == b.site.part == "role"):
        return unknown(f"the order of accesses of '{a['buffer']}' in front of the roles or behind them")
    ordered = answers.ordered_beside(a, b)
    if ordered.standing is Standing.VIOLATED and apart.standing is Standing.UNKNOWN:
        return unknown(f"nothing orders the two, and that they touch different elements of '{a['buffer']}' is not decided: {apart.reason}")
    return ordered


def traced(facts: Facts, tensor: str) -> Facts:
    """The same kernel with a tensor in the place of a shared buffer, so that the order of its accesses is followed like theirs."""
    rank = len(next(t for t in facts.tensors if t.name == tensor).shape)

    def moved(block: Block) -> Block:
        return tuple(map(node, block))

    def node(n):
        match n:
            case Event():
                return replace(n, acts=tuple(act(a) for a in n.acts))
            case Branch():
                return replace(n, then=moved(n.then), other=moved(n.other))
            case Loop() | While():
                return replace(n, body=moved(n.body))
        return n

    def act(a):
        if isinstance(a, Access) and a.region.memory == "global" and a.region.name == tensor:
            return replace(a, region=Region("shared", tensor, (), a.region.box))
        return a

    plan = BufferPlan(tensor, F32, (), (1,) * rank, BEYOND, 0, None)
    roles = tuple(replace(r, body=moved(r.body)) for r in facts.roles)
    return replace(facts, roles=roles, buffers={**facts.buffers, tensor: plan})


class Within(Pair):
    """Two accesses of one tensor by agents of one CTA, each at a place of its text."""

    __slots__ = ()

    def known(self) -> list[tuple[Poly, Poly]]:
        """Of both: they are in one CTA."""
        return Pair.ctas(self)

    def ctas(self) -> list[tuple[Poly, Poly]]:
        """What has to be equal for one thread to do both in order."""
        x, y = self.at_a.event, self.at_b.event
        role = self.role(x)
        if role is not self.role(y) or role is None:
            return [NEVER]
        same = [(self.at_a.env[n], self.at_b.env[n]) for n in (f"{role.name}.i",)]
        if not (isinstance(self.a.completion, AtOnce) and isinstance(self.b.completion, AtOnce)):
            return [*same, *self._indices(role)] if self.a is self.b and x.by is By.LEADER else [NEVER]
        if all(e.by is By.LEADER or a.issuer is Issuer.LEADER for e, a in ((x, self.a), (y, self.b))) and x.warp == y.warp:
            return same
        if x.by is not y.by or x.warp != y.warp or self.a is not self.b and not self._alike():
            return [NEVER]
        regions = self.a.region, self.b.region
        one = all(d.size == Int(1) for d in regions[0].box)  # each warp makes the access for itself
        if one or any(mentions(place(r), of_warp(role.body)) for r in regions):
            same.append((self.at_a.env["warp"], self.at_b.env["warp"]))
        if not self._alike():  # which thread has which element is not known, so it has to be one execution
            same += self._indices(role)
        return [*same, *self._starts()]

    def role(self, e: Event) -> RoleFacts | None:
        return next((r for r in self.places.facts.roles if any(x is e for x in events(r.body))), None)

    def _alike(self) -> bool:
        """Whether each thread has the same elements of equal tiles in both."""
        x, y = self.a.division, self.b.division
        return x is not None and y is not None and x.map == y.map and x.among == y.among == "thread"

    def _starts(self) -> list[tuple[Poly, Poly]]:
        q = self.places.quantities
        return [(q.number(x.lo, self.at_a.env), q.number(y.lo, self.at_b.env)) for x, y in zip(self.a.region.box, self.b.region.box, strict=True)]

    def _indices(self, role: RoleFacts) -> list[tuple[Poly, Poly]]:
        """The loops around, of one statement: what is equal in all of them is one execution."""
        around = [n for n in walk(role.body) if not isinstance(n, Event) and hasattr(n, "body") and any(x is self.at_a.event for x in events(n.body))]
        if not all(isinstance(n, Loop) and n.var in self.at_a.env for n in around):
            return [NEVER]
        return [(self.at_a.env[n.var], self.at_b.env[n.var]) for n in around]


class Turn(Within):
    """Two accesses in one CTA that come to a common element only in the same turns of the loops around, which are the same of both."""

    __slots__ = ()

    def ctas(self) -> list[tuple[Poly, Poly]]:
        x, y = self.at_a.event, self.at_b.event
        role = self.role(x)
        around = [n for n in walk(role.body) if not isinstance(n, Event) and hasattr(n, "body")] if role is not None else []
        if role is None or role is not self.role(y) or any(_has(n, x) != _has(n, y) for n in around):
            return [NEVER]
        return self._indices(role)


def _has(n: Loop | While, e: Event) -> bool:
    return any(x is e for x in events(n.body))
