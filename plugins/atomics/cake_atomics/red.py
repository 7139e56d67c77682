"""`red.add x[..] <- v` and its kin: elements are combined with values, and nothing is returned."""

from __future__ import annotations

from dataclasses import replace

from cake_atomics.place import SCOPES, SPACES, SUFFIX, address, check_type, ordering, qualifiers
from cake_core.diagnostics import fail
from cake_core.effects import Access, Effect, Issuer, Mode
from cake_core.frozen import frozen
from cake_core.ir.build import LEADER, WARP_LEADER
from cake_core.ir.nodes import Block, Expr, Int, Op, Word
from cake_core.ir.places import fragments_in, root
from cake_core.ir.tiles import inside, level, place, refusal, widest
from cake_core.ir.types import BF16, F16, F32, I32, U32, Elem, Level, Scalar, Tile, Value
from cake_core.primitive import CheckContext, DeriveContext, Form, LowerContext, Operation, Parameter, SimulateContext, WordSpec
from cake_core.primitive.simulated import combining
from cake_core.ptx.builder import Addr, Operand, Vec

VECTOR_CAPABILITY = "vector_reduction"
INTEGERS = (I32, U32)
PAIRS = (BF16, F16)
#: What may be ordered by an access that returns nothing (PTX ISA, red).
RED_ORDERS = ("relaxed", "release")


