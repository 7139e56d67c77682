"""Schedules on demand written out: one more role draws the items, all roles receive them (S9, S10).

The role `t_sched` of one warp draws numbers from a counter in a workspace, finds the item of a number as any role of the static
schedule would, and hands its coordinates on through a pipeline of as many slots as items may be drawn ahead. The first coordinate,
which is never negative, is -1 behind the last item; every loop over items becomes a `while` on it. Each cluster draws one number too
many, so who draws the last of those knows that nobody draws after it, and sets the counter back. In a cluster of several CTAs the
first one draws, and sends to all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from cake_core.derive.accesses import Touch, operation_with
from cake_core.derive.schedules import Schedule, needed
from cake_core.derive.warps import Placed
from cake_core.diagnostics import Related, fail
from cake_core.effects import GridOrder
from cake_core.frozen import frozen
from cake_core.ir.build import add, assign, binary, call, index, mod, op, words
from cake_core.ir.flow import walk
from cake_core.ir.nodes import (
    Binary,
    Binding,
    Block,
    Cond,
    Declaration,
    Declare,
    Expr,
    For,
    If,
    Int,
    Kernel,
    Let,
    Name,
    Role,
    Stmt,
    Tiles,
    TypeExpr,
    Var,
    While,
    Words,
)
from cake_core.ir.places import names
from cake_core.ir.plan import pair_rank
from cake_core.ir.schedule import RAGGED_PARTS, read_schedule
from cake_core.ir.schedule import Schedule as Asked
from cake_core.ir.visit import own_expressions
from cake_core.primitive import PipelinePlan, Protocol, Signal
from cake_core.primitive.asking import effects_of
from cake_core.source import Span

BYTES = 4  # of a coordinate
END = -1


@frozen
class OnDemand:
    """A schedule whose items are drawn. It stands where a `Schedule` stands for the roles; `plan`: of the pipeline of messages."""

    schedule: Schedule
    drawn: Expr  # the next number
    counter: Expr  # where it comes from
    plan: PipelinePlan
    protocol: Protocol
    role: str
    at: tuple[str, ...]  # variables that hold an item's coordinates; the first one, END behind the last item
    offsets: tuple[Expr | None, ...]  # by coordinate: how far a CTA of the cluster lies behind the first one
    one_ahead: bool  # some role asks for the item behind the one at hand; then all receive it, so that all go round alike
    now: tuple[str, ...]  # then, variables of the item at hand
    following: tuple[Binding, ...]  # there, the coordinates of the item that was received last; behind the last one they lie past the end
    ahead: dict[str, str]  # by `t.next.D`, its name among those

    persistent = True

    @property
    def name(self) -> str:
        return self.schedule.name

    @property
    def item(self) -> str:
        """The buffer of the messages."""
        return self.plan.buffers[0]

    def carried_as(self, pattern: tuple[str, ...]) -> tuple[Binding, ...]:
        return self.schedule.carried_as(pattern)

    def next(self, name: str) -> str | None:
        """What `t.next.D`, a coordinate of the next item, is called in the derived form; None for another name."""
        return self.ahead.get(name)

    def declared(self) -> Declare:
        """The buffer of the messages: the coordinates of an item in each slot."""
        shape = ((Int(self.plan.slots),), (Int(len(self.schedule.parts)),))
        return Declare("shared", (Declaration(self.item, TypeExpr("i32", shape)),))

    # --- who receives

    def loop(self, pattern: tuple[str, ...], carried: tuple[Binding, ...], body: Block, at: Span) -> Block:
        """The items of one CTA, in the roles that work on them. `carried`: the item's values, derived."""
        used = {n.id for s in walk(body) for e in own_expressions(s) for n in names(e)}
        carried = needed(carried, used)
        if self.one_ahead:
            return self._one_ahead(pattern, carried, needed(self.following, used), body, used, at)
        # coordinates are never negative, which is said so: divisions of what may be cost more
        first = (call("max", Name(self.at[0]) if k == 0 else self._read(k), 0) for k in range(len(pattern)))
        values = (e if o is None else add(e, o) for e, o in zip(first, self.offsets, strict=True))
        parts = needed(tuple(map(Binding, pattern, values)), used | {n.id for b in carried for n in names(b.value)})
        lets = tuple(Let((b,), span=at) for b in parts)
        early = tuple(s for s in lets if s.bindings[0].name != pattern[0])
        late = tuple(s for s in lets if s.bindings[0].name == pattern[0])
        receive = self._receive((assign(self.at[0], self._read(0)), *early))
        work = If(binary(">=", self.at[0], 0), (*late, *(Let((b,), span=b.span) for b in carried), *body), span=at)
        return self._rounds((self.at[0],), (*_at(receive, at), work), at)

    def _one_ahead(
        self, pattern: tuple[str, ...], carried: tuple[Binding, ...], following: tuple[Binding, ...], body: Block, used: set[str], at: Span
    ) -> Block:
        """As `loop`, where items are received one ahead: a round receives an item, and works on the one before it, which the first round
        has not."""
        values = (call("max", n, 0) for n in self.now)
        mine = (e if o is None else add(e, o) for e, o in zip(values, self.offsets, strict=True))
        parts = needed(tuple(map(Binding, pattern, mine)), used | {n.id for b in carried for n in names(b.value)})
        asked = {n.id for b in (*parts, *following) for n in names(b.value)}
        kept = tuple(k for k, n in enumerate(self.now) if n in asked)
        heard = tuple(k for k, n in enumerate(self.at) if k in kept or n in asked or k == 0)
        shift = tuple(assign(self.now[k], Name(self.at[k])) for k in kept)
        receive = self._receive(tuple(assign(self.at[k], self._read(k)) for k in heard))
        lets = (*(Let((b,), span=at) for b in parts), *(Let((b,), span=b.span) for b in carried), *(Let((b,), span=at) for b in following))
        work = If(binary(">", f"{self.plan.name}_wait", 1), (*lets, *body), span=at)
        variables = (*(self.at[k] for k in heard), *(self.now[k] for k in kept))
        return self._rounds(variables, (*_at((*shift, *receive), at), work), at)

    def _read(self, k: int) -> Expr:
        """Coordinate `k` of the message in the slot at hand."""
        return call("load", index(index(self.item, f"{self.plan.name}_wait_slot"), k), by=BYTES)

    def _receive(self, reads: Block) -> Block:
        """A message is waited for, read and handed back."""
        p, waits, releases = self.plan, f"{self.plan.name}_wait", f"{self.plan.name}_release"
        return (
            Let((Binding(f"{waits}_slot", mod(waits, p.slots)),)),
            *self.protocol.wait(p, Name(f"{waits}_slot"), Name(waits)),
            assign(waits, add(waits, 1)),
            *reads,
            *self.protocol.release(p, mod(releases, p.slots), Signal.WARPS),
            assign(releases, add(releases, 1)),
        )

    def _rounds(self, variables: tuple[str, ...], body: Block, at: Span) -> Block:
        """Rounds until the first of `variables` is END; all of them start at 0."""
        start = Var(tuple(Binding(n, Int(0)) for n in (f"{self.plan.name}_wait", f"{self.plan.name}_release", *variables)), span=at)
        return (start, While(binary(">=", self.at[0], 0), Words(), body, span=at))

    # --- who draws

    def scheduler(self, first: int, before: Block, at: Span) -> Role:
        """The role that draws, in the warp `first`. `before`: statements at its start."""
        s, p, fills, commits = self.schedule, self.plan, f"{self.plan.name}_fill", f"{self.plan.name}_commit"
        slot, how = f"{fills}_slot", p.commits[self.role]
        sent = (self.protocol.send(p, Name(slot), index(index(self.item, slot), k), Name(n), how) for k, n in enumerate(self.at))
        there = s.guard if s.guard is not None else binary("<", s.index, s.total)
        coordinates = tuple(Let((Binding(n, e),)) for n, e in s.coordinates)
        fetched = tuple(Let((b,)) for b in s.fetch(Name(s.index)))
        item = (e if o is None else e.left for e, o in zip(s.item, self.offsets, strict=True))  # of the cluster's first CTA
        found = (*coordinates, *fetched, *(assign(n, e) for n, e in zip(self.at, item, strict=True)))
        hand_over = (*self.protocol.commit(p, mod(commits, p.slots), how), assign(commits, add(commits, 1))) if how is Signal.WARPS else ()
        last = binary("==", s.index, binary("-", add(there.right, "cluster.count"), 1))  # with no item left, `there` compares with their number
        body: tuple[Stmt, ...] = (
            Let((Binding(slot, mod(fills, p.slots)),)),
            *self.protocol.acquire(p, Name(slot), Name(fills)),
            assign(fills, add(fills, 1)),
            *self.protocol.announce(p, Name(slot), p.bytes.get(self.role, 0)),
            Let((Binding(s.index, call("max", self.drawn, 0)),)),
            *s.seek,
            assign(self.at[0], Int(END)),
            If(there, found),
            *(x for block in sent for x in block),
            *hand_over,
            If(last, (op("store", self.counter, arrow="<-", value=Int(0), by=BYTES),)),
        )
        start = Var(tuple(Binding(n, Int(0)) for n in (fills, *((commits,) if hand_over else ()), *self.at)))
        loop = While(binary(">=", self.at[0], 0), Words(), body)
        on = index("cluster", 0) if p.full_at else None
        return Role(self.role, None, Int(1), "warp", words(at=first, on=on), _at((*before, start, *s.start, loop), at), span=at)


