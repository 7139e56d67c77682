"""Integers, conditions and scalar floats. Integers are the core's own; floats are functions that plugins register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.effects import Attribute
from cake_core.ir.nodes import Binary, Bool, Call, Cond, Expr, Float, Int, Name, Node, Unary
from cake_core.ir.types import I32, Elem, Scalar, Tile, Value
from cake_core.lower.faults import blamed
from cake_core.lower.walk import walk
from cake_core.primitive import Distribution, Function
from cake_core.primitive.distributions import joined
from cake_core.primitive.elements import Elements, given
from cake_core.ptx.builder import Operand, Reg

if TYPE_CHECKING:
    from cake_core.lower.context import Context

COMPARISONS = frozenset(("==", "!=", "<=", ">=", "<", ">"))
LOGIC = frozenset(("and", "or"))
ARITHMETIC = frozenset("+-*/%")

#: Register class of a scalar.
KINDS = {"int": "b32", "uint": "b32", "bool": "pred", "float": "f32"}


def elem_of(expr: Expr) -> Elem:
    """Element type of a scalar or of a tile's elements; an untyped integer (a tensor's extent) is an i32."""
    match expr.type:
        case Scalar(elem) | Value(elem) | Tile(_, elem):
            return elem
    return I32


def nonneg(expr: Expr) -> bool:
    """Whether an integer is surely not negative."""
    if isinstance(expr, Int):
        return expr.value >= 0
    return isinstance(expr.type, Scalar) and (expr.type.elem.kind == "uint" or expr.type.range.nonneg)


def positive(expr: Expr) -> bool:
    if isinstance(expr, Int):
        return expr.value > 0
    return isinstance(expr.type, Scalar) and (expr.type.elem.kind == "uint" or expr.type.range.positive)


# --- values --------------------------------------------------------------------------------------------------------


def value(cx: Context, expr: Expr) -> Operand:
    """A scalar: an immediate where it is known, else a register (a predicate for a bool)."""
    match expr:
        case Int(number):
            return float(number) if elem_of(expr).kind == "float" else number
        case Float(number) | Bool(number):
            return number
        case Name(id):
            return cx.scalar(id, expr.span)
        case Unary("+", operand):
            return value(cx, operand)
        case Unary("-", operand) if elem_of(expr).kind != "float":
            return cx.b.sub(0, value(cx, operand))
        case Unary("not") | Binary(op="and" | "or" | "==" | "!=" | "<=" | ">=" | "<" | ">"):
            return predicate(cx, expr)
        case Binary(op, left, right) if op in ARITHMETIC and elem_of(expr).kind != "float":
            return _integer(cx, op, left, right)
        case Cond():
            return _choice(cx, expr)
        case Call() if expr.name in INTEGER_CALLS and elem_of(expr).kind != "float":
            return INTEGER_CALLS[expr.name](cx, *expr.positional)
        case Call() | Unary("-") | Binary() if (call := as_call(expr)) is not None:
            return _called(cx, call)
    raise fail("derive/not-a-scalar", "a scalar value is needed here", expr.span)


def as_call(expr: Expr) -> Call | None:
    """The call of a registered function that an arithmetic expression on floats or on register tiles stands for."""
    match expr:
        case Call():
            return expr
        case Binary(op, left, right) if op in ARITHMETIC or op in COMPARISONS or op in LOGIC:
            return Call(Name(op, span=expr.span), (left, right), span=expr.span, type=expr.type)
        case Unary("-" | "not" as op, operand):
            return Call(Name(op, span=expr.span), (operand,), span=expr.span, type=expr.type)
    return None


def call_function(cx: Context, call: Call) -> tuple[Operand, ...]:
    """The elements of a function's result that this thread holds, under the distribution at hand."""
    function = _function(cx, call)
    with blamed(function, call.span), cx.distributed(_inside(cx, function, call)):
        found = function.each(call, cx)
        return tuple(function.lower(call, cx)) if found is None else tuple(map(found.at, range(found.count)))


def call_elements(cx: Context, call: Call) -> Elements:
    """The same, computed where they are used if the function can do that."""
    function = _function(cx, call)
    with blamed(function, call.span), cx.distributed(_inside(cx, function, call)):
        found = function.each(call, cx)
        return given(function.lower(call, cx)) if found is None else found


