"""Nodes to text that parses to equal nodes: the canonical layout, with no bracket more than the grammar needs.

Two spaces of indent, one statement a line, lines broken at commas inside brackets. Comments belong to texts, not to
nodes: the formatter keeps them, the printer has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_core.ir import nodes as n
from cake_core.ir.wrap import wrap

# Binding strengths, weakest first: what stands at a place must bind at least as strongly as the place asks.
CHOICE, OR, AND, NOT, COMPARE, SUM, TERM, UNARY, POST = range(9)
BINARY = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", "<=", ">=", "<", ">"), COMPARE),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/", "%", "@"), TERM),
}


def program_text(program: n.Program) -> str:
    """The whole text: the version line, then the kernels, a blank line between two."""
    head = f"cake {program.version} derived\n" if program.derived else f"cake {program.version}\n"
    return head + "\n".join(map(kernel_text, program.kernels))


def kernel_text(kernel: n.Kernel) -> str:
    """One kernel, without the version line."""
    lines = wrap(f"kernel {kernel.name}({', '.join(map(param_text, kernel.params))})", 0)
    for clause in kernel.clauses:
        lines += wrap(clause_text(clause), 2)
    lines += ["{", *_lines(kernel.body, 2), "}"]
    return "\n".join(lines) + "\n"


def stmt_text(stmt: n.Stmt) -> str:
    """One statement; its blocks make several lines."""
    return "\n".join(_stmt(stmt, 0))


# --- parts of kernels --------------------------------------------------------------------------------------------


def param_text(param: n.Param) -> str:
    mode = f"{param.mode} " if param.mode else ""
    return f"{param.name}: {mode}{type_text(param.declared)}"


def clause_text(clause: n.Clause) -> str:
    match clause:
        case n.Const(bindings):
            return f"const {_bindings(bindings)}"
        case n.Require(exprs):
            return f"require {_exprs(exprs)}"
        case n.Assume(exprs):
            return f"assume {_exprs(exprs)}"
        case n.Target(names):
            return f"target {', '.join(names)}"
        case n.Cluster(axis, words):
            return f"cluster {_bindings((axis,))}{words_text(words)}"
    raise TypeError(f"no clause: {clause!r}")


def type_text(declared: n.TypeExpr) -> str:
    args = f"({_exprs(declared.args)})" if declared.args else ""
    return declared.name + args + "".join(f"[{_exprs(g)}]" for g in declared.groups)


def words_text(words: n.Words) -> str:
    """The words with a blank before each, the flag last."""
    flag = f" {words.flag}" if words.flag else ""
    return "".join(f" {w.name} {expr_text(w.value)}" for w in words.items) + flag


def _bindings(bindings: tuple[n.Binding, ...]) -> str:
    return ", ".join(f"{b.name} = {expr_text(b.value)}" for b in bindings)


def _exprs(exprs: tuple[n.Expr, ...]) -> str:
    return ", ".join(map(expr_text, exprs))


# --- statements --------------------------------------------------------------------------------------------------


def _lines(block: n.Block, indent: int) -> Iterator[str]:
    for stmt in block:
        yield from _stmt(stmt, indent)


def _stmt(stmt: n.Stmt, indent: int) -> Iterator[str]:
    label = f"@{stmt.label} " if stmt.label else ""
    if isinstance(stmt, n.If):
        yield from _if(stmt, label, indent)
        return
    head, body = _head(stmt)
    if body is None:
        yield from wrap(label + head, indent)
    else:
        yield from _with_block(label + head, body, indent)
        yield " " * indent + "}"


def _with_block(head: str, body: n.Block, indent: int) -> Iterator[str]:
    """The lines of a block but its closing brace."""
    yield from wrap(f"{head} {{", indent)
    yield from _lines(body, indent + 2)


def _if(stmt: n.If, before: str, indent: int) -> Iterator[str]:
    """An `if` with its chain of `else if`, in a loop: a chain may be long."""
    while True:
        yield from _with_block(f"{before}if {expr_text(stmt.test)}", stmt.then, indent)
        match stmt.other:
            case None:
                break
            case (n.If(label=None) as chained,):
                before, stmt = "} else ", chained
            case other:
                yield " " * indent + "} else {"
                yield from _lines(other, indent + 2)
                break
    yield " " * indent + "}"


def _head(stmt: n.Stmt) -> tuple[str, n.Block | None]:
    """A statement's one line, and its block if it has one."""
    match stmt:
        case n.Let(bindings):
            return f"let {_bindings(bindings)}", None
        case n.Var(bindings):
            return f"var {_bindings(bindings)}", None
        case n.Tiles(name, schedule, words, body):
            return f"tiles {name} = {expr_text(schedule)}{words_text(words)}", body
        case n.Pipeline(name, slots, buffers, producers, consumers):
            ends = f"from {_places(producers)} to {_places(consumers)}"
            return f"pipeline {name}: {expr_text(slots)} {{ {', '.join(buffers)} }} {ends}", None
        case n.Turn(name, words):
            return f"turn {name}{words_text(words)}", None
        case n.Role(name, instances, count, group, words, body):
            number = "" if instances is None else f"[{expr_text(instances)}]"
            return f"role {name}{number}: {expr_text(count)} {group}{words_text(words)}", body
        case n.Inline(name, params, body):
            return f"inline {name}({', '.join(params)})", body
        case n.For(pattern, lo, hi, words, body):
            names = pattern[0] if len(pattern) == 1 else f"({', '.join(pattern)})"
            end = "" if hi is None else f" .. {expr_text(hi)}"
            return f"for {names} in {expr_text(lo)}{end}{words_text(words)}", body
        case n.While(test, words, body):
            return f"while {expr_text(test)}{words_text(words)}", body
        case n.Group(body):
            return "group", body
        case n.Declare(space, declarations):
            each = (f"{d.name}: {type_text(d.declared)}{words_text(d.words)}" for d in declarations)
            return f"{space} {', '.join(each)}", None
        case n.Assign(target, value):
            return f"{expr_text(target)} = {expr_text(value)}", None
        case n.CallStmt(call):
            return expr_text(call), None
        case n.Op(name, operands, arrow, value, words):
            source = f" {arrow} {expr_text(value)}" if arrow else ""
            operand = f" {_exprs(operands)}" if operands else ""
            return f"{name}{operand}{source}{words_text(words)}", None
    raise TypeError(f"no statement: {stmt!r}")


