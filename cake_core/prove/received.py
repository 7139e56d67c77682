"""Loops that go on as long as what was received says so.

One role sends, once a trip of its loop, what it goes on by itself; the others receive it once a trip of theirs. If the k-th
receive gives what the k-th trip has sent, all go round equally often: their loops have one unknown number of trips. This file finds such
*talks* in the text: who sends which variable into which element, and who hears it. That each hears what is meant for its trip
is asked of the cuts (`states.stale`); docs/proof.md has the argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from cake_core.effects import Mode
from cake_core.facts.inline import inline
from cake_core.facts.schema import Access, Block, By, Event, Facts, Loop, Region, RoleFacts, While, WithBytes, WithGroup, events
from cake_core.frozen import frozen, thawed
from cake_core.ir.nodes import Expr, Int, Name
from cake_core.ir.places import names
from cake_core.ir.printer import expr_text


@frozen
class Sent:
    """One variable of one role, as one of its events stores it into one element of `cta`'s shared memory: each trip of `loop` once."""

    role: RoleFacts
    loop: While | Loop
    variable: str
    event: Event
    number: int  # which act of the event
    cta: int | None  # None: the own
    again: bool = False  # another loop sends the variable too

    @property
    def access(self) -> Access:
        return self.event.acts[self.number]

    def text(self, cta: int) -> str:
        """What names the value in every role: who sent it."""
        name = f"{self.role.name}.{self.variable}" + (f" of loop {self.loop.id}" if self.again else "")
        return name if self.role.plan.on is not None else f"{name}@{cta}"


@frozen
class Talk:
    """A loop of one role and what its values are called: `sends`, by event, the variables that are sent there; `hears`, by event and variable,
    what is received. `test`: the loop's condition with what was sent in place of variables; None where it asks something else too."""

    sends: dict[int, dict[str, str]]
    hears: dict[tuple[int, str], Sent]
    test: str | None

    def meant(self, cta: int) -> dict[str, str]:
        """What the values of its variables are called."""
        return {v: t for by in self.sends.values() for v, t in by.items()} | {v: s.text(cta) for (_, v), s in self.hears.items()}


@thawed
class Talks:
    """The talks of one kernel."""

    facts: Facts
    sent: dict[tuple[str, tuple[int, ...]], list[Sent]] = field(init=False)  # by buffer and element

    def __post_init__(self) -> None:
        self.sent = {}
        found = [s for buffer in self.facts.buffers for s in _sent(self.facts, buffer) or ()]
        loops = {(s.role.name, s.variable): s.loop for s in found}
        many = {(s.role.name, s.variable) for s in found if loops[s.role.name, s.variable] is not s.loop}
        for s in found:
            of = replace(s, again=(s.role.name, s.variable) in many)
            self.sent.setdefault((of.access.region.name, _element(of.access.region)), []).append(of)

    def of(self, role: RoleFacts, loop: While | Loop, cta: int) -> Talk | None:
        """The talk of a loop of a CTA's role; None where it hears and sends nothing, or stands in another loop."""
        if not any(n is loop for n in role.body):
            return None
        sends: dict[int, dict[str, str]] = {}
        for s in self._all():
            if s.role is role and s.loop is loop:
                sends.setdefault(s.event.id, {})[s.variable] = s.text(cta)
        hears = {}
        for e in _straight(loop.body):
            for x in e.sets if e.by is By.ALL and e.warp is None else ():
                if x.source is not None and (s := self._heard(x.source, cta)) is not None and _once(x.name, loop.body):
                    hears[e.id, x.name] = s
        if not sends and not hears:
            return None
        meant = Talk(sends, hears, None).meant(cta)
        if isinstance(loop, Loop):  # how often it goes round its bounds say
            return Talk(sends, hears, None)
        asked = {n.id for n in names(loop.test)}
        told = asked & set(meant) and asked <= {*meant, *self.facts.scalars, "cluster.id", "cluster.count"}
        return Talk(sends, hears, _test(loop.test, meant) if told else None)

    def agreed(self, talk: Talk, loop: While, cta: int) -> bool:
        """Whether the senders of what a loop asks go on by the same condition."""
        if talk.test is None:
            return False
        asked = {n.id for n in names(loop.test)}
        for s in (s for (_, v), s in talk.hears.items() if v in asked):
            home = s.role.plan.on if s.role.plan.on is not None else cta
            theirs = self.of(s.role, s.loop, home) if isinstance(s.loop, While) else None
            if theirs is None or theirs.test != talk.test:
                return False
        return True

    def _all(self) -> Iterator[Sent]:
        for found in self.sent.values():
            yield from found

    def _heard(self, source: Region, cta: int) -> Sent | None:
        for s in self.sent.get((source.name, _element(source)), ()) if _element(source) is not None else ():
            if s.cta == cta or s.cta is None:
                return s
        return None


