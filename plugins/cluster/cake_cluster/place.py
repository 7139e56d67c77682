"""Checks of places in the shared memory of another CTA."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr, Int, Op
from cake_core.ir.places import root
from cake_core.ir.tiles import level
from cake_core.ir.types import Level
from cake_core.primitive import CheckContext
from cake_core.primitive.signals import check_rank


def check_element(target: Expr, name: str) -> None:
    """One element of 32 bits. Raises CakeError."""
    t, buffer = target.type, root(target).id
    if len(t.groups) != 1 or t.shape:
        raise fail("type/shape", f"'{name}' takes one element of '{buffer}', not a tile", target.span, fix="index one element")
    if t.elem.bits != 32 or t.elem.kind == "bool":
        raise fail("type/element", f"'{name}' takes elements of 32 bits, not {t.elem}", target.span)


def check_cta(rank: Expr, cx: CheckContext) -> None:
    """A CTA of the cluster, the same one for a warp. Raises CakeError."""
    check_rank(rank, cx, "ptx/cluster-cta")
    if rank.type.level is Level.LANE:
        raise fail("core/one-place", "the rank differs from lane to lane", rank.span, fix="name one CTA")


def writer(op: Op) -> Level:
    """Who writes: the finest of what the value, the place and the CTA are the same for."""
    return max(op.value.type.level, level(op.operands[0]), op.words.get("at").type.level)


def scalar(op: Op, target: Expr, warps: int) -> None:
    """A scalar of the element's type, and one writer a place. Raises CakeError."""
    elem, t, name = target.type.elem, op.value.type, root(target).id
    if t.elem != elem and not (isinstance(op.value, Int) and elem.kind in ("float", "uint")):
        raise fail("type/element", f"'{name}' holds {elem}, the value is {t.elem}", op.value.span, fix=f"cast it: `{elem}(..)`")
    place = max(level(target), op.words.get("at").type.level)
    if t.level is Level.LANE and place is not Level.LANE or warps > 1 and t.level is Level.WARP and place < Level.WARP:
        raise fail(
            "core/one-place",
            f"each {'thread' if t.level is Level.LANE else 'warp'} has its own value, and this element of '{name}' is one place",
            op.span,
            why="which value stays would be left to chance",
            fix="reduce it first, or index the element with `warp`",
        )
