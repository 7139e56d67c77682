"""Abstract execution of loops and guards, for analyses that follow a role's body over all trip counts.

A loop's first iterations are followed one by one, so that a guard such as `k > 0` is decided in each; the iterations
after them are run to a fixpoint. An analysis supplies its state, how a block changes it and how two states join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from cake_core.ir.nodes import Binary, Block, Bool, Expr, For, Group, If, Inline, Int, Name, Role, Stmt, While

PEELED = 8  # iterations followed one by one at most; guards on later positions are left undecided
ROUNDS = 64  # a state that still changes after as many rounds is given back as it is: analyses bound their states

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Position:
    """The loop index is `value`, or at least that."""

    value: int
    at_least: bool = False


Positions = dict[str, Position]


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


def decide(test: Expr, positions: Positions) -> bool | None:
    """Whether a guard on loop positions holds in an iteration; None: can't tell."""
    match test:
        case Bool(v):
            return v
        case Binary("and", a, b):
            x, y = decide(a, positions), decide(b, positions)
            return False if False in (x, y) else True if x and y else None
        case Binary("or", a, b):
            x, y = decide(a, positions), decide(b, positions)
            return True if True in (x, y) else False if x is False and y is False else None
        case Binary(op, Name(n), Int(c)) if n in positions:
            at, later = positions[n].value, positions[n].at_least
            if not later:
                return {">": at > c, ">=": at >= c, "<": at < c, "<=": at <= c, "==": at == c, "!=": at != c}.get(op)
            always = {">": at > c, ">=": at >= c, "!=": at > c}.get(op)
            never = {"<": at >= c, "<=": at > c, "==": at > c}.get(op)
            return True if always else False if never else None
    return None


def over_loop(
    s: For | While,
    state: State,
    positions: Positions,
    run: Callable[[Block, State, Positions], State],
    join: Callable[[State, State], State],
) -> State:
    """The state behind a loop, whatever its trip count, zero included."""
    result = now = state
    index = s.pattern[0] if isinstance(s, For) else None
    later = {k: v for k, v in positions.items() if k != index}
    if isinstance(s, For) and s.hi is not None and isinstance(s.lo, Int) and s.lo.value >= 0 and s.words.get("step") is None:
        start = s.lo.value
        steady = max(start, min(start + PEELED, _largest_position(s.body, index) + 1))
        for i in range(start, steady):
            now = run(s.body, now, positions | {index: Position(i)})
            result = join(result, now)
        later[index] = Position(steady, at_least=True)
    for _ in range(ROUNDS):
        joined = join(now, run(s.body, now, later))
        if joined == now:
            break
        now = joined
    return join(result, now)


def _largest_position(body: Block, index: str) -> int:
    """The largest constant that a guard in the body compares the loop index with; -1 if there is none."""
    found = [-1]

    def scan(e: Expr) -> None:
        if isinstance(e, Binary):
            if e.left == Name(index) and isinstance(e.right, Int):
                found.append(e.right.value)
            scan(e.left)
            scan(e.right)

    for s in walk(body):
        if isinstance(s, If):
            scan(s.test)
    return max(found)
