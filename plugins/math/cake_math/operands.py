"""What the float functions agree on: which operands they take, and what comes out."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.elementwise import meet, partial_rule, result
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import F32, Elem, Level, Scalar, Tile, Type, Value


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
                fix="cast it: `f32(..)`",
            )
    return tiles_result(call, F32)


def tiles_result(call: Call, elem: Elem) -> Type:
    """The type of an elementwise function whose arguments are scalars and register tiles. Raises CakeError."""
    types = [a.type for a in call.positional]
    met = meet(*types)
    if isinstance(met, str):
        raise fail("type/shape", f"'{call.name}': {met}", call.span, why="register tiles are taken element by element; scalars are repeated")
    if len(types) == 2 and (why := partial_rule(call.name, *types)):
        raise fail("type/partial", f"'{call.name}' takes a lane-partial tile", call.span, why=why, fix="combine its lanes first, such as by `rowsum`")
    return result(elem, met, Scalar(elem, max((t.level for t in types if isinstance(t, Scalar)), default=Level.CTA)))


def _load_it(t: Type | None) -> str | None:
    return "read it into registers: `load(..)`" if isinstance(t, Tile) and t.space != "frag" else None
