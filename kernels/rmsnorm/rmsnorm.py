"""Shapes, inputs and reference of rmsnorm: Y = X / sqrt(mean(X**2, row) + eps) * W, computed in f32, stored in bf16."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
EPS = 1e-6

#: bf16 has 8 bits of precision: rounding to nearest errs by at most 2**-8 of the value.
U_BF16 = 2.0**-8

#: (relative, absolute). Relative: the one rounding to bf16, and for the f32 part 2**-14: the sum of squares of 8192 values
#: in any order errs by at most 8192 roundings of 2**-24 (= 2**-11 in the worst case, a square root halves it; a sum by
#: lanes and warps has 45 roundings in a row, about 2**-18), rsqrt.approx by 2**-22.9 (PTX ISA), three products by 2**-24
#: each. Absolute: a result under the least normal number of bf16 loses its relative precision.
tolerance = {"Y": (U_BF16 + 2.0**-14, 2.0**-126)}


def shapes():
    """No row, one row, more rows than CTAs; the least and the largest row; rows that end inside a thread's vectors."""
    sizes = [(0, 64), (1, 8), (1, 8192), (3, 64), (7, 72), (133, 264), (300, 1000), (1057, 2048), (64, 8184), (2000, 8192)]
    return [dict(zip("RC", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("RC", s)) for s in ((8192, 8192), (32768, 8192), (65536, 4096))]


def inputs(shape, rng):
    """Normal X [R, C] whose rows differ in scale by up to 2**8, W [C] around 1."""
    scale = np.exp2(rng.uniform(-4, 4, (shape["R"], 1))).astype(np.float32)
    x = rng.standard_normal((shape["R"], shape["C"]), dtype=np.float32) * scale
    w = 1 + 0.25 * rng.standard_normal(shape["C"], dtype=np.float32)
    return {"X": x.astype(BF16), "W": w.astype(BF16), "eps": EPS}


def reference(inputs):
    """In float64, with eps as the f32 that the kernel receives."""
    x, w = (inputs[n].astype(np.float64) for n in "XW")
    mean = np.mean(x * x, axis=1, keepdims=True) if x.size else np.zeros((x.shape[0], 1))
    return {"Y": x / np.sqrt(mean + np.float64(np.float32(inputs["eps"]))) * w}


def flops(shape):
    """A square, its addition, and two products an element."""
    return 4 * shape["R"] * shape["C"]
