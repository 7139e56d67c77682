"""Running top-k lists on the machine of the ISA, and the kernel that merges lists."""

from pathlib import Path

import numpy as np
import pytest

from cake_core.runtime.companion import load_companion
from cake_reduce.network import descending

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
ROWS, COLS = 64, 64


def text(k, folds, index="cols(s) + {}"):
    """Lists of k over `folds` tiles of 64 columns, each loaded from its place."""
    steps = "".join(
        f"    s = load(X[0 +: 64, {64 * n} +: 64], by = 8)\n    best = fold(topk, best, s, {index.format(64 * n)})\n" for n in range(folds)
    )
    return f"""cake 1 derived
kernel test(X: in f32[64, {64 * folds}], V: out f32[64, {k}], I: out i32[64, {k}])
  target sm90
{{
  launch 1
  role main: 4 warps at 0 {{
    frag s: f32[64, 64] layout mma
    frag best: topk({k}, f32, i32)[64] over row layout mma part
    best = empty
{steps}    let top = merge(best)
    store V[0 +: 64, :] <- top.key by 4
    store I[0 +: 64, :] <- top.val by 4
  }}
}}
"""


def least(x, k):
    """Keys and indices of the k least of each row, equal ones by index; NaN and +inf never; (+inf, -1) where there are no more."""
    x = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(x, axis=1, kind="stable")[:, :k]
    keys = np.full((len(x), k), np.inf, np.float32)
    keys[:, : order.shape[1]] = np.take_along_axis(x, order, 1)
    indices = np.full((len(x), k), -1)
    indices[:, : order.shape[1]] = order
    return keys, np.where(np.isinf(keys) & (keys > 0), -1, indices)


def points(folds, seed, kind):
    rng = np.random.default_rng(seed)
    x = (
        rng.standard_normal((ROWS, COLS * folds), np.float32)
        if kind == "apart"
        else rng.integers(-6, 6, (ROWS, COLS * folds)).astype(np.float32)
    )
    if kind == "special":
        x[rng.random(x.shape) < 0.3] = np.nan
        x[rng.random(x.shape) < 0.3] = np.inf
        x[rng.random(x.shape) < 0.01] = -np.inf
        x[0], x[1] = np.nan, np.inf
        x[2, 5:] = np.nan  # fewer than k
    if kind == "falling":  # every element gains
        x = np.sort(x, axis=1)[:, ::-1].copy()
    return x


CASES = [(1, 1, "equal"), (3, 2, "special"), (10, 3, "apart"), (10, 2, "equal"), (16, 1, "special"), (21, 2, "falling")]


@pytest.mark.parametrize("k, folds, kind", CASES)
def test_the_least_of_each_row(ptx_of, run, k, folds, kind):
    x = points(folds, k, kind)
    v, i = np.zeros((ROWS, k), np.float32), np.zeros((ROWS, k), np.int32)
    run(ptx_of(text(k, folds)), {"X": x, "V": v, "I": i})
    keys, indices = least(x, k)
    assert np.array_equal(v, keys) and np.array_equal(i, indices)


@pytest.mark.parametrize(
    "index, of",
    [("cols(s) * cols(s) + {}", lambda c: c * c), ("where(cols(s) < 32, cols(s), cols(s) + 1000)", lambda c: c + 1000 * (c >= 32))],
)
def test_indices_that_are_no_constants(ptx_of, run, index, of):
    x = points(1, 5, "equal")
    v, i = np.zeros((ROWS, 5), np.float32), np.zeros((ROWS, 5), np.int32)
    run(ptx_of(text(5, 1, index)), {"X": x, "V": v, "I": i})
    keys, indices = least(x, 5)
    assert np.array_equal(v, keys) and np.array_equal(i, of(indices))


def test_the_tile_itself_stays(ptx_of, run):
    """What is taken out of it for the list is taken out of copies."""
    x, twice = points(1, 2, "equal"), text(4, 1)
    twice = twice.replace("let top", "best = fold(topk, best, s, cols(s) + 64)\n    let top")
    v, i = np.zeros((ROWS, 4), np.float32), np.zeros((ROWS, 4), np.int32)
    run(ptx_of(twice), {"X": x, "V": v, "I": i})
    keys, indices = least(np.concatenate([x, x], axis=1), 4)
    assert np.array_equal(v, keys) and np.array_equal(i, indices)


@pytest.mark.parametrize("count", range(1, 20))
def test_the_network_sorts_what_first_ascends_and_then_descends(count):
    """All sequences of 0 and 1 of that shape (the zero-one principle)."""
    for up in range(count + 1):
        for down in range(up, count + 1):
            x = [0] * up + [1] * (down - up) + [0] * (count - down)
            for i, j in descending(0, count):
                assert i < j
                x[i], x[j] = max(x[i], x[j]), min(x[i], x[j])
            assert x == sorted(x, reverse=True)


@pytest.mark.parametrize("queries", [1, 7, 20])
def test_knn_merge(ptx_of, run, queries):
    """The kernel of the collection, against its own reference: lists in no order, equal keys, NaN, entries that are none."""
    companion = load_companion(KERNELS / "knn" / "knn_merge.py")
    inputs = companion.call("inputs", {"Q": queries}, np.random.default_rng(queries))
    out = {"VO": np.zeros((queries, 10), np.float32), "IO": np.zeros((queries, 10), np.int32)}
    ptx = ptx_of((KERNELS / "knn" / "knn_merge.cake").read_text())
    run(ptx, inputs | out, {"Q": queries}, warps=8, ctas=-(-queries // 8))
    for name, expected in companion.call("reference", inputs).items():
        assert np.array_equal(out[name], expected)
