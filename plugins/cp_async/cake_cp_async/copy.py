"""`cp.async x <- T[..]`: a tile of a tensor into shared memory, by the threads of an instance, without registers."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import Access, Attribute, Effect, InGroup, Issuer, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import lift
from cake_core.ir.nodes import Block, Declaration, Expr, Int, Op, Word
from cake_core.ir.places import root
from cake_core.ir.plan import BufferPlan
from cake_core.ir.tiles import declared, level, place, refusal
from cake_core.ir.types import Level
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_cp_async.groups import CAPABILITIES, QUEUE
from cake_cp_async.lowering import emit

#: Bytes that one thread can copy at a time, best first (PTX ISA, cp.async: cp-size).
WIDTHS = (16, 8, 4)
#: Bytes that the L2 cache can be told to fetch with a copy (PTX ISA, cp.async: .level::prefetch_size).
PREFETCH = (64, 128, 256)
#: Bytes of the rows whose 16-byte chunks are permuted, best first; every width copies inside a chunk.
SWIZZLES = (128, 64, 32)
PATTERN_ROWS = 8  # after which every swizzle repeats


@frozen(kw_only=True)
class Copy(Operation):
    """Schedule form: `cp.async x <- T[..] [prefetch n]`; the derived form adds `by n`, the bytes of one copy.

    All threads of the instance share the pieces of the tile. Elements outside the tensor become zeros, and no byte of them is
    read. A copy is complete when the group that holds it has been waited for, and other threads know it after a barrier.
    """

    def check(self, op: Op, cx: CheckContext) -> None:
        shared, tensor = op.operands[0], op.value
        for side in (shared, tensor):
            _check_tile(side)
        here, there = shared.type, tensor.type
        if here.elem != there.elem:
            raise fail(
                "type/element",
                f"'{root(shared).id}' holds {here.elem}, '{root(tensor).id}' {there.elem}",
                op.span,
                why="a copy does not convert",
            )
        if here.shape != there.shape:
            raise fail(
                "type/shape", f"'{root(shared).id}' is a tile of {list(here.shape)}, '{root(tensor).id}' of {list(there.shape)}", op.span
            )
        if (prefetch := op.words.word("prefetch")) is not None and prefetch.value.value not in PREFETCH:
            allowed = ", ".join(map(str, PREFETCH))
            raise fail("ptx/cp-async-prefetch", f"a prefetch of {prefetch.value.value} bytes", prefetch.span, fix=f"write one of {allowed}")
        if cx.form is Form.DERIVED:
            self._check_width(op, cx)

    def _check_width(self, op: Op, cx: CheckContext) -> None:
        by = op.words.word("by")
        reason = _refusal(op, by.value.value, cx.declaration(place(op.operands[0]).name))
        if by.value.value == 16 or op.words.word("prefetch") is None:
            pass
        elif reason is None:
            reason = "only copies of 16 bytes tell the L2 cache what to fetch"
        if reason:
            raise fail(
                "ptx/cp-async-width",
                f"copies of {by.value.value} bytes are not legal here",
                by.span,
                why=reason,
                fix="write a smaller 'by'",
            )

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        whole = declared(op.operands[0])
        rows = BufferPlan(place(op.operands[0]).name, whole.elem, whole.slots, whole.shape, 0, 0, op.span)
        fitting = [s for s in SWIZZLES if len(whole.shape) > 1 and rows.row_bytes % s == 0 and rows.slot_bytes % (PATTERN_ROWS * s) == 0]
        align = PATTERN_ROWS * fitting[0] if fitting else WIDTHS[-1]  # without a swizzle the width follows the slots
        return (Demand(rows.name, (*fitting, 0), align=align),)

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        widths = (16,) if op.words.word("prefetch") is not None else WIDTHS
        reasons = {w: _refusal(op, w, cx.declaration(place(op.operands[0]).name)) for w in widths}
        width = next((w for w, reason in reasons.items() if reason is None), None)
        if width is None:
            raise fail(
                "ptx/cp-async-width",
                f"this tile of '{root(op.value).id}' can't be copied in pieces of {' or '.join(map(str, widths))} bytes",
                op.span,
                why=reasons[widths[-1]],
                fix="state what is missing in a `require`, such as `K % 8 == 0`, or go by way of registers: `store .. <- load(..)`",
            )
        return (replace(op, words=replace(op.words, items=(*op.words.items, Word("by", lift(width), span=op.span)))),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        group = InGroup(QUEUE)
        return (
            Access(op.value, Mode.READ, completion=group, issuer=Issuer.WARP),
            Access(op.operands[0], Mode.WRITE, completion=group, issuer=Issuer.WARP),
            *((Attribute("piece", by.value),) if isinstance(by := op.words.get("by"), Int) else ()),
        )

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.read(op.value))

    def lower(self, op: Op, cx: LowerContext) -> None:
        prefetch = op.words.get("prefetch")
        emit(cx, op.operands[0], op.value, cx.constant(op.words.get("by")), prefetch.value if isinstance(prefetch, Int) else None)


def _check_tile(tile: Expr) -> None:
    """A tile of one slot, as it lies, the same for all threads of the instance. Raises CakeError."""
    name, t = root(tile).id, tile.type
    if len(t.groups) != 1:
        raise fail("type/index", f"a copy takes one slot of '{name}'", tile.span, fix=f"index it: `{name}[s]`")
    if t.transposed:
        raise fail("type/transposed", f"a copy moves the rows of '{name}' as they lie", tile.span, fix="leave `.T` out")
    if any(not isinstance(d, int) for d in t.shape):
        raise fail("type/slice-size", f"a dimension of '{name}' has no constant size here", tile.span, fix="write `lo +: size`")
    if not t.shape:
        raise fail("type/shape", f"this is one element of '{name}'", tile.span, why="a copy moves rows", fix="slice the last dimension")
    if level(tile) > Level.INSTANCE:
        raise fail(
            "core/one-place",
            f"this part of '{name}' is not the same for all threads of the instance",
            tile.span,
            why="the threads of an instance copy one tile together, each some pieces of it",
            fix="leave 'warp' out of the index",
        )


def _refusal(op: Op, width: int, declaration: Declaration | None) -> str | None:
    """Why pieces of `width` bytes are not legal for both tiles; None if they are."""
    if width not in WIDTHS:
        return f"one copy has {' or '.join(str(w) for w in reversed(WIDTHS))} bytes"
    return refusal(op.operands[0], width, declaration) or refusal(op.value, width)


COPY = Copy(
    name="cp.async",
    capabilities=CAPABILITIES,
    operands=(Parameter("dst", "tile", ("shared",), writable=True),),
    arrows=("<-",),
    value=Parameter("src", "tile", ("global",)),
    words=(
        WordSpec("prefetch", "constant", help="bytes that the L2 cache fetches around each piece: 64, 128 or 256"),
        WordSpec("by", "constant", Form.DERIVED, required=True, help="bytes of one copy: 4, 8 or 16"),
    ),
    doc="PTX ISA, Data Movement and Conversion Instructions: Non-bulk copy, cp.async (.ca, .cg, ignore-src)",
)
