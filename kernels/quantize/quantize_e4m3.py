"""Shapes, inputs and reference of quantize_e4m3: S = max |X| / 448 over each row, Y = X / S in e4m3."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
LARGEST = 448.0
LEAST = 1e-30

#: (relative, absolute). Y: rounding to e4m3 (4 bits of precision: 2**-4 of the value; below 2**-6 half of a step of 2**-9), of a product
#: that errs by 2**-22. S: one division in f32.
tolerance = {"Y": (2.0**-4 + 2.0**-18, 2.0**-10 + 2.0**-28), "S": (2.0**-23, 2.0**-149)}


def shapes():
    """No row, one row, more rows than CTAs; the least and the largest row; rows that end inside a thread's vectors."""
    sizes = [(0, 64), (1, 16), (1, 8192), (3, 64), (17, 80), (133, 272), (300, 1008), (1057, 2048), (64, 8176), (600, 8192)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((32768, 8192), (8192, 8192))]


def inputs(shape, rng):
    """Normal X [R, C] whose rows differ in scale by up to 2**40; of every 16 rows one of zeros, one with a NaN, one with an infinity."""
    r, c = shape["R"], shape["C"]
    x = rng.standard_normal((r, c), dtype=np.float32) * np.exp2(rng.uniform(-20, 20, (r, 1))).astype(np.float32)
    x[5::16] = 0
    for row, value in ((7, np.nan), (8, -np.inf)):
        for i in range(row, r, 16):
            x[i, rng.integers(c)] = value
    return {"X": x.astype(BF16)}


def reference(inputs):
    """In float64, Y before it is rounded."""
    x = inputs["X"].astype(np.float64)
    top = np.max(np.abs(x), axis=1, initial=0)
    with np.errstate(invalid="ignore"):
        return {"Y": x * (LARGEST / (top + LEAST))[:, None], "S": top / LARGEST}


def flops(shape):
    """A magnitude, a comparison and a product an element."""
    return 3 * shape["R"] * shape["C"]
