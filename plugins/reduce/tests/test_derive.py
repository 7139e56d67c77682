"""The search kernels in derived form: how tiles along the rows lie, access widths, and the same machine code from the derived text."""

from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
LINES = {
    "kmeans/kmeans_assign_sm90": (
        "frag best: f32[128] over row part min layout mma, at: i32[128] over row layout mma part",  # as the product's result lies
        "let n2 = load(cn[cs], along = cols(s), by = 8)",  # two neighbours of a column pair
        "store L[b, i * 256 + 128 * math.i +: 128] <- rowargmin(best, at) by 4",
    ),
    "knn/knn_part_sm90": (
        "frag best: topk(10, f32, i32)[64] over row layout mma part",
        "store V[sp, i * 128 + 64 * math.i +: 64, :] <- top.key by 8",  # rows of 40 bytes
    ),
    "knn/knn_merge": (
        "frag best: topk(10, f32, i32)[1] over row layout lanes part",  # no tile of rows and columns beside it
        "load(I[0 +: 4, r, 0 +: 10], flat = true, by = 4)",
        "store IO[r +: 1, :] <- top.val by 8",
    ),
}


@pytest.mark.parametrize("kernel", LINES)
def test_the_derived_form(registry, kernel):
    path = (KERNELS / kernel).with_suffix(".cake")
    made = build(Source(path.name, path.read_text()), registry, "sm90")
    for line in LINES[kernel]:
        assert line in made.derived_text
    again = build(Source("derived.cake", made.derived_text), registry, "sm90")
    assert again.lowered.ptx == made.lowered.ptx and again.derived_text == made.derived_text


TEXT = """cake 1
kernel test(A: out f32[64])
  target sm90
{{
  tiles t = grid(i: 1)
  shared a: bf16[64, 64]
  role main: {role} {{
    {body}
    for i in t {{ store A[0 +: 64] <- m }}
  }}
}}
"""


def test_a_tile_along_rows_that_nothing_lays_out_is_refused(registry):
    """Four warps have no layout of their own for 64 rows: only tiles of rows and columns do."""
    with pytest.raises(CakeError) as caught:
        build(Source("test.cake", TEXT.format(role="4 warps", body="frag m: f32[64] over row")), registry, "sm90")
    assert [d.code for d in caught.value.diagnostics][0] in ("derive/no-layout", "derive/layout-does-not-fit")
