"""Which bytes two accesses touch: who executes them, at whose memory, and what tells whether their places meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from cake_core import smt
from cake_core.effects import Issuer, Mode
from cake_core.facts.schema import QUARTERS, Access, AtOnce, By, Event, Facts, Region, WithBytes, WithCommit
from cake_core.frozen import frozen
from cake_core.ir.nodes import Expr, Int
from cake_core.ir.plan import Placed, slot_cells
from cake_core.ir.printer import expr_text
from cake_core.prove.agents import Agent
from cake_core.prove.numbers import literal
from cake_core.prove.protocol import destinations
from cake_core.prove.solve import Cuts
from cake_core.prove.text import rank
from cake_core.prove.walk import Run, Site

Number = Callable[[Expr], smt.Term]  # a term for an index, at the position of who touches


@frozen
class Use:
    """One access of one agent, at one CTA's memory; `number`: which act of its event."""

    run: Run
    site: Site
    number: int
    access: Access
    cta: int

    @property
    def agent(self) -> Agent:
        return self.run.agent

    @property
    def key(self) -> str:
        return self.run.agent.key

    @property
    def asynchronous(self) -> bool:
        return not isinstance(self.access.completion, AtOnce)

    @property
    def several(self) -> bool:
        """Whether several lanes of one warp do it."""
        return self.site.event.by is By.ALL and not (self.agent.apart and self.agent.first)

    @property
    def writes(self) -> bool:
        return self.access.mode is Mode.WRITE


def uses_of(cuts: Cuts, event: Event, number: int) -> list[Use]:
    """All executors of one act of an event. What a warpgroup does together is one operation, its first warp's."""
    out = []
    for run in cuts.protocol.runs.values():
        for site in run.sites:
            if site.event is not None and site.event.id == event.id and isinstance(act := site.acts[number], Access) and (run.agent.first or act.issuer is not Issuer.WARPGROUP):
                out += [Use(run, site, number, act, cta) for cta in memories(act, run.agent, cuts.facts.pair)]
    return out


def memories(access: Access, agent: Agent, pair: bool) -> tuple[int, ...]:
    """Ranks of the CTAs whose memory an access touches: an engine that serves a pair of CTAs touches that of both (PTX ISA, CTA pairs of the fifth generation tensor cores)."""
    if isinstance(access.completion, WithBytes) and access.mode is Mode.WRITE and access.completion.mask is not None:
        return destinations(access.completion, agent)
    if access.cta is None and pair and isinstance(access.completion, WithCommit):
        return (agent.cta & ~1, agent.cta | 1)
    if access.cta is None:
        return (agent.cta,)
    return (rank(access.cta, agent, "whose memory is touched"),)


def may_share(facts: Facts, a: Region, b: Region) -> bool:
    """Whether two regions lie in one buffer, or in buffers that share bytes."""
    if a.name == b.name:
        return True
    if a.memory != b.memory or a.memory not in ("shared", "tensor"):
        return False
    x, y = (_plan(facts, r).cells for r in (a, b))
    return x.start < y.stop and y.start < x.stop


def apart(a: Use, b: Use) -> bool:
    """Whether two threads' accesses reach no cell in common, whatever their tiles: of tensor memory, a warp reaches the quarter of the
    lanes that its number in the CTA names (PTX ISA, tensor memory, access restrictions)."""
    if a.access.region.memory != "tensor" or isinstance(a.access.completion, WithCommit) or isinstance(b.access.completion, WithCommit):
        return False
    return not _quarters(a.agent) & _quarters(b.agent)


def _quarters(agent: Agent) -> set[int]:
    plan = agent.role.plan
    first = plan.first + agent.instance * plan.warps + (agent.warp or (not agent.first and not agent.apart))
    return {(first + k) % QUARTERS for k in range(agent.warps)}


def _plan(facts: Facts, region: Region) -> Placed:
    return (facts.buffers if region.memory == "shared" else facts.columns)[region.name]


def meeting_form(late: Use, first: Use) -> tuple:
    """All that tells whether two accesses share bytes, but for where their agents stand: the same for those of other agents like them."""
    x, y = late.access.region, first.access.region
    if x.name != y.name:  # slots decide, whatever the parts of them (`_mates`)
        return tuple((r.name, *map(expr_text, r.slot)) for r in (x, y))
    slots = (((i,), (j,)) for i, j in zip(x.slot, y.slot, strict=False))
    boxes = (((d.lo, d.size), (e.lo, e.size)) for d, e in zip(x.box, y.box, strict=False))
    return x.name, *itertools.starmap(_meeting, (*slots, *boxes))