def on_demand(
    kernel: Kernel,
    tiles: Tiles,
    schedule: Schedule,
    registry,
    arch,
    placed: dict[str, Placed],
    touched: list[Touch],
    protocol: Protocol,
    cluster: tuple[str | None, int],
    fresh,
) -> OnDemand:
    """The schedule of a kernel whose items are drawn; the name of its pipeline is not chosen yet. `cluster`: axis and CTAs.
    Raises CakeError."""
    asked, (axis, ctas) = read_schedule(tiles), cluster
    place = asked.counter
    counter = next((c for c in registry.counters.values() if c.capabilities <= arch.capabilities), None)
    if counter is None:
        raise fail("derive/no-protocol", f"no installed plugin offers a counter for {arch.name}", tiles.span, why="items are drawn from one")
    _alone(place, touched)
    t, roles = schedule.name, [r for r in kernel.roles if _loops(r, tiles.name)]
    releases = {r.name: Signal.WARPS for r in roles}
    everyone = tuple(range(ctas)) if ctas > 1 else ()
    arrivals = sum(placed[r.name].instances * placed[r.name].warps * (ctas if pair_rank(r.words) is None else 1) for r in roles)
    role, how = fresh(f"{t}_sched"), Signal.BYTES if everyone else Signal.WARPS
    sizes = {role: BYTES * len(schedule.parts)} if everyone else {}
    plan = PipelinePlan(t, asked.ahead, (fresh(f"{t}_item"),), {role: how}, releases, 1, arrivals, sizes, everyone, everyone[:1])
    element = index(place, 0)
    at = tuple(fresh(f"{t}_at" if k == 0 else f"{t}_{part}_at") for k, part in enumerate(schedule.parts))
    offsets = tuple(_offset(e, axis) for e in schedule.item)
    now = tuple(fresh(f"{t}_now" if k == 0 else f"{t}_{part}_now") for k, part in enumerate(schedule.parts))
    called = {part: b.name for part, b in zip(schedule.parts, schedule.following[-len(schedule.parts) :], strict=True)}
    ahead = {f"{tiles.name}.next.{part}": name for part, name in called.items()}
    one_ahead = any(n.id in ahead for r in roles for s in walk(r.body) for e in own_expressions(s) for n in names(e))
    return OnDemand(
        schedule, counter.draw(element), element, plan, protocol, role, at, offsets, one_ahead, now, _following(asked, at, offsets, called), ahead
    )


