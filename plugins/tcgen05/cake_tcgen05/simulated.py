"""What the tensor engine computes: products of one CTA or of a pair, with block scales or without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cake_core.ir.nodes import Expr, Op
from cake_core.primitive import SimulateContext
from cake_core.primitive.factors import as_factor
from cake_tcgen05.engine import ctas

if TYPE_CHECKING:
    import numpy

#: Values of the 16 patterns of e2m1: a sign, two bits of exponent, one of mantissa (PTX ISA, Alternate Floating-Point Data Formats).
HALVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def products(op: Op, cx: SimulateContext) -> Iterator[tuple[int, numpy.ndarray]]:
    """(CTA, A @ B) of each CTA that a product serves: of a pair each holds its rows of A, and half of the columns of B (PTX ISA, tcgen05.mma,
    CTA pair)."""
    import numpy as np

    ranks = ctas(cx)
    a, b = op.value.left, op.value.right
    scale_a, scale_b = op.words.get("scale_a"), op.words.get("scale_b")
    halves = [_factor(b, cx, rank, along_rows=False) for rank in ranks]
    for rank in ranks:
        right = np.concatenate(halves, axis=1)
        left = _factor(a, cx, rank, along_rows=True)
        if scale_a is not None:
            left = _scaled(left, cx.read(scale_a, cta=rank))
            right = _scaled(right.T, cx.read(scale_b, cta=rank)).T
        yield rank, np.matmul(left, right)


def _factor(e: Expr, cx: SimulateContext, cta: int, along_rows: bool) -> numpy.ndarray:
    """A as [M, K], B as [K, N]; of pairs of 4 bits the low half comes first along K."""
    import numpy as np

    x = cx.read(e, cta=cta)
    if e.type.elem.kind != "pack":
        return as_factor(x)
    rows = x if along_rows else x.T
    pairs = np.stack([rows & 15, rows >> 4], axis=-1).reshape(rows.shape[0], -1)
    numbers = np.array(HALVES, np.float32)[pairs]
    return numbers if along_rows else numbers.T


def _scaled(x: numpy.ndarray, scales: numpy.ndarray) -> numpy.ndarray:
    """Rows [n, K] times their scales [n, 4]: each serves as many neighbours in K."""
    import numpy as np

    rows, pieces = scales.shape
    return (x.reshape(rows, pieces, -1) * scales.astype(np.float32)[:, :, None]).reshape(x.shape)
