"""The element or tile that is changed, and how strongly the change is ordered."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr, Name
from cake_core.ir.places import root
from cake_core.ir.tiles import level
from cake_core.ir.types import F32, I32, U32, Elem, Level, Tile
from cake_core.primitive import CheckContext, LowerContext, WordSpec
from cake_core.ptx.builder import Addr

SPACES = ("global", "shared")
#: PTX ISA, atom: .sem and .scope. An order of None is an access that orders nothing else.
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDER = WordSpec("order", "name", help=f"what is ordered by it: {', '.join(ORDERS)}; relaxed without it")
SCOPE = WordSpec("scope", "name", help=f"among which threads: {', '.join(SCOPES)}; without it gpu, in shared memory cta")

#: How the type of an element is called in an arithmetic instruction.
SUFFIX = {F32: "f32", I32: "s32", U32: "u32"}


def check_element(target: Expr, name: str, elements: tuple[Elem, ...], cx: CheckContext) -> None:
    """One element of a buffer, or of a tensor that is written. Raises CakeError."""
    t = target.type
    if not isinstance(t, Tile) or t.space not in SPACES:
        raise fail("type/operand", f"'{name}' takes an element in global or shared memory, not a {t}", target.span)
    buffer = root(target).id
    if len(t.groups) != 1 or t.shape or t.transposed:
        raise fail("type/shape", f"'{name}' takes one element of '{buffer}', not a tile", target.span, fix="index one element")
    check_type(target, name, elements)
    if cx.mode(buffer) == "in":
        raise fail("type/read-only", f"'{name}' writes '{buffer}', an input", target.span, fix="declare it `out` or `inout`")


def check_type(target: Expr, name: str, elements: tuple[Elem, ...]) -> None:
    elem = target.type.elem
    if elem not in elements:
        wanted = ", ".join(e.name for e in elements)
        raise fail("type/element", f"'{name}' takes {wanted}, not {elem}", target.span, why="there is no such instruction on other types (PTX ISA, atom and red)")


def word(e: Expr | None, allowed: tuple[str, ...], what: str, default: str) -> str:
    """A name among `allowed`. Raises CakeError."""
    if e is None:
        return default
    name = e.id if isinstance(e, Name) else ""
    if name not in allowed:
        raise fail("type/word", f"'{name}' is no {what}", e.span, fix=f"write one of {', '.join(allowed)}")
    return name


def qualifiers(order: Expr | None, scope: Expr | None, space: str, orders: tuple[str, ...] = ORDERS) -> str:
    """The `.sem.scope` of an instruction. Raises CakeError."""
    found = word(scope, SCOPES, "scope", "cta" if space == "shared" else "gpu")
    return f".{word(order, orders, 'order', 'relaxed')}.{found}"


def ordering(order: Expr | None, scope: Expr | None, target: Expr) -> dict[str, str]:
    """The same as an effect says it, `order` and `scope`; of an access that orders nothing else only the scope."""
    default = "cta" if getattr(target.type, "space", None) == "shared" else "gpu"
    among = {"scope": scope.id if isinstance(scope, Name) else default}
    return among if not isinstance(order, Name) or order.id == "relaxed" else {"order": order.id, **among}


def one_writer(target: Expr, value: Level, warps: int, name: str, at: Expr) -> Level:
    """Among which threads the access is the same: one of them makes it. Raises CakeError where warps would repeat each other."""
    found = max(value, level(target))
    if warps > 1 and found <= Level.INSTANCE:
        raise fail(
            "core/one-place",
            f"each of {warps} warps would make this access of '{root(target).id}', and wait for its own result",
            at.span,
            why="the result of one warp's access reaches the others only through memory and a barrier, and neither is ever hidden",
            fix=f"call '{name}' in a role of one warp, or let the place differ by `warp`",
        )
    return found


def address(cx: LowerContext, target: Expr) -> Addr:
    """Of one element, in its space."""
    return Addr(cx.element_address(target, ()) if target.type.space == "shared" else cx.global_address(target))
