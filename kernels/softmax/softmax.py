"""Shapes, inputs and reference of softmax: Y = exp(X - max X) / sum exp(X - max X) over each row, in f32, stored in bf16."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16

#: bf16 has 8 bits of precision: rounding to nearest errs by at most 2**-8 of the value.
U_BF16 = 2.0**-8

#: (relative, absolute). Relative: the one rounding to bf16, and 2**-13 for the f32 part. Most of that is the exponent's:
#: z = (x - m) * log2(e) is rounded twice and log2(e) once, each by 2**-24 of z, and |z| < 150 where the result is not 0, so
#: exp errs by 3 * 150 * 2**-24 * ln 2 = 2**-15.7; ex2.approx adds 2**-22, the sum of positive terms at most 80 roundings of
#: 2**-24 in a row, rcp.approx 2**-23 (PTX ISA). Absolute: results under the least normal number become 0.
tolerance = {"Y": (U_BF16 + 2.0**-13, 2.0**-126)}


def shapes():
    """No row, one row, more rows than CTAs; the least and the largest row; rows that end inside a thread's vectors."""
    small = [(0, 64), (1, 8), (3, 64), (7, 72), (133, 264), (300, 1000), (1057, 2048), (600, 8192)]
    sizes = [*small, (1, 32768), (40, 16392), (64, 32760), (140, 32768)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((8192, 32768), (32768, 8192), (8192, 16384))]


def inputs(shape, rng):
    """Normal X [R, C] whose rows differ in scale by up to 2**6; among them rows that are masked, huge, constant, or have no softmax."""
    r, c = shape["R"], shape["C"]
    x = rng.standard_normal((r, c), dtype=np.float32) * np.exp2(rng.uniform(-2, 4, (r, 1))).astype(np.float32)
    return {"X": special(x, rng).astype(BF16)}


def special(x, rng):
    """Rows 5 to 11 of every 16, as far as there are any; x [R, C] in f32 is changed in place."""
    r, c = x.shape
    largest = np.float32(ml_dtypes.finfo(BF16).max)
    for row in range(r):
        match row % 16:
            case 5:  # masked in part, its last element too
                x[row, rng.random(c) < 0.3] = -np.inf
                x[row, -1] = -np.inf
            case 6:  # masked throughout
                x[row] = -np.inf
            case 7:
                x[row, rng.integers(c)] = np.nan
            case 8:
                x[row, rng.integers(c)] = np.inf
            case 9:  # differences that overflow
                x[row] = np.where(rng.random(c) < 0.5, largest, -largest)
            case 10:
                x[row] = -largest
            case 11:  # one element has it all
                x[row, -1] = 1e4
    return x


def reference(inputs):
    """In float64. A row whose largest element is infinite or NaN is NaN throughout."""
    x = inputs["X"].astype(np.float64)
    if not x.size:
        return {"Y": x}
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return {"Y": e / np.sum(e, axis=1, keepdims=True)}


def flops(shape):
    """A comparison, a difference, an exponential, an addition and a product an element."""
    return 5 * shape["R"] * shape["C"]