def _places(places: tuple[n.Place, ...]) -> str:
    return ", ".join(p.name + words_text(p.words) for p in places)


# --- expressions -------------------------------------------------------------------------------------------------


def expr_text(expr: n.Expr) -> str:
    """One expression on one line."""
    return _expr(expr, CHOICE)


def _expr(expr: n.Expr, place: int) -> str:
    text, strength = _strength(expr)
    return text if strength >= place else f"({text})"


def _strength(expr: n.Expr) -> tuple[str, int]:
    """The text of `expr` and how strongly it binds."""
    match expr:
        case n.Name(name):
            return name, POST
        case n.Int(value):
            return str(value), POST if value >= 0 else UNARY
        case n.Float(value):
            return _float(value), POST if math.copysign(1, value) > 0 else UNARY
        case n.Bool(value):
            return "true" if value else "false", POST
        case n.Unary(op, operand):
            return _unary(op, operand)
        case n.Binary(op, left, right):
            own = BINARY[op]
            # All associate to the left but the comparisons, which do not chain.
            return f"{_expr(left, own + (own == COMPARE))} {op} {_expr(right, own + 1)}", own
        case n.Cond(test, then, other):
            return f"{_expr(test, OR)} ? {_expr(then, CHOICE)} : {_expr(other, CHOICE)}", CHOICE
        case n.Slice(lo, size):
            return f"{_expr(lo, CHOICE)} +: {_expr(size, CHOICE)}", CHOICE
        case n.All():
            return ":", CHOICE
        case n.Index(base, indices):
            return f"{_base(base)}[{_exprs(indices)}]", POST
        case n.Attr(base, name):
            return f"{_base(base)}.{name}", POST
        case n.Call(function, args):
            return f"{_base(function)}({_exprs(args)})", POST
        case n.Option(name, value, is_dim):
            return f"{name}{':' if is_dim else ' ='} {_expr(value, CHOICE)}", CHOICE
        case n.Tuple((only,)):
            return f"({_expr(only, CHOICE)},)", POST
        case n.Tuple(items):
            return f"({_exprs(items)})", POST
    raise TypeError(f"no expression: {expr!r}")


def _base(expr: n.Expr) -> str:
    """What an index, a call or an attribute hangs on: literals stand in brackets there."""
    return f"({expr_text(expr)})" if isinstance(expr, n.Int | n.Float | n.Bool) else _expr(expr, POST)


def _unary(op: str, operand: n.Expr) -> tuple[str, int]:
    if op == "not":
        return f"not {_expr(operand, NOT)}", NOT
    if op == "-" and _is_bare_literal(operand):
        return f"-({expr_text(operand)})", UNARY  # `-1` is the literal
    return op + _expr(operand, UNARY), UNARY


def _is_bare_literal(expr: n.Expr) -> bool:
    return isinstance(expr, n.Int | n.Float) and _strength(expr)[1] == POST


def _float(value: float) -> str:
    """The shortest decimal that reads back as `value`. NaN has no literal."""
    if math.isnan(value):
        raise ValueError("NaN has no literal")
    return repr(value)
