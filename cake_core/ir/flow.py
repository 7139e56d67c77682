"""Abstract execution of loops and guards, for analyses that follow a role's body over all trip counts.

A guard on a loop's position, such as `k > 0` or `k < nk - 1`, is decided where the position is known: the first and the last
iterations of a loop are followed one by one, those between them are run to a fixpoint. An analysis supplies its state (a dict
of hashable values), how a block changes it, how two states join, and a widening that ends long chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Generic, TypeVar

from cake_core.frozen import frozen, thawed
from cake_core.ir import ranges
from cake_core.ir.nodes import Assign, Binary, Block, Bool, Expr, For, Group, If, Inline, Int, Let, Name, Role, Stmt, Unary, Var, While
from cake_core.ir.places import names, root
from cake_core.ir.types import Scalar

#: Iterations followed one by one at each end of a loop, by the number of loops around it that are followed so. Guards on
#: positions farther in are left undecided.
PEELED = (8, 4, 0)
#: Trip counts up to this are followed exactly where they are constant; again by the number of loops around.
EXACT = (16, 8, 2)
#: Bodies that one analysis follows before it stops to tell iterations apart: loops in loops multiply.
BUDGET = 1000
#: Rounds of a fixpoint before it is widened.
ROUNDS = 32

State = TypeVar("State", bound=dict)
Interval = tuple[int, int | None]  # bounds, None: no upper one


@frozen
class Linear:
    """`base + offset`; no base: a number."""

    base: Expr | None
    offset: int

    @staticmethod
    def of(e: Expr) -> Linear:
        match e:
            case Int(v):
                return Linear(None, v)
            case Binary("+", a, Int(v)) | Binary("+", Int(v), a):
                inner = Linear.of(a)
                return Linear(inner.base, inner.offset + v)
            case Binary("-", a, Int(v)):
                inner = Linear.of(a)
                return Linear(inner.base, inner.offset - v)
        return Linear(e, 0)


@frozen
class Position:
    """An iteration of a loop: how many lie before it and behind it, and the loop's bounds if they keep their values in it."""

    done: Interval
    left: Interval
    lo: Linear | None
    hi: Linear | None

    @property
    def known(self) -> bool:
        return self.done[0] == self.done[1] or self.left[0] == self.left[1]


#: By loop index; and, by condition, guards that an analysis assumes to hold or not to.
Positions = dict[str | Expr, Position | bool]


def walk(block: Block) -> Iterator[Stmt]:
    """All statements of a block, nested ones too."""
    for s in block:
        yield s
        match s:
            case For() | While() | Role() | Group() | Inline():
                yield from walk(s.body)
            case If():
                yield from walk(s.then)
                yield from walk(s.other or ())


# --- guards --------------------------------------------------------------------------------------------------------

_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {">": "<=", ">=": "<", "!=": "=="}


def conjuncts(test: Expr) -> tuple[Expr, ...]:
    """The conditions that hold where `test` does."""
    match test:
        case Binary("and", a, b):
            return *conjuncts(a), *conjuncts(b)
    return (test,)


def decide(test: Expr, positions: Positions) -> bool | None:
    """Whether a guard on loop positions holds in an iteration, or one that is assumed; None: can't tell."""
    if isinstance(known := positions.get(test), bool):
        return known
    match test:
        case Bool(v):
            return v
        case Unary("not", a):
            x = decide(a, positions)
            return None if x is None else not x
        case Binary("and", a, b):
            x, y = decide(a, positions), decide(b, positions)
            return False if False in (x, y) else True if x and y else None
        case Binary("or", a, b):
            x, y = decide(a, positions), decide(b, positions)
            return True if True in (x, y) else False if x is False and y is False else None
        case Binary(op, a, b) if op in _MIRROR:
            return _compare(op, Linear.of(a), Linear.of(b), positions)
    return None


def _compare(op: str, a: Linear, b: Linear, positions: Positions) -> bool | None:
    if _index(a) not in positions:
        op, a, b = _MIRROR[op], b, a
    at = positions.get(_index(a))
    if not isinstance(at, Position):
        return None
    found = None
    if at.lo is not None and at.lo.base == b.base:  # index = lo + done
        found = _holds(op, at.done, b.offset - a.offset - at.lo.offset)
    if found is None and at.hi is not None and at.hi.base == b.base:  # index = hi - 1 - left
        found = _holds(_MIRROR[op], at.left, at.hi.offset - 1 + a.offset - b.offset)
    return found


def _index(side: Linear) -> str | None:
    return side.base.id if isinstance(side.base, Name) else None


def _holds(op: str, x: Interval, c: int) -> bool | None:
    """Whether `v op c` for all v of an interval, for none (False), or for some (None)."""
    if op in _NEGATED:
        opposite = _holds(_NEGATED[op], x, c)
        return None if opposite is None else not opposite
    lo, hi = x
    always = {"<": hi is not None and hi < c, "<=": hi is not None and hi <= c, "==": lo == hi == c}[op]
    never = {"<": lo >= c, "<=": lo > c, "==": c < lo or hi is not None and hi < c}[op]
    return True if always else False if never else None


# --- loops ---------------------------------------------------------------------------------------------------------


@frozen
class Facts:
    """What of a loop decides how it is followed. `trips`: how often it may run. `head`, `tail`: iterations at its ends that
    guards tell apart. `rebound`: names that mean something else in its body. `guards`: names that guards in it ask for."""

    lo: Linear | None
    hi: Linear | None
    trips: Interval
    head: int
    tail: int
    rebound: frozenset[str]
    guards: frozenset[str | Expr]


