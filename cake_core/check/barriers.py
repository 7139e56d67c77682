"""Barriers: arrivals add up to the declared count, bytes to what was announced, named barriers are nobody else's.

Counted by statement, not by schedule: each hand-off of a role to a barrier is one straight-line stretch of text, and all
of them must bring the same. A barrier whose arrivals stand under conditions that can't be counted is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from cake_core.check.subject import Executed, Subject
from cake_core.diagnostics import Related, Sink
from cake_core.effects import Access, BarrierArrive, BarrierInit, BarrierWait, BySignal, EngineCommit, Mode, Rendezvous
from cake_core.ir.build import binary
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Assign, Binary, Block, Expr, If, Index, Int, Let, Name, Op, Stmt, Var
from cake_core.ir.places import root
from cake_core.ir.visit import nested
from cake_core.source import Span


@dataclass(slots=True)
class HandOff:
    """What one stretch of a role's text brings to one barrier array, a phase.

    `arrivals`: by rank of the CTA whose barrier receives them, from all CTAs that have the role. `expected`, `bytes`: as one
    CTA brings them, by the rank that the text names; None: to its own barrier."""

    role: str
    span: Span
    arrivals: Counter | None = field(default_factory=Counter)
    expected: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)
    waits: int = 0  # that the role had done when it arrived last

    @property
    def expects(self) -> bool:
        return bool(self.expected)


def check(subject: Subject, sink: Sink) -> None:
    _initialised(subject, sink)
    hand_offs, waited = _hand_offs(subject)
    for name, barrier in subject.plan.barriers.items():
        mine = hand_offs.get(name, [])
        _arrivals(name, barrier, [h for h in mine if h.arrivals != Counter()], waited[name], sink)
        _bytes(name, [h for h in mine if h.expects or h.bytes], subject, sink)
    _named(subject, sink)


def _initialised(subject: Subject, sink: Sink) -> None:
    done = [root(e.barrier).id for s in walk(subject.kernel.body) for e in subject.effects(s) if isinstance(e, BarrierInit)]
    for name, barrier in subject.plan.barriers.items():
        if done.count(name) != 1:
            how = "never initialised" if name not in done else f"initialised {done.count(name)} times"
            sink.error(
                "core/barrier-init",
                f"barrier '{name}' is {how}",
                barrier.span,
                resource=name,
                why="before it, its phase and count are whatever lay in memory; a second one would reset what is counted",
                fix="initialise it once, before the roles",
            )


# --- arrivals and bytes --------------------------------------------------------------------------------------------


def _hand_offs(subject: Subject) -> tuple[dict[str, list[HandOff]], dict[str, set[int]]]:
    """By barrier array: hand-offs in text order, and the ranks of the CTAs that wait for it."""
    out: dict[str, list[HandOff]] = defaultdict(list)
    waited: dict[str, set[int]] = defaultdict(set)
    for role in subject.kernel.roles:
        reader = _Reader(subject)
        for x in subject.executed(role):
            reader.read(x)
        for name, hand_offs in reader.found.items():
            out[name] += hand_offs
        for name in reader.waited:
            waited[name] |= set(subject.ctas(subject.role(role.name)))
    return out, waited


@dataclass(slots=True)
class _Reader:
    """Reads one role in text order. Hand-offs are told apart by the stretch that they stand in and by the slot that they name:
    two indices are the same slot if they are the same expression of variables that were not assigned in between. An
    arrival behind another one of the same slot, with a wait between them, belongs to the next phase."""

    subject: Subject
    found: dict[str, list[HandOff]] = field(default_factory=lambda: defaultdict(list))
    current: dict[tuple, HandOff] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)  # what each name stands for, as numbers of `terms`
    terms: dict[tuple, int] = field(default_factory=dict)  # every expression met, its parts as numbers
    assigned: int = 0
    waits: int = 0
    waited: set[str] = field(default_factory=set)

    def read(self, x: Executed) -> None:
        for e in self.subject.effects(x.stmt):
            match e:
                case BarrierWait():
                    self.waits += 1
                    self.waited.add(root(e.barrier).id)
                case BarrierArrive():
                    h = self._arrive(e.barrier, x, e.cta)
                    if e.expect_bytes:
                        h.expected[_rank(e.cta)] += e.expect_bytes
                case EngineCommit():
                    self._arrive(e.barrier, x, e.mask)
                case Access(mode=Mode.WRITE, completion=BySignal(barrier=barrier, bytes=count, multicast=multicast, cta=cta)) if (
                    barrier is not None
                ):
                    # every CTA of the cluster sends as this one does, so a multicast arrives once from each
                    self._hand_off(barrier, x, arrives=False).bytes[_rank(cta)] += count * (self.subject.plan.cluster if multicast else 1)
        match x.stmt:
            case Let(bindings):
                for b in bindings:
                    self.values[b.name] = self._value(b.value)
            case Var(bindings):
                for b in bindings:
                    self._changed(b.name)
            case Assign(Name(name)):
                self._changed(name)

    def _arrive(self, barrier: Expr, x: Executed, to: Expr | int | None) -> HandOff:
        """`to`: the rank that is arrived at, a mask of ranks, or None: the own CTA."""
        h = self._hand_off(barrier, x, arrives=True)
        if x.threads is None or h.arrivals is None or isinstance(to, Expr) and not isinstance(to, Int):
            h.arrivals = None
            return h
        for cta in self.subject.ctas(x.role):
            ranks = (cta,) if to is None else (to.value,) if isinstance(to, Int) else _bits(to)
            h.arrivals.update(dict.fromkeys(ranks, x.threads * x.role.instances))
        return h

    def _hand_off(self, barrier: Expr, x: Executed, arrives: bool) -> HandOff:
        name = root(barrier).id
        key = (name, x.region, self._value(barrier))
        h = self.current.get(key)
        if h is None or arrives and h.arrivals != Counter() and h.waits < self.waits:
            h = self.current[key] = HandOff(x.role.name, x.stmt.span)
            self.found[name].append(h)
        if arrives:
            h.waits = self.waits
        return h

    def _changed(self, name: str) -> None:
        self.assigned += 1
        self.values[name] = self._number(("variable", self.assigned))

    def _value(self, e: Expr) -> int:
        """The number of an expression, names being what they stand for."""
        match e:
            case Name(id) if id in self.values:
                return self.values[id]
            case Binary(op, a, b):
                return self._number((op, self._value(a), self._value(b)))
            case Index(base, indices):
                return self._number(("index", self._value(base), *map(self._value, indices)))
        return self._number((e,))

    def _number(self, term: tuple) -> int:
        return self.terms.setdefault(term, len(self.terms))


def _rank(cta: Expr | None) -> int | Expr | None:
    return cta.value if isinstance(cta, Int) else cta


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def _amount(arrivals: Counter) -> str:
    """A number of arrivals, or one for each CTA where they differ."""
    amounts = set(arrivals.values())
    return str(amounts.pop()) if len(amounts) == 1 else " and ".join(f"{n} in CTA {rank}" for rank, n in sorted(arrivals.items())) or "0"


def _arrivals(name: str, barrier, hand_offs: list[HandOff], waited: set[int], sink: Sink) -> None:
    """Each CTA whose barrier is used, by an arrival or by a wait, counts what all CTAs bring to it."""
    if any(h.arrivals is None for h in hand_offs):
        return
    total: Counter = Counter()
    for role in dict.fromkeys(h.role for h in hand_offs):
        mine = [h for h in hand_offs if h.role == role]
        other = next((h for h in mine if h.arrivals != mine[0].arrivals), None)
        if other is not None:
            sink.error(
                "core/arrival-count",
                f"one hand-off of role '{role}' to '{name}' brings an arrival count of {_amount(mine[0].arrivals)}, "
                f"another of {_amount(other.arrivals)}",
                other.span,
                resource=name,
                role=role,
                related=(Related("the other hand-off", mine[0].span),),
                why="every phase counts the same number",
            )
            return
        total.update(mine[0].arrivals)
    used = sorted(waited | set(total)) or [0]
    wrong = [rank for rank in used if total[rank] != barrier.count]
    if wrong:
        found = Counter({rank: total[rank] for rank in used})
        parts = ", ".join(
            f"'{r}' {_amount(next(h.arrivals for h in hand_offs if h.role == r))}" for r in dict.fromkeys(h.role for h in hand_offs)
        )
        brought = total[wrong[0]]
        sink.error(
            "core/arrival-count",
            f"barrier '{name}' counts {barrier.count} arrival{'s' if barrier.count != 1 else ''} a phase, its roles bring {_amount(found)}",
            barrier.span,
            resource=name,
            why=f"arrivals a phase, those of the cluster's other CTAs included: {parts or 'none'}",
            related=tuple(Related(f"role '{h.role}' arrives here", h.span) for h in hand_offs[:2]),
            fix=f"declare it with `count {brought}`"
            if brought and len(wrong) == len(used)
            else "let a role arrive on it"
            if not brought
            else None,
        )


def _received(amounts: Counter, ctas: tuple[int, ...]) -> Counter | None:
    """By rank, what the barriers of a cluster get where each of `ctas` brings `amounts`; None where a rank is not known."""
    if any(isinstance(rank, Expr) for rank in amounts):
        return None
    total: Counter = Counter()
    for rank, n in amounts.items():
        total.update(dict.fromkeys(ctas, n) if rank is None else {rank: n * len(ctas)})
    return total


def _bytes(name: str, hand_offs: list[HandOff], subject: Subject, sink: Sink) -> None:
    """Where bytes are announced in one stretch of text and brought in another, nothing is said of them."""
    apart = any(h.expects != bool(h.bytes) for h in hand_offs)
    if apart and any(h.expects for h in hand_offs) and any(h.bytes for h in hand_offs):
        return
    for h in hand_offs:
        ctas = subject.ctas(subject.role(h.role))
        announced, brought = _received(h.expected, ctas), _received(h.bytes, ctas)
        if h.expected != h.bytes and (announced is None or announced != brought):
            sink.error(
                "core/transaction-bytes",
                f"a phase of '{name}' expects {h.expected.total() or 'no'} bytes, the copies for it bring {h.bytes.total() or 'none'}",
                h.span,
                resource=name,
                role=h.role,
                why="with too few the phase never completes, with too many it completes early or counts into the next",
                fix=_fix_bytes(h),
            )


def _fix_bytes(h: HandOff) -> str | None:
    if not h.bytes:
        return None
    if h.expected.total() == h.bytes.total():
        return "announce them at the barrier of the CTA that receives them"
    return f"expect {h.bytes.total()} bytes"


# --- named barriers ------------------------------------------------------------------------------------------------


def _named(subject: Subject, sink: Sink) -> None:
    """Each id belongs to one set of threads, which its uses count rightly."""
    users: dict[int, dict[tuple[str, int], tuple[int | None, Span]]] = defaultdict(dict)
    for role in subject.kernel.roles:
        for i in range(subject.role(role.name).instances):
            for s in _of_instance(role.body, role.name, i):
                for e in subject.effects(s) if isinstance(s, Op) else ():
                    if isinstance(e, Rendezvous) and e.id is not None and (number := _constant(e.id, role.name, i)) is not None:
                        users[number][role.name, i] = (e.threads, s.span)
    for number, by in sorted(users.items()):
        threads = sum(32 * subject.role(role).warps for role, _ in by)
        wrong = next(((who, n, span) for who, (n, span) in by.items() if n != threads), None)
        if wrong is None:
            continue
        (role, _), n, span = wrong
        names = ", ".join(dict.fromkeys(r for r, _ in by))
        sink.error(
            "core/named-barrier",
            f"named barrier {number} waits for {n} threads, and {threads} use it",
            span,
            role=role,
            resource=f"barrier {number}",
            why=f"it is used by {names}; a barrier that is short of threads never opens, and one too many opens the next phase",
            fix="give each set of threads an id of its own, and count all of its threads",
        )


def _of_instance(block: Block, role: str, instance: int) -> Iterator[Stmt]:
    """The statements that one instance may execute: guards on its number are decided."""
    for s in block:
        yield s
        if isinstance(s, If):
            holds = _holds(s.test, role, instance)
            for inner, other in ((s.then, False), (s.other or (), True)):
                if holds is not other:
                    yield from _of_instance(inner, role, instance)
        else:
            for inner in nested(s):
                yield from _of_instance(inner, role, instance)


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