@frozen(kw_only=True)
class Red(Operation):
    """A scalar goes into one element, by one thread: the leader where it is the same for the instance, each warp's leader where it,
    or its place, differs a warp. A register tile goes into a tile of a tensor, each thread combining what it holds; elements past
    the tensor's extents are dropped. In which order the threads come is open, and so are the roundings of a sum of floats.
    """

    scalars: tuple[Elem, ...]
    tiles: tuple[Elem, ...]
    operands: tuple[Parameter, ...] = (Parameter("destination", "tile", SPACES, writable=True),)
    arrows: tuple[str, ...] = ("<-",)
    value: Parameter | None = Parameter("value", "value")
    words: tuple[WordSpec, ...] = (
        WordSpec("order", "name", help=f"what is ordered by it: {', '.join(RED_ORDERS)}; relaxed without it"),
        WordSpec("scope", "name", help=f"among which threads: {', '.join(SCOPES)}; without it gpu, in shared memory cta"),
        WordSpec("by", "constant", Form.DERIVED, required=True, help="bytes an access: 4, 8 or 16"),
    )
    capabilities: frozenset[str] = frozenset({"atomics"})

    def check(self, op: Op, cx: CheckContext) -> None:
        (target,) = op.operands
        t, name = target.type, root(target).id
        if len(t.groups) != 1 or t.transposed:
            raise fail("type/index", f"'{self.name}' takes one slot of '{name}'", target.span, fix=f"index it: `{name}[s]`")
        qualifiers(op.words.get("order"), op.words.get("scope"), t.space, RED_ORDERS)
        if isinstance(op.value.type, Scalar):
            self._check_scalar(op, target, cx.warps)
        else:
            self._check_tile(op, target)
            if target.type.elem == BF16:
                self._need_vectors("pairs of bf16", target, cx)
        if cx.form is Form.DERIVED:
            self._check_width(op, target, cx)

    def _check_scalar(self, op: Op, target: Expr, warps: int) -> None:
        elem, t = target.type.elem, op.value.type
        if target.type.shape:
            raise fail("type/shape", f"a scalar goes into one element, and this part of '{root(target).id}' has shape {list(target.type.shape)}", op.value.span)
        check_type(target, self.name, self.scalars)
        if t.elem != elem and not (isinstance(op.value, Int) and elem in (F32, U32)):
            raise fail("type/element", f"'{root(target).id}' holds {elem}, the value is {t.elem}", op.value.span, fix=f"cast it: `{elem}(..)`")

    def _check_tile(self, op: Op, target: Expr) -> None:
        t, v, name = target.type, op.value.type, root(target).id
        if t.space != "global":
            raise fail("type/not-implemented", f"'{self.name}' of a register tile into shared memory is not implemented", op.span, fix="a tensor takes it")
        check_type(target, self.name, self.tiles)
        if not isinstance(v, Value | Tile) or v.elem != t.elem:
            raise fail("type/element", f"'{name}' holds {t.elem}, the value is {getattr(v, 'elem', v)}", op.value.span, fix=f"cast it: `{t.elem}(..)`")
        if any(not isinstance(d, int) for d in t.shape) or tuple(v.shape) != tuple(t.shape):
            raise fail("type/shape", f"this part of '{name}' has shape {list(t.shape)}, the value {list(v.shape)}", op.value.span)
        if not fragments_in(op.value):
            raise fail("core/undistributed", "no fragment says which thread combines which element", op.value.span, fix="assign it to a `frag`")
        if level(target) > Level.INSTANCE:
            raise fail("core/one-place", f"this part of '{name}' is not the same for all threads of the instance", target.span, fix="leave 'warp' out of the index")

    def _check_width(self, op: Op, target: Expr, cx: CheckContext) -> None:
        by, least = op.words.get("by"), max(target.type.elem.bytes, 4)
        if by.value not in (least, 8, 16) or by.value < least:
            raise fail("ptx/red-width", f"'{self.name}' of {by.value} bytes", by.span, why=f"an access of {target.type.elem} has {least}, 8 or 16 bytes")
        if by.value > 4 and isinstance(op.value.type, Scalar):
            raise fail("ptx/red-width", f"a scalar has 4 bytes, not {by.value}", by.span)
        if by.value > 4 and target.type.elem.kind != "float":
            raise fail("ptx/red-width", f"'{self.name}' of {by.value} bytes", by.span, why="integers are combined one by one (PTX ISA, red)")
        if by.value > 4:
            self._need_vectors(f"{by.value} bytes", by, cx)
        if reason := refusal(target, by.value) if not isinstance(op.value.type, Scalar) else None:
            raise fail("ptx/red-width", f"an access of {by.value} bytes is not legal on this part of '{root(target).id}'", by.span, why=reason)

    def _need_vectors(self, what: str, at: Expr, cx: CheckContext) -> None:
        if cx.arch is not None and VECTOR_CAPABILITY not in cx.arch.capabilities:
            raise fail(
                "type/missing-capability",
                f"'{self.name}' of {what} needs '{VECTOR_CAPABILITY}', which {cx.arch.name} does not offer",
                at.span,
                resource=VECTOR_CAPABILITY,
            )

    def fragments(self, op: Op, cx: CheckContext) -> dict[str, str]:
        return {f.id: "vector" for f in fragments_in(op.value) if len(f.type.shape) == 1 and f.type.axis is None}

    def derive(self, op: Op, cx: DeriveContext) -> Block:
        (target,) = op.operands
        by = 4
        if not isinstance(op.value.type, Scalar):
            most = 16 if VECTOR_CAPABILITY in cx.arch.capabilities and target.type.elem.kind == "float" else 4
            d = cx.distribution
            run = d.layout.run(d.words) if d is not None else 1
            by = widest(target, run, most)
            if by < 4:
                raise fail(
                    "ptx/red-width",
                    f"an access of {by} bytes combines no whole pair of {target.type.elem}",
                    op.span,
                    why="the instruction takes two elements of 16 bits together",
                    fix="state in a `require` that the extent is even, and hold runs of two: `vec 2` or more",
                )
        return (replace(op, words=replace(op.words, items=(*op.words.items, Word("by", Int(by, span=op.span), span=op.span)))),)

    def effects(self, op: Op) -> tuple[Effect, ...]:
        (target,) = op.operands
        scalar = isinstance(op.value.type, Scalar)
        issuer = Issuer.LEADER if scalar and _writer(op) <= Level.INSTANCE else Issuer.WARP
        reads = () if scalar else tuple(Access(f, Mode.READ) for f in fragments_in(op.value))
        ordered = ordering(op.words.get("order"), op.words.get("scope"), target)
        one = issuer is Issuer.LEADER and self.name == "red.add" and target.type.elem in INTEGERS
        divided = None if scalar else "thread"
        return (*reads, Access(target, Mode.WRITE, issuer=issuer, atomic=True, divided=divided, adds=op.value if one else None, **ordered))

    def simulate(self, op: Op, cx: SimulateContext) -> None:
        cx.write(op.operands[0], cx.value(op.value), combine=combining(self.name.split(".")[1]))

    def lower(self, op: Op, cx: LowerContext) -> None:
        (target,) = op.operands
        elem, space = target.type.elem, target.type.space
        action = self.name.split(".")[1]
        opcode = f"red{qualifiers(op.words.get('order'), op.words.get('scope'), space, RED_ORDERS)}.{space}.{action}"
        if isinstance(op.value.type, Scalar):
            writer = _writer(op)
            guard = True if writer is Level.LANE else cx.predicate(WARP_LEADER if writer is Level.WARP else LEADER)
            if guard is not False:
                cx.b.emit(f"{opcode}.{SUFFIX[elem]}", address(cx, target), _register(cx, cx.value(op.value), elem), guard=None if guard is True else guard)
            return
        suffix = SUFFIX.get(elem) or f"noftz.{elem}x2"
        _tile(cx, op, target, opcode, suffix)


