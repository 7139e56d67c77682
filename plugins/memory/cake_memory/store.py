"""`store place <- value`: registers to a tile of shared or global memory."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import OF_WARP, Access, Effect, Issuer, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import LEADER, WARP_LEADER
from cake_core.ir.nodes import Block, Expr, Int, Op, Word
from cake_core.ir.places import fragments_in, root
from cake_core.ir.plan import BufferPlan
from cake_core.ir.tiles import declared, level, place, widest
from cake_core.ir.types import Level, Scalar, Tile, Value
from cake_core.primitive import CheckContext, Demand, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.ptx.builder import Operand, Vec
from cake_memory import cache, clip, matrix
from cake_memory.access import TILES, Guard, both, in_register, literal, vector
from cake_memory.holding import ONE, held, run_of
from cake_memory.operands import check_registers, check_tile, check_uniform, check_width, vector_limit

#: Rows after which every swizzle pattern repeats.
PATTERN_ROWS = 8
SWIZZLES = (128, 64, 32)


@frozen(kw_only=True)
class Store(Operation):
    """A register tile goes to a tile of its shape, each thread writing what it holds; a scalar goes to one element.

    Elements past a tensor's extents are dropped; `clip e`: those at or behind `e` along the first sliced dimension too. A scalar is written by one thread: the leader where it is the same for
    the instance, each warp's leader where it, or its place, differs a warp.
    """

    def check(self, op: Op, cx: CheckContext) -> None:
        (target,) = op.operands
        shape = check_tile(target, "'store'")
        clip.check(op, target)
        cache.check(_hints(op), target.type.space)
        if isinstance(op.value.type, Scalar):
            _check_scalar(op, shape)
            _check_writers(op, cx.warps)
        else:
            _check_values(op, shape)
        if cx.form is Form.DERIVED and op.words.get("by") is not None:
            self._check_form(op, cx)

    def _check_form(self, op: Op, cx: CheckContext) -> None:
        (target,) = op.operands
        by, declaration = op.words.get("by"), cx.declaration(place(target).name)
        if by != matrix.WORD:
            check_width(target, by, declaration)
            if by.value > clip.widest(op, target, by.value):
                raise fail("ptx/access-width", f"an access of {by.value} bytes may straddle the clip", by.span if by.span.line else op.span, fix="write a smaller 'by'")
            return
        reason = matrix.refusal(target, None if declaration is None else matrix.swizzle_of(declaration), cx.arch, declaration)
        if reason is None and isinstance(op.value.type, Scalar):
            reason = "a scalar is no matrix"
        if reason:
            raise fail(
                "ptx/access-width",
                f"'{matrix.WORD.id}' is not legal here",
                by.span if by.span.line else op.span,
                why=reason,
                fix="write the bytes of a vector access",
            )

    def demands(self, op: Op, cx: CheckContext) -> tuple[Demand, ...]:
        (target,) = op.operands
        if target.type.space != "shared":
            return ()
        whole = declared(target)
        rows = BufferPlan(place(target).name, whole.elem, whole.slots, whole.shape, 0, 0, op.span)
        fitting = [s for s in SWIZZLES if len(whole.shape) > 1 and rows.row_bytes % s == 0 and rows.slot_bytes % (PATTERN_ROWS * s) == 0]
        if len(target.type.shape) < 2:  # one row or one element: nothing is gained by permuting
            return (Demand(rows.name, (0, *fitting), align=whole.elem.bytes),)
        # Without a swizzle the width of the access follows the slots, not the other way round.
        return (Demand(rows.name, (*fitting, 0), align=PATTERN_ROWS * fitting[0] if fitting else whole.elem.bytes),)

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        return {f.id: "vector" for f in fragments_in(op.value) if len(f.type.shape) == 1 and f.type.axis is None}

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        (target,) = op.operands
        return (replace(op, words=replace(op.words, items=(*op.words.items, Word("by", self._by(op, target, cx), span=op.span)))),)

    def _by(self, op: Op, target: Expr, cx: DeriveContext) -> Expr:
        """The widest legal form."""
        elem = target.type.elem
        if isinstance(op.value.type, Scalar):
            return Int(elem.bytes, span=op.span)
        d = cx.distribution
        swizzle = cx.swizzle(place(target).name) if target.type.space == "shared" else None
        if d is not None and d.layout.name == matrix.LAYOUT and matrix.refusal(target, swizzle, cx.arch) is None:
            return replace(matrix.WORD, span=op.span)
        by = widest(target, run_of(d, tuple(target.type.shape)), clip.widest(op, target, vector_limit(cx.arch)))
        check_registers(target, by, op.span)
        return Int(by, span=op.span)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        (target,) = op.operands
        issuer = Issuer.LEADER if isinstance(op.value.type, Scalar) and _writer(op) <= Level.INSTANCE else Issuer.WARP
        reads = tuple(Access(f, Mode.READ) for f in fragments_in(op.value))
        by = op.words.get("by")
        divided = None if by is None or isinstance(op.value.type, Scalar) else "warp" if by == matrix.WORD else "thread"
        write = Access(target, Mode.WRITE, issuer=issuer, width=by.value if isinstance(by, Int) else None, divided=divided)
        return (*reads, write, *((OF_WARP,) if by == matrix.WORD else ()))

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        clip = op.words.get("clip")
        cx.write(op.operands[0], cx.value(op.value), clip=None if clip is None else cx.value(clip))

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        if isinstance(op.value.type, Scalar):
            _store_scalar(op, target, cx)
            return
        registers = cx.registers(op.value)
        if op.words.get("by") == matrix.WORD:
            matrix.lower(op, target, registers, cx)
        else:
            _store_vectors(op, target, registers, cx)


# --- checks ----------------------------------------------------------------------------------------------------


def _check_elem(op: Op, elem) -> None:
    (target,) = op.operands
    if elem != target.type.elem:
        raise fail(
            "type/element",
            f"'{root(target).id}' holds {target.type.elem}, the value is {elem}",
            op.value.span,
            fix=f"cast it: `{target.type.elem}(..)`",
        )


def _check_scalar(op: Op, shape: tuple[int, ...]) -> None:
    (target,) = op.operands
    name = root(target).id
    if shape:
        raise fail(
            "type/shape",
            f"a scalar goes to one element, and this part of '{name}' has shape {list(shape)}",
            op.value.span,
            fix="index one element, or store a register tile",
        )
    if not (isinstance(op.value, Int) and target.type.elem.kind == "float"):
        _check_elem(op, op.value.type.elem)
    if target.type.elem.bits != 32:
        raise fail("type/not-implemented", f"'store' of one {target.type.elem}: scalars have 32 bits", op.span)
    if op.value.type.level is Level.LANE and level(target) is not Level.LANE:
        raise fail(
            "core/one-place",
            f"each thread has its own value, and this element of '{name}' is one place",
            op.span,
            why="which thread's value stays would be left to chance",
            fix="reduce it first, such as with `warpsum(..)`",
        )


def _check_values(op: Op, shape: tuple[int, ...]) -> None:
    (target,) = op.operands
    t = op.value.type
    if not isinstance(t, Value) and not (isinstance(t, Tile) and len(t.groups) == 1):
        raise fail("type/operand", f"'store' takes a register tile or a scalar, not a {t}", op.value.span)
    _check_elem(op, t.elem)
    if tuple(t.shape) != shape:
        raise fail("type/shape", f"this part of '{root(target).id}' has shape {list(shape)}, the value {list(t.shape)}", op.value.span)
    if not fragments_in(op.value):
        raise fail(
            "core/undistributed",
            "no fragment says which thread writes which element",
            op.value.span,
            why="every thread holds the whole value",
            fix="assign it to a `frag` and store that",
        )
    check_uniform(target)


def _writer(op: Op) -> Level:
    """Who writes a scalar: the finer of what the value and what the place are the same for."""
    return max(op.value.type.level, level(op.operands[0]))


def _check_writers(op: Op, warps: int) -> None:
    """Several warps with values of their own must not write one place. Raises CakeError."""
    (target,) = op.operands
    t = op.value.type
    if warps > 1 and t.level is Level.WARP and level(target) < Level.WARP:
        raise fail(
            "core/one-place",
            f"each of {warps} warps has its own value, and this element of '{root(target).id}' is one place",
            op.span,
            why="which warp's value stays would be left to chance",
            fix="give each warp its element: index it with `warp`",
        )


# --- lowering --------------------------------------------------------------------------------------------------


def _store_scalar(op: Op, target: Expr, cx: LowerContext) -> None:
    elem = target.type.elem
    x = literal(op.value, elem) if isinstance(op.value, Int) else cx.value(op.value)
    register = in_register(cx, x, elem)
    writer = _writer(op)
    guard = True if writer is Level.LANE else cx.predicate(WARP_LEADER if writer is Level.WARP else LEADER)
    memory = TILES[target.type.space](cx, target, ONE)
    suffix, behind = cache.qualified(cx, _hints(op))
    _emit(cx, f"st.{target.type.space}{suffix}.b32", (register, *behind), memory.address(()), guard)


def _store_vectors(op: Op, target: Expr, registers: tuple[Operand, ...], cx: LowerContext) -> None:
    elem = target.type.elem
    holding = held(cx, tuple(target.type.shape))
    owner = _owner(cx)
    memory = TILES[target.type.space](cx, target, holding, clip.limits(op, target, cx))
    hints, behind = cache.qualified(cx, _hints(op))
    opcode = f"st.{target.type.space}{hints}"
    n = cx.constant(op.words.get("by")) // elem.bytes
    pieces = tuple(holding.pieces(n, op.span))
    if len(registers) * 32 != len(holding.offsets) * elem.bits:
        raise fail("type/layout", f"a thread holds {len(holding.offsets)} elements of {elem} in {len(registers)} registers", op.span)
    held_registers = tuple(in_register(cx, x, elem) for x in registers)
    if n * elem.bits < 32:
        halves = []
        for r in held_registers:
            pair = cx.b.regs("b16", 2)
            cx.b.emit("mov.b32", Vec(pair), r)
            halves += pair
        for (_, at), half in zip(pieces, halves, strict=True):
            _emit(cx, f"{opcode}.b16", (half, *behind), memory.address(at), both(cx, owner, memory.guard(at, n)))
        return
    each = n * elem.bits // 32
    for i, (_, at) in enumerate(pieces):
        suffix, operand = vector(held_registers[i * each : (i + 1) * each])
        _emit(cx, opcode + suffix, (operand, *behind), memory.address(at), both(cx, owner, memory.guard(at, n)))


def _owner(cx: LowerContext) -> Guard:
    """Of the threads that hold the same elements (a tile along an axis) one writes them."""
    d = cx.distribution
    return True if d is None or "over" not in d.words else d.layout.owner(cx, d.words)


def _hints(op: Op) -> dict[str, Expr | None]:
    return {w.name: op.words.get(w.name) for w in cache.WORDS}


def _emit(cx: LowerContext, opcode: str, operands: tuple[Operand, ...], address: Operand, guard: Guard) -> None:
    if guard is not False:
        cx.b.emit(opcode, address, *operands, guard=None if guard is True else guard)


STORE = Store(
    name="store",
    capabilities=frozenset({"vector_memory"}),
    operands=(Parameter("destination", "tile", ("shared", "global"), writable=True),),
    arrows=("<-",),
    value=Parameter("value", "value"),
    words=(
        clip.CLIP,
        *cache.WORDS,
        WordSpec("by", "name", Form.DERIVED, required=True, help="bytes an access (2, 4, 8 or 16), or `stmatrix`"),
    ),
    doc="Writes of 2 to 16 bytes a thread, or of 8x8 matrices a warp (PTX ISA, Data Movement Instructions, st; Warp-level Matrix "
    "Store Instruction, stmatrix).",
)
