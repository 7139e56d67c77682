"""Shapes, inputs and reference of attn_fwd_sm90: O = softmax(Q K^T * scale) V, and LSE."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
D = 128
CAUSAL = True  # as in the kernel's text
LOG2_E = np.log2(np.e)

#: Unit roundoff of bf16: of the probabilities that meet V, and of the result.
U_BF16 = 2.0**-8
#: A matrix unit's adder truncates: one f32 unit in the last place a step of 16 products (see kernels/gemm/gemm_sm90.py).
STEP_F32 = 2.0**-23
K_STEP = 16


def shapes():
    """One block; no sequence, no query, no key; single rows; several sequences with tails, some of them empty; few key heads."""
    names = ("B", "H", "HK", "TQ", "TK")
    sizes = [
        (1, 1, 1, 128, 128),
        (0, 1, 1, 0, 0),
        (2, 2, 2, 0, 64),
        (3, 1, 1, 70, 0),
        (1, 1, 1, 1, 1),
        (2, 4, 2, 5, 700),
        (3, 2, 1, 300, 300),
        (5, 8, 2, 700, 900),
        (9, 3, 3, 260, 400),
        (1, 2, 2, 512, 512),
    ]
    return [dict(zip(names, s)) for s in sizes]


def bench_shapes():
    return [dict(zip(("B", "H", "HK", "TQ", "TK"), s)) for s in ((4, 16, 16, 32768, 32768), (1, 32, 8, 16384, 16384))]


def ends(rows, sequences, rng):
    """Ends of sequences: of one length where there are many rows, otherwise random, some of them empty."""
    if not sequences:
        return np.zeros(1, np.int32)
    if rows % sequences == 0 and rows // sequences >= 1024:
        return np.arange(0, rows + 1, rows // sequences, dtype=np.int32)
    share = rng.exponential(size=sequences) * (rng.random(sequences) < 0.8) + 1e-9
    inner = np.floor(np.cumsum(share)[:-1] / share.sum() * rows).astype(np.int32)
    return np.concatenate([[0], inner, [rows]]).astype(np.int32)


def inputs(shape, rng):
    """Standard normal Q [TQ, H, 128], K and V [TK, HK, 128], rounded to bf16; the usual scale.

    Every 131st key is eight times as large, so that the largest score of a row grows late, and by more than the kernel lets be.
    """
    draw = lambda rows, heads: rng.standard_normal((rows, heads, D), dtype=np.float32).astype(BF16)  # noqa: E731
    b, h, hk, tq, tk = (shape[x] for x in ("B", "H", "HK", "TQ", "TK"))
    k = draw(tk, hk)
    k[::131] *= BF16(8)
    return {
        "sl2": float(np.float32(D**-0.5 * LOG2_E)),
        "CQ": ends(tq, b, rng),
        "CK": ends(tk, b, rng),
        "Q": draw(tq, h),
        "K": k,
        "V": draw(tk, hk),
    }


def heads(inputs):
    """(rows of the sequence, head, scores in units of log2 with masked ones -inf, values) of every head with keys, in float64."""
    q, k, v = (inputs[n].astype(np.float64) for n in "QKV")
    group = q.shape[1] // max(k.shape[1], 1)
    cq, ck = inputs["CQ"], inputs["CK"]
    for b in range(len(cq) - 1):
        rows, keys = slice(cq[b], cq[b + 1]), slice(ck[b], ck[b + 1])
        lq, lk = cq[b + 1] - cq[b], ck[b + 1] - ck[b]
        if not lq or not lk:
            continue
        seen = np.tri(lq, lk, lk - lq, dtype=bool) if CAUSAL else np.ones((lq, lk), bool)
        for h in range(q.shape[1]):
            s = q[rows, h] @ k[keys, h // group].T * inputs["sl2"]
            yield rows, h, np.where(seen, s, -np.inf), v[keys, h // group]


def reference(inputs):
    """In float64. A query without a key: O = 0, LSE = -inf."""
    tq, h = inputs["Q"].shape[:2]
    o, lse = np.zeros((tq, h, D)), np.full((h, tq), -np.inf)
    for rows, head, s, v in heads(inputs):
        top = s.max(axis=1, keepdims=True)
        p = np.exp2(s - np.where(np.isfinite(top), top, 0))
        total = p.sum(axis=1)
        some = total > 0
        o[rows, head] = (p @ v) / np.where(some, total, 1)[:, None]
        with np.errstate(divide="ignore"):
            lse[head, rows] = np.where(some, (top[:, 0] + np.log2(total)) / LOG2_E, -np.inf)
    return {"O": o, "LSE": lse}


def tolerance(inputs, expected):
    """The admitted error of each element, to first order.

    A score errs by the f32 sum of 128 products and by the roundings of its scaling; that is a relative error of its
    probability. Probabilities are rounded to bf16 for the product with V, whose f32 sum errs by steps of 16 keys, and are
    rescaled once a block of 128. Then one rounding to bf16. The probabilities' sum takes part in f32 only.
    """
    q, k = (np.abs(inputs[n].astype(np.float64)) for n in "QK")
    o, lse = np.zeros(expected["O"].shape), np.zeros(expected["LSE"].shape)
    largest = q.sum(axis=2).max(initial=0) * k.max(initial=0) * inputs["sl2"]  # of a score, in units of log2
    score = (D / K_STEP + K_STEP) * STEP_F32 * largest + 4 * STEP_F32 * largest
    relative = 2 * np.log(2) * score + 2.0**-20  # of a probability over their sum; exp2 and the sum are good to 2**-22
    for rows, head, s, v in heads(inputs):
        top = s.max(axis=1, keepdims=True)
        p = np.exp2(s - np.where(np.isfinite(top), top, 0))
        weight = (p @ np.abs(v)) / np.maximum(p.sum(axis=1), 1)[:, None]
        steps = s.shape[1] / K_STEP + s.shape[1] / D + 2 * K_STEP
        o[rows, head] = (U_BF16 + relative + steps * STEP_F32) * weight
        finite = np.where(np.isfinite(top[:, 0]), np.abs(top[:, 0]), 0)
        lse[head, rows] = relative + 2.0**-20 * (1 + finite)
    return {"O": o + U_BF16 * (np.abs(expected["O"]) + o) + 2.0**-126, "LSE": lse}


def flops(shape):
    """Two products of each query with the keys that it sees, for sequences of one length."""
    keys = shape["TK"] / max(shape["B"], 1)
    return round(4 * shape["TQ"] * shape["H"] * D * keys / (2 if CAUSAL else 1))