def _writer(op: Op) -> Level:
    return max(op.value.type.level, level(op.operands[0]))


def _register(cx: LowerContext, x: Operand, elem: Elem) -> Operand:
    if isinstance(x, int | float):
        return cx.b.mov(float(x), "f32") if elem == F32 else cx.b.mov(int(x))
    return x


def _tile(cx: LowerContext, op: Op, target: Expr, opcode: str, suffix: str) -> None:
    """One access a run of what a thread holds, left out where it lies past an extent: its first element decides."""
    b, d, elem = cx.b, cx.distribution, target.type.elem
    registers = [_register(cx, x, elem) for x in cx.registers(op.value)]
    n = cx.constant(op.words.get("by")) // elem.bytes
    each = n * elem.bits // 32
    where = place(target)
    kept = [i for i, p in enumerate(where.parts) if p.size is not None]
    origin = dict(zip(kept, d.layout.origin(cx, d.words), strict=True))
    start = [b.add(cx.value(p.lo), origin.get(i, 0)) for i, p in enumerate(where.parts)]
    extents = cx.extents(where.name)
    clipped = [i for i in kept if not inside(where.parts[i], root(target).type.shape[i])]
    bases: dict[tuple, Operand] = {}
    for i in range(len(d.offsets) // n):
        offset = dict(zip(kept, d.offsets[i * n], strict=True))
        at = [b.add(s, offset.get(k, 0)) for k, s in enumerate(start)]
        guard = True
        for k in clipped:
            guard = _both(cx, guard, b.compare("<", at[k], extents[k], "u32"))
        if guard is False:
            continue
        held = registers[i * each : (i + 1) * each]
        width, operand = ("", held[0]) if each == 1 else (f".v{each}", Vec(tuple(held)))
        *outer, column = at
        key = tuple(offset.get(k, 0) for k in range(len(at) - 1))
        if key not in bases:
            bases[key] = _base(cx, where.name, outer, start[-1], extents, elem.bytes)
        to = Addr(bases[key], offset.get(len(at) - 1, 0) * elem.bytes)
        b.emit(f"{opcode}{_typed(width, suffix)}", to, operand, guard=None if guard is True else guard)


def _typed(width: str, suffix: str) -> str:
    """`.v2.f32`; of pairs the rounding word stands before the vector: `.noftz.v2.bf16x2`."""
    *words, kind = suffix.split(".")
    return "".join(f".{w}" for w in words) + f"{width}.{kind}"


def _base(cx: LowerContext, tensor: str, outer: list[Operand], column: Operand, extents, size: int) -> Operand:
    """Pointer to the element of a row in the thread's first column. Products are 64 bits wide."""
    b = cx.b
    pointer = cx.global_pointer(tensor)
    row: Operand | None = None
    for i, at in enumerate((*outer, column)):
        wide = b.op("cvt.s64.s32", b.mov(at) if isinstance(at, int) else at)
        if row is None:
            row = wide
            continue
        extent = extents[i]
        row = b.op("mad.lo.s64", row, extent if isinstance(extent, int) else b.op("cvt.s64.s32", extent), wide)
    return b.op("mad.lo.s64", row, size, pointer)


def _both(cx: LowerContext, p, q):
    if isinstance(p, bool):
        return q if p else False
    if isinstance(q, bool):
        return p if q else False
    return cx.b.op("and.pred", p, q)


_ISA = "PTX ISA, Parallel Synchronization and Communication Instructions, red"
REDUCTIONS = (
    Red(name="red.add", scalars=(*INTEGERS, F32), tiles=(F32, *PAIRS, *INTEGERS), doc=f"Sums; of f32 rounded to nearest even ({_ISA}, .add)."),
    Red(name="red.min", scalars=INTEGERS, tiles=INTEGERS, doc=f"The smaller stays ({_ISA}, .min)."),
    Red(name="red.max", scalars=INTEGERS, tiles=INTEGERS, doc=f"The larger stays ({_ISA}, .max)."),
)