def _function(cx: Context, call: Call) -> Function:
    function = cx.registry.functions.get(call.name)
    if function is None:
        raise fail("plugin/no-function", f"no plugin offers the function '{call.name}'", call.span)
    return function


def _inside(cx: Context, function: Function, call: Call) -> Distribution | None:
    """How the arguments of a call lie."""
    match function.arguments:
        case "elementwise":
            return cx.distribution
        case "whole":
            return None
    return joined(map(cx.distribution_of, call.positional))


def _called(cx: Context, call: Call) -> Operand:
    if call.name in ("i32", "u32") and call.name not in cx.registry.functions and elem_of(call.positional[0]).kind in ("int", "uint"):
        return value(cx, call.positional[0])  # two views of the same 32 bits
    with cx.distributed(None):  # a scalar has no place: what it is computed from lies as the function says
        results = call_function(cx, call)
    if len(results) != 1:
        raise fail("derive/not-a-scalar", f"'{call.name}' gives {len(results)} values where one scalar is needed", call.span)
    return results[0]


def _choice(cx: Context, expr: Cond) -> Operand:
    test = predicate(cx, expr.test)
    if isinstance(test, bool):
        return value(cx, expr.then if test else expr.other)
    if _acts(cx, expr.then) or _acts(cx, expr.other):
        return _branches(cx, expr, test)
    return cx.b.op(f"selp.{KINDS[elem_of(expr).kind]}", value(cx, expr.then), value(cx, expr.other), test)


def _branches(cx: Context, expr: Cond, test: Reg) -> Reg:
    """A choice whose arms read memory: only the arm that is chosen may run."""
    result = cx.b.reg(KINDS[elem_of(expr).kind])
    other, end = cx.b.label("else"), cx.b.label("end")
    cx.b.branch(other, guard=test, negate=True)
    cx.move(result, value(cx, expr.then))
    cx.b.branch(end)
    cx.b.place(other)
    cx.move(result, value(cx, expr.other))
    cx.b.place(end)
    return result


def _acts(cx: Context, node: Node) -> bool:
    """Whether evaluating an expression touches memory."""
    calls = (n for n in walk(node) if isinstance(n, Call) and n.name in cx.registry.functions)
    return any(not isinstance(e, Attribute) for c in calls for e in cx.registry.functions[c.name].effects(c))


# --- integers ------------------------------------------------------------------------------------------------------


def _integer(cx: Context, op: str, left: Expr, right: Expr) -> Operand:
    if op in "/%":
        return divided(cx, op, left, right)
    a, b = value(cx, left), value(cx, right)
    return {"+": cx.b.add, "-": cx.b.sub, "*": cx.b.mul}[op](a, b)


def divided(cx: Context, op: str, left: Expr, right: Expr) -> Operand:
    """Floor division, and the remainder with the divisor's sign."""
    a, b = value(cx, left), value(cx, right)
    if b == 0 and isinstance(b, int):
        raise fail("derive/division-by-zero", "the divisor is 0", right.span)
    unsigned = elem_of(left).kind == "uint"
    if unsigned and op == "/" and isinstance(b, int) and b & (b - 1) == 0:
        return cx.b.shr(a, b.bit_length() - 1)  # an arithmetic shift would take the top bit for a sign
    # A divisor that is surely not negative is positive wherever the quotient means anything.
    if isinstance(b, int) and b > 0 or unsigned or nonneg(right) or isinstance(a, int) and isinstance(b, int):
        return (cx.b.floordiv if op == "/" else cx.b.mod)(a, b, unsigned or nonneg(left))
    return _signed(cx, op, a, b)


def _signed(cx: Context, op: str, a: Operand, b: Operand) -> Operand:
    """Division by a divisor of unknown sign: the truncated quotient is one too large where the remainder is not zero and
    has the other sign."""
    e = cx.b
    q, r = e.op("div.s32", a, b), e.op("rem.s32", a, b)
    differ = e.op("setp.lt.s32", e.op("xor.b32", r, b), 0)
    fix = e.op("and.pred", differ, e.op("setp.ne.s32", r, 0))
    if op == "/":
        return e.op("sub.s32", q, e.op("selp.b32", 1, 0, fix))
    return e.op("add.s32", r, e.op("selp.b32", b, 0, fix))


