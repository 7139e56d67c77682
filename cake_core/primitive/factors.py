"""The factors of a matrix product that are read from shared memory by descriptors: where A and B lie, which way, and which swizzles fit.

A descriptor follows rows of one swizzle pattern with one stride (PTX ISA, shared memory layouts of matrix operands). What is said of
a factor is the same for every product that reads factors so; its bits, and what else a product takes, are the product's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Attr, Binary, Declaration, Expr, Index, Int, Op
from cake_core.ir.places import Place, place_of, root
from cake_core.ir.types import F32, Elem, Scalar, Tile
from cake_core.primitive.kinds import Demand, Form
from cake_core.primitive.reached import Described, check_reached

if TYPE_CHECKING:
    import numpy

    from cake_core.primitive.contexts import CheckContext, LowerContext
    from cake_core.primitive.simulated import SimulateContext
    from cake_core.ptx.builder import Reg

#: Bytes of the swizzles that descriptors follow, best first: the wider, the fewer bank conflicts. Without one a factor would lie in
#: matrices of 8 rows and 16 bytes, which no row-major buffer does.
SWIZZLES = (128, 64, 32)
PATTERN = 8  # rows after which a swizzle repeats
STEP = 32  # bytes of a row along K that one instruction takes


@frozen
class Factor:
    """A tile as a product takes it: `extent` of M or N in this CTA, `depth` of K elements.

    `k_major`: neighbours in K are neighbours in a row of the tile.
    """

    expr: Expr  # without `.T`
    tile: Tile
    declared: Tile
    place: Place
    extent: int
    depth: int
    k_major: bool

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def elem(self) -> Elem:
        return self.tile.elem

    @property
    def in_shared(self) -> bool:
        return self.tile.space == "shared"

    def why_not(self, swizzle: int) -> str | None:
        """Why no descriptor under `swizzle` reaches the tile, or None if one does."""
        shape, size = self.declared.shape, self.elem.bytes
        rows, row_bytes = prod(shape[:-1]), shape[-1] * size
        if swizzle not in SWIZZLES:
            known = ", ".join(map(str, SWIZZLES))
            return f"its rows are swizzled by {swizzle} bytes, and {known} can be described" if swizzle else "it is not swizzled"
        if row_bytes % swizzle:
            return f"its rows of {row_bytes} bytes are not whole panels of {swizzle}"
        if row_bytes > swizzle and rows % PATTERN:
            return f"its panels of {rows} rows do not start with a swizzle pattern of {PATTERN} rows"
        if self.declared.slots and rows * row_bytes % (PATTERN * swizzle):
            return f"its slots of {rows * row_bytes} bytes do not start with a swizzle pattern of {PATTERN * swizzle} bytes"
        pitches = [prod(shape[d + 1 : -1]) for d in range(len(shape) - 1)]
        units = (*(PATTERN // min(PATTERN, p & -p) for p in pitches), 1 if self.inside(swizzle) else swizzle // size)
        for part, unit in zip(self.place.parts, units, strict=True):
            if not _multiple_of(part.lo, unit):
                return f"a start in it is not surely a multiple of {unit}"
        return None

    def inside(self, swizzle: int) -> int:
        """Elements from the first column of a panel to the tile's, where it starts at a step of K inside of one, a constant, and ends there
        too: the swizzle permutes bits of the absolute address, so a descriptor may start at any step. Else 0."""
        start, size = self.place.parts[-1].lo, self.elem.bytes
        if not self.k_major or not isinstance(start, Int):
            return 0
        behind = start.value % (swizzle // size)
        return behind if behind * size % STEP == 0 and (behind + self.depth) * size <= swizzle else 0


def _multiple_of(start: Expr, unit: int) -> bool:
    if isinstance(start, Int):
        return start.value % unit == 0
    return unit == 1 or isinstance(start.type, Scalar) and start.type.range.multiple_of(unit)


def product(op: Op, cx: SimulateContext) -> numpy.ndarray:
    """A @ B of a statement whose value is a product, [M, N], summed in 32 bits."""
    import numpy as np

    return np.matmul(*(as_factor(cx.read(e)) for e in (op.value.left, op.value.right)))


def as_factor(x: numpy.ndarray) -> numpy.ndarray:
    """Elements as a matrix unit takes them, as f32: of 32 bits it reads the upper 19 (PTX ISA, tf32)."""
    import numpy as np

    if x.dtype != np.float32:
        return x.astype(np.float32)
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def factors(op: Op) -> tuple[Factor, Factor]:
    """A and B of a statement whose value is a product: A is `[M, K]`, or the `.T` of a `[K, M]`; B the `.T` of an `[N, K]`, or a `[K, N]`."""
    product: Binary = op.value
    return _factor(product.left, transposed_is_k_major=False), _factor(product.right, transposed_is_k_major=True)


def _factor(expr: Expr, transposed_is_k_major: bool) -> Factor:
    tile = expr.type
    k_major = tile.transposed == transposed_is_k_major
    bare = expr
    while isinstance(bare, Attr):
        bare = bare.base
    declared = root(bare).type
    place = place_of(bare, declared)
    if any(p.size is None for p in place.parts[-2:]):
        raise fail("type/shape", f"this tile of '{place.name}' is not made of its rows", expr.span, why="a factor is neighbouring rows")
    outer, inner = tile.shape if k_major else reversed(tile.shape)
    return Factor(bare, tile, declared, place, outer, inner, k_major)


# --- checks ------------------------------------------------------------------------------------------------------------


def check_spaces(op: Op, a: Factor, b: Factor, beside: str, called: str) -> None:
    """B is read from shared memory, A from there or from the space `beside`, which is `called` so and not transposed. Raises CakeError."""
    for side, factor, allowed in (("left", a, ("shared", beside)), ("right", b, ("shared",))):
        if factor.tile.space not in allowed:
            raise fail(
                "type/operand",
                f"the {side} factor '{factor.name}' lies in '{factor.tile.space}'",
                op.value.span,
                why=f"it is read from {' or '.join(allowed)}",
            )
    if not a.in_shared and not a.k_major:
        raise fail("type/transposed", f"'{a.name}' lies in {called} and can't be transposed", op.value.span, fix="leave `.T` out")


def check_agreement(op: Op, a: Factor, b: Factor, columns: int, where: str = "", halves: str | None = None) -> None:
    """Rows, columns and depth of the result and the factors. `columns` of B in this CTA; `where`, `halves`: said of them. Raises CakeError."""
    m, n = op.operands[0].type.shape
    for what, mine, theirs, whose in (("rows", m, a.extent, a), ("columns", columns, b.extent, b), ("depth", a.depth, b.depth, b)):
        if mine != theirs:
            owner = "the left factor" if what == "depth" else "the result"
            raise fail(
                "type/shape",
                f"{what} of {owner} {'is' if what == 'depth' else 'are'} {mine}{where}, of '{whose.name}' {theirs}",
                op.value.span,
                why=halves if what == "columns" else None,
                fix="is a `.T` missing, or one too many?" if theirs in (m, n, a.depth) else None,
            )


def check_sums(op: Op) -> None:
    """A product is added up in f32. Raises CakeError."""
    d = op.operands[0]
    if d.type.elem != F32:
        raise fail("type/element", f"the result is {d.type.elem}", d.span, why="not implemented: products that accumulate in another type than f32")


def check_described(of: Iterable[Factor], cx: CheckContext, unreachable: str, misplaced: str) -> None:
    """Of factors in shared memory: in the schedule form some swizzle must fit, in the derived form the declared one, and its place.
    `unreachable`, `misplaced`: the codes of the findings. Raises CakeError."""
    for factor in of:
        if factor.in_shared:
            _check_described(factor, cx, unreachable, misplaced)


def _check_described(factor: Factor, cx: CheckContext, unreachable: str, misplaced: str) -> None:
    if cx.form is Form.SCHEDULE:
        if not fitting(factor):
            raise _unreachable(unreachable, factor, factor.why_not(SWIZZLES[-1]))
        return
    declared = cx.declaration(factor.name)
    swizzle = swizzle_of(declared)
    if reason := factor.why_not(swizzle):
        raise _unreachable(unreachable, factor, reason)
    at = declared.words.get("at")
    if isinstance(at, Int) and at.value % (PATTERN * swizzle):
        message = f"'{factor.name}' lies at {at.value}, not a multiple of {PATTERN * swizzle}"
        raise fail(misplaced, message, at.span, resource=factor.name)


def _unreachable(code: str, factor: Factor, why: str | None) -> CakeError:
    return fail(code, f"no descriptor reaches this tile of '{factor.name}'", factor.expr.span, why=why, resource=factor.name)


def fitting(factor: Factor) -> tuple[int, ...]:
    """The swizzles under which it can be described, best first."""
    return tuple(s for s in SWIZZLES if factor.why_not(s) is None)


def demands(used: Iterable[Factor]) -> tuple[Demand, ...]:
    """What a product asks of the shared buffers among its factors."""
    return tuple(Demand(x.name, fits, PATTERN * max(fits, default=0) or 16) for x in used if x.in_shared for fits in [fitting(x)])


def swizzle_of(declared: Declaration | None) -> int:
    """The swizzle that a declaration of the derived form has; 0 without one."""
    value = declared.words.get("swizzle") if declared else None
    return value.value if isinstance(value, Int) else 0


# --- lowering ----------------------------------------------------------------------------------------------------------


def descriptor(cx: LowerContext, factor: Factor, swizzle: int, constant: int) -> Reg:
    """A descriptor of the factor's first K step: the start address, >> 4, in its lowest bits, and `constant` in the others."""
    behind = factor.inside(swizzle)
    address = cx.b.add(cx.shared_address(_earlier(factor.expr, behind) if behind else factor.expr), behind * factor.elem.bytes)
    return cx.b.op("or.b64", cx.b.op("cvt.u64.u32", cx.b.op("shr.u32", address, 4)), constant)


