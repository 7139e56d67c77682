"""Reductions of whole kernels on the machine of the ISA: sums, extremes, argmin, masks, and the order of evaluation of `let`s."""

import numpy as np
import pytest

ROWS, COLS = 128, 32

HEAD = """cake 1 derived
kernel test(X: in f32[128, 32], A: out f32[128], B: out i32[128], Y: out f32[1536, 32])
  target sm90
{
  launch 1
  role main: 4 warps at 0 {
    frag s: f32[128, 32] layout mma
    frag m: f32[128] over row layout mma, l: f32[128] over row part sum layout mma
    frag best: f32[128] over row part min layout mma, at: i32[128] over row layout mma part
    s = load(X[0 +: 128, 0 +: 32], by = 8)
"""
TAIL = "  }\n}\n"


@pytest.fixture
def result(ptx_of, run):
    """What statements after the load of X leave in A, B and Y."""

    def of(body, x):
        out = {"A": np.full(ROWS, 7, np.float32), "B": np.full(ROWS, 7, np.int32), "Y": np.full((12 * ROWS, COLS), 7, np.float32)}
        run(ptx_of(HEAD + "".join(f"    {line}\n" for line in body) + TAIL), {"X": x} | out)
        return out | {"Y": out["Y"].reshape(12, ROWS, COLS)}

    return of


