"""What primitives do to data, each against its definition in numpy."""

import math

import ml_dtypes
import numpy as np
import pytest
from simulated_texts import PLOTS, launch

F32 = np.float32
INF, NAN = math.inf, math.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 3.4e38, -3.4e38, 1e-40, -1e-40, 0.5, 447.0, 449.0, 1e6, -0.3], F32)
ADVERSARIAL = PLOTS[0]


def elementwise(expression: str, x: np.ndarray, y: np.ndarray | None = None, elem: str = "f32") -> np.ndarray:
    """`expression` over 256 elements x and y, by two warps."""
    text = f"""cake 1 derived
kernel k(X: in f32[256], Z: in f32[256], Y: out {elem}[256], c: f32)
  target sm90
{{
  launch 1
  role main: 2 warps at 0 {{
    frag x: f32[256] vec 4 layout vector, y: f32[256] vec 4 layout vector
    x = load(X[0 +: 256], by = 16)
    y = load(Z[0 +: 256], by = 16)
    store Y[0 +: 256] <- {expression} by {4 if elem != "f32" else 16}
  }}
}}
"""
    tiled = [np.resize(v, 256).astype(F32) for v in (x, x if y is None else y)]
    ran = launch(text, {"c": 0.75}, {"X": tiled[0], "Z": tiled[1]})
    assert ran.found == [] and ran.written["Y"].all()
    return ran.outputs["Y"]


def same(got, want) -> None:
    np.testing.assert_array_equal(np.asarray(got, np.float64), np.resize(np.asarray(want, np.float64), np.shape(got)))


def near(got, want, relative: float) -> None:
    want = np.resize(np.asarray(want, np.float64), np.shape(got))
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=relative, atol=2.0**-126)


X = np.linspace(-3, 3, 256).astype(F32)
Y = np.linspace(5, -2, 256).astype(F32)


def test_a_product_under_a_sum_is_rounded_once():
    x, y = (v.astype(np.float64) for v in (X, Y))
    same(elementwise("x * y + 0.1", X, Y), (x * y + np.float64(F32(0.1))).astype(F32))
    same(elementwise("x - y * y", X, Y), (x - y * y).astype(F32))
    same(elementwise("x * y", X, Y), X * Y)
    same(elementwise("x / y", X, Y), X / Y)
    same(elementwise("-x", SPECIAL), -SPECIAL)


def test_of_a_number_and_nan_the_number():
    a, b = SPECIAL, np.roll(SPECIAL, 3)
    same(elementwise("max(x, y)", a, b), np.fmax(a, b))
    same(elementwise("min(x, 0.0)", a), np.fmin(a, F32(0)))


def test_choices_by_comparisons():
    same(
        elementwise("where(x < y and not (x == 0.0), x, c)", SPECIAL, Y),
        np.where((np.resize(SPECIAL, 256) < Y) & ~(np.resize(SPECIAL, 256) == 0), np.resize(SPECIAL, 256), F32(0.75)),
    )
    same(elementwise("where(x != x, 1.0, 0.0)", SPECIAL), np.isnan(SPECIAL))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("exp2", np.exp2),
        ("log2", np.log2),
        ("rcp", np.reciprocal),
        ("rsqrt", lambda v: 1 / np.sqrt(v)),
        ("sqrt", np.sqrt),
        ("tanh", np.tanh),
        ("abs", np.abs),
        ("log", np.log),
    ],
)
def test_functions_of_one_instruction(name, of):
    with np.errstate(all="ignore"):
        positive = np.abs(X) + F32(0.01)
        near(elementwise(f"{name}(x)", positive), of(positive.astype(np.float64)), 2.0**-21)


def test_small_results_and_arguments_are_flushed():
    same(elementwise("exp2(x)", np.array([-130.0, -126.0, INF, -INF], F32)), [0, 2.0**-126, INF, 0])
    same(elementwise("rcp(x)", np.array([1e-40, 0.0, -INF], F32)), [INF, INF, -0.0])


def test_error_functions_stay_within_their_bounds():
    erf = np.vectorize(math.erf)(X.astype(np.float64))
    assert np.abs(elementwise("erf(x)", X) - erf).max() < 6e-7
    gelu = X * (1 + np.vectorize(math.erf)(X.astype(np.float64) / math.sqrt(2))) / 2
    assert np.abs(elementwise("gelu(x)", X) - gelu).max() < 8e-7


def test_casts_round_to_nearest_even_and_small_ones_saturate():
    halfway = np.array([1.0, 1.00390625, 1.01171875, -1.00390625], F32)  # ties of bf16
    same(elementwise("bf16(x)", halfway, elem="bf16"), [1.0, 1.0, 1.015625, -1.0])
    same(elementwise("f16(x)", np.array([70000.0, 1.0, NAN], F32), elem="f16"), [INF, 1.0, NAN])
    same(elementwise("e4m3(x)", SPECIAL, elem="e4m3"), np.clip(SPECIAL, -448, 448).astype(ml_dtypes.float8_e4m3fn))
    same(elementwise("e5m2(x)", np.array([1e6, -INF, 3.3], F32), elem="e5m2"), [57344, -57344, 3.5])


