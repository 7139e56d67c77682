"""Fragments are filled before they are read, on every path.

A fragment once filled stays so; a part that is written counts for all of it, and a slot that is no constant for all slots. What only a guard fills is filled where
the same guard, or what a loop's entry says, holds again, as long as nothing in it has another value. Positions in loops and variables that are
constants decide guards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import reduce

from cake_core.check.paths import Paths
from cake_core.check.reads import read_parts
from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.effects import Access, Mode
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.ir.flow import Positions, conjuncts, decide
from cake_core.ir.nodes import Assign, Binary, Block, Bool, Declare, Expr, For, If, Index, Int, Let, Name, Op, Role, Stmt, Unary, Var, While
from cake_core.ir.places import names, place_of, root
from cake_core.ir.types import Tile

ALWAYS = Bool(True)
FIRST = 3  # turns of a `while` that are followed one by one
Slots = tuple[int, ...] | None  # None: which is not known


@frozen
class Filled:
    """A fragment, or one slot of it; in a state with the conditions under which it is filled."""

    name: str
    slots: Slots


@frozen
class Known:
    """A variable; in a state with the integer that it is."""

    name: str


@frozen
class Holds:
    """A condition; in a state with True: it holds here."""

    test: Expr


State = dict[Filled | Known | Holds, object]


def check(subject: Subject, rows: Rows, sink: Sink) -> None:
    for role in subject.kernel.roles:
        _Run(subject, role, sink).analyse()


class _Run(Paths[State]):
    def __init__(self, subject: Subject, role: Role, sink: Sink) -> None:
        super().__init__(_join, _join)
        self.loops.run = self._trip
        self.subject, self.role, self.sink = subject, role, sink
        self.fragments: set[str] = set()
        self.told: set[str] = set()

    def analyse(self) -> None:
        self.block(self.role.body, {}, {})

    # --- control

    def _trip(self, body: Block, state: State, positions: Positions) -> State:
        """One trip of a loop: what was known of indices is of another trip."""
        return self.block(body, _without(state, {k for k in positions if isinstance(k, str)}), positions)

    def _stmt(self, s: Stmt, state: State, positions: Positions) -> State:
        match s:
            case For(pattern, lo, hi):
                self._reads((lo, hi), s, state)
                inside = _without(state, set(pattern))
                if hi is not None:
                    inside = {**inside, Holds(Binary("<", lo, hi)): True}
                return self.loops.over(s, inside, positions)
            case While(test, _, body):
                self._reads((test,), s, state)
                behind = [state]  # after no turn, one, ..: what variables are in the first ones is told apart
                for _ in range(FIRST):
                    behind.append(self._trip(body, behind[-1], positions))
                return reduce(_join, behind, self.loops.over(s, behind[-1], positions))
            case If(Name("leader" | "warp.leader")):
                pass
            case If(test, then, other):
                self._reads((test,), s, state)
                decided = self._decided(test, state, positions)
                if decided is not None:
                    return self.block(then if decided else other or (), state, positions)
                yes = self.block(then, {**state, **{Holds(c): True for c in (test, *conjuncts(test))}}, positions)
                no = self.block(other or (), {**state, Holds(Unary("not", test)): True}, positions)
                return _branched(test, yes, no)
        return super()._stmt(s, state, positions)

    def _decided(self, test: Expr, state: State, positions: Positions) -> bool | None:
        if Holds(test) in state:
            return True
        if Holds(Unary("not", test)) in state:
            return False
        return decide(_put(test, state), positions)

    # --- statements

    def effects(self, s: Stmt, state: State) -> State:
        match s:
            case Declare(declarations=declarations) if s.space == "frag":
                self.fragments |= {d.name for d in declarations}
                return state
            case Let(bindings) | Var(bindings):
                self._reads(tuple(b.value for b in bindings), s, state)
                known = {Known(b.name): b.value.value for b in bindings if isinstance(s, Var) and isinstance(b.value, Int)}
                return {**_without(state, {b.name for b in bindings}), **known}
            case Assign(target, value):
                return self._assigned(s, target, value, state)
            case Op(operands=operands, value=value):
                return self._operated(s, operands, value, state)
        return state

    def _assigned(self, s: Assign, target: Expr, value: Expr, state: State) -> State:
        to, whole = root(target), isinstance(value, Name) and self._is_fragment(value)
        if to is not None and self._is_fragment(to):
            key = _key(target, to)
            if whole:  # a copy of a whole fragment reads nothing of it
                found = _conditions(state, _key(value, value))
                return {k: v for k, v in state.items() if k != key} | ({key: found} if found else {})
            self._reads((value,), s, state)
            return {**state, key: frozenset((ALWAYS,))}
        self._reads((value,), s, state)
        named = {n.id for n in names(target)}
        now = _put(value, state) if isinstance(target, Name) else value
        known = {Known(target.id): now.value} if isinstance(target, Name) and isinstance(now, Int) else {}
        return {**_without(state, named), **known}

    def _operated(self, s: Op, operands: tuple[Expr, ...], value: Expr | None, state: State) -> State:
        accesses = [e for e in self.subject.effects(s) if isinstance(e, Access) and self._is_fragment(root(e.place))]
        self._reads((value,), s, state)
        for e in accesses:
            if e.mode is Mode.READ and (e.when is None or self._decided(e.when, state, {}) is not False):
                self._read(_key(e.place, root(e.place)), s, state)
        return {**state, **{_key(e.place, root(e.place)): frozenset((ALWAYS,)) for e in accesses if e.mode is Mode.WRITE}}

    def _is_fragment(self, name: Name | None) -> bool:
        return name is not None and name.id in self.fragments

    # --- reads

    def _reads(self, expressions: tuple[Expr | None, ...], s: Stmt, state: State) -> None:
        for e in expressions:
            for place in _tiles(read_parts(e, self.subject.registry)) if e is not None else ():
                if self._is_fragment(root(place)):
                    self._read(_key(place, root(place)), s, state)

    def _read(self, key: Filled, s: Stmt, state: State) -> None:
        conditions = _conditions(state, key)
        if key.name in self.told or any(c == ALWAYS or Holds(c) in state for c in conditions):
            return
        self.told.add(key.name)
        sometimes = any(isinstance(k, Filled) and k.name == key.name for k in state)
        self.sink.error(
            "core/unfilled-fragment",
            f"'{key.name}' is read {'where not every path has filled it' if sometimes else 'and nothing has filled it'}",
            s.span,
            role=self.role.name,
            resource=key.name,
            why="a fragment holds whatever its registers held before",
            fix="assign it in front, on every path to this",
        )


# --- states --------------------------------------------------------------------------------------------------------


def _key(place: Expr, name: Name) -> Filled:
    if not isinstance(name.type, Tile) or len(name.type.groups) < 2:
        return Filled(name.id, ())
    slots = place_of(place, name.type).slots
    return Filled(name.id, tuple(x.value for x in slots) if slots and all(isinstance(x, Int) for x in slots) else None)


def _conditions(state: State, key: Filled) -> frozenset[Expr]:
    """Under which a read of `key` finds it filled."""
    if key.slots is None:
        return frozenset().union(*(v for k, v in state.items() if isinstance(k, Filled) and k.name == key.name))
    return state.get(key, frozenset()) | state.get(Filled(key.name, None), frozenset())


def _without(state: State, changed: set[str]) -> State:
    """Less what is said of names that have another value now."""
    stale = lambda e: any(n.id in changed for n in names(e))
    out: State = {}
    for k, v in state.items():
        match k:
            case Known(name) if name in changed:
                continue
            case Holds(test) if stale(test):
                continue
            case Filled():
                v = frozenset(c for c in v if not stale(c))
                if not v:
                    continue
        out[k] = v
    return out


def _join(a: State, b: State) -> State:
    out: State = {}
    for k, v in a.items():
        if k not in b:
            continue
        if isinstance(k, Filled):
            both = frozenset((ALWAYS,)) if ALWAYS in v and ALWAYS in b[k] else (b[k] if ALWAYS in v else v if ALWAYS in b[k] else v & b[k])
            if both:
                out[k] = both
        elif b[k] == v:
            out[k] = v
    return out


def _branched(test: Expr, yes: State, no: State) -> State:
    """Behind both branches: what one of them fills is filled under its condition."""
    out = _join({k: v for k, v in yes.items() if not isinstance(k, Filled)}, {k: v for k, v in no.items() if not isinstance(k, Filled)})
    for k in dict.fromkeys(k for k in (*yes, *no) if isinstance(k, Filled)):
        then, other = yes.get(k, frozenset()), no.get(k, frozenset())
        if ALWAYS in then and ALWAYS in other:
            out[k] = frozenset((ALWAYS,))
            continue
        found = set(then & other)
        found |= {test} if ALWAYS in then else set()
        found |= {Unary("not", test)} if ALWAYS in other else set()
        if found:
            out[k] = frozenset(found)
    return out


def _put(e: Expr, state: State) -> Expr:
    """`e` with the variables that are constants, computed as far as numbers stand side by side."""
    match e:
        case Name(id) if Known(id) in state:
            return Int(state[Known(id)])
        case Binary(op, a, b):
            a, b = _put(a, state), _put(b, state)
            if isinstance(a, Int) and isinstance(b, Int) and op in _NUMBERS:
                return _NUMBERS[op](a.value, b.value)
            return Binary(op, a, b)
        case Unary(op, a):
            return Unary(op, _put(a, state))
    return e


_NUMBERS = {
    "+": lambda a, b: Int(a + b),
    "-": lambda a, b: Int(a - b),
    "*": lambda a, b: Int(a * b),
    "<": lambda a, b: Bool(a < b),
    "<=": lambda a, b: Bool(a <= b),
    ">": lambda a, b: Bool(a > b),
    ">=": lambda a, b: Bool(a >= b),
    "==": lambda a, b: Bool(a == b),
    "!=": lambda a, b: Bool(a != b),
}


def _tiles(e) -> Iterator[Expr]:
    """The names, and indexed names, in an expression."""
    if isinstance(e, tuple):
        for x in e:
            yield from _tiles(x)
    elif isinstance(e, Expr):
        if isinstance(e, Name) or isinstance(e, Index) and root(e) is not None:
            yield e
            return
        for f in fields(e):
            if f.name not in ("span", "type"):
                yield from _tiles(getattr(e, f.name))
