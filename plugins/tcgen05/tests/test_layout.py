"""The layout `tmem` is that of shape .32x32b: thread t of warp w has lane 32 w + t, register r column r (PTX ISA, tcgen05.ld)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cake_core.ir.types import BF16, F32, I32
from cake_tcgen05.layout import LAYOUT


def held(thread: int, columns: int) -> list[tuple[int, int]]:
    origin = LAYOUT.origin(SimpleNamespace(thread=thread), {})
    return [tuple(o + d for o, d in zip(origin, at, strict=True)) for at in LAYOUT.offsets((128, columns), 4, {})]


@pytest.mark.parametrize("columns", [1, 4, 8, 128])
def test_a_row_a_thread(columns):
    for thread in (0, 31, 32, 127):
        warp, lane = divmod(thread, 32)
        assert held(thread, columns) == [(32 * warp + lane, r) for r in range(columns)]


def test_what_fits():
    fits = lambda shape, warps=4, elem=F32, **words: LAYOUT.elements(shape, warps, words, elem)  # noqa: E731
    assert [fits((128, n)) for n in (1, 2, 3, 4, 8, 12, 64)] == [1, 2, None, 4, 8, None, 64]
    assert [fits((128, n), elem=BF16) for n in (1, 2, 8)] == [None, 2, 8]
    assert fits((128, 8), warps=8) is None and fits((64, 8)) is None and fits((128, 8), elem=I32) == 8
    assert fits((128,), over="row") == 1 and fits((128,)) is None and fits((128,), over="col") is None


def test_slices_are_whole_granules_of_all_rows():
    select = lambda lo, size: LAYOUT.select((128, 32), 4, lo, size, {})  # noqa: E731
    assert select((0, 8), (128, 16)) == tuple(range(8, 24))
    assert select((0, 4), (128, 8)) is None and select((0, 24), (128, 16)) is None and select((32, 0), (32, 8)) is None


ROWS = """cake 1
kernel k(X: in f32[128, 64], Y: out f32[128, 64], S: out f32[128])
  target sm100
{
  tmem t: f32[1][128, 64], w: f32[1][128, 4], o: f32[1][128, 1]
  role main: 4 warps aligned 4 {
    frag f: f32[128, 64], g: f32[128, 4], h: f32[128, 1]
    frag m: f32[128] over row
    f = load(X[0 +: 128, 0 +: 64])
    g = 2
    h = 3
    tcgen05.st w[0] <- g
    tcgen05.st o[0] <- h
    tcgen05.st t[0] <- f
    tcgen05.wait.st
    tcgen05.ld f <- t[0]
    tcgen05.ld g <- w[0]
    tcgen05.ld h <- o[0]
    tcgen05.wait.ld
    m = rowmax(f)
    f = exp2(f - m)
    store Y[0 +: 128, 0 +: 64] <- f
    store S[0 +: 128] <- rowsum(f)
  }
}
"""


def test_rows_are_reduced_without_a_word_between_lanes(compile_):
    """A row lies in one thread, so that no shuffle is needed; narrow tiles move by x4 and x1."""
    compiled = compile_(ROWS)
    assert compiled.all("shfl") == []
    assert [i.split(" ")[0].rpartition(".x")[2] for i in compiled.all("tcgen05.ld")] == ["64.b32", "4.b32", "1.b32"]
    assert "o: f32[1][128, 1] at 68" in compiled.derived and "columns 128" in compiled.derived