def _sent(facts: Facts, buffer: str) -> list[Sent] | None:
    """All that is written to a buffer of messages; None: it is none, for something else is written there too."""
    out: list[Sent] = []
    mine = facts.buffers[buffer]
    for name, plan in facts.buffers.items():
        if name != buffer and plan.offset < mine.offset + mine.bytes and mine.offset < plan.offset + plan.bytes:
            return None
    if any(_writes(e, buffer) for e in events((*facts.before, *facts.after))):
        return None
    for role in facts.roles:
        for e in events(role.body):
            for number in _writes(e, buffer):
                a = e.acts[number]
                loop = next((n for n in role.body if isinstance(n, While | Loop) and any(x is e for x in _straight(n.body))), None)
                cta = a.completion.cta or a.cta if isinstance(a.completion, WithBytes) else a.cta
                if loop is None or not isinstance(a.value, Name) or _element(a.region) is None or not isinstance(cta, Int | None):
                    return None
                if cta is not None and len(facts.ctas(role)) > 1:  # each of its CTAs sends there
                    return None
                if a.atomic or isinstance(a.completion, WithGroup) or e.warp is not None or role.plan.instances > 1:
                    return None
                out.append(Sent(role, loop, a.value.id, e, number, None if cta is None else cta.value))
    places = [(_element(s.access.region), s.cta) for s in out]
    if len(set(places)) < len(places) or len({s.role.name for s in out}) > 1 or len({s.cta is None for s in out}) > 1:
        return None
    return None if any(_set_behind(s) for s in out) else out


def _writes(e: Event, buffer: str) -> list[int]:
    return [
        n for n, a in enumerate(e.acts) if isinstance(a, Access) and a.mode is Mode.WRITE and a.region.name == buffer and a.region.memory == "shared"
    ]


def _element(r: Region) -> tuple[int, ...] | None:
    """Which element of a slot it is, if it is one and the same each time."""
    if len(r.slot) > 1 or not all(isinstance(d.lo, Int) and isinstance(d.size, Int) and d.size.value == 1 for d in r.box):
        return None
    return tuple(d.lo.value for d in r.box)


def _straight(body: Block) -> Iterator[Event]:
    """Events that each trip comes to once."""
    return (n for n in body if isinstance(n, Event))


def _once(name: str, body: Block) -> bool:
    """Whether one event alone gives a name its value."""
    return sum(x.name == name for e in events(body) for x in e.sets) == 1


def _set_behind(s: Sent) -> bool:
    """Whether the variable is given another value between where it is first sent and the end of the trip."""
    first = next(n for n, node in enumerate(s.loop.body) if node is s.event)
    return any(x.name == s.variable for e in events(s.loop.body[first:]) for x in e.sets)


def _test(test: Expr, meant: dict[str, str]) -> str:
    return expr_text(inline(test, {v: Name(f"what {t} sent") for v, t in meant.items()}))