@thawed
class Loops(Generic[State]):
    """Follows loops for one analysis. Results are kept: a loop met again in the same state is not followed again."""

    run: Callable[[Block, State, Positions], State]
    join: Callable[[State, State], State]
    widen: Callable[[State, State], State]
    _facts: dict[int, Facts] = field(default_factory=dict)
    _results: dict[tuple, State] = field(default_factory=dict)
    _runs: int = 0

    @property
    def spent(self) -> bool:
        """Whether cases are told apart no more: what follows is coarser, and still right."""
        return self._runs > BUDGET

    def _run(self, body: Block, state: State, positions: Positions) -> State:
        self._runs += 1
        return self.run(body, state, positions)

    def over(self, s: For | While, state: State, positions: Positions) -> State:
        """The state behind a loop, whatever its trip count."""
        if id(s) not in self._facts:
            self._facts[id(s)] = _facts(s)
        facts = self._facts[id(s)]
        around = {k: v for k, v in positions.items() if k not in facts.rebound}
        key = (id(s), frozenset(state.items()), frozenset((k, v) for k, v in around.items() if k in facts.guards))
        if key not in self._results:
            self._results[key] = self._follow(s, facts, state, around)
        return self._results[key]

    def _follow(self, s: For | While, facts: Facts, state: State, around: Positions) -> State:
        index = s.pattern[0] if isinstance(s, For) and s.hi is not None else None
        if index is None or index in facts.rebound:
            return self.join(state, self._repeat(s.body, state, {k: v for k, v in around.items() if not isinstance(s, For) or k not in s.pattern}))
        depth = min(sum(p.known for k, p in around.items() if k != index and isinstance(p, Position)), len(PEELED) - 1)
        if self.spent:
            depth = len(PEELED) - 1
        # a guard farther in than is followed stays undecided, so nothing is gained by following part of the way
        head, tail = (n if n <= PEELED[depth] else 0 for n in (facts.head, facts.tail))
        least, most = facts.trips
        followed = head + tail
        if least == most and most <= EXACT[depth]:
            followed = most

        def trip(state: State, done: Interval, left: Interval) -> State:
            return self._run(s.body, state, around | {index: Position(done, left, facts.lo, facts.hi)})

        results = []
        for n in range(least, (followed if most is None else min(most, followed)) + 1):
            now = state
            for i in range(n):
                now = trip(now, (i, i), (n - 1 - i, n - 1 - i))
            results.append(now)
        if most is None or most > followed:
            n = max(least, followed + 1)
            up = lambda x: None if most is None else most - x  # noqa: E731
            now = state
            for i in range(head):
                now = trip(now, (i, i), (n - 1 - i, up(1 + i)))
            between = around | {index: Position((head, up(1 + tail)), (tail, up(1 + head)), facts.lo, facts.hi)}
            now = self._repeat(s.body, now, between)
            for i in range(tail):
                now = trip(now, (n - tail + i, up(tail - i)), (tail - 1 - i, tail - 1 - i))
            results.append(now)
        result = results[0]
        for other in results[1:]:
            result = self.join(result, other)
        return result

    def _repeat(self, body: Block, state: State, positions: Positions) -> State:
        """The state after one iteration or more."""
        now = self._run(body, state, positions)
        rounds = 0
        while (joined := self.join(now, self._run(body, now, positions))) != now:
            rounds += 1
            now = self.widen(now, joined) if rounds > ROUNDS else joined
        return now


def _facts(s: For | While) -> Facts:
    rebound, guards = set(), set()
    tests: list[Binary] = []
    for inner in walk(s.body):
        match inner:
            case Let(bindings) | Var(bindings):
                rebound |= {b.name for b in bindings}
            case Assign(target):
                rebound |= {n.id for n in (root(target),) if n is not None}
            case If(test):
                guards |= {n.id for n in names(test)} | set(conjuncts(test))
                _comparisons(test, tests)
    if not isinstance(s, For) or s.hi is None:
        return Facts(None, None, (0, None), 0, 0, frozenset(rebound), frozenset(guards))
    lo, hi = (Linear.of(e) if not any(n.id in rebound for n in names(e)) else None for e in (s.lo, s.hi))
    if s.words.get("step") is not None:  # positions count iterations, not values
        return Facts(None, None, (0, None), 0, 0, frozenset(rebound), frozenset(guards))
    head = tail = 0
    for test in tests:
        a, b = Linear.of(test.left), Linear.of(test.right)
        if _index(a) != s.pattern[0]:
            a, b = b, a
        if _index(a) != s.pattern[0]:
            continue
        if lo is not None and b.base == lo.base:
            head = max(head, b.offset - a.offset - lo.offset + 1)
        if hi is not None and b.base == hi.base:
            tail = max(tail, hi.offset + a.offset - b.offset)
    return Facts(lo, hi, _trips(s), head, tail, frozenset(rebound), frozenset(guards))


def _comparisons(test: Expr, found: list[Binary]) -> None:
    match test:
        case Unary("not", a):
            _comparisons(a, found)
        case Binary("and" | "or", a, b):
            _comparisons(a, found)
            _comparisons(b, found)
        case Binary(op) if op in _MIRROR:
            found.append(test)


def _trips(s: For) -> Interval:
    """How often a loop may run, from the ranges of its bounds."""
    lo, hi = Linear.of(s.lo), Linear.of(s.hi)
    if lo.base == hi.base:
        n = max(0, hi.offset - lo.offset)
        return n, n
    r = ranges.sub(_range(s.hi), _range(s.lo))
    return max(0, r.lo or 0), None if r.hi is None else max(0, r.hi)


def _range(e: Expr) -> ranges.Range:
    if isinstance(e, Int):
        return ranges.constant(e.value)
    return e.type.range if isinstance(e.type, Scalar) else ranges.ANY