def _earlier(tile: Index, columns: int) -> Index:
    """The tile so many columns in front."""
    *rows, last = tile.indices
    return replace(tile, indices=(*rows, replace(last, lo=replace(last.lo, value=last.lo.value - columns))))


def advanced(cx: LowerContext, base: Reg, byte_offset: int) -> Reg:
    """The descriptor of a part `byte_offset` behind the first."""
    return cx.b.op("add.s64", base, byte_offset >> 4) if byte_offset else base


def part(cx: LowerContext, base: Reg, said: Described, factor: Factor, first: tuple[int, int], rows: int) -> Reg:
    """The descriptor of `rows` of M or N and one step of K from element `first` on. `said`: the fields of `base`; that these reach what the
    buffer holds is looked at here. Raises CakeError."""
    swizzle = swizzle_of(cx.declaration(factor.name))
    offset = byte_offset(cx, factor, swizzle, *first)
    check_reached(factor, swizzle, said, offset, first, rows)
    return advanced(cx, base, offset)


def byte_offset(cx: LowerContext, factor: Factor, swizzle: int, extent: int, depth: int) -> int:
    """Bytes from the factor's first element to element (extent, depth), each at the start of a block or K step."""
    row, column = (extent, depth) if factor.k_major else (depth, extent)
    columns, stride = cx.panel(factor.expr)
    return column // columns * stride + row * swizzle + column % columns * factor.elem.bytes
