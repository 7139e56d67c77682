"""`clip e` on a store: rows from `e` on are dropped, where the tensor itself goes on (S12).

The clip is of the first dimension that the tile slices; the others are clipped at the tensor's extents as ever.
"""

from __future__ import annotations

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr, Op
from cake_core.ir.places import root
from cake_core.ir.tiles import place, range_of
from cake_core.ir.types import Level, Scalar
from cake_core.primitive import LowerContext, WordSpec
from cake_core.ptx.builder import Operand

CLIP = WordSpec("clip", "integer", help="end of the first dimension that is sliced: what lies at or behind it is dropped")


def check(op: Op, target: Expr) -> None:
    """Raises CakeError where the word makes no sense."""
    clip = op.words.get("clip")
    if clip is None:
        return
    name, at = root(target).id, op.words.word("clip").span
    if target.type.space != "global":
        raise fail(
            "type/clip",
            f"'clip' on '{name}', which is no tensor",
            at,
            why="buffers are not clipped: their sizes are constants that a text keeps to",
            fix="leave it out",
        )
    if dimension(target) is None:
        raise fail(
            "type/clip",
            f"'clip' on one element of '{name}'",
            at,
            why="it clips a dimension that is sliced",
            fix="guard the store with `if`",
        )
    if (hi := range_of(clip).hi) is not None and hi < 1:
        raise fail("type/clip", f"'clip' at {hi}{'' if range_of(clip).constant is not None else ' or less'} drops all of '{name}'", at, fix="leave the store out")
    if isinstance(clip.type, Scalar) and clip.type.level > Level.INSTANCE:
        raise fail("core/one-place", "the clip is not the same for all threads of the instance", at, why="they write one tile together")


def dimension(target: Expr) -> int | None:
    """The dimension that a clip is of."""
    return next((d for d, p in enumerate(place(target).parts) if p.size is not None), None)


def widest(op: Op, target: Expr, limit: int) -> int:
    """Bytes an access at most: where the clip is of neighbours in memory, no access may straddle it."""
    clip = op.words.get("clip")
    if clip is None or dimension(target) != len(place(target).parts) - 1:
        return limit
    size = target.type.elem.bytes
    while limit > size and not range_of(clip).multiple_of(limit // size):
        limit //= 2
    return limit


def limits(op: Op, target: Expr, cx: LowerContext) -> dict[int, Operand]:
    """By dimension, the end that takes the place of the tensor's extent."""
    clip = op.words.get("clip")
    if clip is None:
        return {}
    d, b = dimension(target), cx.b
    end = cx.value(clip)
    if not range_of(clip).nonneg:  # guards compare unsigned
        end = b.op("max.s32", end, 0) if not isinstance(end, int) else max(end, 0)
    extent = cx.extents(place(target).name)[d]
    if isinstance(end, int) and isinstance(extent, int):
        return {d: min(end, extent)}
    return {d: b.op("min.s32", *((extent, end) if isinstance(end, int) else (end, extent)))}
