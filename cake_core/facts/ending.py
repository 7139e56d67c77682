"""Whether a `while` surely ends: something that it asks to be below a bound grows each time, and the bound stays."""

from __future__ import annotations

from cake_core.facts.schema import By, Event, While, events
from cake_core.ir.flow import conjuncts
from cake_core.ir.nodes import Binary, Expr, Int, Name
from cake_core.ir.places import names


def ends(w: While) -> bool:
    """By its text alone: one of the conditions that it asks together counts up."""
    return any(grows(w, test) is not None for test in conjuncts(w.test))


def grows(w: While, test: Expr) -> int | None:
    """By how much x grows in each turn where `test` is `x < e` or `x <= e`, the loop sets x once, to `x + c`, c > 0, under no condition of its
    own, and nothing in e; None: it is another condition."""
    if not isinstance(test, Binary) or test.op not in ("<", "<=") or not isinstance(test.left, Name):
        return None
    x, sets = test.left.id, [s for e in events(w.body) for s in e.sets]
    steps = [s.value for n in w.body if isinstance(n, Event) and n.by is By.ALL for s in n.sets if s.name == x]
    if len(steps) != 1 or sum(s.name == x for s in sets) != 1 or {n.id for n in names(test.right)} & {s.name for s in sets}:
        return None
    match steps[0]:
        case Binary("+", Name(y), Int(c)) if y == x and c > 0:
            return c
    return None
