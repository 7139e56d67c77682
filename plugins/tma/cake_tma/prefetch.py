"""`tma.prefetch`: a box of a tensor into the second-level cache."""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.frozen import frozen
from cake_core.ir.build import by_leader
from cake_core.ir.nodes import Block, Op
from cake_core.primitive import CheckContext, DeriveContext, LowerContext, Operation, Parameter
from cake_tma.boxes import BOX_MAX, GRAIN
from cake_tma.copy import RANK_MAX, check_start
from cake_tma.instruction import map_operand
from cake_tma.tiles import extent


@frozen(kw_only=True)
class Prefetch(Operation):
    """`tma.prefetch T[..]`: the leader asks for one box, clipped at the tensor's extents. It changes no result, and nothing waits for it."""

    name: str = "tma.prefetch"
    operands: tuple[Parameter, ...] = (Parameter("src", "tile", ("global",)),)
    capabilities: frozenset[str] = frozenset({"tma"})
    doc: str = "PTX ISA, cp.async.bulk.prefetch.tensor (.L2.global)"

    def check(self, op: Op, cx: CheckContext) -> None:
        (tile,) = op.operands
        box = extent(tile)
        if not 1 <= len(box.shape) <= RANK_MAX:
            message = f"'{box.name}' has {len(box.shape)} dimensions"
            raise fail("ptx/tma-rank", message, tile.span, why=f"a tensor map has 1 to {RANK_MAX}")
        row = box.sizes[-1] * box.elem.bytes
        if len(box.shape) - 1 not in box.kept or row % GRAIN:
            why = f"a box holds pieces of rows of a multiple of {GRAIN} bytes, this one of {row}"
        elif (longest := max(box.sizes)) > BOX_MAX:
            why = f"a box has at most {BOX_MAX} elements in a dimension, this one has {longest}"
        else:
            check_start(self.name, box, tile)
            return
        raise fail("ptx/tma-box", f"this tile of '{box.name}' can't be moved by '{self.name}'", tile.span, why=why, resource=box.name)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        return (by_leader(op),)

    def lower(self, op: Op, cx: LowerContext) -> None:
        (tile,) = op.operands
        cx.b.emit(f"cp.async.bulk.prefetch.tensor.{len(extent(tile).shape)}d.L2.global", map_operand(cx, tile, 0))
