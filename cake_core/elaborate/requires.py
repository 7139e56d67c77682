"""What the `require`s say about each parameter, as ranges: `1 <= M`, `N < 4096`, `K % 8 == 0`, joined by `and` or commas."""

from __future__ import annotations

from cake_core.ir.nodes import Binary, Expr, Int, Name
from cake_core.ir.ranges import ANY, Range

NONE = Range(0, -1)
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def ranges_of(requires: tuple[Expr, ...]) -> dict[str, Range]:
    """Parameter name to range. Conditions of other forms add nothing (they are still checked at launch)."""
    found: dict[str, Range] = {}
    for condition in requires:
        for name, r in _facts(condition):
            found[name] = found.get(name, ANY).meet(r)
    return found


def _facts(e: Expr):
    match e:
        case Binary("and", a, b):
            yield from _facts(a)
            yield from _facts(b)
        case Binary(op, Int(c), Name(n)) if op in _MIRROR:
            yield from _facts(Binary(_MIRROR[op], Name(n), Int(c)))
        case Binary("<=", Name(n), Int(c)):
            yield n, Range(None, c)
        case Binary("<", Name(n), Int(c)):
            yield n, Range(None, c - 1)
        case Binary(">=", Name(n), Int(c)):
            yield n, Range(c, None)
        case Binary(">", Name(n), Int(c)):
            yield n, Range(c + 1, None)
        case Binary("==", Name(n), Int(c)):
            yield n, Range(c, c, 0, c)
        case Binary("==", Binary("%", Name(n), Int(m)), Int(r)) if m > 0:
            yield n, Range(None, None, m, r) if 0 <= r < m else NONE  # a remainder has the sign of its divisor
