"""Shapes, inputs and reference of gemm_bias_gelu_sm90: D = gelu(A @ B.T + BIAS) in bf16, accumulated in f32."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np

from cake_core.runtime.companion import load_companion

_gemm = load_companion(Path(__file__).with_name("gemm_sm90.py")).module

BF16 = ml_dtypes.bfloat16
#: The largest slope of gelu, at x = 1.41.
SLOPE = 1.13
#: The absolute error of `gelu` beside one rounding (see the plugin `math`).
GELU = 7e-7

shapes, bench_shapes = _gemm.shapes, _gemm.bench_shapes


def inputs(shape, rng):
    """Normal A [M, K] and B [N, K], B scaled so that the sums are of order 1, where gelu bends; BIAS [N] normal."""
    given = _gemm.inputs(shape, rng)
    scale = np.float32(1 / math.sqrt(max(shape["K"], 1)))
    given["B"] = (given["B"].astype(np.float32) * scale).astype(BF16)
    return given | {"BIAS": rng.standard_normal(shape["N"], dtype=np.float32).astype(BF16)}


def before(inputs):
    a, b, bias = (inputs[n].astype(np.float64) for n in ("A", "B", "BIAS"))
    return a @ b.T + bias


def reference(inputs):
    """In float64."""
    x = before(inputs)
    return {"D": x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))) / 2}


def tolerance(inputs, expected):
    """One rounding to bf16; the f32 accumulation as of gemm_sm90, with the slope of gelu; gelu's own error."""
    a, b = (np.abs(inputs[n].astype(np.float32)) for n in "AB")
    steps = a.shape[1] / _gemm.K_STEP + _gemm.K_STEP
    accumulation = steps * _gemm.STEP_F32 * (a @ b.T + np.abs(inputs["BIAS"].astype(np.float32))).astype(np.float64)
    f32 = SLOPE * accumulation + GELU + 2.0**-23 * np.abs(before(inputs))
    return {"D": _gemm.U_BF16 * (np.abs(expected["D"]) + f32) + f32}


def flops(shape):
    return _gemm.flops(shape)
