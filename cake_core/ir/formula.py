"""Expressions over parameters as JSON formulas for the manifest (see artifact.py), evaluated by the runtime without a parser."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Float, Int, Name, Unary


def formula(expr: Expr, lets: dict[str, Expr], params: frozenset[str]):
    """`expr` with kernel-level `lets` written out. Raises CakeError where it holds more than parameters and arithmetic."""
    again = lambda e: formula(e, lets, params)  # noqa: E731
    match expr:
        case Int(value) | Bool(value) | Float(value):
            return value
        case Name(id) if id in lets:
            return again(lets[id])
        case Name(id) if id in params:
            return id
        case Binary(op, a, b) if op != "@":
            return [op, again(a), again(b)]
        case Unary("-", a):
            return ["-", 0, again(a)]
        case Unary("not", a):
            return ["not", again(a)]
        case Cond(test, then, other):
            return ["if", again(test), again(then), again(other)]
        case Call() if expr.name in ("ceildiv", "min", "max"):
            return [expr.name, *map(again, expr.positional)]
        case Call() if expr.name == "clamp":
            x, lo, hi = map(again, expr.positional)
            return ["min", ["max", x, lo], hi]
    from cake_core.ir.printer import expr_text

    raise fail("derive/not-a-launch-formula", f"'{expr_text(expr)}' can't be evaluated at launch", expr.span, why="only parameters and arithmetic on them are known there")
