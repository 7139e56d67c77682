"""`load(tile, fill = v)`: a tile of shared or global memory as a value."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect, Mode
from cake_core.frozen import frozen
from cake_core.ir.elementwise import is_register_tile
from cake_core.ir.nodes import Bool, Call, Expr, Float, Int, Option
from cake_core.ir.tiles import level, place, widest
from cake_core.ir.types import F32, Elem, Level, Scalar, Tile, Type, Value
from cake_core.primitive import CheckContext, DeriveContext, Distribution, Form, Function, LowerContext, SimulateContext, WordSpec
from cake_core.ptx.builder import Addr, Operand, Reg, Vec
from cake_memory import cache, flat
from cake_memory.access import TILES, Guard, literal, vector
from cake_memory.holding import ONE, held, run_of, too_large
from cake_memory.operands import check_registers, check_tile, check_uniform, check_width, vector_limit


@frozen(kw_only=True)
class Load(Function):
    """ld.global.nc of `in` tensors (they are read-only for the whole kernel), ld.global of others, ld.shared."""

    def result(self, call: Call, cx: CheckContext) -> Type:
        if len(call.positional) != 1:
            raise fail("type/arguments", f"'load' takes 1 tile, not {len(call.positional)} arguments", call.span)
        (tile,) = call.positional
        t = tile.type
        if isinstance(t, Tile) and t.space == "frag":
            raise fail(
                "type/operand", "'load' takes a tile in memory, and a fragment is in registers", tile.span, fix="use the fragment itself"
            )
        if not isinstance(t, Tile) or t.space not in TILES:
            raise fail("type/operand", f"'load' takes a tile in shared or global memory, not a {t}", tile.span)
        shape = check_tile(tile, "'load'")
        _check_fill(call.options.get("fill"), t)
        cache.check(call.options, t.space)
        if cx.form is Form.DERIVED:
            check_width(tile, call.options["by"], cx.declaration(place(tile).name))
        if (along := call.options.get("along")) is not None:
            return _lying(t.elem, shape, along)
        if call.options.get("flat") == Bool(True):
            return flat.result(tile, shape)
        if shape:
            return Value(t.elem, shape)
        if t.elem.bits != 32:
            raise fail("type/not-implemented", f"'load' of one {t.elem}: scalars have 32 bits", tile.span, fix="read a tile: `lo +: size`")
        # An input is the same for the whole kernel (S11); shared memory is what it is when the instance reads it.
        return Scalar(t.elem, max(level(tile), Level.INSTANCE if t.space == "shared" else Level.CTA))

    def effects(self, call: Call) -> tuple[Effect, ...]:
        by = call.options.get("by")
        own = by is not None and call.options.get("along") is None and call.options.get("flat") is None
        return (Access(call.positional[0], Mode.READ, width=by.value if isinstance(by, Int) else None, divided="thread" if own else None),)

    def derive(self, call: Call, cx: DeriveContext) -> Call:
        (tile,) = call.positional
        shape = tuple(tile.type.shape)
        if call.options.get("flat") == Bool(True):
            return replace(call, args=(*call.args, Option("by", Int(tile.type.elem.bytes, span=call.span), span=call.span)))
        _check_place(tile, shape, cx.distribution)
        by = widest(tile, run_of(cx.distribution, shape), vector_limit(cx.arch))
        check_registers(tile, by, call.span)
        return replace(call, args=(*call.args, Option("by", Int(by, span=call.span), span=call.span)))

    def filling(self, call: Call) -> tuple[Expr, Expr] | None:
        fill = call.options.get("fill")
        return None if fill is None else (call.positional[0], fill)

    def simulate(self, call: Call, cx: SimulateContext) -> object:
        (tile,) = call.positional
        fill = call.options.get("fill")
        found = cx.read(tile, 0 if fill is None else literal(fill, tile.type.elem))
        return found.reshape(-1) if call.options.get("flat") == Bool(True) else found

    def lower(self, call: Call, cx: LowerContext) -> tuple[Operand, ...]:
        (tile,) = call.positional
        elem, shape = tile.type.elem, tuple(tile.type.shape)
        if call.options.get("flat") == Bool(True):
            return flat.lower(cx, tile, self._reader(call, cx), call.span)
        _check_place(tile, shape, cx.distribution if shape else None)
        holding = held(cx, shape) if shape else ONE
        memory = TILES[tile.type.space](cx, tile, holding)
        by = cx.constant(call.options["by"])
        access = self._reader(call, cx)
        n = by // elem.bytes
        pieces = [(memory.guard(at, n), memory.address(at)) for _, at in holding.pieces(n, call.span)]
        if n * elem.bits >= 32:
            return tuple(r for guard, address in pieces for r in access.registers(n * elem.bits // 32, guard, address))
        if len(pieces) % 2:
            raise fail(
                "type/layout",
                f"a thread holds {len(pieces)} element{'s' if len(pieces) != 1 else ''} of {elem}, and they are packed in pairs",
                call.span,
                fix="give the fragment an even `vec`",
            )
        return tuple(access.pair(low, high) for low, high in zip(pieces[::2], pieces[1::2], strict=True))


    def _reader(self, call: Call, cx: LowerContext) -> Reader:
        (tile,) = call.positional
        suffix, behind = cache.qualified(cx, call.options)
        return Reader(cx, _opcode(tile, cx) + suffix, tile.type.elem, _bits(call.options.get("fill"), tile.type.elem), behind)


@frozen
class Reader:
    """Emits loads. `fill`: bits of an element where a guard is false. `behind`: operands behind the address."""

    cx: LowerContext
    opcode: str
    elem: Elem
    fill: int
    behind: tuple[Operand, ...] = ()

    def registers(self, count: int, guard: Guard, address: Addr) -> tuple[Reg, ...]:
        """`count` registers of 32 bits. A guarded load leaves its destination alone, so the fill is there before."""
        b = self.cx.b
        out = b.regs("f32" if self.elem == F32 else "b32", count)
        word = sum(self.fill << at for at in range(0, 32, self.elem.bits))
        if guard is not True:
            for r in out:
                b.emit("mov.b32", r, word)
        suffix, operand = vector(out)
        self._load(self.opcode + suffix, operand, address, guard)
        return out

    def pair(self, low: tuple[Guard, Addr], high: tuple[Guard, Addr]) -> Reg:
        """Two elements of 16 bits, each by an access of its own, packed."""
        b = self.cx.b
        halves = b.regs("b16", 2)
        for half, (guard, address) in zip(halves, (low, high), strict=True):
            if guard is not True:
                b.emit("mov.b16", half, self.fill)
            self._load(f"{self.opcode}.b16", half, address, guard)
        out = b.reg("b32")
        b.emit("mov.b32", out, Vec(halves))
        return out

    def _load(self, opcode: str, operand: Operand, address: Addr, guard: Guard) -> None:
        if guard is not False:
            self.cx.b.emit(opcode, operand, address, *self.behind, guard=None if guard is True else guard)


def _lying(elem: Elem, shape: tuple[int, ...], along: Expr) -> Value:
    """`along = cols(x)`: the tile lies as that one does. Raises CakeError."""
    t = along.type
    if not is_register_tile(t):
        raise fail("type/operand", f"'along' takes a register tile, not a {t}", along.span, fix="such as `along = cols(x)`")
    if tuple(t.shape) != shape:
        raise fail("type/shape", f"the tile has shape {list(shape)}, what it lies along {list(t.shape)}", along.span)
    return Value(elem, shape, t.axis)


def _opcode(tile: Expr, cx: LowerContext) -> str:
    if tile.type.space == "shared":
        return "ld.shared"
    return "ld.global.nc" if cx.mode(place(tile).name) == "in" else "ld.global"


def _check_place(tile: Expr, shape: tuple[int, ...], distribution: Distribution | None) -> None:
    """A value that lies over the threads of an instance has one place; one that each thread holds whole has to be small."""
    if distribution is not None:
        check_uniform(tile)
    elif error := too_large(shape, tile.type.elem.bits, tile.span):
        raise error


def _check_fill(fill: Expr | None, tile: Tile) -> None:
    if fill is None:
        return
    if tile.space != "global":
        raise fail("type/option", "'fill' on a shared tile, which is never clipped", fill.span, fix="leave it out")
    if not (isinstance(fill, Int) or tile.elem.kind == "float" and isinstance(fill, Float)):
        raise fail("type/operand", f"'fill' is no {tile.elem}", fill.span)


def _bits(fill: Expr | None, elem: Elem) -> int:
    """Bits of an element that has the value `fill` (0 without one), rounded to nearest even."""
    if fill is None:
        return 0
    value = literal(fill, elem)
    if elem.kind != "float":
        return value & 0xFFFFFFFF
    import ml_dtypes
    import numpy as np

    kinds = {
        "f32": np.float32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "ue8m0": ml_dtypes.float8_e8m0fnu,
    }
    return int(np.asarray(value, np.float32).astype(kinds[elem.name]).view(f"u{elem.bytes}"))


LOAD = Load(
    name="load",
    capabilities=frozenset({"vector_memory"}),
    options=(
        WordSpec("fill", "constant", help="what elements past the tensor's extents read as; 0 without it"),
        WordSpec("along", "value", help="a tile of the same shape, such as `cols(x)`: the elements lie over the threads as it does"),
        WordSpec("flat", "constant", help="true: the elements in row-major order, dealt out to the lanes of a row"),
        *cache.WORDS,
        WordSpec("by", "constant", Form.DERIVED, required=True, help="bytes an access: 2, 4, 8 or 16"),
    ),
    doc="Reads of 2 to 16 bytes a thread (PTX ISA, Data Movement Instructions, ld and ld.global.nc).",
)