def placed_form(use: Use) -> tuple[str, ...]:
    """Where an access is in its buffer, as its text says."""
    return (*map(expr_text, use.access.region.slot), *(expr_text(e) for d in use.access.region.box for e in (d.lo, d.size)))


def _meeting(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> object:
    """One dimension of two places: whether they meet, and begin at one element, where all is constant; else how both are written."""
    if all(isinstance(e, Int) for e in (*a, *b)):
        (lo, *size), (low, *long) = ([e.value for e in of] for of in (a, b))
        return lo < low + (long or [1])[0] and low < lo + (size or [1])[0], lo == low
    return tuple(map(expr_text, (*a, *b)))


def at_cut(cuts: Cuts, use: Use):
    return lambda term: cuts.cut.here(use.key, term)


def shared(cuts: Cuts, a: Use, at_a, b: Use, at_b) -> list[smt.Term] | None:
    """That two places share bytes; None: they surely do not."""
    x, y = a.access.region, b.access.region
    plan = _plan(cuts.facts, x)

    def number(e, use: Use, at) -> smt.Term:
        return at(cuts.number(e, use.site.env))

    if x.name != y.name:
        return _mates(cuts.facts, x, y, lambda e: number(e, a, at_a), lambda e: number(e, b, at_b))
    out = []
    for i, j, slots in zip(x.slot, y.slot, plan.slots, strict=False):
        same = _same_slot(number(i, a, at_a), number(j, b, at_b), slots, f"k{len(out)}")
        if same is None:
            return None
        out += same
    for d, e in zip(x.box, y.box, strict=False):
        lo_a, lo_b = number(d.lo, a, at_a), number(e.lo, b, at_b)
        meets = smt.simplify(smt.And(lo_a < lo_b + number(e.size, b, at_b), lo_b < lo_a + number(d.size, a, at_a)))
        if smt.is_false(meets):
            return None
        if not smt.is_true(meets):
            out.append(meets)
    return out


def _mates(facts: Facts, x: Region, y: Region, at_x: Number, at_y: Number) -> list[smt.Term] | None:
    """That slots of two buffers share cells, whatever the parts of them: rings that lie on each other slot by slot, or ranges of cells."""
    a, b = _plan(facts, x), _plan(facts, y)
    if len(x.slot) == len(y.slot) == 1 and a.slots == b.slots and a.cells == b.cells:
        return _same_slot(at_x(x.slot[0]), at_y(y.slot[0]), a.slots[0], "k0")
    (lo, n), (first, m) = _cells(a, x, at_x), _cells(b, y, at_y)
    meets = smt.simplify(smt.And(lo < first + m, first < lo + n))
    return None if smt.is_false(meets) else [] if smt.is_true(meets) else [meets]


def _cells(plan: Placed, region: Region, at: Number) -> tuple[smt.Term, int]:
    """The first cell of the slots that a region names, and how many there are."""
    indices = [at(e) for e in region.slot[: len(plan.slots)]]
    size, first = len(slot_cells(plan, (0,) * len(indices))), smt.IntVal(plan.cells.start)
    for n, i in enumerate(indices):
        first += i * len(slot_cells(plan, (0,) * (n + 1)))
    return first, size


def _same_slot(i: smt.Term, j: smt.Term, slots: int, turns: str) -> list[smt.Term] | None:
    """i == j, remainders by the ring's size as multiples of it: two `%` in one formula are slow."""
    (a, m), (b, n) = residue(i), residue(j)
    x, y = literal(i), literal(j)
    if x is not None and y is not None:
        return [] if x == y else None
    if m is None and n is None or {m, n} - {None, slots}:
        return [i == j]
    if m is None and not (x is not None and x < slots) or n is None and not (y is not None and y < slots):
        return [i == j]
    return [a - b == slots * smt.Int(turns)]


def residue(t: smt.Term) -> tuple[smt.Term, int | None]:
    if t.kind == smt.MOD and (m := literal(t.args[1])) is not None:
        return t.args[0], m
    return t, None
