"""What of an expression is read: the tile that a function only counts, as `cols(..)` does, is not."""

from __future__ import annotations

from dataclasses import replace

from cake_core.ir.nodes import Binary, Call, Cond, Expr, Option, Unary


def read_parts(e: Expr, registry) -> Expr | tuple:
    """`e` less the arguments of functions that do not read them."""
    of = lambda x: read_parts(x, registry)
    match e:
        case Call() if e.name in registry.functions and not registry.functions[e.name].reads:
            return ()
        case Call(_, args):
            return replace(e, args=tuple(replace(a, value=of(a.value)) if isinstance(a, Option) else of(a) for a in args))
        case Binary(_, left, right):
            return replace(e, left=of(left), right=of(right))
        case Unary(_, operand):
            return replace(e, operand=of(operand))
        case Cond(test, then, other):
            return replace(e, test=of(test), then=of(then), other=of(other))
    return e
