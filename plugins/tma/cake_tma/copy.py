"""What loads and stores share: agreement of the two tiles, the swizzles that fit, and the split into boxes."""

from __future__ import annotations

from math import prod

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import frozen
from cake_core.ir.build import add, mul
from cake_core.ir.nodes import Declaration, Expr, Int, Op
from cake_core.ir.tiles import narrow
from cake_core.primitive import CheckContext, Demand, Form
from cake_tma.boxes import ALIGN, PATTERN, SWIZZLES, Box, Buffer, boxes, start_units
from cake_tma.tiles import Extent, extent, multiple_of

RANK_MAX = 5  # PTX ISA, Tensors: 1 to 5 dimensions
#: Bytes: of two dimensions and more, a box that starts elsewhere in a row is an illegal instruction (H200, driver 580.159.04, 2026-12-01;
#: bench/emulator_micro.py). The ISA does not say so.
START = 16


@frozen
class Copy:
    """A copy between a tile of a shared buffer and a tile of a tensor.

    `pieces`: the CTAs of a multicast, each of which moves an equal part along the slowest dimension.
    """

    op: Op
    shared: Expr
    tensor: Expr
    here: Extent
    there: Extent
    pieces: int = 1

    @property
    def buffer(self) -> Buffer:
        return Buffer(self.here.shape, self.here.slotted, self.here.elem.bytes)

    @property
    def bytes(self) -> int:
        """Of the whole tile."""
        return prod(self.here.sizes) * self.here.elem.bytes

    @property
    def slowest(self) -> int:
        """The dimension of the buffer along which a multicast is cut."""
        return next((d for d in self.here.kept if self.here.sizes[d] > 1), 0)

    @property
    def piece(self) -> tuple[int, ...]:
        """Sizes of the part that one CTA moves."""
        return tuple(n // self.pieces if d == self.slowest else n for d, n in enumerate(self.here.sizes))

    def boxes(self, swizzle: int) -> tuple[Box, ...] | str:
        """The boxes of one CTA's part under `swizzle`, or why there are none."""
        units, slowest = start_units(self.buffer, swizzle), self.slowest
        if self.here.sizes[slowest] % self.pieces:
            return f"its {self.here.sizes[slowest]} rows do not part evenly over the {self.pieces} CTAs"
        unit = units[slowest]
        if self.pieces > 1 and self.piece[slowest] % unit:
            return f"a part of {self.piece[slowest]} for each of the {self.pieces} CTAs does not start at a multiple of {unit}"
        for start, unit in zip(self.here.starts, units, strict=True):
            if not multiple_of(start, unit):
                return f"a start in it is not surely a multiple of {unit}"
        return boxes(self.buffer, self.piece, swizzle)


def copy_of(op: Op, shared: Expr, tensor: Expr, pieces: int = 1) -> Copy:
    """The copy of one statement, agreement of its tiles checked. Raises CakeError."""
    here, there = extent(shared), extent(tensor)
    if here.elem != there.elem:
        raise fail("type/element", f"'{here.name}' holds {here.elem}, '{there.name}' {there.elem}", op.span, why="a copy does not convert")
    if here.tile != there.tile:
        raise fail("type/shape", f"'{here.name}' is a tile of {list(here.tile)}, '{there.name}' of {list(there.tile)}", op.span)
    if not 1 <= len(there.shape) <= RANK_MAX:
        raise fail(
            "ptx/tma-rank", f"'{there.name}' has {len(there.shape)} dimensions", tensor.span, why=f"a tensor map has 1 to {RANK_MAX}"
        )
    for side, e in ((here, shared), (there, tensor)):
        if len(side.shape) - 1 not in side.kept:
            raise fail(
                "ptx/tma-box",
                f"the last dimension of '{side.name}' is one index",
                e.span,
                why="a box holds whole pieces of rows",
                fix="slice it",
            )
    return Copy(op, shared, tensor, here, there, pieces)


def check(copy: Copy, cx: CheckContext) -> None:
    """In the schedule form some swizzle must fit; in the derived form the declared one, and the tile must be one box."""
    name = copy.here.name
    if cx.form is Form.SCHEDULE:
        if not fitting(copy):
            raise _refused(copy, copy.boxes(0))
        check_start(copy.op.name, copy.there, copy.tensor)
        return
    declared = cx.declaration(name)
    swizzle = swizzle_of(declared)
    found = copy.boxes(swizzle)
    if isinstance(found, str):
        raise _refused(copy, found)
    if len(found) > 1:
        row, first = copy.piece[-1] * copy.here.elem.bytes, found[0].size[-1]
        wide = f": its rows have {row} bytes, and a box under a swizzle of {swizzle} has {swizzle}" if swizzle and row > swizzle else ""
        why = f"it is {len(found)} boxes, and a statement of the derived form moves one{wide}"
        raise _refused(copy, why, f"write {len(found)} copies, each of one box" + (f", {first} columns wide" if wide else ""))
    at, align = declared.words.get("at") if declared else None, PATTERN * swizzle or ALIGN
    if isinstance(at, Int) and at.value % align:
        raise fail("ptx/tma-align", f"'{name}' lies at {at.value}, not a multiple of {align}", at.span, resource=name)
    check_start(copy.op.name, copy.there, copy.tensor)


def check_start(name: str, there: Extent, tile: Expr) -> None:
    """A box of the operation `name` starts in a row of the tensor where the unit can."""
    if len(there.shape) > 1 and not multiple_of(there.starts[-1], START // there.elem.bytes):
        raise fail(
            "ptx/tma-start",
            f"'{name}' starts at a column of '{there.name}' that is not surely a multiple of {START // there.elem.bytes}",
            there.starts[-1].span or tile.span,
            why=f"in a row of {there.elem} a box starts at a multiple of {START} bytes: any other start is an illegal instruction",
            fix="start at a multiple, or copy these columns without a tensor map",
            resource=there.name,
        )


def _refused(copy: Copy, why: str, fix: str = "give the tile whole panels of the swizzle, or the buffer another one") -> CakeError:
    return fail(
        "ptx/tma-box",
        f"this tile of '{copy.here.name}' can't be moved by '{copy.op.name}'",
        copy.shared.span,
        why=why,
        fix=fix,
        resource=copy.here.name,
    )


def fitting(copy: Copy) -> tuple[int, ...]:
    return tuple(s for s in (*SWIZZLES, 0) if not isinstance(copy.boxes(s), str))


def demand(copy: Copy) -> Demand:
    """Swizzles under which the tile falls into boxes, best first."""
    fits = fitting(copy)
    return Demand(copy.here.name, fits, max(PATTERN * fits[0] if fits else 0, ALIGN))


def swizzle_of(declared: Declaration | None) -> int:
    value = declared.words.get("swizzle") if declared else None
    return value.value if isinstance(value, Int) else 0


def split(copy: Copy, swizzle: int, rank: Expr | None = None) -> tuple[tuple[Expr, Expr], ...]:
    """(shared, tensor) tile of every box. `rank`: which part of a multicast is this CTA's. Raises CakeError."""
    found = copy.boxes(swizzle)
    if isinstance(found, str):
        raise _refused(copy, found)
    return tuple((_side(copy, copy.here, copy.shared, b, rank), _side(copy, copy.there, copy.tensor, b, rank)) for b in found)


def _side(copy: Copy, side: Extent, expr: Expr, box: Box, rank: Expr | None) -> Expr:
    """The tile of one box on one side; dimensions of both sides pair up in order, those that an index picked left out."""
    cuts: list[tuple[Expr | int, int] | None] = [None] * len(side.shape)
    for d, h in zip(side.kept, copy.here.kept, strict=True):
        offset: Expr | int = box.lo[h]
        if rank is not None and h == copy.slowest:
            offset = add(mul(copy.piece[h], rank), offset)
        if offset != 0 or box.size[h] != side.sizes[d]:
            cuts[d] = (offset, box.size[h])
    return narrow(expr, cuts)
