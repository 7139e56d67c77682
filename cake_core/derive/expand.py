"""Substitution with folding, and unrolled loops written out: what is constant after it needs no test at run time."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from cake_core.ir.build import binary
from cake_core.ir.nodes import Binary, Block, Bool, Cond, Expr, For, If, Int, Name, Node, Stmt, Unary


def substitute(node, env: dict[str, Expr]):
    """`node` with the names in `env` replaced and integer arithmetic folded."""
    if isinstance(node, Name):
        return replace(env[node.id], span=node.span) if node.id in env else node
    if isinstance(node, tuple):
        return tuple(substitute(x, env) for x in node)
    if not isinstance(node, Node) or not is_dataclass(node):
        return node
    changes = {}
    for f in fields(node):
        if f.name in ("span", "type", "label"):
            continue
        old = getattr(node, f.name)
        if isinstance(old, Node | tuple):
            new = substitute(old, env)
            if new is not old and new != old:
                changes[f.name] = new
    out = replace(node, **changes) if changes else node
    return _fold(out) if changes else out


def _fold(e):
    match e:
        case Binary(op, Int() as a, Int() as b) if op not in ("and", "or", "@"):
            return replace(binary(op, a, b), span=e.span)
        case Binary("and", Bool(v), x) | Binary("and", x, Bool(v)):
            return x if v else Bool(False, span=e.span)
        case Binary("or", Bool(v), x) | Binary("or", x, Bool(v)):
            return Bool(True, span=e.span) if v else x
        case Binary(op, a, b) if op in "+-*/":
            return replace(binary(op, a, b), span=e.span)
        case Unary("not", Bool(v)):
            return Bool(not v, span=e.span)
        case Unary("-", Int(v)):
            return Int(-v, span=e.span)
        case Cond(Bool(v), then, other):
            return then if v else other
    return e


def unroll(block: Block) -> Block:
    """Every `for .. unroll` written out, innermost last, and constant `if`s decided."""
    out: list[Stmt] = []
    for s in block:
        match s:
            case For(words=w) if w.flag == "unroll":
                for i in range(s.lo.value, s.hi.value):
                    out += unroll(substitute(s.body, {s.pattern[0]: Int(i, span=s.span)}))
            case For():
                out.append(replace(s, body=unroll(s.body)))
            case If(Bool(v)):
                out += unroll(s.then if v else s.other or ())
            case If():
                out.append(replace(s, then=unroll(s.then), other=unroll(s.other) if s.other is not None else None))
            case _:
                out.append(s)
    return tuple(out)
