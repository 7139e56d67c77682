"""Shapes, inputs and reference of moe_grouped_sm90: D[r] = A[r] @ W[e].T for the expert e of row r, in bf16, accumulated in f32."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16

#: As for a dense product (see kernels/gemm/gemm_sm90.py): one rounding to bf16, truncating f32 steps of 16 products.
U_BF16 = 2.0**-8
STEP_F32 = 2.0**-23
K_STEP = 16


def shapes():
    """No expert, no row, fewer rows than experts, one expert, whole and cut blocks; the least N and K, tails in both."""
    sizes = [
        (0, 0, 8, 8),
        (4, 0, 64, 64),
        (3, 128, 256, 64),
        (8, 5, 8, 8),
        (1, 300, 264, 72),
        (5, 700, 520, 264),
        (16, 1000, 512, 512),
        (64, 333, 72, 136),
    ]
    return [dict(zip("ETNK", s)) for s in sizes]


def bench_shapes():
    return [dict(zip("ETNK", s)) for s in ((8, 16384, 14336, 4096), (64, 16384, 4096, 2048))]


def groups(rows, experts, rng):
    """Ends of random groups, some of them empty: OFF [E + 1] with OFF[0] = 0 and OFF[E] = T."""
    if not experts:
        return np.zeros(1, np.int32)
    share = rng.exponential(size=experts) * (rng.random(experts) < 0.8) + 1e-9
    inner = np.floor(np.cumsum(share)[:-1] / share.sum() * rows).astype(np.int32)
    return np.concatenate([[0], inner, [rows]]).astype(np.int32)


def inputs(shape, rng):
    """Standard normal A [T, K] and W [E, N, K], rounded to bf16; random groups."""
    draw = lambda *extents: rng.standard_normal(extents, dtype=np.float32).astype(BF16)  # noqa: E731
    e, t, n, k = (shape[x] for x in "ETNK")
    return {"OFF": groups(t, e, rng), "A": draw(t, k), "W": draw(e, n, k)}


def _products(inputs, of):
    """Group by group, in float64."""
    a, w, off = of(inputs["A"].astype(np.float64)), inputs["W"], inputs["OFF"]
    out = np.zeros((a.shape[0], w.shape[1]))
    for e in range(w.shape[0]):
        if off[e] < off[e + 1]:
            out[off[e] : off[e + 1]] = a[off[e] : off[e + 1]] @ of(w[e].astype(np.float64)).T
    return out


def reference(inputs):
    return {"D": _products(inputs, lambda x: x)}


def tolerance(inputs, expected):
    """The admitted error of each element: one rounding to bf16, and the f32 accumulation."""
    steps = inputs["A"].shape[1] / K_STEP + K_STEP
    accumulation = steps * STEP_F32 * _products(inputs, np.abs)
    return {"D": U_BF16 * (np.abs(expected["D"]) + accumulation) + accumulation}


def flops(shape):
    return 2 * shape["T"] * shape["N"] * shape["K"]
