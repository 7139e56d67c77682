"""Shapes, inputs and reference of silu_mul_bias: Y = A / (1 + exp(-A)) * B + BIAS, in f32, stored in bf16."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16

#: bf16 has 8 bits of precision: rounding to nearest errs by at most 2**-8 of the value.
U_BF16 = 2.0**-8
#: Of the product silu(a) * b, relative: ex2.approx 2**-22 and an exponent |a| * log2(e) < 128 that is rounded twice by 2**-24 of
#: itself (2**-16.5), rcp.approx 2**-23 (PTX ISA), four roundings of 2**-24.
PRODUCT = 2.0**-16
#: Where exp(-a) leaves the range of f32, at a = -87.3, the reciprocal becomes 0: less than 88 * 2**-126 of silu(a) is lost.
LOST = 2.0**-119


def tolerance(inputs, expected):
    """One rounding to bf16 of the result, and the f32 errors of the product and of the sum."""
    product = np.abs(silu(inputs["A"]) * inputs["B"].astype(np.float64))
    f32 = PRODUCT * product + LOST * np.abs(inputs["B"].astype(np.float64)) + 2.0**-24 * np.abs(expected["Y"]) + 2.0**-126
    return {"Y": U_BF16 * (np.abs(expected["Y"]) + f32) + f32}


def shapes():
    """No row, one row; columns and rows at and around what a warp and a CTA take; one vector; a row of many blocks."""
    sizes = [(0, 64), (1, 8), (3, 504), (16, 512), (17, 520), (33, 1032), (300, 264), (5, 20000), (129, 4096), (1000, 1000)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((8192, 14336), (32768, 4096))]


def inputs(shape, rng):
    """Normal A [R, C] whose rows reach to +-100, B [R, C], BIAS [C]."""
    r, c = shape["R"], shape["C"]
    scale = np.exp2(rng.uniform(-3, 5, (r, 1))).astype(np.float32)
    draw = lambda *n: rng.standard_normal(n, dtype=np.float32)  # noqa: E731
    return {"A": (draw(r, c) * scale).astype(BF16), "B": draw(r, c).astype(BF16), "BIAS": draw(c).astype(BF16)}


def silu(a):
    """In float64; exp(-a) does not overflow there."""
    a = a.astype(np.float64)
    return a / (1 + np.exp(-a))


def reference(inputs):
    return {"Y": silu(inputs["A"]) * inputs["B"].astype(np.float64) + inputs["BIAS"].astype(np.float64)}


def flops(shape):
    """An exponential, a reciprocal, two additions and four products an element."""
    return 8 * shape["R"] * shape["C"]
