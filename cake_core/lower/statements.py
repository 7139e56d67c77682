"""Statements of the derived form. One function a kind; `block` opens a scope, `statement` dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Assign, Binding, Block, Declare, Expr, For, If, Int, Let, Name, Op, Stmt, Tuple, Var, While
from cake_core.ir.types import Scalar, Tile, Value, Values
from cake_core.lower import said, values
from cake_core.lower.faults import blamed
from cake_core.lower.scalars import KINDS, elem_of, nonneg
from cake_core.lower.stops import label_of
from cake_core.lower.values import Held
from cake_core.ptx.builder import Operand, PtxTypeError, Reg
from cake_core.source import NOWHERE

if TYPE_CHECKING:
    from cake_core.lower.context import Context


def block(cx: Context, body: Block) -> None:
    with cx.scope():
        for s in body:
            statement(cx, s)


def statement(cx: Context, s: Stmt) -> None:
    """Raises CakeError for a statement that has no place in a derived text, or that can't be lowered."""
    with cx.b.at(s.span if s.span != NOWHERE else cx.b.span):
        lower = LOWER.get(type(s))
        if lower is None:
            raise fail("derive/not-derived", f"'{type(s).__name__.lower()}' has no place in a derived text", s.span)
        if s.label is not None:
            cx.labels.append(label_of(cx, s))
        try:
            lower(cx, s)
        except PtxTypeError as error:
            raise fail("derive/ptx-type", f"this statement has no well-typed machine code: {error}", s.span) from error


# --- scalars and named values --------------------------------------------------------------------------------------


def _let(cx: Context, s: Let) -> None:
    for binding in s.bindings:
        cx.names[binding.name] = _named(cx, binding)


def _named(cx: Context, binding: Binding):
    expr = binding.value
    if isinstance(expr.type, Value | Tile):
        distribution = cx.distribution_of(expr)
        with cx.distributed(distribution):
            if elem_of(expr).kind in ("bool", "int", "uint"):  # costs registers only where it is used
                with cx.keeping():
                    return Held(elem_of(expr), distribution, (), values.elements(cx, expr))
            return Held(elem_of(expr), distribution, tuple(map(cx.fixed, cx.registers(expr))))
    return cx.fixed(cx.value(expr))


def _var(cx: Context, s: Var) -> None:
    for binding in s.bindings:
        if not isinstance(binding.value.type, Scalar):
            raise fail(
                "derive/not-a-scalar", f"'{binding.name}' is a variable, which holds a scalar", binding.span, fix="declare a fragment"
            )
        value = cx.value(binding.value)
        # A value's own class: a 16-bit float lives where the function that made it has put it.
        kind = value.kind if isinstance(value, Reg) else KINDS[elem_of(binding.value).kind]
        register = cx.b.reg(kind)
        cx.mutable.add(register)
        cx.move(register, value)
        cx.names[binding.name] = register


def _assign(cx: Context, s: Assign) -> None:
    match s.target, s.value:
        case Tuple(targets), Tuple(sources) if len(targets) == len(sources):
            # All right sides first: `(a, b) = (b, a)` swaps.
            found = [cx.fixed(cx.value(source)) for source in sources]
            for target, value in zip(targets, found, strict=True):
                cx.move(_variable(cx, target), value)
        case Tuple(targets), source if isinstance(source.type, Values):
            _fill_all(cx, targets, source)
        case Tuple(), _:
            raise fail("derive/tuple-assignment", "several names can be assigned from as many values only", s.span)
        case target, source:
            held = values.part(cx, target)
            if held is None:
                cx.move(_variable(cx, target), cx.value(source))
            else:
                _fill(cx, held, source, target)


def _variable(cx: Context, target: Expr) -> Reg:
    bound = cx.names.get(target.id) if isinstance(target, Name) else None
    if not isinstance(bound, Reg) or bound not in cx.mutable:
        raise fail("derive/not-assignable", "only a variable or a fragment can be assigned", target.span)
    return bound


def _fill(cx: Context, held: Held, source: Expr, target: Expr) -> None:
    """Write a fragment's registers from a scalar or from a value of its shape."""
    if any(r not in cx.mutable for r in held.registers):
        raise fail("derive/not-assignable", "a 'let' can't be assigned", target.span, fix="declare a fragment")
    with cx.distributed(held.distribution):
        if isinstance(source.type, Scalar):
            found: tuple[Operand, ...] = (values.filled(cx, held.elem, source),) * len(held.registers)
        else:
            found = cx.registers(source)
    if len(found) != len(held.registers):
        raise fail(
            "derive/layout-mismatch",
            f"a thread holds {len(held.registers)} registers of the target and {len(found)} of the value",
            source.span,
        )
    if set(held.registers) & set(found) and found != held.registers:
        found = tuple(map(cx.fixed, found))  # a part moves into an overlapping part: read all before writing
    for register, value in zip(held.registers, found, strict=True):
        cx.move(register, value)


