"""The kernels' references and tolerances, without a GPU: a right result in f32 passes, each kind of wrong one does not."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_core.runtime.companion import load_companion

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
COMPANIONS = sorted(p for p in KERNELS.rglob("*.py"))
BF16 = ml_dtypes.bfloat16
#: Of inputs; uint8 are two floats of 4 bits.
KINDS = (BF16, np.float32, np.int32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, np.uint8)


def gemm(inputs):
    """f32 accumulation in blocks of 64, truncated after each: no better than the hardware."""
    a, b = (inputs[n].astype(np.float32) for n in "AB")
    total = np.zeros((a.shape[0], b.shape[0]), np.float32)
    for k in range(0, a.shape[1], 16):
        total = (total.astype(np.float64) + a[:, k : k + 16].astype(np.float64) @ b[:, k : k + 16].T.astype(np.float64)).astype(np.float32)
    return {"D": total}


def gemm_bias_gelu(inputs):
    x = (gemm(inputs)["D"] + inputs["BIAS"].astype(np.float32)).astype(np.float64)
    erf = np.vectorize(math.erf, otypes=[np.float64])(x / np.sqrt(2))
    return {"D": (x * (1 + erf) / 2).astype(np.float32)}


def rmsnorm(inputs):
    x, w = (inputs[n].astype(np.float32) for n in "XW")
    total = np.zeros((x.shape[0], 1), np.float32)
    for c in range(x.shape[1]):  # one after the other: the worst order
        total[:, 0] += x[:, c] * x[:, c]
    inv = np.float32(1) / np.sqrt(total / np.float32(x.shape[1]) + np.float32(inputs["eps"]))
    return {"Y": x * inv * w}


def softmax(inputs):
    x = inputs["X"].astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp2((x - np.max(x, axis=1, keepdims=True, initial=-np.inf)) * np.float32(np.log2(np.e)))
        return {"Y": e * (np.float32(1) / np.sum(e, axis=1, keepdims=True))}


def f32_distances(norms, x, c):
    """norms - 2 x . c, accumulated in f32 as in `gemm`, and combined by one rounding."""
    product = gemm({"A": x, "B": c})["D"]
    with np.errstate(invalid="ignore"):
        d = (norms.astype(np.float64)[None] - 2 * product.astype(np.float64)).astype(np.float32)
    return np.where(np.isnan(d), np.float32(np.inf), d)


def kmeans_assign(inputs):
    labels = [np.argmin(f32_distances(cn, x, c), axis=1) for x, c, cn in zip(inputs["X"], inputs["C"], inputs["CN"], strict=True)]
    return {"L": np.stack(labels).astype(np.float64)}


def knn_part(inputs):
    """Each part's list by a stable sort: of equal keys the smaller index first."""
    kk, bn, split = 10, 256, 4
    d = f32_distances(inputs["PN"], inputs["X"], inputs["P"])
    per = -(-(-(-d.shape[1] // bn)) // split) * bn
    keys, indices = np.full((split, len(d), kk), np.inf), np.full((split, len(d), kk), -1.0)
    for s in range(split):
        part = d[:, s * per : (s + 1) * per]
        order = np.argsort(part, axis=1, kind="stable")[:, :kk]
        found = np.take_along_axis(part, order, 1)
        keys[s, :, : order.shape[1]] = found
        indices[s, :, : order.shape[1]] = np.where(np.isfinite(found), order + s * per, -1)
    return {"V": keys, "I": indices}


def knn_merge(inputs):
    out = {"VO": np.full((inputs["V"].shape[1], 10), np.inf), "IO": np.full((inputs["V"].shape[1], 10), -1.0)}
    for q in range(inputs["V"].shape[1]):
        entries = sorted((v, i) for v, i in zip(inputs["V"][:, q].flat, inputs["I"][:, q].flat, strict=True) if np.isfinite(v))[:10]
        for n, (v, i) in enumerate(entries):
            out["VO"][q, n], out["IO"][q, n] = v, i
    return out


def moe_grouped(inputs):
    off, w = inputs["OFF"], inputs["W"]
    out = np.zeros((len(inputs["A"]), w.shape[1]), np.float32)
    for e in range(len(w)):
        out[off[e] : off[e + 1]] = gemm({"A": inputs["A"][off[e] : off[e + 1]], "B": w[e]})["D"]
    return {"D": out}


def attention(inputs, behind=0):
    """Causal, a sequence and head at a time: f32, probabilities in bf16 where they meet V. `behind`: keys past the mask that are seen."""
    q, k, v = (inputs[n] for n in "QKV")
    cq, ck, f32 = inputs["CQ"], inputs["CK"], np.float32
    o, lse = np.zeros(q.shape, f32), np.full((q.shape[1], q.shape[0]), -np.inf)
    for b in range(len(cq) - 1):
        rows, keys, lq, lk = slice(cq[b], cq[b + 1]), slice(ck[b], ck[b + 1]), cq[b + 1] - cq[b], ck[b + 1] - ck[b]
        for h in range(q.shape[1] if lq and lk else 0):
            key_head = h // (q.shape[1] // k.shape[1])
            s = gemm({"A": q[rows, h], "B": k[keys, key_head]})["D"] * f32(inputs["sl2"])
            s = np.where(np.tri(lq, lk, lk - lq + behind, dtype=bool), s, f32(-np.inf))
            top = s.max(axis=1, keepdims=True)
            p = np.exp2(s - np.where(np.isfinite(top), top, f32(0)))
            total = p.sum(axis=1)
            some = total > 0
            weighted = p.astype(BF16).astype(f32) @ v[keys, key_head].astype(f32)
            o[rows, h] = weighted / np.where(some, total, f32(1))[:, None]
            with np.errstate(divide="ignore"):
                lse[h, rows] = np.where(some, (top[:, 0] + np.log2(total)) * f32(np.log(2)), -np.inf)
    return {"O": o, "LSE": lse}


def quantize_e4m3(inputs):
    x, f32 = inputs["X"].astype(np.float32), np.float32
    top = np.max(np.abs(x), axis=1, initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        y = x * (f32(448) * (f32(1) / (top + f32(1e-30))))[:, None]
    return {"Y": np.clip(y, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64), "S": (top / f32(448)).astype(np.float64)}


def silu_mul_bias(inputs):
    a, b, bias = (inputs[n].astype(np.float32) for n in ("A", "B", "BIAS"))
    with np.errstate(over="ignore"):
        return {"Y": a * (np.float32(1) / (np.float32(1) + np.exp2(a * -np.float32(np.log2(np.e))))) * b + bias}


def scale_shift(inputs):
    x, s, t = (inputs[n].astype(np.float64) for n in "XST")
    return {"Y": (x * s[:, :, None] + t[:, None, :]).astype(np.float32)}  # a fused multiply-add: one rounding


def gemm_mxf8(inputs):
    """Factors with their scales, which are powers of two, are exact in f32. A block's 128 rows are 32 lanes of four pieces each."""
    def scaled(values, blocks):
        r, k = blocks.shape[:2]
        of = blocks.astype(np.float32).reshape(r, k, 32, 4, 4).transpose(0, 3, 2, 1, 4).reshape(128 * r, 4 * k)
        return values.astype(np.float32) * np.repeat(of, 32, axis=1)[: len(values)]

    return gemm({n: scaled(inputs[n], inputs[f"S{n}"]) for n in "AB"})


def gemm_nvf4(inputs):
    """As above; a number times its scale has 5 bits, so it is exact in f32."""
    def scaled(packed, blocks):
        r, k = blocks.shape[:2]
        of = blocks.astype(np.float32).reshape(r, k, 32, 4, 4).transpose(0, 3, 2, 1, 4).reshape(128 * r, 4 * k)
        numbers = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1).view(ml_dtypes.float4_e2m1fn)
        return numbers.astype(np.float32) * np.repeat(of, 16, axis=1)[: len(packed)]

    return {"D": gemm({n: scaled(inputs[n], inputs[f"S{n}"]) for n in "AB"})["D"] * np.float32(inputs["alpha"])}


#: Kernel to an honest result in f32, and the input whose last column a wrong tail would lose (None: searches, see below).
HONEST = {
    "attn_fwd_sm90": (attention, None),
    "gemm_bias_gelu_sm90": (gemm_bias_gelu, "BIAS"),
    "gemm_sm80": (gemm, "A"),
    "gemm_sm90": (gemm, "A"),
    "gemm_sm100": (gemm, "A"),
    "gemm_sm100_pair": (gemm, "A"),
    "gemm_sm100_mxf8": (gemm_mxf8, "A"),
    "gemm_sm100_nvf4": (gemm_nvf4, "A"),
    "kmeans_assign_sm90": (kmeans_assign, None),
    "knn_merge": (knn_merge, None),
    "knn_part_sm90": (knn_part, None),
    "moe_grouped_sm90": (moe_grouped, "A"),
    "moe_grouped_dynamic_sm90": (moe_grouped, "A"),
    "quantize_e4m3": (quantize_e4m3, "X"),
    "rmsnorm": (rmsnorm, "X"),
    "scale_shift": (scale_shift, "T"),
    "silu_mul_bias": (silu_mul_bias, "BIAS"),
    "softmax": (softmax, "X"),
    "softmax_cluster": (softmax, "X"),
    "softmax_short": (softmax, "X"),
}
COMPUTE = {name: compute for name, (compute, _) in HONEST.items()}
LOST = {name: lost for name, (_, lost) in HONEST.items() if lost is not None}


def cases(limit=300_000):
    for path in COMPANIONS:
        companion = load_companion(path)
        for i, shape in enumerate(companion.call("shapes")):
            if np.prod([max(v, 1) for v in shape.values()], dtype=np.int64) <= limit * 64 and shape.get("R", 0) <= 300:
                yield pytest.param(path, shape, id=f"{path.stem}-{'x'.join(map(str, shape.values()))}")


def run(path, shape):
    companion = load_companion(path)
    inputs = companion.call("inputs", shape, np.random.default_rng(1))
    expected = companion.call("reference", inputs)
    return inputs, expected, companion.admitted(inputs, expected)


def right(value, expected, admitted):
    """Whether a result, rounded to bf16 unless it is float64, is as good as asked; NaN and infinities that agree are."""
    got = value if value.dtype == np.float64 else value.astype(BF16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (got == expected) | np.isnan(got) & np.isnan(expected)
        return bool((same | np.isfinite(expected) & (np.abs(got - expected) <= admitted)).all())


def test_every_kernel_has_a_companion_that_is_tested():
    assert {p.stem for p in KERNELS.rglob("*.cake")} <= {p.stem for p in COMPANIONS} == set(COMPUTE)


@pytest.mark.parametrize("path, shape", list(cases()))
def test_an_honest_f32_kernel_is_within_the_tolerance(path, shape):
    inputs, expected, admitted = run(path, shape)
    for name, value in COMPUTE[path.stem](inputs).items():
        assert value.shape == expected[name].shape
        assert right(value, expected[name], admitted[name])


@pytest.mark.parametrize("path, shape", [c for c in cases() if c.values[0].stem in LOST and min(c.values[1].values()) > 0])
def test_a_kernel_that_leaves_something_out_is_not(path, shape):
    """The last column of an input counted as zero: the least that a wrong tail can do."""
    inputs, expected, admitted = run(path, shape)
    name = LOST[path.stem]
    broken = inputs | {name: inputs[name].copy()}
    broken[name][..., -1] = 0
    assert not all(right(value, expected[out], admitted[out]) for out, value in COMPUTE[path.stem](broken).items())


ATTENTION = KERNELS / "attention" / "attn_fwd_sm90.py"


@pytest.mark.parametrize("shape", [(1, 1, 1, 128, 128), (5, 8, 2, 700, 900)], ids=lambda s: "x".join(map(str, s)))
def test_a_mask_that_is_one_key_off_is_not_within_the_tolerance(shape):
    inputs, expected, admitted = run(ATTENTION, dict(zip(("B", "H", "HK", "TQ", "TK"), shape)))
    for behind in (-1, 1):
        for out, value in attention(inputs, behind).items():
            assert not right(value, expected[out], admitted[out])


def test_the_shapes_of_attention_have_empty_sequences_and_rows_without_keys():
    companion = load_companion(ATTENTION)
    drawn = [companion.call("inputs", s, np.random.default_rng(1)) for s in companion.call("shapes")]
    assert any((np.diff(i["CQ"]) == 0).any() and len(i["CQ"]) > 2 for i in drawn)
    assert any((np.diff(i["CK"]) == 0).any() and len(i["Q"]) for i in drawn)
    assert any((np.diff(i["CQ"]) > np.diff(i["CK"])).any() for i in drawn)


@pytest.mark.parametrize("path", COMPANIONS, ids=lambda p: p.stem)
def test_inputs_are_of_the_shape_and_repeat(path):
    companion = load_companion(path)
    shape = companion.call("shapes")[0]
    first, again = (companion.call("inputs", shape, np.random.default_rng(3)) for _ in range(2))
    for name, value in first.items():
        assert np.asarray(value).tobytes() == np.asarray(again[name]).tobytes()  # bits: NaNs repeat, too
        assert not isinstance(value, np.ndarray) or value.dtype in KINDS
    assert all((companion.flops(s) or 0) >= 0 for s in companion.call("shapes"))


def test_the_shapes_hold_what_a_gemm_must_bear():
    shapes = load_companion(KERNELS / "gemm" / "gemm_sm90.py").call("shapes")
    have = lambda name, *values: {s[name] for s in shapes} >= set(values)  # noqa: E731
    assert have("M", 1, 130) and have("N", 8, 264) and have("K", 0, 8, 64, 72, 264)
    assert any(s["M"] % 128 and s["N"] % 256 and s["K"] % 64 for s in shapes)


def wrong_ways(stem, inputs, expected):
    """What a search that goes wrong in one way gives."""
    match stem:
        case "kmeans_assign_sm90":
            k = inputs["CN"].shape[1]
            yield "the later of two copies", {"L": np.where(expected["L"] == 1, k // 2, expected["L"])}
            yield "NaN wins", {"L": np.full_like(expected["L"], 2)}
            yield "a centroid past the end", {"L": np.full_like(expected["L"], k)}
        case "knn_part_sm90":
            yield "neighbours exchanged", {"V": expected["V"], "I": expected["I"][..., [1, 0, *range(2, 10)]]}
            yield "a lost part", {n: v[[1, 1, 2, 3]] for n, v in expected.items()}
        case "knn_merge":
            yield "another query's list", {n: np.roll(v, 1, axis=0) for n, v in expected.items()}
            yield "the larger index of equal keys", {"VO": expected["VO"], "IO": -knn_merge(inputs | {"I": -inputs["I"]})["IO"]}


@pytest.mark.parametrize("path, shape", [c for c in cases() if c.values[0].stem not in LOST and min(c.values[1].values()) > 4])
def test_a_search_that_goes_wrong_is_found_out(path, shape):
    inputs, expected, admitted = run(path, shape)
    for what, value in wrong_ways(path.stem, inputs, expected):
        same = all(np.array_equal(value[n], expected[n]) for n in value)
        assert same or not all(right(value[n], expected[n], admitted[n]) for n in value), what
