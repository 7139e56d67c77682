"""Shapes, inputs and reference of knn_part_sm90: for each query and each part of the points the KK least PN[j] - 2 X[q] . P[j].

Lists ascend; of equal keys the smaller index comes first; NaN and +inf are never taken; a part with fewer than KK points ends in
(+inf, -1). The constants are those of the text: another SPLIT, BN or KK needs another reference.
"""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
D = 128
KK, BN, SPLIT = 10, 256, 4

#: As in kernels/kmeans/kmeans_assign_sm90.py: the truncating adder of the matrix unit.
STEP_F32 = 2.0**-23
STEPS = D / 16 + 16


def shapes():
    """One query, fewer points than KK, than a tile, than parts; tails of both; parts without points."""
    sizes = [(128, 4096), (1, 4), (3, 8), (300, 1000), (128, 132), (129, 257 * 4), (70, 20000), (513, 5000)]
    return [dict(zip(("Q", "N"), s)) for s in sizes]


def bench_shapes():
    return [dict(zip(("Q", "N"), s)) for s in ((4096, 1048576), (65536, 65536))]


def inputs(shape, rng):
    """Standard normal queries and points. From 100 points on each point of the last tenth is a copy of one of the first (exact ties), and
    the fourth has a NaN norm (it must never be taken)."""
    q, n = shape["Q"], shape["N"]
    x, p = (rng.standard_normal((m, D), dtype=np.float32).astype(BF16) for m in (q, n))
    pn = np.sum(p.astype(np.float32) ** 2, axis=1)
    if n >= 100:
        tenth = n // 10
        p[n - tenth :], pn[n - tenth :] = p[:tenth], pn[:tenth]
        pn[3] = np.nan
    return {"X": x, "P": p, "PN": pn}


def distances(inputs):
    """(values, admitted errors), float64 [Q, N]; NaN as +inf."""
    x, p = (inputs[n].astype(np.float64) for n in ("X", "P"))
    with np.errstate(invalid="ignore"):
        d = inputs["PN"].astype(np.float64) - 2 * x @ p.T
        error = 2 * STEPS * STEP_F32 * np.abs(x) @ np.abs(p).T + 2.0**-24 * np.abs(d)
    return np.where(np.isnan(d), np.inf, d), np.nan_to_num(error)


def parts(n):
    """First and last point of each part."""
    tiles = -(-n // BN)
    per = -(-tiles // SPLIT)
    starts = [min(s * per, tiles) for s in range(SPLIT)]
    return [(min(s * BN, n), min(min(s + per, tiles) * BN, n)) for s in starts]


def ranked(d, first, last):
    """Keys and indices of the KK least of columns first .. last, filled up with (+inf, -1)."""
    order = np.argsort(d[:, first:last], axis=1, kind="stable")[:, :KK]
    keys = np.full((len(d), KK), np.inf)
    indices = np.full((len(d), KK), -1.0)
    taken = np.take_along_axis(d[:, first:last], order, 1)
    keys[:, : order.shape[1]] = taken
    indices[:, : order.shape[1]] = np.where(np.isfinite(taken), order + first, -1)
    return keys, indices


def reference(inputs):
    d, _ = distances(inputs)
    lists = [ranked(d, *part) for part in parts(d.shape[1])]
    return {"V": np.stack([k for k, _ in lists]), "I": np.stack([i for _, i in lists])}


def tolerance(inputs, expected):
    """Keys: the rounding of a distance, the largest of its row, since neighbours may change places. Indices: 0, but where the key of
    another point is so near that rounding could exchange the two: then as far off as the farthest of those."""
    d, error = distances(inputs)
    widest = np.max(error, axis=1, initial=0)
    keys = np.broadcast_to(widest[None, :, None], expected["V"].shape)
    admitted = np.zeros(expected["I"].shape)
    first_of = _first_copies(inputs)
    for s, (first, last) in enumerate(parts(d.shape[1])):
        columns = np.arange(first, last)
        for rank in range(KK):
            key, index = expected["V"][s, :, rank, None], expected["I"][s, :, rank, None]
            with np.errstate(invalid="ignore"):
                near = np.abs(d[:, first:last] - key) <= 2 * widest[:, None]
            near &= (first_of[columns] != first_of[index.astype(np.int64)]) | (columns == index)  # of equal bits the order is certain
            admitted[s, :, rank] = np.max(np.abs(columns - index) * (near & np.isfinite(key)), axis=1, initial=0)
    return {"V": keys, "I": admitted}


def _first_copies(inputs):
    """int [N]: the first point that has the bits of each point."""
    rows = np.concatenate([inputs["P"].view(np.uint16), inputs["PN"][:, None].view(np.uint16)], axis=1)
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[group.reshape(-1)]


def flops(shape):
    return 2 * shape["Q"] * shape["N"] * D