def _following(asked: Asked, at: tuple[str, ...], offsets: tuple[Expr | None, ...], called: dict[str, str]) -> tuple[Binding, ...]:
    """The coordinates of the item that was received last, of which the variables `at` hold those of the cluster's first CTA. Behind the
    last item there are none: the last dimension's lies past its end, or, of a ragged schedule, r0 is r1."""
    there = binary(">=", at[0], 0)
    values = {part: call("max", n, 0) if o is None else add(call("max", n, 0), o) for part, n, o in zip(called, at, offsets, strict=True)}
    if asked.ragged is not None:
        _, r0, r1 = RAGGED_PARTS
        values[r0] = Cond(there, values[r0], Name(called[r1]))
        order = (r1, *(part for part in called if part != r1))
    else:
        last = asked.dims[-1]
        values[last.name] = Cond(there, values[last.name], last.value)
        order = tuple(called)
    return tuple(Binding(called[part], values[part]) for part in order)


def waits_for_grids(kernel: Kernel, registry, arch, at: Span) -> Block:
    """What the drawing role must do first where the kernel's roles wait for the grids in front: those draw from the counter too."""
    effects = (e for r in kernel.roles for s in walk(r.body) for e in effects_of(s, registry))
    if any(isinstance(e, GridOrder) and e.waits for e in effects):
        return (operation_with(registry, arch, GridOrder, lambda e: e.waits, "a wait for the grids in front", at),)
    return ()


