"""What roles bring to barriers, a phase: counted by straight stretch of text, not by schedule.

Hand-offs are told apart by the stretch that they stand in and by the slot that they name: two indices are the same slot if they
are the same expression of variables that were not set in between. An arrival behind another one of the same slot, with a wait
between them, belongs to the next phase. The text is read for each CTA of the cluster apart: what its rank decides, an arm of a branch or the
rank that something goes to, is decided, and the arms of such a branch are one stretch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field

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
from cake_core.frozen import thawed
from cake_core.ir.build import binary
from cake_core.ir.flow import conjuncts
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Int, Name, Option, Unary
from cake_core.ir.places import names
from cake_core.ir.plan import RolePlan
from cake_core.ir.types import Level, Scalar, Tile
from cake_core.source import Span


@thawed
class HandOff:
    """What one stretch of a role's text brings to one barrier array, a phase; each by the rank of the CTA that gets it, from all
    CTAs that have the role. `arrivals` None: a condition that can't be counted decides, or the rank is not known. `expected` and
    `bytes` under an expression: the rank that the text names, where a CTA's own rank does not say which it is."""

    barrier: str
    role: str
    span: Span
    arrivals: Counter | None = field(default_factory=Counter)
    expected: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)
    uniform: bool = True  # all instances do it, or none
    number: int = 0  # of its first statement in the text
    waits: int = 0  # that the role had done when it arrived last

    def and_of(self, other: HandOff) -> None:
        """What another CTA brings by the same stretch."""
        self.arrivals = None if self.arrivals is None or other.arrivals is None else self.arrivals + other.arrivals
        self.expected += other.expected
        self.bytes += other.bytes
        self.uniform &= other.uniform

    def received(self, rank: int) -> tuple[int | None, int | None]:
        """Bytes announced and brought at the barrier of `rank`; None: some of the latter go to a rank that is not known. Such ranks are
        compared as they are written."""
        computed = [any(isinstance(r, Expr) for r in of) for of in (self.expected, self.bytes)]
        if any(computed) and self.expected == self.bytes:
            return self.expected.total(), self.bytes.total()
        return self.expected.total() if computed[0] else self.expected[rank], None if any(computed) else self.bytes[rank]


def hand_offs(facts: Facts, role: RoleFacts) -> list[HandOff]:
    """The hand-offs of one role, in text order."""
    whole: dict[tuple, HandOff] = {}
    terms: dict[tuple, int] = {}
    for cta in facts.ctas(role):
        reader = _Reader(facts, role, cta, terms)
        reader.block(role.body, (0,), counted=True)
        begun = {h.number: h for h in whole.values()}
        for key, h in reader.found.items():
            if (same := whole.get(key) or begun.get(h.number)) is None:
                whole[key] = h
            else:
                same.and_of(h)
    return sorted(whole.values(), key=lambda h: h.number)


def threads(e: Event, warps: int) -> int:
    """How many threads of `warps` warps execute an event, conditions around it left out."""
    mine = 1 if e.warp is not None else warps
    return {By.ALL: 32 * mine, By.WARP_LEADERS: mine, By.LEADER: 1}[e.by]


def uniform(test: Expr) -> bool:
    """Whether all instances of a role decide alike: by values of the CTA, or by the role's own counters, which go through the
    same values in each."""
    return all(_uniform(t) for t in conjuncts(test))


def by_rank(test: Expr, facts: Facts, cta: int) -> bool | None:
    """What a condition is in the CTA of this rank, by its rank alone; None: something else decides too."""
    found = [folded(t, _ranks(facts, cta)) for t in conjuncts(test)]
    return False if False in found else None if None in found else all(found)


def _ranks(facts: Facts, cta: int) -> dict[str, int]:
    return {f"cluster.{facts.axis}": cta} if facts.axis is not None else {}


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


@thawed
class _Reader:
    facts: Facts
    role: RoleFacts
    cta: int  # its rank in the cluster
    terms: dict[tuple, int]  # every expression met, its parts as numbers; of all CTAs together
    found: dict[tuple, HandOff] = field(default_factory=dict)  # by stretch and slot, and how many of them came before
    current: dict[tuple, HandOff] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)  # what each name stands for, as numbers of `terms`
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
                    if (taken := by_rank(node.test, self.facts, self.cta)) is not None:
                        self.block(node.then if taken else node.other, (*region, n), counted)
                        continue
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
                self.values[s.name] = self.number(("variable", e.id, s.name))

    def rank(self, cta: Expr) -> int | None:
        found = folded(cta, _ranks(self.facts, self.cta))
        return found if type(found) is int else None

    def add(self, amounts: Counter, n: int, cta: Expr | None, mask: int | None) -> None:
        """Bytes of this CTA, as it sends them: to one rank, to those of a mask, to its own barrier."""
        if cta is None:
            amounts.update(dict.fromkeys((self.cta,) if mask is None else _bits(mask), n))
        elif (rank := self.rank(cta)) is not None:
            amounts[rank] += n * (mask.bit_count() if mask is not None else 1)
        else:
            amounts[cta] += n

    def arrive(self, barrier, e: Event, region, amount: int | None, to: Expr | int | None) -> HandOff:
        """`to`: the rank that is arrived at, a mask of ranks, or None: the own CTA."""
        h = self.hand_off(barrier, e, region, arrives=True)
        rank = self.rank(to) if isinstance(to, Expr) else None
        if amount is None or h.arrivals is None or isinstance(to, Expr) and rank is None:
            h.arrivals = None
            return h
        ranks = (self.cta,) if to is None else (rank,) if rank is not None else _bits(to)
        h.arrivals.update(dict.fromkeys(ranks, amount))
        return h

    def hand_off(self, barrier, e: Event, region, arrives: bool) -> HandOff:
        key = (barrier.name, region, self.value(barrier.index))
        h = self.current.get(key)
        if h is None or arrives and h.arrivals != Counter() and h.waits < self.waits:
            h = self.current[key] = HandOff(barrier.name, self.role.name, e.span, number=e.id)
            self.found[(*key, sum(k[:-1] == key for k in self.found))] = h
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
    found = folded(test, {f"{role}.i": instance})
    return found if isinstance(found, bool) else None


def _constant(e: Expr, role: str, instance: int) -> int | None:
    found = folded(e, {f"{role}.i": instance})
    return found if type(found) is int else None


def folded(e: Expr, values: Mapping[str, int]) -> int | bool | None:
    """An integer or a condition where names have these values; None: others decide too."""
    match e:
        case Int(v) | Bool(v):
            return v
        case Name(id):
            return values.get(id)
        case Unary("not", a):
            return None if (x := folded(a, values)) is None else not x
        case Binary("and" | "or" as op, a, b):
            x, y = folded(a, values), folded(b, values)
            short = op == "or"
            return short if short in (x, y) else None if None in (x, y) else not short
        case Binary(op, a, b):
            x, y = folded(a, values), folded(b, values)
            if x is not None and y is not None and isinstance(found := binary(op, x, y), Int | Bool):
                return found.value
        case Cond(test, then, other):
            if (x := folded(test, values)) is not None:
                return folded(then if x else other, values)
    return None