def numbers(seed=0, special=True):
    """Few values, so that many are equal; NaNs and infinities among them, a row of NaN, a row of +inf."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (ROWS, COLS)).astype(np.float32)
    if special:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.1] = np.inf
        x[3], x[5] = np.nan, np.inf
    return x


@pytest.mark.parametrize("name, of", [("rowsum", np.sum), ("rowmax", np.max), ("rowmin", np.min)])
def test_of_a_row(result, name, of):
    x = numbers(special=False)
    assert np.array_equal(result([f"store A[0 +: 128] <- {name}(s) by 4"], x)["A"], of(x, axis=1))


@pytest.mark.parametrize("name, of", [("rowmax", np.fmax), ("rowmin", np.fmin)])
def test_an_extreme_is_a_number_where_there_is_one(result, name, of):
    x = numbers()
    assert np.array_equal(result([f"store A[0 +: 128] <- {name}(s) by 4"], x)["A"], of.reduce(x, axis=1), equal_nan=True)


def test_a_sum_of_products_is_fused(result):
    x = np.random.default_rng(1).standard_normal((ROWS, COLS), np.float32)
    lanes = np.stack([x[:, [8 * j + 2 * q + i for j in range(4) for i in range(2)]] for q in range(4)], 1)  # what each lane of a row holds
    chains = []
    for start in range(2):
        total = lanes[..., start] * lanes[..., start]
        for n in range(start + 2, 8, 2):
            total = (lanes[..., n].astype(np.float64) * lanes[..., n] + total).astype(np.float32)
        chains.append(total)
    quad = chains[0] + chains[1]
    expected = (quad[:, 0] + quad[:, 1]) + (quad[:, 2] + quad[:, 3])
    assert np.array_equal(result(["store A[0 +: 128] <- rowsum(s * s) by 4"], x)["A"], expected)


def test_lane_partial_sums_add_up(result):
    x = numbers(special=False)
    got = result(["l = 0.0", "l = l * 2.0 + fold(sum, s)", "l = l * 3.0 + fold(sum, s)", "store A[0 +: 128] <- rowsum(l) by 4"], x)
    assert np.array_equal(got["A"], 4 * x.sum(axis=1))


FOLDS = ("(best, at) = fold(argmin, (best, at), s, cols(s))", "(best, at) = fold(argmin, (best, at), s, cols(s) + 32)")


def smallest(x, fill=0):
    """Value and index of the least of each row: the first of equal ones, never NaN; without one below +inf (inf, fill)."""
    x = np.where(np.isnan(x), np.inf, x)
    return np.where(np.isinf(x.min(axis=1)), fill, x.argmin(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_argmin(result, seed):
    x = numbers(seed)
    got = result(["best = inf", "at = 0", FOLDS[0], "store B[0 +: 128] <- rowargmin(best, at) by 4"], x)
    assert np.array_equal(got["B"], smallest(x))


def test_argmin_over_folds_keeps_the_first_of_equal_ones(result):
    """The second fold sees smaller values in some rows only."""
    x = numbers(4)
    body = [
        "best = inf",
        "at = -5",
        FOLDS[0],
        "s = s - where(rows(s) < 64, 0.5, 0.0)",
        FOLDS[1],
        "store B[0 +: 128] <- rowargmin(best, at) by 4",
    ]
    second = x - np.where(np.arange(ROWS) < 64, np.float32(0.5), 0)[:, None]
    assert np.array_equal(result(body, x)["B"], smallest(np.concatenate([x, second], axis=1), -5))


def test_argmin_takes_indices_from_registers(result):
    """Indices that are no constants away from one base."""
    x = numbers(5, special=False)
    body = [
        "frag i: i32[128, 32] layout mma",
        "i = rows(s) * cols(s)",
        "best = inf",
        "at = 0",
        "(best, at) = fold(argmin, (best, at), s, i + 1)",
    ]
    got = result([*body, "store B[0 +: 128] <- rowargmin(best, at) by 4"], x)
    assert np.array_equal(got["B"], np.arange(ROWS) * x.argmin(axis=1) + 1)


R, C = np.arange(ROWS)[:, None], np.arange(COLS)[None]
MASKS = {
    "cols(s) < 20": C < 20,
    "cols(s) <= rows(s) + -4": C <= R - 4,
    "not (cols(s) == rows(s))": C != R,
    "cols(s) >= 8 and rows(s) < 100": (C >= 8) & (R < 100),
    "rows(s) != 7 or 3 > cols(s)": (R != 7) | (C < 3),
    "false or cols(s) * 2 - 1 > rows(s)": 2 * C - 1 > R,
    "-rows(s) < cols(s) - 40": -R < C - 40,
    "max(cols(s), 10) == min(rows(s), 30)": np.maximum(C, 10) == np.minimum(R, 30),
}


def chosen(tests):
    """Statements that store where(test, s, -inf) of each test, one tile of Y each."""
    lines = ["frag y: f32[128, 32] layout mma"]
    for n, test in enumerate(tests):
        lines += [f"y = where({test}, s, -inf)", f"store Y[{ROWS * n} +: 128, 0 +: 32] <- y by 8"]
    return lines


def test_masks_of_indices(result):
    x = numbers(6)
    for got, (test, mask) in zip(result(chosen(MASKS), x)["Y"], MASKS.items(), strict=False):
        assert np.array_equal(got, np.where(mask, x, -np.inf), equal_nan=True), test


COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}


def test_comparisons_of_floats(result):
    """NaN is unequal to everything, and that is all that holds of it."""
    x = numbers(7)
    tests = [f"s {op} 2.0" for op in COMPARE] + [f"not (2.0 {op} s)" for op in COMPARE]
    with np.errstate(invalid="ignore"):
        masks = [of(x, 2) for of in COMPARE.values()] + [~of(2, x) for of in COMPARE.values()]
    for got, test, mask in zip(result(chosen(tests), x)["Y"], tests, masks, strict=True):
        assert np.array_equal(got, np.where(mask, x, -np.inf), equal_nan=True), test


def test_a_let_is_the_value_at_its_point(result):
    """What it names changes afterwards; masks and indices are computed later, from what was."""
    x = numbers(8, special=False)
    body = [
        "var n = 5",
        "let positive = s > 0.0",
        "let near = cols(s) < n",
        "n = 100",
        "m = rowmax(s)",
        "let least = m",
        "m = 0.0",
        "s = 0.0 - s",
    ]
    got = result(
        [*body, "s = where(positive and near, s, 9.0)", "store Y[0 +: 128, 0 +: 32] <- s by 8", "store A[0 +: 128] <- least by 4"], x
    )
    assert np.array_equal(got["Y"][0], np.where((x > 0) & (C < 5), -x, 9))
    assert np.array_equal(got["A"], x.max(axis=1))


def test_a_tile_along_an_axis_is_repeated_across_the_other(result):
    x = numbers(9, special=False)
    body = ["m = rowmax(s)", "let c = f32(cols(s))", "s = s * m - c + f32(rows(s))", "store Y[0 +: 128, 0 +: 32] <- s by 8"]
    assert np.array_equal(result(body, x)["Y"][0], x * x.max(axis=1, keepdims=True) - C + R)