def free_warps(placed: dict[str, Placed]) -> Iterator[int]:
    """Warps for more roles that ask for nothing: the idle ones behind roles, then more (S20)."""
    ends = [p.first + p.instances * p.warps for p in placed.values()]
    for end, p in zip(ends, placed.values(), strict=True):
        yield from range(end, end + p.pad)
    yield from count(max(end + p.pad for end, p in zip(ends, placed.values(), strict=True)))


def _loops(role: Role, tiles: str) -> tuple[For, ...]:
    """A role's loops over the items of a schedule. Raises CakeError where it has several."""
    loops = tuple(s for s in role.body if isinstance(s, For) and s.hi is None and s.lo.id == tiles)
    if len(loops) > 1:
        raise fail(
            "derive/on-demand",
            f"role '{role.name}' goes over the items of '{loops[0].lo.id}' twice",
            loops[1].span,
            role=role.name,
            related=(Related("the first time", loops[0].span),),
            why="items on demand are handed out once: the second loop would find none",
            fix="do both in one loop, or leave `dynamic` out",
        )
    return loops


def _offset(e: Expr, axis: str | None) -> Expr | None:
    """What a coordinate adds to that of the cluster's first CTA: schedules write it as the last summand."""
    match e:
        case Binary("+", _, right) if any(n.id == f"cluster.{axis}" for n in names(right)):
            return right
    return None


def _alone(counter: str, touched: list[Touch]) -> None:
    """Nobody but the schedule uses its counter."""
    other = next((t for t in touched if t.buffer == counter), None)
    if other is not None:
        raise fail(
            "derive/on-demand",
            f"role '{other.role}' uses '{counter}', the counter of the schedule",
            other.by.span,
            role=other.role,
            resource=counter,
            why="an item is missed, or done twice, when somebody else changes it, and what it holds means nothing to others",
            fix="give the role a workspace of its own",
        )


def _at(block: Block, at: Span) -> Block:
    """Statements that were written for one of the text, with its place."""
    out = []
    for s in block:
        match s:
            case If(then=then, other=other):
                s = replace(s, then=_at(then, at), other=None if other is None else _at(other, at))
            case While(body=body):
                s = replace(s, body=_at(body, at))
        out.append(replace(s, span=at))
    return tuple(out)
