"""Arithmetic that intervals and congruences decide: most of what rules ask of a contract, without a solver."""

from __future__ import annotations

from cake_core.ir import ranges
from cake_core.ir.nodes import Binary, Bool, Call, Expr, Int, Name, Unary
from cake_core.ir.ranges import Range
from cake_core.ir.types import Scalar


def surely(e: Expr) -> bool | None:
    """Whether a condition holds for all values that its names' types admit, or for none; None: not decided so."""
    match e:
        case Bool(held):
            return held
        case Unary("not", a):
            inner = surely(a)
            return None if inner is None else not inner
        case Binary("and" | "or" as op, a, b):
            x, y = surely(a), surely(b)
            decisive = op == "or"
            return decisive if decisive in (x, y) else (x if x == y else None)
        case Binary("==" | "!=" as op, a, b):
            same = _same(of(a), of(b))
            return None if same is None else same == (op == "==")
        case Binary("<" | "<=" | ">" | ">=" as op, a, b):
            x, y = (of(a), of(b)) if op in ("<", "<=") else (of(b), of(a))
            return _before(x, y, strict=op in ("<", ">"))
    return None


def _same(a: Range, b: Range) -> bool | None:
    if a.constant is not None and b.constant is not None:
        return a.constant == b.constant
    return False if a.meet(b).empty else None


def _before(a: Range, b: Range, strict: bool) -> bool | None:
    if a.hi is not None and b.lo is not None and (a.hi < b.lo if strict else a.hi <= b.lo):
        return True
    if a.lo is not None and b.hi is not None and (a.lo >= b.hi if strict else a.lo > b.hi):
        return False
    return None


def of(e: Expr) -> Range:
    """The values that an integer expression can have."""
    match e:
        case Int(v):
            return ranges.constant(v)
        case Name() if isinstance(e.type, Scalar):
            return e.type.range
        case Unary("-", a):
            return ranges.neg(of(a))
        case Binary(op, a, b) if op in ranges.BINARY:
            return ranges.BINARY[op](of(a), of(b))
        case Call() if e.name in ("min", "max"):
            a, b = map(of, e.positional)
            return ranges.BINARY[e.name](a, b)
        case Call() if e.name == "ceildiv":
            a, b = map(of, e.positional)
            return ranges.ceildiv(a, b)
    return Range()
