"""Results of 64 rows: where they lie, what moves them, and that the machine of the ISA comes to the product."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_core.pipeline import build
from cake_core.source import Source


@pytest.fixture(scope="module")
def machine():
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import sm100_machine
    finally:
        sys.path.pop(0)
    return sm100_machine


TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f32": np.float32}
CASES = [
    {"n": 128},
    {"n": 72},
    {"n": 256, "op": "+=", "words": "init 0 == 0"},
    {"n": 64, "a": "MN", "b": "MN"},
    {"n": 128, "elem": "e4m3", "k": 128},
    {"n": 64, "elem": "f32", "k": 32, "words": "kind tf32"},
    {"n": 64, "elem": "f32", "k": 32, "words": "kind tf32", "a": "tmem"},
]


@pytest.mark.parametrize("how", CASES, ids=lambda c: " ".join(f"{k}={v}" for k, v in c.items()))
def test_a_product(machine, registry, text_of, how):
    b = build(Source("k.cake", text_of(m=64, **how)), registry, "sm100")
    elem, n, k = TYPES[how.get("elem", "bf16")], how["n"], how.get("k", 64)
    rng = np.random.default_rng(n + k)
    left, right = (rng.integers(-4, 5, (rows, k)).astype(elem) for rows in (64, n))  # exact in every type and sum
    arrays = {
        "A": np.ascontiguousarray(left.T) if how.get("a") == "MN" else left,
        "B": np.ascontiguousarray(right.T) if how.get("b") == "MN" else right,
        "D": np.full((64, n), np.nan, np.float32),
    }
    maps = {t.param: (arrays[t.tensor], t.box, t.swizzle) for t in b.lowered.tensor_maps}
    machine.Machine(b.lowered.ptx, b.lowered.launch.threads, 1, {}, maps, 0, 1, seed=n).run()
    assert np.array_equal(arrays["D"], left.astype(np.float32) @ right.astype(np.float32).T)


def test_what_is_emitted(compile_, text_of, values):
    """The descriptor that other compilers emit for 64 x 128 of f16; loads as an accumulator lies, 128 registers at most."""
    found = compile_(text_of(m=64, elem="f16"))
    assert {row[3] for row in values(found, "tcgen05.mma", {"shared_memory": 0})} == {0x04200010}
    assert [i.split(" ")[0] for i in found.all("tcgen05.ld")] == ["tcgen05.ld.sync.aligned.16x256b.x16.b32"]
    assert "frag x: f32[64, 128] layout mma" in found.derived and "acc: f32[1][64, 128] at 0" in found.derived


@pytest.mark.parametrize(("columns", "numbers"), [(8, [1]), (72, [8, 1]), (128, [16]), (256, [32])])
def test_pieces(compile_, text_of, columns, numbers):
    text = text_of(m=64, n=columns)
    found = [i for i in compile_(text).all("tcgen05.ld")]
    got = [re.fullmatch(r"tcgen05.ld.sync.aligned.16x256b.x(\d+).b32 \{(.*)\}, \[%r(?:\+(\d+))?\]", i) for i in found]
    assert sum(int(m[1]) for m in got) == columns // 8
    if columns <= 128:
        assert [int(m[1]) for m in got] == numbers and [int(m[3] or 0) for m in got] == [8 * sum(numbers[:i]) for i in range(len(numbers))]
    assert all(len(m[2].split(", ")) == 4 * int(m[1]) for m in got)
