"""What the reductions take."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.elementwise import is_register_tile, meet
from cake_core.ir.nodes import Call, Expr
from cake_core.ir.types import F32, Elem, Tile


def count(call: Call, wanted: int, names: str) -> tuple[Expr, ...]:
    """The arguments, `wanted` of them. Raises CakeError."""
    if len(call.args) != wanted or len(call.positional) != wanted:
        raise fail("type/arguments", f"'{what(call)}' takes {names}", call.span)
    return call.positional


def what(call: Call) -> str:
    """A call in words: `fold(sum, ..)`."""
    first = call.positional[0] if call.positional else None
    return f"fold({first.id}, ..)" if call.name == "fold" and hasattr(first, "id") else call.name


def tile(call: Call, x: Expr, elem: Elem = F32) -> None:
    """A two-dimensional register tile of `elem`. Raises CakeError."""
    t = x.type
    if not is_register_tile(t):
        fix = "read it into registers: `load(..)`" if isinstance(t, Tile) else None
        raise fail("type/operand", f"'{what(call)}' takes a register tile, not a {t}", x.span, fix=fix)
    if t.elem != elem:
        raise fail("type/operand", f"'{what(call)}' takes {elem}, not {t.elem}", x.span, fix=f"cast it: `{elem}(..)`")
    if len(t.shape) != 2:
        raise fail("type/shape", f"'{what(call)}' takes a tile of rows and columns, and this one has shape {list(t.shape)}", x.span)


def along(call: Call, x: Expr, rows: int, elem: Elem, part: str) -> None:
    """A tile along the rows, lane-partial. Raises CakeError."""
    t = x.type
    if not is_register_tile(t) or t.axis != "row" or t.elem != elem or tuple(t.shape) != (rows,):
        raise fail("type/operand", f"'{what(call)}' takes an {elem}[{rows}] over row, not a {t}", x.span)
    if t.part != part:
        raise fail(
            "type/partial",
            f"'{what(call)}' takes a tile `part {part}`" if part != "part" else f"'{what(call)}' takes a lane-partial tile",
            x.span,
            fix=f"declare it `over row part {part}`" if part != "part" else "declare it `over row part`",
        )


def indices(call: Call, x: Expr, idx: Expr, elem: Elem) -> None:
    """One index for each element of x, or for each of its columns. Raises CakeError."""
    t = idx.type
    if not is_register_tile(t) or t.elem != elem:
        raise fail("type/operand", f"'{what(call)}' takes {elem} indices, not a {t}", idx.span, fix="such as `cols(x)`")
    met = meet(x.type, t)
    if isinstance(met, str) or met.shape != tuple(x.type.shape):
        raise fail("type/shape", f"the indices have shape {list(t.shape)}, the tile {list(x.type.shape)}", idx.span)
