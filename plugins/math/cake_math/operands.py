"""What the float functions agree on: which operands they take, and what comes out."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.elementwise import PARTIAL, Meeting, meet, partial_rule, result
from cake_core.ir.nodes import Call, Expr, Int
from cake_core.ir.types import BF16, F16, F32, I32, U32, Elem, Level, Scalar, Tile, Type, Value


def register_elem(t: Type | None) -> Elem | None:
    """Element type of a scalar, a fragment or a computed register tile; None for anything else."""
    match t:
        case Scalar(elem) | Value(elem):
            return elem
        case Tile(space="frag", elem=elem, groups=(_,), transposed=False):
            return elem
    return None


def register_shape(t: Type) -> tuple[int, ...] | None:
    """Shape of a register tile; None for a scalar."""
    return None if isinstance(t, Scalar) else tuple(t.shape)


def arguments(call: Call, *counts: int) -> tuple[Expr, ...]:
    """The plain arguments, whose number must be one of `counts`. Raises CakeError."""
    args = call.positional
    if len(args) not in counts:
        wanted = " or ".join(map(str, counts))
        raise fail(
            "type/arguments", f"'{call.name}' takes {wanted} {'argument' if counts[-1] == 1 else 'arguments'}, not {len(args)}", call.span
        )
    return args


def integers(call: Call) -> bool:
    """Whether an operator stands between integers."""
    return all(register_elem(a.type) in (I32, U32) for a in call.positional)


def arithmetic_result(call: Call, *counts: int) -> Type:
    """The type of an operator on f32, or on tiles of one integer type. Raises CakeError."""
    if not integers(call):
        return f32_result(call, *counts)
    arguments(call, *counts)
    return tiles_result(call, common_elem(call, (I32, U32)))


def f32_result(call: Call, *counts: int) -> Type:
    """The type of an elementwise function of f32: scalars are repeated, register tiles must have one shape. Raises CakeError."""
    args = arguments(call, *counts)
    for a in args:
        elem = register_elem(a.type)
        if elem is None:
            raise fail("type/operand", f"'{call.name}' takes scalars and register tiles, not a {a.type}", a.span, fix=_load_it(a.type))
        if elem != F32:
            raise fail(
                "type/operand",
                f"'{call.name}' takes f32, not {elem}",
                a.span,
                why="float arithmetic is done in f32",
                fix="cast it: `f32(..)`" if isinstance(elem, Elem) else None,
            )
    return tiles_result(call, F32)


def tiles_result(call: Call, elem: Elem) -> Type:
    """The type of an elementwise function whose arguments are scalars and register tiles. Raises CakeError."""
    types = [a.type for a in call.positional]
    shape = met(call)
    return result(elem, shape, Scalar(elem, max((t.level for t in types if isinstance(t, Scalar)), default=Level.CTA)))


def met(call: Call) -> Meeting:
    """The shape that the arguments have together. Raises CakeError."""
    types = [a.type for a in call.positional]
    found = meet(*types)
    if isinstance(found, str):
        raise fail(
            "type/shape", f"'{call.name}': {found}", call.span, why="register tiles are taken element by element; scalars are repeated"
        )
    if any(getattr(t, "part", None) for t in types):
        why = partial_rule(call.name, *types) if len(types) == 2 else PARTIAL
        if why:
            raise fail(
                "type/partial",
                f"'{call.name}' takes a lane-partial tile",
                call.span,
                why=why,
                fix="combine its lanes first, such as by `rowsum`",
            )
    return found


def common_elem(call: Call, allowed: tuple[Elem, ...]) -> Elem:
    """The element type of all arguments, one of `allowed`; a literal integer takes the type of the others. Raises CakeError."""
    elems = []
    for a in call.positional:
        elem = register_elem(a.type)
        if elem is None:
            raise fail("type/operand", f"'{call.name}' takes scalars and register tiles, not a {a.type}", a.span, fix=_load_it(a.type))
        if elem not in allowed:
            fix = "cast it: `f32(..)`" if elem in (BF16, F16) and F32 in allowed else None
            raise fail("type/operand", f"'{call.name}' takes {' or '.join(map(str, allowed))}, not {elem}", a.span, fix=fix)
        if not isinstance(a, Int):
            elems.append(elem)
    if len(set(elems)) > 1:
        raise fail(
            "type/mixed", f"'{call.name}' takes {' and '.join(sorted({e.name for e in elems}))} together", call.span, fix="cast one of them"
        )
    return elems[0] if elems else I32


def _load_it(t: Type | None) -> str | None:
    return "read it into registers: `load(..)`" if isinstance(t, Tile) and t.space != "frag" else None