def _fill_all(cx: Context, targets: tuple[Expr, ...], source: Expr) -> None:
    """Write several fragments from the results of one function, which come one after another."""
    held = [values.part(cx, t) for t in targets]
    if None in held:
        raise fail("derive/not-assignable", "several results go to fragments", source.span)
    with cx.distributed(held[0].distribution):
        found = cx.registers(source)
    wanted = [r for h in held for r in h.registers]
    if len(found) != len(wanted):
        raise fail("derive/layout-mismatch", f"a thread holds {len(wanted)} registers of the targets and {len(found)} of the results", source.span)
    for register, value in zip(wanted, map(cx.fixed, found), strict=True):
        cx.move(register, value)


def _declare(cx: Context, s: Declare) -> None:
    if s.space in ("shared", "barrier"):
        return  # in the plan
    space = cx.registry.spaces.get(s.space)
    if space is not None and space.memory == "tensor":
        return  # in the plan
    if space is None or space.memory != "registers":
        raise fail("derive/space", f"space '{s.space}' can't be declared here", s.span)
    for d in s.declarations:
        with cx.b.at(d.span if d.span != NOWHERE else s.span):
            fragment = values.declare(cx, d)
        cx.mutable.update(r for registers in fragment.sets for r in registers)
        cx.names[d.name] = fragment


# --- control -------------------------------------------------------------------------------------------------------


def _for(cx: Context, s: For) -> None:
    """`lo .. hi`, zero times where hi <= lo. The test stands at the loop's end, with one more in front of it unless the
    first trip is sure."""
    if s.hi is None or len(s.pattern) != 1:
        raise fail("derive/not-derived", "a loop over items has no place in a derived text", s.span)
    lo, hi = cx.value(s.lo), cx.fixed(cx.value(s.hi))
    step_expr = s.words.get("step") or Int(1)
    step = cx.fixed(cx.value(step_expr))
    if isinstance(step, int) and step <= 0:
        raise fail("derive/step", f"the step of this loop is {step}", step_expr.span, fix="use a positive step")
    known = range(lo, hi, step) if all(isinstance(x, int) for x in (lo, hi, step)) else None
    if known is not None and (len(known) <= 1 or s.words.flag == "unroll"):
        for index in known:
            _trip(cx, s, index)
        return
    index = cx.b.reg("b32")
    cx.mutable.add(index)
    again, end = cx.b.label("loop"), cx.b.label("end")
    cx.move(index, lo)
    if not (known or _surely_runs(s)):
        cx.b.branch(end, guard=cx.b.compare("<=", hi, lo))
    cx.b.place(again)
    _trip(cx, s, index)
    cx.b.emit("add.s32", index, index, step)
    # With steps above 1 the sum may pass 2**31 - 1 at the end; from 0 on it stays below 2**32, where unsigned order is right.
    unsigned = step != 1 and nonneg(s.lo)
    cx.b.branch(again, guard=cx.b.compare("<", index, hi, "u32" if unsigned else "s32"))
    cx.b.place(end)


def _trip(cx: Context, s: For, index: Operand) -> None:
    with cx.scope():
        cx.names[s.pattern[0]] = index
        cx.loops.append(s.pattern[0])
        block(cx, s.body)
        cx.loops.pop()


def _surely_runs(s: For) -> bool:
    match s.lo.type, s.hi.type:
        case Scalar(range=lo), Scalar(range=hi):
            return lo.hi is not None and hi.lo is not None and lo.hi < hi.lo
    return False


def _while(cx: Context, s: While) -> None:
    again, end = cx.b.label("loop"), cx.b.label("end")
    first = cx.predicate(s.test)
    if first is False:
        return
    if first is not True:
        cx.b.branch(end, guard=first, negate=True)
    cx.b.place(again)
    block(cx, s.body)
    more = cx.predicate(s.test)
    if more is not False:
        cx.b.branch(again, guard=None if more is True else more)
    cx.b.place(end)


def _if(cx: Context, s: If) -> None:
    test = cx.predicate(s.test)
    if isinstance(test, bool):
        block(cx, s.then if test else s.other or ())
    elif not s.other:
        with cx.b.unless_skipped(test):
            block(cx, s.then)
    else:
        other, end = cx.b.label("else"), cx.b.label("end")
        cx.b.branch(other, guard=test, negate=True)
        block(cx, s.then)
        cx.b.branch(end)
        cx.b.place(other)
        block(cx, s.other)
        cx.b.place(end)


# --- operations ----------------------------------------------------------------------------------------------------


def _op(cx: Context, s: Op) -> None:
    if s.name == "launch":
        return  # in the plan
    operation = cx.registry.operations.get(s.name)
    if operation is None:
        raise fail("plugin/no-operation", f"no plugin offers the operation '{s.name}'", s.span)
    cx.b.comment(s.name)
    start = len(cx.b.body)
    with blamed(operation, s.span), cx.distributed(cx.distribution_of(s.value) if s.value is not None else None):
        operation.lower(s, cx)
    said.check(cx, s, cx.b.body[start:])


LOWER = {Let: _let, Var: _var, Assign: _assign, Declare: _declare, For: _for, While: _while, If: _if, Op: _op}
