"""Checks that `load` and `store` share."""

from __future__ import annotations

from cake_core.architecture import Architecture
from cake_core.diagnostics import fail
from cake_core.ir.nodes import Declaration, Expr, Int
from cake_core.ir.places import root
from cake_core.ir.tiles import BASE_ALIGN, level, refusal
from cake_core.ir.types import Level, Tile
from cake_core.source import Span

REGISTER = 4  # bytes


def check_tile(tile: Expr, what: str) -> tuple[int, ...]:
    """The constant shape of one tile in memory. Raises CakeError."""
    t = tile.type
    name = root(tile).id
    if not isinstance(t, Tile) or len(t.groups) != 1:
        raise fail("type/index", f"{what} takes one slot of '{name}'", tile.span, fix=f"index it: `{name}[s]`")
    if t.transposed:
        raise fail("type/operand", f"{what} takes no transposed tile", tile.span, why="'.T' is for the operands of a product")
    if t.elem.name == "bool":
        raise fail("type/element", f"{what} of bool", tile.span, fix="use i32")
    if any(not isinstance(d, int) for d in t.shape):
        raise fail("type/slice-size", f"the tile of {what} has no constant size", tile.span, fix="write `lo +: size` with a constant size")
    return tuple(t.shape)


def check_uniform(tile: Expr) -> None:
    """A tile that an instance reads or writes together is the same tile for all of its threads. Raises CakeError."""
    if level(tile) > Level.INSTANCE:
        raise fail(
            "core/one-place",
            f"this part of '{root(tile).id}' is not the same for all threads of the instance",
            tile.span,
            why="the threads of an instance access one tile together, each its own elements",
            fix="leave 'warp' out of the index",
        )


def check_registers(tile: Expr, width: int, at: Span) -> None:
    """Elements of 8 bits lie four a register, and an access moves whole registers. Raises CakeError."""
    if tile.type.elem.bits == 8 and width < REGISTER:
        raise fail(
            "ptx/access-width",
            f"an access of {width} bytes moves no whole register of {tile.type.elem}",
            at,
            why="a register holds four elements of 8 bits, and none is taken apart",
            fix="state in a `require` what is missing, such as `C % 4 == 0`, and hold runs of four: `vec 4` or more",
        )


def check_width(tile: Expr, by: Expr, declaration: Declaration | None) -> None:
    """Whether a written access width is legal, as far as the tile decides. Raises CakeError."""
    if not isinstance(by, Int):
        raise fail("ptx/access-width", "'by' is no number of bytes", by.span, fix="write 2, 4, 8 or 16, or let it be derived")
    width = by.value
    if reason := refusal(tile, width, declaration):
        raise fail(
            "ptx/access-width",
            f"an access of {width} bytes is not legal on this part of '{root(tile).id}'",
            by.span if by.span.line else tile.span,
            why=reason,
            fix="write a smaller 'by', or state what is missing in a `require`",
        )
    if tile.type.shape:
        check_registers(tile, width, by.span if by.span.line else tile.span)


def vector_limit(arch: Architecture) -> int:
    """Bytes of the widest access that is used."""
    return min(BASE_ALIGN, arch.limit("vector_bytes")) if "vector_bytes" in arch.limits else BASE_ALIGN
