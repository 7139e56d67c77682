"""Shapes, inputs and reference of gemm_sm100_mxf8: D = (A * SA) @ (B * SB).T, e4m3 with a scale for 32 elements, accumulated in f32."""

import ml_dtypes
import numpy as np

E4M3 = ml_dtypes.float8_e4m3fn
SCALE = ml_dtypes.float8_e8m0fnu

#: Unit roundoff of bf16 (8 bits of precision, round to nearest): the one rounding of the result.
U_BF16 = 2.0**-8
#: One f32 addition in the matrix unit, whose adder may truncate, and the products that it adds in one step.
STEP_F32, K_STEP = 2.0**-23, 32
ROWS, DEPTH, PIECE = 128, 128, 32  # of a block of scales, and elements of K under one scale


def shapes():
    """Whole tiles, tails of M and N, K = 0, one block of scales and many, more items than accumulators."""
    sizes = [(128, 128, 128), (256, 256, 512), (1, 8, 128), (1, 8, 0), (129, 136, 128), (130, 264, 256), (384, 384, 128), (300, 520, 640)]
    return [dict(zip("MNK", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("MNK", s)) for s in ((4096, 4096, 4096), (8192, 8192, 8192))]


def inputs(shape, rng):
    """Standard normal factors rounded to e4m3; scales of 1/4 to 4."""
    m, n, k = (shape[s] for s in "MNK")
    draw = lambda rows: rng.standard_normal((rows, k), dtype=np.float32).astype(E4M3)  # noqa: E731
    scales = lambda rows: (2.0 ** rng.integers(-2, 3, (-(-rows // ROWS), k // DEPTH, 32, 16))).astype(SCALE)  # noqa: E731
    return {"A": draw(m), "SA": scales(m), "B": draw(n), "SB": scales(n)}


def scaled(values, scales):
    """The factor with its scales multiplied in, in float64: the scale of row r and piece s of K block b is
    scales[r // 128, b, r % 32, 4 * (r % 128 // 32) + s]."""
    r, k = np.arange(values.shape[0])[:, None], np.arange(values.shape[1])[None, :]
    of = scales.astype(np.float64)[r // ROWS, k // DEPTH, r % 32, 4 * (r % ROWS // 32) + k % DEPTH // PIECE]
    return values.astype(np.float64) * of


def reference(inputs):
    """In float64: products are exact there, and their sum is far below the tolerance."""
    return {"D": scaled(inputs["A"], inputs["SA"]) @ scaled(inputs["B"], inputs["SB"]).T}


def tolerance(inputs, expected):
    """One rounding to bf16, and the f32 accumulation: at most K / 32 + 32 truncating steps of a partial sum, which sum |a| |b| bounds."""
    a, b = (np.abs(scaled(inputs[n], inputs[f"S{n}"])) for n in "AB")
    accumulation = (a.shape[1] / K_STEP + K_STEP) * STEP_F32 * (a @ b.T)
    return {"D": U_BF16 * (np.abs(expected["D"]) + accumulation) + accumulation}


def flops(shape):
    return 2 * shape["M"] * shape["N"] * shape["K"]
