"""Shapes, inputs and reference of gemm_sm100_nvf4: D = alpha (A * SA) @ (B * SB).T, e2m1 with a scale for 16 numbers, summed in f32."""

import ml_dtypes
import numpy as np

SCALE = ml_dtypes.float8_e4m3fn

#: Unit roundoff of bf16 (8 bits of precision, round to nearest): the one rounding of the result, and that of f32: the product by alpha.
U_BF16, U_F32 = 2.0**-8, 2.0**-24
#: One f32 addition in the matrix unit, whose adder may truncate, and the products that it adds in one step.
STEP_F32, K_STEP = 2.0**-23, 64
ROWS, DEPTH, PIECE = 128, 64, 16  # of a block of scales, and numbers of K under one scale
ALPHA = 0.375
#: The sixteen numbers of 4 bits: a sign, 2 bits of exponent, 1 of mantissa (PTX ISA, Alternate Floating-Point Data Formats).
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def shapes():
    """Whole tiles, tails of M and N, K = 0, one slot and many, more items than accumulators. KP is K / 2, the bytes of a row."""
    sizes = [(128, 128, 256), (256, 256, 512), (1, 8, 256), (1, 8, 0), (129, 136, 256), (130, 264, 512), (384, 384, 256), (300, 520, 1280)]
    return [{"M": m, "N": n, "KP": k // 2} for m, n, k in sizes]


def bench_shapes():
    return [{"M": n, "N": n, "KP": n // 2} for n in (4096, 8192)]


def inputs(shape, rng):
    """Any of the sixteen numbers, two a byte; scales of 1/4 to 3."""
    m, n, k = shape["M"], shape["N"], 2 * shape["KP"]
    draw = lambda rows: rng.integers(0, 256, (rows, k // 2), dtype=np.uint8)  # noqa: E731
    scales = lambda rows: rng.uniform(0.25, 3, (-(-rows // ROWS), k // DEPTH, 32, 16)).astype(SCALE)  # noqa: E731
    return {"A": draw(m), "SA": scales(m), "B": draw(n), "SB": scales(n), "alpha": ALPHA}


def scaled(packed, scales):
    """The factor with its scales multiplied in, in float64, two numbers of each byte: the scale of row r and piece s of K block b is
    scales[r // 128, b, r % 32, 4 * (r % 128 // 32) + s]."""
    values = NUMBERS[np.stack([packed & 15, packed >> 4], axis=-1)].reshape(len(packed), -1)
    r, k = np.arange(values.shape[0])[:, None], np.arange(values.shape[1])[None, :]
    return values * scales.astype(np.float64)[r // ROWS, k // DEPTH, r % 32, 4 * (r % ROWS // 32) + k % DEPTH // PIECE]


def reference(inputs):
    """In float64: products are exact there, and their sum is far below the tolerance."""
    return {"D": float(np.float32(inputs["alpha"])) * (scaled(inputs["A"], inputs["SA"]) @ scaled(inputs["B"], inputs["SB"]).T)}


def tolerance(inputs, expected):
    """One rounding to bf16 and one of the product by alpha; the f32 accumulation: at most K / 64 + 64 truncating steps of a partial sum,
    which sum |a| |b| bounds."""
    a, b = (np.abs(scaled(inputs[n], inputs[f"S{n}"])) for n in "AB")
    accumulation = (a.shape[1] / K_STEP + K_STEP) * STEP_F32 * float(inputs["alpha"]) * (a @ b.T)
    return {"D": (U_BF16 + U_F32) * (np.abs(expected["D"]) + accumulation) + accumulation}


def flops(shape):
    return 4 * shape["M"] * shape["N"] * shape["KP"]
