"""Small questions about types, and typed literals: what the elaborator's parts share."""

from __future__ import annotations

from dataclasses import replace

from cake_core.ir import ranges
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Bool, Expr, Float, Int, Name, Option
from cake_core.ir.places import fragments_in
from cake_core.ir.types import BOOL, F32, I32, Barriers, Level, Named, Product, Scalar, Tile, Type, Value, dim_text


def typed(node: Expr, type_: Type) -> Expr:
    return replace(node, type=type_)


def literal(value: int | float | bool, at: Expr) -> Expr:
    """A typed literal in the place of `at`."""
    if isinstance(value, bool):
        return Bool(value, span=at.span, type=Scalar(BOOL, Level.CTA))
    if isinstance(value, int):
        return Int(value, span=at.span, type=Scalar(I32, Level.CTA, ranges.constant(value)))
    return Float(value, span=at.span, type=Scalar(F32, Level.CTA))


def is_int(t: Type | None) -> bool:
    return isinstance(t, Scalar) and t.elem.kind in ("int", "uint")


def is_bool(t: Type | None) -> bool:
    return isinstance(t, Scalar) and t.elem.kind == "bool"


def is_float_like(t: Type | None) -> bool:
    return isinstance(t, Scalar | Value | Tile) and t.elem.kind == "float" and (isinstance(t, Scalar) or is_register_tile(t))


def is_mask(t: Type | None) -> bool:
    return isinstance(t, Value) and t.elem == BOOL


def is_index_tile(t: Type | None) -> bool:
    return is_register_tile(t) and t.elem.kind in ("int", "uint")


def is_float(e: Expr) -> bool:
    return not isinstance(e, Option) and getattr(getattr(e.type, "elem", None), "kind", None) == "float"


def level_of(*exprs: Expr) -> Level:
    return max((e.type.level for e in exprs if isinstance(e.type, Scalar)), default=Level.CTA)


def range_of(e: Expr) -> ranges.Range:
    """Anything, where the type is not known because an error was reported already."""
    return e.type.range if isinstance(e.type, Scalar) else ranges.ANY


def held(e: Expr) -> Type:
    """The type under which a name holds a value: a fragment read is a value. It lies over the threads if something in it does."""
    t = e.type
    if not is_register_tile(t):
        return t
    return Value(t.elem, tuple(t.shape), t.axis, t.part, spread=bool(fragments_in(e)))


def described(t: Type | None) -> str:
    """A type in words, with its article: what messages say of an expression."""
    match t:
        case Scalar(elem):
            return "a condition" if elem == BOOL else _with_article(elem.name)
        case Tile():
            shape = "".join("[" + ", ".join(map(dim_text, g)) + "]" for g in t.groups if g)
            what = f"{t.elem}{shape}{'.T' if t.transposed else ''}"
            if t.space == "frag":
                what += f" over {t.axis}" * bool(t.axis) + f" part {t.part}" * bool(t.part)
                return f"a fragment {what}" if shape else f"one {t.elem} of a fragment"
            return f"{_with_article(what)} in {t.space} memory" if shape else f"one {t.elem} in {t.space} memory"
        case Value():
            return _with_article(str(t))
        case Product():
            return "a product"
        case Barriers(kind, slots):
            return f"one {kind}" if slots is None else f"an array of {kind}"
        case Named(kind, name):
            return f"the {NOUNS.get(kind, kind)} '{name}'"
    return f"{t}"


def counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


NOUNS = {"tiles": "tile schedule", "symbol": "name"}


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiof' and not noun.startswith('u') else 'a'} {noun}"


def name_of(e: Expr | None) -> str | None:
    return e.id if isinstance(e, Name) else None


def named(t: Type | None, kind: str) -> bool:
    return isinstance(t, Named) and t.kind == kind
