"""Shapes, inputs and reference of scale_shift: Y[b, r, c] = X[b, r, c] * S[b, r] + T[b, c], in f32, stored in bf16."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16

#: bf16 has 8 bits of precision: rounding to nearest errs by at most 2**-8 of the value.
U_BF16 = 2.0**-8

#: (relative, absolute): one fused multiply-add in f32 (2**-24) and one rounding to bf16; absolute, a result below the normal numbers.
tolerance = {"Y": (U_BF16 + 2.0**-15, 2.0**-126)}


def shapes():
    """No matrix, no row, one of each; columns and rows at and around what a warp and a CTA take; many matrices."""
    edges = [(0, 3, 64), (2, 0, 64), (1, 1, 8), (1, 3, 504), (3, 16, 512), (2, 17, 520), (5, 33, 1032)]
    return [dict(zip("BRC", s)) for s in [*edges, (3, 5, 20000), (200, 7, 72), (4, 300, 1000)]]


def bench_shapes():
    return [dict(zip("BRC", s)) for s in ((16, 2048, 4096), (4, 8192, 8192))]


def inputs(shape, rng):
    """Normal X [B, R, C], T [B, C] in bf16; S [B, R] in f32."""
    b, r, c = (shape[n] for n in "BRC")
    draw = lambda *n: rng.standard_normal(n, dtype=np.float32)  # noqa: E731
    return {"X": draw(b, r, c).astype(BF16), "S": draw(b, r), "T": draw(b, c).astype(BF16)}


def reference(inputs):
    """In float64, where product and sum are exact to 2**-53."""
    x, s, t = (inputs[n].astype(np.float64) for n in "XST")
    return {"Y": x * s[:, :, None] + t[:, None, :]}


def flops(shape):
    return 2 * shape["B"] * shape["R"] * shape["C"]
