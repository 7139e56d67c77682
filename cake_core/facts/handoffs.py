"""What roles bring to barriers, a phase: counted by straight stretch of text, not by schedule.

Hand-offs are told apart by the stretch that they stand in and by the slot that they name: two indices are the same slot if they
are the same expression of variables that were not set in between. An arrival behind another one of the same slot, with a wait
between them, belongs to the next phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from cake_core.effects import Mode, Proxy
from cake_core.facts.schema import (
    Access,
    Arrive,
    Block,
    Branch,
    By,
    EngineArrive,
    Event,
    Facts,
    Loop,
    Meet,
    RoleFacts,
    Wait,
    While,
    WithBytes,
)
from cake_core.ir.build import binary
from cake_core.ir.flow import conjuncts
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Int, Name, Option, Unary
from cake_core.ir.places import names
from cake_core.ir.plan import RolePlan
from cake_core.ir.types import Level, Scalar, Tile
from cake_core.source import Span


@dataclass(slots=True)
class HandOff:
    """What one stretch of a role's text brings to one barrier array, a phase; each by the rank of the CTA that gets it, from all
    CTAs that have the role. `arrivals` None: a condition that can't be counted decides, or the rank is not known. `expected` and
    `bytes` under an expression: the rank that the text names."""

    barrier: str
    role: str
    span: Span
    arrivals: Counter | None = field(default_factory=Counter)
    expected: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)
    uniform: bool = True  # all instances do it, or none
    waits: int = 0  # that the role had done when it arrived last

    def received(self, rank: int) -> tuple[int | None, int | None]:
        """Bytes announced and brought at the barrier of `rank`. Ranks that the text computes are compared as they are written."""
        if not any(isinstance(r, Expr) for r in (*self.expected, *self.bytes)):
            return self.expected[rank], self.bytes[rank]
        return self.expected.total(), self.bytes.total() if self.expected == self.bytes else None


def hand_offs(facts: Facts, role: RoleFacts) -> list[HandOff]:
    """The hand-offs of one role, in text order."""
    reader = _Reader(facts, role)
    reader.block(role.body, (0,), counted=True)
    return reader.found


def threads(e: Event, warps: int) -> int:
    """How many threads of `warps` warps execute an event, conditions around it left out."""
    mine = 1 if e.warp is not None else warps
    return {By.ALL: 32 * mine, By.WARP_LEADERS: mine, By.LEADER: 1}[e.by]


def uniform(test: Expr) -> bool:
    """Whether all instances of a role decide alike: by values of the CTA, or by the role's own counters, which go through the
    same values in each."""
    return all(_uniform(t) for t in conjuncts(test))


def level(*tests: Expr) -> Level:
    """Among which threads expressions may differ."""
    return max((_level(t) for e in tests for t in conjuncts(e)), default=Level.CTA)


def _level(e: Expr) -> Level:
    if isinstance(e, Int | Bool):
        return Level.CTA
    if isinstance(e.type, Scalar):
        return e.type.level
    return max((n.type.level if isinstance(n.type, Scalar) else Level.LANE for n in _values(e)), default=Level.CTA)


def _uniform(test: Expr) -> bool:
    if isinstance(test, Int | Bool):
        return True
    if isinstance(test.type, Scalar) and test.type.level <= Level.CTA:
        return True
    return all("." not in n.id and n.id != "warp" and isinstance(n.type, Scalar) and n.type.level <= Level.INSTANCE for n in _values(test))


def _values(e) -> Iterator[Name]:
    """The names of scalars in an expression. A tensor that is read stands for a function of its indices."""
    for n in names(_arguments(e)):
        if not isinstance(n.type, Tile):
            yield n


def _arguments(e):
    """The expression without the names of the functions in it."""
    if isinstance(e, Call):
        return tuple(_arguments(a.value if isinstance(a, Option) else a) for a in e.args)
    if isinstance(e, Binary):
        return (_arguments(e.left), _arguments(e.right))
    if isinstance(e, Cond):
        return (_arguments(e.test), _arguments(e.then), _arguments(e.other))
    if isinstance(e, Unary):
        return _arguments(e.operand)
    return e


@dataclass(slots=True)
class _Reader:
    facts: Facts
    role: RoleFacts
    found: list[HandOff] = field(default_factory=list)
    current: dict[tuple, HandOff] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)  # what each name stands for, as numbers of `terms`
    terms: dict[tuple, int] = field(default_factory=dict)  # every expression met, its parts as numbers
    assigned: int = 0
    waits: int = 0

    @property
    def plan(self) -> RolePlan:
        return self.role.plan

    def block(self, block: Block, region: tuple[int, ...], counted: bool) -> None:
        for n, node in enumerate(block):
            match node:
                case Event():
                    self.event(node, region, counted)
                case Loop() | While():
                    self.block(node.body, (*region, n), counted)
                case Branch():
                    inside = counted and uniform(node.test)
                    self.block(node.then, (*region, n, 0), inside)
                    self.block(node.other, (*region, n, 1), inside)

    def event(self, e: Event, region: tuple[int, ...], counted: bool) -> None:
        each = threads(e, self.plan.warps)  # of an instance: every thread announces, and an engine gets a copy from each
        amount = each * self.plan.instances if counted else None
        for act in e.acts:
            match act:
                case Wait():
                    self.waits += 1
                case Arrive(barrier, cta, expect):
                    h = self.arrive(barrier, e, region, amount, cta)
                    h.uniform &= counted
                    if expect:
                        self.add(h.expected, expect * each, cta, None)
                case EngineArrive(barrier, _, mask):
                    self.arrive(barrier, e, region, amount, mask)
                case Access(mode=Mode.WRITE, completion=WithBytes(barrier, count, mask, cta)):
                    many = 1 if act.proxy is Proxy.GENERIC else each
                    h = self.hand_off(barrier, e, region, arrives=False)
                    h.uniform &= counted
                    self.add(h.bytes, count * many, cta, mask)
        for s in e.sets:
            if e.op == "let" and s.value is not None:
                self.values[s.name] = self.value(s.value)
            else:
                self.assigned += 1
                self.values[s.name] = self.number(("variable", self.assigned))

    def add(self, amounts: Counter, n: int, cta: Expr | None, mask: int | None) -> None:
        """Bytes of each CTA that has the role, as it sends them: to one rank, to those of a mask, to its own barrier."""
        for own in self.facts.ctas(self.role):
            if isinstance(cta, Int):
                amounts[cta.value] += n * (mask.bit_count() if mask is not None else 1)
            elif cta is not None:
                amounts[cta] += n
            else:
                amounts.update(dict.fromkeys((own,) if mask is None else _bits(mask), n))

    def arrive(self, barrier, e: Event, region, amount: int | None, to: Expr | int | None) -> HandOff:
        """`to`: the rank that is arrived at, a mask of ranks, or None: the own CTA."""
        h = self.hand_off(barrier, e, region, arrives=True)
        if amount is None or h.arrivals is None or isinstance(to, Expr) and not isinstance(to, Int):
            h.arrivals = None
            return h
        for cta in self.facts.ctas(self.role):
            ranks = (cta,) if to is None else (to.value,) if isinstance(to, Int) else _bits(to)
            h.arrivals.update(dict.fromkeys(ranks, amount))
        return h

    def hand_off(self, barrier, e: Event, region, arrives: bool) -> HandOff:
        key = (barrier.name, region, self.value(barrier.index))
        h = self.current.get(key)
        if h is None or arrives and h.arrivals != Counter() and h.waits < self.waits:
            h = self.current[key] = HandOff(barrier.name, self.role.name, e.span)
            self.found.append(h)
        if arrives:
            h.waits = self.waits
        return h

    def value(self, e: Expr) -> int:
        """The number of an expression, names being what they stand for."""
        match e:
            case Name(id) if id in self.values:
                return self.values[id]
            case Binary(op, a, b):
                return self.number((op, self.value(a), self.value(b)))
            case Cond(a, b, c):
                return self.number(("?", self.value(a), self.value(b), self.value(c)))
            case Call(args=args) if all(isinstance(a, Int | Name | Binary | Cond | Call) for a in args):
                return self.number((e.name, *map(self.value, args)))
        return self.number((e,))

    def number(self, term: tuple) -> int:
        return self.terms.setdefault(term, len(self.terms))


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


# --- named barriers ----------------------------------------------------------------------------------------------


def named_meetings(role: RoleFacts, instance: int) -> Iterator[tuple[Event, Meet, int]]:
    """The uses of named barriers that one instance may come to, with their numbers; guards on its number are decided."""
    for e in _of_instance(role.body, role.name, instance):
        for act in e.acts:
            if isinstance(act, Meet) and act.id is not None and (number := _constant(act.id, role.name, instance)) is not None:
                yield e, act, number


def _of_instance(block: Block, role: str, instance: int) -> Iterator[Event]:
    for node in block:
        match node:
            case Event():
                yield node
            case Loop() | While():
                yield from _of_instance(node.body, role, instance)
            case Branch():
                holds = [_holds(t, role, instance) for t in conjuncts(node.test)]
                if False not in holds:
                    yield from _of_instance(node.then, role, instance)
                if not all(holds) or None in holds:
                    yield from _of_instance(node.other, role, instance)


def _holds(test: Expr, role: str, instance: int) -> bool | None:
    """A comparison of the instance's number, for one instance; None: another condition."""
    match test:
        case Binary("==" | "!=" | "<" | "<=" | ">" | ">=" as op, a, b):
            x, y = _constant(a, role, instance), _constant(b, role, instance)
            if x is not None and y is not None:
                return binary(op, x, y).value
    return None


def _constant(e: Expr, role: str, instance: int) -> int | None:
    match e:
        case Int(v):
            return v
        case Name(id) if id == f"{role}.i":
            return instance
        case Binary("+" | "-" | "*" | "/" | "%" as op, a, b):
            x, y = _constant(a, role, instance), _constant(b, role, instance)
            if x is not None and y is not None and isinstance(folded := binary(op, x, y), Int):
                return folded.value
    return None
