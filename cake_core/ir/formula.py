"""Expressions over parameters as JSON formulas for the manifest (see artifact.py), evaluated by the runtime without a parser."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import thawed
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Float, Index, Int, Name, Unary
from cake_core.ir.printer import expr_text
from cake_core.source import Span

#: Largest formula: lets are written out, so that a chain of them grows fast. The runtime reads none that nests deeper.
LARGEST = 4096
DEEPEST = 100  # a call of `clamp` is two steps deep


#: Statements about a whole input, in contracts.
ABOUT = ("monotone", "finite")


def formula(expr: Expr, lets: dict[str, Expr], params: frozenset[str], inputs: frozenset[str] = frozenset()):
    """`expr` with kernel-level `lets` written out. `inputs`: tensors whose elements the host can read. Raises CakeError where it holds
    more than parameters, those elements and arithmetic, or too much."""
    return _Writer(lets, params, expr.span, inputs).write(expr, 0)


@thawed
class _Writer:
    lets: dict[str, Expr]
    params: frozenset[str]
    at: Span
    inputs: frozenset[str]
    size: int = 0

    def write(self, expr: Expr, depth: int):
        self.size += 1
        if self.size > LARGEST or depth > DEEPEST:
            raise fail("derive/not-a-launch-formula", "this takes too long a formula at launch", self.at, why=f"with its lets written out it has more than {LARGEST} parts, or nests deeper than {DEEPEST}")
        again = lambda e: self.write(e, depth + 1)  # noqa: E731
        match expr:
            case Int(value) | Bool(value) | Float(value):
                return value
            case Name(id) if id in self.lets:
                return again(self.lets[id])
            case Name(id) if id in self.params:
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
            case Call(args=(Index() as element, *_)) if expr.name == "load":
                return again(element)
            case Index(Name(id), indices) if id in self.inputs:
                return ["at", id, *map(again, indices)]
            case Call(args=(Name(id),)) if expr.name in ABOUT and id in self.inputs:
                return [expr.name, id]
            case Call() if expr.name == "clamp":
                x, lo, hi = map(again, expr.positional)
                return ["min", ["max", x, lo], hi]
        raise fail("derive/not-a-launch-formula", f"'{expr_text(expr)}' can't be evaluated at launch", expr.span if expr.span.line else self.at, why="only parameters and arithmetic on them are known there")
