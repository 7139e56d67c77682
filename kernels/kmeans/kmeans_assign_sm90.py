"""Shapes, inputs and reference of kmeans_assign_sm90: L[b, n] is the k of the least CN[b, k] - 2 X[b, n] . C[b, k].

With CN[b, k] = |C[b, k]|^2 that is the nearest centroid. Of equal values the smaller k wins; NaN never does; a row that has no value
below +inf has label 0.
"""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
D = 128

#: One f32 addition in the matrix unit: its adder truncates, so a step may lose a whole unit in the last place.
STEP_F32 = 2.0**-23
#: Steps of the matrix unit for one product of depth 128, and the alignments to the largest term inside a step.
STEPS = D / 16 + 16


def shapes():
    """One point, one tile, tails of points and centroids, fewer centroids than a tile, several batches, more items than CTAs."""
    sizes = [
        (1, 256, 128),
        (1, 1, 4),
        (1, 128, 128),
        (2, 300, 132),
        (3, 257, 1024),
        (1, 1000, 4),
        (2, 4096, 260),
        (5, 777, 520),
        (1, 70000, 12),
    ]
    return [dict(zip(("NB", "N", "K"), s)) for s in sizes]


def bench_shapes():
    return [dict(zip(("NB", "N", "K"), s)) for s in ((32, 65536, 1024), (1, 1048576, 1024), (1, 65536, 1024))]


def inputs(shape, rng):
    """Standard normal points and centroids. From 12 centroids on the middle one is a copy of the second (an exact tie), and the third
    has a NaN norm (it must never win); from 200 points on one point is NaN (it has label 0)."""
    nb, n, k = shape["NB"], shape["N"], shape["K"]
    x, c = (rng.standard_normal((nb, m, D), dtype=np.float32).astype(BF16) for m in (n, k))
    cn = np.sum(c.astype(np.float32) ** 2, axis=2)
    if k >= 12:
        c[:, k // 2], cn[:, k // 2] = c[:, 1], cn[:, 1]
        cn[:, 2] = np.nan
    if n >= 200:
        x[:, 199, 0] = np.nan
    return {"X": x, "C": c, "CN": cn}


def distances(inputs):
    """(values, admitted errors), float64 [NB, N, K]; NaN as +inf. Products of bf16 are exact in float64."""
    x, c = (inputs[n].astype(np.float64) for n in ("X", "C"))
    cn = inputs["CN"].astype(np.float64)[:, None, :]
    with np.errstate(invalid="ignore"):
        d = cn - 2 * np.einsum("bnd,bkd->bnk", x, c, optimize=True)
        error = 2 * STEPS * STEP_F32 * np.einsum("bnd,bkd->bnk", np.abs(x), np.abs(c), optimize=True) + 2.0**-24 * np.abs(d)
    return np.where(np.isnan(d), np.inf, d), np.nan_to_num(error)


def reference(inputs):
    return {"L": np.argmin(distances(inputs)[0], axis=2).astype(np.float64)}


def tolerance(inputs, expected):
    """0, but where another centroid is so near that the rounding of both distances could exchange them: then the label may be as far off
    as the farthest of those. A later copy of a centroid is not among them: its distance is the same bits, so the first must win."""
    d, error = distances(inputs)
    labels = expected["L"].astype(np.int64)[..., None]
    best, slack = (np.take_along_axis(v, labels, 2) for v in (d, error))
    with np.errstate(invalid="ignore"):
        near = (d - best <= error + slack) & np.isfinite(d) & ~_copies(inputs)[:, None, :]
    return {"L": np.max(np.abs(np.arange(d.shape[2]) - labels) * near, axis=2)}


def _copies(inputs):
    """bool [NB, K]: a centroid that stands before in its batch."""
    out = np.zeros(inputs["CN"].shape, bool)
    for b, (c, cn) in enumerate(zip(inputs["C"], inputs["CN"], strict=True)):
        rows = np.concatenate([c.view(np.uint16), cn[:, None].view(np.uint16)], axis=1)
        out[b, np.setdiff1d(np.arange(len(rows)), np.unique(rows, axis=0, return_index=True)[1])] = True
    return out


def flops(shape):
    return 2 * shape["NB"] * shape["N"] * shape["K"] * D
