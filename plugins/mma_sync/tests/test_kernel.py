"""gemm_sm80 as a whole, run by the machine of cta.py: every shape class against a product in float64."""

from __future__ import annotations

import re
from itertools import dropwhile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_core.pipeline import build
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "kernels/gemm/gemm_sm80.cake").read_text(encoding="utf-8")
SMALL = {"BM": 32, "BN": 64, "BK": 32, "ST": 3, "WM": 1, "WN": 2}


@pytest.fixture(scope="module")
def built(registry):
    made = {}

    def of(arch="sm80", text=TEXT, **overrides):
        key = (arch, text, *sorted(overrides.items()))
        if key not in made:
            made[key] = build(Source("gemm_sm80.cake", text), registry, arch, overrides)
        return made[key]

    return of


def product(run, b, m, n, k, tile, late=True, seed=0):
    rng = np.random.default_rng(seed)
    a, w = (rng.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    d = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    ctas = -(-m // tile[0]) * -(-n // tile[1])
    launch = b.manifest.launch
    done = run(b.lowered.ptx, launch.threads, ctas, launch.shared_bytes, {"A": a, "B": w, "D": d}, late, M=m, N=n, K=k)
    stores = [at for cta in done for at in cta.stores]
    assert sum(cta.conflicts for cta in done) == 0  # the swizzle keeps the rows of a matrix in banks of their own
    assert len(stores) == len(set(stores)) == m * n // 2  # every element is stored once, two at a time
    return d.astype(np.float64), a.astype(np.float64) @ w.astype(np.float64).T


def right(got, wanted, k):
    """One rounding to bf16, and f32 sums of k products of size about 1."""
    return np.all(np.abs(got - wanted) <= 2.0**-8 * np.abs(wanted) + k * 2.0**-22 * (1 + np.abs(wanted)).max())


@pytest.mark.parametrize(
    ("m", "n", "k", "late"),
    [
        (32, 64, 32, True),
        (32, 64, 64, True),
        (32, 64, 160, True),
        (32, 64, 160, False),
        (33, 72, 40, False),
        (64, 136, 96, True),
        (31, 8, 72, True),
        (1, 8, 0, True),
    ],
)
def test_it_multiplies(run, built, m, n, k, late):
    got, wanted = product(run, built(**SMALL), m, n, k, (32, 64), late)
    assert right(got, wanted, k)


@pytest.mark.parametrize(
    "overrides",
    [
        {"ST": 2},
        {"ST": 4, "BK": 64},
        {"BM": 64, "WM": 2},
        {"WM": 2, "WN": 1},
        {"BN": 96, "WN": 3},
        {"BM": 16, "BN": 16, "WN": 1},
    ],
    ids=str,
)
def test_it_multiplies_with_other_tiles(run, built, overrides):
    sizes = SMALL | overrides
    got, wanted = product(run, built(**sizes), 48, 104, 136, (sizes["BM"], sizes["BN"]))
    assert right(got, wanted, 136)


def test_it_multiplies_as_it_stands(run, built):
    """The sizes of the text, on one tile with tails in all three dimensions."""
    got, wanted = product(run, built(), 100, 136, 200, (128, 256))
    assert right(got, wanted, 200)


def test_the_text_for_two_targets_is_one_program(built):
    """Only the head differs, and how a lane is made the leader: both targets offer the same capabilities to it."""
    old, new = (program(built(target, **SMALL).lowered.ptx) for target in ("sm80", "sm90"))
    assert len(old) > 500 and old == new


def program(ptx):
    """The role's lines behind those that choose a leader, without the numbers of predicates, which these move."""
    lines = re.sub(r"%p\d+", "%p", ptx[ptx.index("// role") :]).splitlines()[1:]
    return list(dropwhile(lambda line: line.split()[0] in ("elect.sync", "setp.eq.s32", "and.pred"), lines))


def test_a_missing_wait_is_seen(run, built):
    """The machine tells a wrong text from a right one: without its waits the kernel reads what has not landed."""
    text = TEXT.replace("cp.async.wait ST - 2", "cp.async.wait ST - 1")
    assert text != TEXT
    got, wanted = product(run, built(text=text, **SMALL), 32, 64, 160, (32, 64))
    assert not right(got, wanted, 160)


def test_the_text_on_paper(run, built):
    """The plain form of the loop: each slot's first factors are read when the slot has landed."""
    text = (ROOT / "tests/syntax/kernels/gemm_sm80.cake").read_text(encoding="utf-8")
    b = built(text=text)
    got, wanted = product(run, b, 72, 136, 104, (128, 128))
    assert right(got, wanted, 104)
