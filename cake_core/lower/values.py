"""Register tiles: which register of a thread holds which element.

A fragment is a fixed set of registers a thread, in its layout's order: one a 32-bit element, one a pair of 16-bit elements. A
slice with constant bounds is a subset of them. Values that an expression computes come in fresh registers under the
distribution at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Attr, Binary, Call, Cond, Declaration, Expr, Float, Int, Name, Unary
from cake_core.ir.nodes import Tuple as TupleExpr
from cake_core.ir.places import Place, root
from cake_core.ir.plan import layout_words
from cake_core.ir.types import Elem, Named, Product, Scalar, State, Tile, Value, element_of
from cake_core.lower import scalars
from cake_core.lower.addresses import place
from cake_core.primitive import Distribution, FragmentType
from cake_core.primitive.distributions import AXES, joined
from cake_core.primitive.elements import Elements, given, one
from cake_core.primitive.listed import listed
from cake_core.ptx.builder import Operand, Reg, Vec

if TYPE_CHECKING:
    from cake_core.lower.context import Context


@frozen
class Fragment:
    """A declared fragment: `sets` has one tuple of registers a slot, slots in row-major order."""

    name: str
    elem: Elem
    slots: tuple[int, ...]
    whole: Distribution
    sets: tuple[tuple[Reg, ...], ...]


@frozen
class Held:
    """A register tile that a `let` names: its value at that point. `elements`: instead of registers, where it is computed anew
    wherever it is used (masks and indices)."""

    elem: Elem
    distribution: Distribution | None
    registers: tuple[Operand, ...]
    elements: Elements | None = None


# --- declarations --------------------------------------------------------------------------------------------------


def declare(cx: Context, d: Declaration) -> Fragment:
    """Take registers for a fragment. Raises CakeError where its layout is not known or does not divide over the instance."""
    elem = element_of(d.declared)
    *slot_groups, shape = (tuple(cx.constant(e) for e in g) for g in d.declared.groups)
    slots = tuple(n for g in slot_groups for n in g)
    named = d.words.get("layout")
    if not isinstance(named, Name):
        raise fail("derive/no-layout", f"fragment '{d.name}' has no layout", d.span, fix="add the word 'layout' with a layout's name")
    layout = cx.registry.layouts.get(named.id)
    if layout is None:
        raise fail("plugin/no-layout", f"no plugin offers the layout '{named.id}'", named.span)
    words = layout_words(d)
    held = layout.elements(shape, cx.warps, words, elem)
    if held is None:
        raise fail("derive/layout-does-not-fit", f"layout '{named.id}' does not divide '{d.name}' over {cx.warps} warps", d.span)
    packed = 32 // elem.bits
    if elem.kind == "bool" or layout.run(words) % packed or held % packed:
        raise fail(
            "derive/fragment-type",
            f"a fragment of '{elem}' is not implemented in layout '{layout.name}'",
            d.span,
            why=f"a register holds {packed} neighbours, and this layout does not keep them together",
        )
    whole = Distribution(layout, shape, cx.warps, words, layout.offsets(shape, cx.warps, words))
    sets = tuple(_registers(cx, elem, held) for _ in range(prod(slots)))
    return Fragment(d.name, elem, slots, whole, sets)


def _registers(cx: Context, elem: Elem, held: int) -> tuple[Reg, ...]:
    """Registers for so many elements; those of a state row by row."""
    if isinstance(elem, State):
        kinds = _type_of(cx, elem).registers(elem.args)
        return tuple(cx.b.reg(kind) for _ in range(held) for kind in kinds)
    return cx.b.regs("f32" if elem.bits == 32 and elem.kind == "float" else "b32", held * elem.bits // 32)


def _type_of(cx: Context, elem: State) -> FragmentType:
    found = cx.registry.reductions.get(elem.type)
    if not isinstance(found, FragmentType):
        raise fail("plugin/no-fragment-type", f"no plugin offers the fragment type '{elem.type}'")
    return found


# --- parts of fragments --------------------------------------------------------------------------------------------


def part(cx: Context, expr: Expr) -> Held | None:
    """The registers of a fragment, of a slice of one, or of a named value; None for another expression."""
    name = root(expr) if field_of(expr) is None else None
    bound = cx.names.get(name.id) if name is not None else None
    if isinstance(bound, Held):
        if expr is not name:
            raise fail(
                "derive/slice-of-value",
                f"'{name.id}' is a value, a part of it can't be taken",
                expr.span,
                fix="slice the fragment that it comes from",
            )
        return bound
    if not isinstance(bound, Fragment):
        return None
    if expr is name and not bound.slots:
        return Held(bound.elem, bound.whole, bound.sets[0])
    where = place(expr)
    registers = _set(cx, bound, where, expr)
    whole = bound.whole
    if where.sizes == whole.shape:
        return Held(bound.elem, whole, registers)
    if isinstance(bound.elem, State):
        raise fail("derive/fragment-index", f"'{bound.name}' holds states, a part of them can't be taken", expr.span)
    if any(not isinstance(p.size, int) for p in where.parts):
        raise fail(
            "derive/fragment-index",
            f"a part of fragment '{bound.name}' must be a slice of constant size",
            expr.span,
            fix="write 'lo +: size'",
        )
    lo, size = tuple(cx.constant(p.lo) for p in where.parts), where.sizes
    chosen = whole.layout.select(whole.shape, whole.warps, lo, size, whole.words)
    if chosen is None:
        raise fail(
            "derive/fragment-granule", f"this part of fragment '{bound.name}' cuts a granule of its layout '{whole.layout.name}'", expr.span
        )
    offsets = tuple(tuple(x - start for x, start in zip(whole.offsets[e], lo, strict=True)) for e in chosen)
    held = Distribution(whole.layout, size, whole.warps, whole.words, offsets)
    return Held(bound.elem, held, _chosen(bound, registers, chosen, expr))


def _set(cx: Context, fragment: Fragment, where: Place, expr: Expr) -> tuple[Reg, ...]:
    if len(where.slots) != len(fragment.slots):
        raise fail(
            "derive/slot-missing",
            f"fragment '{fragment.name}' has {len(fragment.slots)} slot dimensions, {len(where.slots)} are indexed",
            expr.span,
        )
    number = 0
    for size, slot in zip(fragment.slots, where.slots, strict=True):
        index = cx.constant(slot)
        if not 0 <= index < size:
            raise fail("derive/slot-range", f"slot {index} of fragment '{fragment.name}' is outside 0 .. {size}", slot.span)
        number = number * size + index
    return fragment.sets[number]


def _chosen(fragment: Fragment, registers: tuple[Reg, ...], elements: Sequence[int], expr: Expr) -> tuple[Reg, ...]:
    packed = 32 // fragment.elem.bits
    firsts = elements[::packed]
    if list(elements) != [e + i for e in firsts for i in range(packed)] or any(e % packed for e in firsts):
        raise fail("derive/fragment-granule", f"this part of fragment '{fragment.name}' cuts a register of {packed} elements", expr.span)
    return tuple(registers[e // packed] for e in firsts)


def field_of(expr: Expr) -> tuple[Expr, str] | None:
    """The state and the field that `x.key` reads; None for another expression."""
    match expr:
        case Attr(base, name) if isinstance(getattr(base.type, "elem", None), State):
            return base, name
    return None


def _field(cx: Context, state: Expr, name: str) -> tuple[Operand, ...]:
    """The values of a field, row by row."""
    elem = state.type.elem
    kind, held = _type_of(cx, elem), registers(cx, state)
    each = len(kind.registers(elem.args))
    return tuple(x for row in range(0, len(held), each) for x in kind.field(name, elem.args, held[row : row + each]))


# --- distributions -------------------------------------------------------------------------------------------------


def shape_of(expr: Expr) -> tuple | None:
    match expr.type:
        case Value(_, shape):
            return shape
        case Tile():
            return expr.type.shape
    return None


def distribution_of(cx: Context, expr: Expr) -> Distribution | None:
    """How the register tile that `expr` computes lies over the threads: as the first fragment in it does."""
    if isinstance(expr.type, Scalar | Product | Named):
        return None
    if (held := part(cx, expr)) is not None:
        return held.distribution
    of = partial(distribution_of, cx)
    if (field := field_of(expr)) is not None:
        rows, elem = of(field[0]), field[0].type.elem
        return listed(rows, _type_of(cx, elem).fields(elem.args)[field[1]][1]) if rows is not None else None
    match expr:
        case Call():
            function = cx.registry.functions.get(expr.name)
            return function.lies(expr, of) if function is not None else joined(map(of, expr.positional))
        case Binary(_, left, right):
            return joined((of(left), of(right)))
        case Unary(_, operand):
            return of(operand)
        case Cond(_, then, other):
            return joined((of(then), of(other)))
        case TupleExpr(items):
            return joined(map(of, items))
    return None


def _places(d: Distribution) -> tuple:
    return d.layout.places(d.words), d.warps, d.words, d.offsets


def _agree(cx: Context, held: Held, expr: Expr) -> None:
    """A fragment can stand in a value of its own shape only if the threads hold the same elements of both."""
    asked, own = cx.distribution, held.distribution
    if asked is None or own is None or asked.shape != own.shape:
        return
    if _places(asked) != _places(own):
        raise fail(
            "derive/layout-mismatch",
            f"'{own.layout.name}' and '{asked.layout.name}' spread the same shape differently over the threads",
            expr.span,
            why="elements would have to move between threads",
            fix="declare both fragments with one layout",
        )


# --- what a thread holds -------------------------------------------------------------------------------------------


def registers(cx: Context, expr: Expr) -> tuple[Operand, ...]:
    """See `LowerContext.registers`."""
    if isinstance(expr.type, Scalar):
        return (cx.value(expr),)
    if isinstance(expr, TupleExpr):
        return tuple(r for item in expr.items for r in registers(cx, item))
    if (held := part(cx, expr)) is not None:
        _agree(cx, held, expr)
        return held.registers if held.elements is None else tuple(map(held.elements.at, range(held.elements.count)))
    if (field := field_of(expr)) is not None:
        return _field(cx, *field)
    if isinstance(expr, Name) and isinstance(getattr(expr.type, "elem", None), State):  # `x = empty`
        return _type_of(cx, expr.type.elem).empty(expr.type.elem.args) * len(cx.distribution.offsets)
    call = scalars.as_call(expr)
    if call is None:
        raise fail("derive/not-a-value", "a register tile is needed here", expr.span)
    return scalars.call_function(cx, call)


def elements(cx: Context, expr: Expr) -> Elements:
    """What `registers` holds, computed where it is used if it can be. While `cx.keeps`, of values as they are now."""
    keep = cx.fixed if cx.keeps else lambda x: x
    if isinstance(expr.type, Scalar):
        return one(keep(cx.value(expr)))
    if (held := part(cx, expr)) is not None:
        _agree(cx, held, expr)
        return held.elements or given(map(keep, held.registers))
    call = scalars.as_call(expr)
    return scalars.call_elements(cx, call) if call is not None else given(registers(cx, expr))


def together(cx: Context, *exprs: Expr) -> tuple[Elements, ...]:
    """See `LowerContext.elements`."""
    found = [_spread(cx, e) for e in exprs]
    count = max(e.count for e in found)
    floats = any(scalars.elem_of(e).kind == "float" for e in exprs)
    result = []
    for expr, e in zip(exprs, found, strict=True):
        if floats and isinstance(e.single, int) and not isinstance(e.single, bool):
            e = one(float(e.single))
        if e.count != count:
            if e.count != 1 or not isinstance(expr.type, Scalar):
                raise fail("derive/layout-mismatch", f"a thread holds {e.count} elements of one operand and {count} of another", expr.span)
            e = e.pick((0,) * count)
        result.append(e)
    return tuple(result)


def _spread(cx: Context, expr: Expr) -> Elements:
    """`elements`; a tile along an axis is repeated as in `_repeated`."""
    own = _axis_distribution(cx, expr)
    if own is None:
        return elements(cx, expr)
    with cx.distributed(own):
        found = elements(cx, expr)
    return found.pick(_numbers(cx, own, expr))


def broadcast(cx: Context, *exprs: Expr) -> tuple[tuple[Operand, ...], ...]:
    """See `LowerContext.broadcast`. An integer literal beside floats is a float."""
    held = [_repeated(cx, e) for e in exprs]
    count = max(map(len, held))
    floats = any(scalars.elem_of(e).kind == "float" for e in exprs)
    result = []
    for expr, operands in zip(exprs, held, strict=True):
        if floats:
            operands = tuple(float(o) if isinstance(o, int) and not isinstance(o, bool) else o for o in operands)
        if len(operands) != count:
            if len(operands) != 1 or not isinstance(expr.type, Scalar):
                raise fail(
                    "derive/layout-mismatch", f"a thread holds {len(operands)} registers of one operand and {count} of another", expr.span
                )
            operands *= count
        result.append(operands)
    return tuple(result)


def _repeated(cx: Context, expr: Expr) -> tuple[Operand, ...]:
    """`registers`; a tile along an axis, where a two-dimensional one is computed, has its element repeated across the other."""
    own = _axis_distribution(cx, expr)
    if own is None:
        return registers(cx, expr)
    with cx.distributed(own):
        held = registers(cx, expr)
    return tuple(held[n] for n in _numbers(cx, own, expr))


def _axis_distribution(cx: Context, expr: Expr) -> Distribution | None:
    """How a tile along an axis lies, where a two-dimensional one is computed; None elsewhere."""
    asked, axis = cx.distribution, getattr(expr.type, "axis", None)
    if axis is None or asked is None or len(asked.shape) != 2:
        return None
    own = distribution_of(cx, expr)
    if own is None:
        raise fail("derive/no-layout", "nothing says how this tile lies over the threads", expr.span)
    return own


def _numbers(cx: Context, own: Distribution, expr: Expr) -> tuple[int, ...]:
    """For each element of the tile at hand the number of its row's or column's element."""
    numbers, across = {offset[0]: n for n, offset in enumerate(own.offsets)}, AXES.index(expr.type.axis)
    try:
        return tuple(numbers[offset[across]] for offset in cx.distribution.offsets)
    except KeyError:
        raise fail("derive/layout-mismatch", f"a thread does not hold the {expr.type.axis}s of this tile that it needs", expr.span) from None


def filled(cx: Context, elem: Elem, expr: Expr) -> Operand:
    """One register's worth of a scalar, for every element of a fragment of `elem`."""
    if elem.bits == 32:
        operand = cx.value(expr)
        return float(operand) if elem.kind == "float" and isinstance(operand, int) else operand
    known = expr.value if isinstance(expr, Int | Float) else cx.value(expr)
    if isinstance(known, int | float):
        one = float_bits(known, elem)
        return sum(one << at for at in range(0, 32, elem.bits))
    if isinstance(known, Reg) and known.kind == "b16":
        packed = cx.b.reg("b32")
        cx.b.emit("mov.b32", packed, Vec((known, known)))
        return packed
    raise fail(
        "derive/fragment-fill",
        f"a fragment of '{elem}' can't be filled with this value",
        expr.span,
        fix=f"fill it with a constant or a scalar of '{elem}'",
    )


def float_bits(x: float, elem: Elem) -> int:
    """The bits of a float of 16 or 8 bits, rounded to nearest, ties to even."""
    import ml_dtypes
    import numpy as np

    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    return int(np.array(x, np.float32).astype(kinds[elem.name]).view(f"u{elem.bytes}"))
