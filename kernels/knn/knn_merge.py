"""Shapes, inputs and reference of knn_merge: the KK first of SPLIT lists a query, by key and then by index.

Keys that are NaN or +inf are never taken; what is left ends in (+inf, -1). The constants are those of the text.
"""

import numpy as np

KK, SPLIT = 10, 4


def shapes():
    """One query, whole CTAs of eight, tails."""
    return [{"Q": q} for q in (8, 1, 7, 64, 1001, 4096)]


def bench_shapes():
    return [{"Q": 4096}, {"Q": 65536}]


def inputs(shape, rng):
    """Keys from a few values, so that many are equal; indices in no order. A quarter of the entries are none, some keys NaN."""
    q = shape["Q"]
    keys = rng.integers(-20, 20, (SPLIT, q, KK)).astype(np.float32)
    indices = (
        np.stack([rng.permutation(1000 * SPLIT * KK)[: SPLIT * KK] for _ in range(q)])
        .reshape(q, SPLIT, KK)
        .transpose(1, 0, 2)
        .astype(np.int32)
    )
    none = rng.random(keys.shape) < 0.25
    none[:, 1:2] = True  # a query that has nothing
    keys, indices = np.where(none, np.float32(np.inf), keys), np.where(none, np.int32(-1), indices)
    keys[rng.random(keys.shape) < 0.02] = np.nan
    return {"V": np.ascontiguousarray(keys), "I": np.ascontiguousarray(indices)}


def reference(inputs):
    keys, indices = (inputs[n].transpose(1, 0, 2).reshape(inputs[n].shape[1], -1).astype(np.float64) for n in "VI")
    taken = np.isfinite(keys)
    order = np.lexsort((indices, np.where(taken, keys, np.inf)), axis=1)[:, :KK]
    found = np.take_along_axis(taken, order, 1)
    out = (np.where(found, np.take_along_axis(v, order, 1), none) for v, none in ((keys, np.inf), (indices, -1.0)))
    return dict(zip(("VO", "IO"), out, strict=True))


def tolerance(inputs, expected):
    """None: the kernel compares and moves, and its results are the inputs' bits."""
    return {name: np.zeros(value.shape) for name, value in expected.items()}