def test_warps_combine_what_their_lanes_hold():
    text = """cake 1 derived
kernel k(X: in f32[512], Y: out f32[2], Z: out f32[512], B: out i32[2])
  target sm90
{
  launch 1
  shared part: f32[2] at 0
  role main: 2 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    x = load(X[0 +: 512], by = 16)
    let top = warpmax(x)
    store Y[warp] <- warpsum(x) by 4
    store part[warp] <- top by 4
    store B[warp] <- vote.any(x > 510.0) ? 1 : 0 by 4
    bar.sync 1 threads 64
    x = x * top - maximum(load(part, by = 8))
    store Z[0 +: 512] <- x by 16
  }
}
"""
    x = np.arange(512, dtype=F32)
    held = x.reshape(2, 2, 128).transpose(1, 0, 2)  # round, warp, elements -> warp, round, elements
    for plot in PLOTS:
        ran = launch(text, {}, {"X": x}, plot)
        assert ran.found == []
        same(ran.outputs["Y"], held.sum(axis=(1, 2)))
        same(ran.outputs["B"], [0, 1])
        tops = np.repeat(held.max(axis=(1, 2))[None, :, None], 2, axis=0)
        same(ran.outputs["Z"].reshape(2, 2, 128), x.reshape(2, 2, 128) * tops - 511)


ROWS = """cake 1 derived
kernel k(X: in f32[64, 64], S: out f32[64], T: out f32[64], A: out i32[64], V: out f32[64, 4], I: out i32[64, 4])
  target sm90
{
  launch 1
  role main: 1 warpgroup at 0 {
    frag x: f32[64, 64] layout mma, s: f32[64] over row part sum layout mma
    frag best: f32[64] over row part min layout mma, at: i32[64] over row layout mma part
    frag top: topk(4, f32, i32)[64] over row layout mma part
    x = load(X[0 +: 64, 0 +: 64], by = 8)
    s = 0.0
    s = s + fold(sum, x)
    best = inf
    at = 0
    (best, at) = fold(argmin, (best, at), x, cols(x) + 100)
    top = empty
    top = fold(topk, top, x, cols(x))
    let whole = merge(top)
    store S[0 +: 64] <- rowsum(s) by 4
    store T[0 +: 64] <- rowmax(x * 2.0) by 4
    store A[0 +: 64] <- rowargmin(best, at) by 4
    store V[0 +: 64, :] <- whole.key by 16
    store I[0 +: 64, :] <- whole.val by 16
  }
}
"""


def test_rows_are_folded():
    x = np.random.default_rng(0).integers(0, 9, (64, 64)).astype(F32)  # many are equal
    x[3], x[4, 5] = NAN, NAN
    x[5] = INF
    ran = launch(ROWS, {}, {"X": x})
    assert ran.found == []
    rest = np.r_[0:3, 6:64]
    same(ran.outputs["S"][rest], x[rest].sum(axis=1))
    same(ran.outputs["T"][4:], np.nanmax(x[4:] * 2, axis=1))
    same(ran.outputs["A"][rest], x[rest].argmin(axis=1) + 100)
    assert (ran.outputs["A"][[3, 5]] == 0).all(), "nothing is below what the pair was filled with"
    order = np.argsort(x[rest], axis=1, kind="stable")[:, :4]
    same(ran.outputs["V"][rest], np.take_along_axis(x[rest], order, axis=1))
    same(ran.outputs["I"][rest], order)
    same(ran.outputs["V"][[3, 5]], INF)
    same(ran.outputs["I"][[3, 5]], -1)


def test_counters_give_each_asker_a_number_of_its_own():
    text = """cake 1 derived
kernel k(N: i32, C: inout i32[3], Y: out i32[N], F: inout f32[128])
  require 1 <= N, N <= 64
  target sm90
{
  launch N
  role main: 1 warp at 0 {
    frag x: f32[128] vec 4 layout vector
    let n = atomic.add(C[0], 1)
    let old = atomic.max(C[1], n)
    let seen = atomic.cas(C[2], 5, n)
    if n == 0 {
      store Y[0] <- seen by 4
    }
    if n > 0 {
      store Y[n] <- old by 4
    }
    x = 1.0
    red.add F[0 +: 128] <- x by 4
  }
}
"""
    ran = launch(text, {"N": 5}, {"C": np.array([0, -7, 5], np.int32), "F": np.zeros(128, F32)}, PLOTS[2])
    assert ran.found == []
    assert ran.outputs["C"].tolist() == [5, 4, 0]
    assert ran.outputs["Y"].tolist() == [5, 0, 1, 2, 3]
    same(ran.outputs["F"], 5)