def _ceildiv(cx: Context, left: Expr, right: Expr) -> Operand:
    a, b = value(cx, left), value(cx, right)
    if isinstance(a, int) and isinstance(b, int) and b:
        return -(-a // b)
    if not (nonneg(left) and positive(right)):
        negative = Unary("-", left, span=left.span, type=Scalar(elem_of(left)))
        return cx.b.sub(0, divided(cx, "/", negative, right))
    # a + b - 1 < 2**32, so an unsigned division is right even where the sum leaves the signed range
    total = cx.b.sub(cx.b.add(a, b), 1) if isinstance(b, Reg) else cx.b.add(a, b - 1)
    if isinstance(b, int) and b & (b - 1) == 0:
        return cx.b.shr(total, b.bit_length() - 1)
    return cx.b.op("div.u32", total, b)


def _extreme(name: str):
    def lower(cx: Context, *args: Expr) -> Operand:
        suffix = "u32" if any(elem_of(a).kind == "uint" for a in args) else "s32"
        result, *others = (value(cx, a) for a in args)
        for other in others:
            result = _folded(cx, name, suffix, result, other)
        return result

    return lower


def _folded(cx: Context, name: str, suffix: str, a: Operand, b: Operand) -> Operand:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if name == "min" else max(a, b)
    return cx.b.op(f"{name}.{suffix}", *((b, a) if isinstance(a, int) else (a, b)))


def _clamp(cx: Context, x: Expr, lo: Expr, hi: Expr) -> Operand:
    """min(max(x, lo), hi): the upper bound wins where the two cross."""
    raised = _extreme("max")(cx, x, lo)
    suffix = "u32" if elem_of(x).kind == "uint" else "s32"
    return _folded(cx, "min", suffix, raised, value(cx, hi))


INTEGER_CALLS = {"ceildiv": _ceildiv, "min": _extreme("min"), "max": _extreme("max"), "clamp": _clamp}


# --- conditions ----------------------------------------------------------------------------------------------------


def predicate(cx: Context, expr: Expr) -> Reg | bool:
    """A condition, as a predicate register or as a bool. Both sides of `and` and `or` are evaluated: they have no effects."""
    match expr:
        case Bool(known):
            return known
        case Unary("not", operand):
            return negated(cx, predicate(cx, operand))
        case Binary("and", left, right):
            return both(cx, predicate(cx, left), predicate(cx, right))
        case Binary("or", left, right):
            return either(cx, predicate(cx, left), predicate(cx, right))
        case Binary(op) if op in COMPARISONS:
            return _compared(cx, op, expr)
    result = value(cx, expr)
    if isinstance(result, bool) or (isinstance(result, Reg) and result.kind == "pred"):
        return result
    raise fail("derive/not-a-condition", "a condition is needed here", expr.span)


def _compared(cx: Context, op: str, expr: Binary) -> Reg | bool:
    """Integers compare here; floats by the function of the operator's name, as all arithmetic on them."""
    kinds = {elem_of(expr.left).kind, elem_of(expr.right).kind}
    if "float" in kinds:
        return _called(cx, as_call(expr))
    return cx.b.compare(op, value(cx, expr.left), value(cx, expr.right), "u32" if "uint" in kinds else "s32")


def negated(cx: Context, p: Reg | bool) -> Reg | bool:
    return not p if isinstance(p, bool) else cx.b.op("not.pred", p)


def both(cx: Context, p: Reg | bool, q: Reg | bool) -> Reg | bool:
    if isinstance(p, bool):
        return q if p else False
    if isinstance(q, bool):
        return p if q else False
    return cx.b.op("and.pred", p, q)


def either(cx: Context, p: Reg | bool, q: Reg | bool) -> Reg | bool:
    if isinstance(p, bool):
        return True if p else q
    if isinstance(q, bool):
        return True if q else p
    return cx.b.op("or.pred", p, q)
