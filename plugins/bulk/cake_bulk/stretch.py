"""A tile as one stretch of bytes: what a bulk copy can move.

The instruction takes two addresses and a size, all multiples of 16 bytes (PTX ISA, cp.async.bulk); it clips nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import frozen
from cake_core.ir.build import mul
from cake_core.ir.nodes import Declaration, Expr, Op
from cake_core.ir.places import root
from cake_core.ir.plan import integer
from cake_core.ir.tiles import alignment, declared, inside, level, narrow, place, range_of
from cake_core.ir.types import Elem, Level
from cake_core.primitive import CheckContext, Demand, DeriveContext, HandOff
from cake_core.primitive.signals import handed

UNIT = 16
#: A flag: the author answers for it that the tile lies inside of the tensor for every shape.
EXACT = "exact"


@frozen
class Stretch:
    name: str
    elem: Elem
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * self.elem.bytes


def stretch(expr: Expr, op: Op) -> Stretch:
    """Raises CakeError where a tile is no stretch of constant size."""
    tile, where = declared(expr), place(expr)
    if expr.type.slots or len(expr.type.groups) != 1:
        raise fail("type/index", f"'{op.name}' takes one slot of '{where.name}'", expr.span, fix=f"index it: `{where.name}[s]`")
    if expr.type.transposed:
        raise _refused(op, expr, "a copy moves elements as they lie")
    sizes = [1 if p.size is None else p.size for p in where.parts]
    if any(not isinstance(n, int) for n in sizes):
        raise fail("type/slice-size", f"a dimension of '{where.name}' has no constant size here", expr.span, fix="write `lo +: size`")
    first = next((d for d, n in enumerate(sizes) if n > 1), len(sizes) - 1)
    for part, extent in list(zip(where.parts, tile.shape, strict=True))[first + 1 :]:
        if part.size != extent or range_of(part.lo).constant != 0:
            raise _refused(op, expr, "its rows are parts of rows, so its bytes do not lie one behind the other")
    return Stretch(where.name, tile.elem, prod(sizes))


def check_one(op: Op, e: Expr, cx: CheckContext) -> None:
    """A tile that is no copy's. Raises CakeError."""
    if (size := stretch(e, op).bytes) % UNIT:
        raise _refused(op, e, f"it has {size} bytes, which is no multiple of {UNIT}")
    _check_side(op, e, cx)


def check_kinds(op: Op, kinds: Mapping[Elem, str] | None) -> None:
    """The elements of a reduction. Raises CakeError."""
    elem = op.operands[0].type.elem
    if kinds is not None and elem not in kinds:
        wanted = ", ".join(e.name for e in kinds)
        raise fail("type/element", f"'{op.name}' takes {wanted}, not {elem}", op.span, why="there is no such instruction on other types")


def check(op: Op, to: Expr, of: Expr, cx: CheckContext) -> None:
    """Both sides of a copy. Raises CakeError."""
    a, b = stretch(to, op), stretch(of, op)
    if a.elem != b.elem:
        raise fail("type/element", f"'{a.name}' holds {a.elem}, '{b.name}' {b.elem}", op.span, why="a copy does not convert")
    if a.elements != b.elements:
        raise fail("type/shape", f"the copy takes {b.elements} elements to a place of {a.elements}", op.span)
    if a.bytes % UNIT:
        raise _refused(op, to, f"it has {a.bytes} bytes, which is no multiple of {UNIT}")
    for e in (to, of):
        _check_side(op, e, cx)


def _check_side(op: Op, e: Expr, cx: CheckContext) -> None:
    declaration: Declaration | None = cx.declaration(place(e).name) if e.type.space == "shared" else None
    if (known := alignment(e, declaration)) % UNIT:
        raise _refused(op, e, f"its address is known to be a multiple of {known} bytes only, and must be one of {UNIT}")
    if declaration is not None and integer(declaration.words, "swizzle"):
        raise _refused(op, e, "its 16-byte chunks are permuted")
    if level(e) > Level.INSTANCE:
        raise fail("core/one-place", f"this part of '{root(e).id}' differs from warp to warp, and the leader alone copies", e.span)
    if e.type.space == "global" and op.words.flag != EXACT:
        parts = zip(place(e).parts, declared(e).shape, strict=True)
        if any(p.size is not None and not inside(p, extent) for p, extent in parts):
            raise _refused(
                op,
                e,
                "it may reach past the tensor's extents, and a bulk copy clips nothing",
                fix=f"state sizes in a `require`, or write `{EXACT}` and answer for it that it stays inside",
            )


def _refused(op: Op, e: Expr, why: str, fix: str | None = None) -> CakeError:
    return fail(
        "ptx/bulk-stretch", f"this tile of '{root(e).id}' can't be moved by '{op.name}'", e.span, why=why, fix=fix, resource=root(e).id
    )


def demand(e: Expr) -> Demand:
    """A shared buffer whose bytes lie as they are counted."""
    return Demand(place(e).name, (0,), UNIT)


def size_of(op: Op, e: Expr) -> int:
    return stretch(e, op).bytes


def part(op: Op, e: Expr, pieces: int, rank: Expr) -> Expr:
    """The part of a tile that is this CTA's, of `pieces` equal ones along its slowest dimension (S15). Raises CakeError."""
    where = place(e)
    sizes = [1 if p.size is None else p.size for p in where.parts]
    d = next((d for d, n in enumerate(sizes) if n > 1), None)
    if d is None or sizes[d] % pieces:
        raise _refused(op, e, f"its {sizes[d] if d is not None else 1} rows do not part evenly over the {pieces} CTAs")
    mine = sizes[d] // pieces
    if prod(sizes) // pieces * declared(e).elem.bytes % UNIT:
        raise _refused(op, e, f"a part for each of the {pieces} CTAs is no multiple of {UNIT} bytes")
    return narrow(e, [(mul(mine, rank), mine) if n == d else None for n in range(len(sizes))])


def filled(op: Op, cx: DeriveContext) -> HandOff:
    """The hand-off that this fill belongs to. Raises CakeError where there is none."""
    (target,) = op.operands
    name = root(target).id
    fix = f"put '{name}' into a pipeline of this role, and fill it between `acquire` and `commit`"
    return handed(op, target, cx, f"what '{op.name}' moves into '{name}' has come", fix)