def test_ctas_of_a_cluster_reach_each_other():
    text = """cake 1 derived
kernel k(Y: out f32[2, 4])
  target sm90
  cluster m = 2
{
  launch 1
  shared box: f32[4] at 0
  cluster.sync
  role main: 1 warp at 0 {
    store box[2] <- 10.0 by 4
    store box[3] <- 1.0 by 4
    warp.sync
    cluster.sync
    cluster.store box[0] <- 5.0 + f32(cluster.m) at 1 - cluster.m
    cluster.add box[3] <- 7.0 at 0
    cluster.sync
    let other = cluster.load(box[2], at = 1 - cluster.m, by = 4)
    store Y[cluster.m, 0] <- load(box[0], by = 4) by 4
    store Y[cluster.m, 1] <- other by 4
    store Y[cluster.m, 2] <- load(box[3], by = 4) by 4
    store Y[cluster.m, 3] <- 0.0 by 4
  }
  cluster.sync
}
"""
    for plot in PLOTS:
        ran = launch(text, {}, {}, plot)
        assert ran.found == []
        assert ran.outputs["Y"].tolist() == [[6.0, 10.0, 15.0, 0.0], [5.0, 10.0, 1.0, 0.0]]


BULK = """cake 1 derived
kernel k(R: i32, X: in i32[R, 64], Y: inout i32[R, 64], Z: inout i32[64])
  require 1 <= R, R <= 16
  target sm90
{{
  launch R persistent
  shared s: i32[64] at 0
  barrier full: mbarrier[1] count 1 at 256
  if leader {{
    mbarrier.init full
    fence.mbarrier_init
  }}
  cta.sync
  role main: 1 warp at 0 {{
    var n = 0
    for r in cluster.id .. R step cluster.count {{
      if leader {{
        mbarrier.expect full[0] bytes 256
        {load} s <- X[r, 0 +: 64] signal full[0]
      }}
      mbarrier.wait full[0] parity n % 2
      n = n + 1
      if leader {{
        {store} Y[r, 0 +: 64] <- s
        {add} Z[0 +: 64] <- s
        {commit}
        {wait} 0
      }}
      warp.sync
    }}
  }}
}}
"""


@pytest.mark.parametrize("family", ["bulk", "tma"])
def test_copies_and_reductions_of_engines(family):
    inner = ".store" if family == "tma" else ""
    words = {
        "load": f"{family}.load",
        "store": f"{family}.max",
        "add": f"{family}.add",
        "commit": f"{family}{inner}.commit",
        "wait": f"{family}{inner}.wait",
    }
    text = BULK.format(**words)
    x = np.arange(5 * 64, dtype=np.int32).reshape(5, 64)
    for plot in PLOTS:
        ran = launch(text, {"R": 5}, {"X": x, "Y": np.full((5, 64), 100, np.int32), "Z": np.zeros(64, np.int32)}, plot)
        assert ran.found == []
        assert (ran.outputs["Y"] == np.maximum(x, 100)).all()
        assert (ran.outputs["Z"] == x.sum(axis=0)).all()


def test_products_read_nineteen_bits_of_an_f32():
    text = """cake 1 derived
kernel k(A: in f32[64, 8], B: in f32[16, 8], D: out f32[64, 16])
  target sm90
{
  launch 1
  role main: 1 warpgroup at 0 {
    frag a: f32[64, 8] layout mma_a32, b: f32[16, 8] layout mma_b32, d: f32[64, 16] layout mma
    a = load(A[0 +: 64, 0 +: 8], by = 4)
    b = load(B[0 +: 16, 0 +: 8], by = 4)
    mma.sync d = a @ b.T
    store D[0 +: 64, 0 +: 16] <- d by 8
  }
}
"""
    a, b = (np.random.default_rng(n).standard_normal(s).astype(F32) for n, s in ((0, (64, 8)), (1, (16, 8))))
    cut = [(v.view(np.uint32) & 0xFFFFE000).view(F32) for v in (a, b)]
    ran = launch(text, {}, {"A": a, "B": b})
    assert ran.found == []
    np.testing.assert_allclose(ran.outputs["D"], cut[0] @ cut[1].T, rtol=1e-5, atol=1e-5)


def test_warps_that_vote_differently_go_ways_of_their_own():
    """Each warp scales its rows if one of them is large: those of the others stay."""
    text = """cake 1 derived
kernel k(X: in f32[64, 64], Y: out f32[64, 64])
  target sm90
{
  launch 1
  role main: 1 warpgroup at 0 {
    frag x: f32[64, 64] layout mma
    x = load(X[0 +: 64, 0 +: 64], by = 8)
    if vote.any(rowmax(x) > 8.0) {
      x = x * 0.5
    }
    store Y[0 +: 64, 0 +: 64] <- x by 8
  }
}
"""
    x = np.ones((64, 64), F32)
    x[20, 3] = 9.0
    for plot in PLOTS:
        ran = launch(text, {}, {"X": x}, plot)
        assert ran.found == []
        want = x.copy()
        want[16:32] *= 0.5
        same(ran.outputs["Y"], want)
