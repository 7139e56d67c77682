"""Shapes, inputs and reference of gemm_sm80: D = A @ B.T in bf16, accumulated in f32."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16

#: Unit roundoff of bf16 (8 bits of precision, round to nearest): the one rounding of the result.
U_BF16 = 2.0**-8
#: One f32 addition in the matrix unit. Its adder truncates, so a step may lose a whole unit in the last place.
STEP_F32 = 2.0**-23
#: Products that the matrix unit adds in one step (K of one bf16 instruction); inside a step they are added exactly but for
#: an alignment to the largest, which is counted as one step a product.
K_STEP = 16


def shapes():
    """Whole tiles, tails in each dimension, K = 0, one row, the least N, K under, at and over one K block of 64, fewer K blocks than
    slots of the ring, as many and more."""
    sizes = [
        (256, 256, 64),
        (512, 768, 512),
        (128, 256, 64),
        (128, 256, 128),
        (128, 256, 192),
        (128, 256, 256),
        (1, 8, 8),
        (1, 8, 0),
        (128, 256, 0),
        (256, 8, 72),
        (130, 264, 72),
        (129, 264, 8),
        (257, 520, 264),
        (300, 520, 128),
        (64, 2056, 320),
        (1000, 1000, 1000),
    ]
    return [dict(zip("MNK", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("MNK", s)) for s in ((4096, 4096, 4096), (4096, 14336, 4096), (8192, 8192, 8192))]


def inputs(shape, rng):
    """Standard normal A [M, K] and B [N, K], rounded to bf16."""
    draw = lambda rows: rng.standard_normal((rows, shape["K"]), dtype=np.float32).astype(BF16)  # noqa: E731
    return {"A": draw(shape["M"]), "B": draw(shape["N"])}


def reference(inputs):
    """In float64: products of bf16 are exact there, and their sum is far below the tolerance."""
    a, b = (inputs[n].astype(np.float64) for n in "AB")
    return {"D": a @ b.T}


def tolerance(inputs, expected):
    """The admitted error of each element: one rounding to bf16, and the f32 accumulation.

    Accumulation: at most K / 16 + 16 truncating steps, each of at most 2**-23 of a partial sum, which sum |a| |b| bounds.
    A wrong or missing product is of order 1; the bound of accumulation is about 0.08 at K = 4096.
    """
    a, b = (np.abs(inputs[n].astype(np.float32)) for n in "AB")
    steps = a.shape[1] / K_STEP + K_STEP
    accumulation = steps * STEP_F32 * (a @ b.T).astype(np.float64)
    return {"D": U_BF16 * (np.abs(expected["D"]) + accumulation) + accumulation}


def flops(shape):
    return 2 * shape["M"] * shape["N"] * shape["K"]
