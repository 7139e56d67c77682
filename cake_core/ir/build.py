"""Small constructors for derived IR, with constants folded: what `derive` and primitives write expressions with."""

from __future__ import annotations

from dataclasses import replace

from cake_core.ir import ranges
from cake_core.ir.nodes import (
    Assign,
    Binary,
    Bool,
    Call,
    Expr,
    If,
    Index,
    Int,
    Name,
    Op,
    Option,
    Slice,
    Stmt,
    Word,
    Words,
)
from cake_core.ir.types import BOOL, I32, U32, Elem, Level, Scalar
from cake_core.source import NOWHERE, Span

LEADER = Name("leader")
WARP_LEADER = Name("warp.leader")


def lift(x: Expr | int | str) -> Expr:
    """An int or a name as an expression."""
    if isinstance(x, bool):
        return Bool(x)
    if isinstance(x, int):
        return Int(x)
    return Name(x) if isinstance(x, str) else x


def binary(op: str, a: Expr | int | str, b: Expr | int | str) -> Expr:
    """`a op b`, folded where both are known and by the unit laws."""
    a, b = lift(a), lift(b)
    if isinstance(a, Int) and isinstance(b, Int):
        x, y = a.value, b.value
        if op in ("/", "%") and y == 0:
            return Binary(op, a, b, span=a.span)
        folded = _FOLD[op](x, y)
        return Bool(folded, span=a.span) if isinstance(folded, bool) else Int(folded, span=a.span)
    match op, a, b:
        case ("+", e, Int(0)) | ("-", e, Int(0)) | ("+", Int(0), e) | ("*", e, Int(1)) | ("*", Int(1), e) | ("/", e, Int(1)):
            return e
        case ("*", _, Int(0)) | ("*", Int(0), _) | ("%", _, Int(1)):
            return Int(0, span=a.span)
    return Binary(op, a, b, span=a.span)


_FOLD = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


# --- typed integer arithmetic ----------------------------------------------------------------------------------------

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")

#: Functions of the core on integers, and how many arguments each takes.
INTEGER_CALLS = {"ceildiv": 2, "min": 2, "max": 2, "clamp": 3}

INTEGER_RANGES = {"ceildiv": ranges.ceildiv, "min": ranges.minimum, "max": ranges.maximum, "clamp": ranges.clamp}
_VALUES = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max, "clamp": lambda x, lo, hi: min(max(x, lo), hi)}


def integer_elem(*args: Expr) -> Elem:
    """The type that integers of these operands give: literals follow the others."""
    kinds = [a.type.elem for a in args if not isinstance(a, Int)]
    return kinds[0] if kinds else I32


def arithmetic(op: str, left: Expr, right: Expr, at: Span) -> Expr:
    """`left op right` of typed integers, folded and typed: an integer or, for a comparison, a condition."""
    out = replace(binary(op, left, right), span=at)
    level = max(left.type.level, right.type.level)
    if isinstance(out, Bool) or op in COMPARISONS:
        return replace(out, type=Scalar(BOOL, Level.CTA if isinstance(out, Bool) else level))
    if isinstance(out, Int):
        return replace(out, type=Scalar(I32, Level.CTA, ranges.constant(out.value)))
    if out.type is not None:  # a unit law left one side
        return out
    elem = integer_elem(left, right)
    return replace(out, type=Scalar(elem, level, _held(elem, ranges.BINARY[op](left.type.range, right.type.range))))


def integer_call(e: Call) -> Expr:
    """A call of one of `INTEGER_CALLS` on typed integers, folded and typed."""
    args = e.positional
    values = [a.value if isinstance(a, Int) else None for a in args]
    if None not in values and not (e.name == "ceildiv" and values[1] == 0):
        value = _VALUES[e.name](*values)
        return Int(value, span=e.span, type=Scalar(I32, Level.CTA, ranges.constant(value)))
    elem = integer_elem(*args)
    level = max(a.type.level for a in args)
    return replace(e, type=Scalar(elem, level, _held(elem, INTEGER_RANGES[e.name](*(a.type.range for a in args)))))


def _held(elem: Elem, r: ranges.Range) -> ranges.Range:
    """u32 wraps round: what leaves its bounds is anything."""
    return r if elem != U32 or r.nonneg and r.hi is not None and r.hi < 2**32 else ranges.ANY


# --- shorthands ------------------------------------------------------------------------------------------------------


def add(a, b) -> Expr:
    return binary("+", a, b)


def mul(a, b) -> Expr:
    return binary("*", a, b)


def div(a, b) -> Expr:
    return binary("/", a, b)


def mod(a, b) -> Expr:
    return binary("%", a, b)


def call(name: str, *args, **options) -> Call:
    return Call(Name(name), tuple(map(lift, args)) + tuple(Option(k, lift(v)) for k, v in options.items()))


def index(base: Expr | str, *indices) -> Index:
    return Index(lift(base), tuple(map(lift, indices)))


def span(lo, size) -> Slice:
    """`lo +: size`."""
    return Slice(lift(lo), lift(size))


def words(flag: str | None = None, **items) -> Words:
    return Words(tuple(Word(k, lift(v)) for k, v in items.items() if v is not None), flag)


def op(name: str, *operands, arrow: str | None = None, value: Expr | None = None, at: Span = NOWHERE, flag: str | None = None, **items) -> Op:
    """An operation; keyword arguments become words."""
    return Op(name, tuple(map(lift, operands)), arrow, value, words(flag, **items), span=at)


def assign(name: str, value: Expr, at: Span = NOWHERE) -> Assign:
    return Assign(Name(name), value, span=at)


def by_leader(*body: Stmt) -> If:
    """`if leader { body }`."""
    return If(LEADER, body, span=body[0].span)


def by_warp_leader(*body: Stmt) -> If:
    """`if warp.leader { body }`."""
    return If(WARP_LEADER, body, span=body[0].span)


def with_span(stmt: Stmt, at: Span) -> Stmt:
    return replace(stmt, span=at)


def standing(s: Stmt, span: Span) -> Stmt:
    """A statement that stands where the one does which it is derived from, and so do those inside of it."""
    inside = {name: tuple(standing(x, span) for x in block) for name in ("then", "other", "body") if (block := getattr(s, name, None))}
    return replace(s, span=span, **inside)
