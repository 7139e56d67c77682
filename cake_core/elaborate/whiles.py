"""Typing of `while` in the schedule form (S10): every thread of an instance goes round equally often, and the loop can end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cake_core.diagnostics import fail
from cake_core.elaborate.typing import level_of
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Assign, Block, Call, Expr, Tuple, While
from cake_core.ir.places import names, root
from cake_core.ir.types import Level, Unknown
from cake_core.ir.visit import calls


def check_while(s: While, test: Expr, warps: int, may_change: Callable[[Call], bool]) -> None:
    """`test` is typed, the body of `s` as written. `warps` of an instance. `may_change`: whether a call may give another value each
    time, as one that reads what somebody writes. Raises CakeError."""
    if isinstance(test.type, Unknown):
        return
    if level_of(test) > (Level.WARP if warps == 1 else Level.INSTANCE):
        among = "lanes" if level_of(test) is Level.LANE else "warps"
        raise fail(
            "type/while-test",
            f"the {among} of an instance may decide this 'while' differently",
            s.test.span,
            why="all threads of an instance execute each statement, so they go round a loop equally often (S1, S10)",
            fix="ask a value that is the same for the instance, such as one that it has received through a pipeline",
        )
    if not {n.id for n in names(test)} & set(_assigned(s.body)) and not any(map(may_change, calls(test))):
        raise fail(
            "type/while-test",
            "nothing in this loop changes what its 'while' asks",
            s.test.span,
            why="it runs for ever, or not at all",
            fix="ask a `var` that the loop assigns; for a condition that is decided once write `if`",
        )


def _assigned(body: Block) -> Iterator[str]:
    for s in walk(body):
        match s:
            case Assign(Tuple(items)):
                yield from (n.id for n in map(root, items) if n is not None)
            case Assign(target) if (name := root(target)) is not None:
                yield name.id
