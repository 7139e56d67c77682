"""`cluster.load(x[..], at = RANK)`: what the shared memory of a CTA of the cluster holds."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from cake_cluster.place import check_cta
from cake_cluster.remote import remote
from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect, Mode
from cake_core.frozen import frozen
from cake_core.ir.nodes import Call, Expr, Int, Option
from cake_core.ir.places import root
from cake_core.ir.tiles import level, place, refusal, widest
from cake_core.ir.types import F32, Level, Scalar, Tile, Type, Value
from cake_core.primitive import CheckContext, DeriveContext, Form, Function, LowerContext, SimulateContext, WordSpec
from cake_core.ptx.builder import Addr, Operand, Vec

#: Elements that every thread may hold whole: a handful of partial results.
MOST = 64


@frozen(kw_only=True)
class RemoteLoad(Function):
    """One element, or a row of a few that every thread then holds whole. What is read was written before the last `cluster.sync`."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        if len(call.positional) != 1:
            raise fail("type/arguments", f"'{self.name}' takes 1 tile, not {len(call.positional)} arguments", call.span)
        (tile,) = call.positional
        t = tile.type
        if not isinstance(t, Tile) or t.space != "shared" or len(t.groups) != 1 or t.transposed:
            raise fail("type/operand", f"'{self.name}' takes a tile in shared memory, not a {t}", tile.span)
        if t.elem.bits != 32:
            raise fail("type/element", f"'{self.name}' takes elements of 32 bits, not {t.elem}", tile.span)
        shape = tuple(t.shape)
        if len(shape) > 1 or prod(shape) > MOST:
            raise fail(
                "core/whole-value",
                f"every thread would hold all {prod(shape)} elements",
                tile.span,
                why="a remote read is a handful of partial results",
                fix=f"read a row of at most {MOST}",
            )
        rank = call.options["at"]
        check_cta(rank, cx)
        if cx.form is Form.DERIVED and shape:
            self._check_width(tile, call.options["by"], cx)
        return Value(t.elem, shape) if shape else Scalar(t.elem, max(level(tile), rank.type.level, Level.INSTANCE))

    def _check_width(self, tile: Expr, by: Expr, cx: CheckContext) -> None:
        width = by.value if isinstance(by, Int) else 0
        if reason := refusal(tile, width, cx.declaration(place(tile).name)):
            raise fail(
                "ptx/cluster-width", f"an access of {width} bytes is not legal on this part of '{root(tile).id}'", by.span, why=reason
            )

    def effects(self, call: Call) -> tuple[Effect, ...]:
        return (Access(call.positional[0], Mode.READ, cta=call.options["at"]),)

    def derive(self, call: Call, cx: DeriveContext) -> Call:
        (tile,) = call.positional
        by = widest(tile, *tile.type.shape, 16, cx.declaration(place(tile).name)) if tile.type.shape else tile.type.elem.bytes
        return replace(call, args=(*call.args, Option("by", Int(by, span=call.span), span=call.span)))

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        return cx.read(call.positional[0], cta=cx.value(call.options["at"]))

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (tile,) = call.positional
        b, elem = cx.b, tile.type.elem
        count = prod(tile.type.shape)
        first = cx.element_address(tile, (0,) * len(tile.type.shape))
        base = remote(cx, first, cx.value(call.options["at"]))
        out = b.regs("f32" if elem == F32 else "b32", count)
        each = cx.constant(call.options["by"]) // elem.bytes if tile.type.shape else 1
        for i in range(0, count, each):
            suffix, operand = (".b32", out[i]) if each == 1 else (f".v{each}.b32", Vec(out[i : i + each]))
            b.emit(f"ld.shared::cluster{suffix}", operand, Addr(base, i * elem.bytes))
        return out


LOAD = RemoteLoad(
    name="cluster.load",
    arguments="whole",
    capabilities=frozenset({"cluster"}),
    options=(
        WordSpec("at", "integer", required=True, help="rank in the cluster of the CTA whose shared memory it is"),
        WordSpec("by", "constant", Form.DERIVED, required=True, help="bytes an access: 4, 8 or 16"),
    ),
    doc="Reads of another CTA's shared memory (PTX ISA, Data Movement and Conversion Instructions, mapa and ld.shared::cluster).",
)
