"""What reductions, states, masks and index tiles do not take: each a finding with a reason."""

import pytest

from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.source import Source

TEXT = """cake 1 derived
kernel test(N: i32, X: in f32[128, 64], A: out f32[128], V: out f32[64, 4])
  require 1 <= N, N <= 64
  target sm90
{{
  launch 1
  role main: 4 warps at 0 {{
    frag s: f32[128, 64] layout mma, h: bf16[128, 64] layout mma, narrow: f32[128, 32] layout mma, v: f32[512] layout vector
    frag m: f32[128] over row layout mma, l: f32[128] over row part sum layout mma, c: f32[64] over col layout mma
    frag best: f32[128] over row part min layout mma, at: i32[128] over row layout mma part, i: i32[128, 64] layout mma
    frag few: topk(4, f32, i32)[128] over row layout mma part
    {statement}
  }}
}}
"""
CASES = [
    # names and numbers of arguments
    ("m = rowmax()", "type/arguments"),
    ("m = rowmax(s, s)", "type/arguments"),
    ("l = fold(sum)", "type/arguments"),
    ("l = fold()", "type/arguments"),
    ("l = fold(product, s)", "type/unknown-function"),
    ("l = fold(1, s)", "type/symbol"),
    ("(best, at) = fold(argmin, (best, at), s)", "type/arguments"),
    ("m = rowargmax(best, at)", "type/unknown-function"),
    # types and shapes
    ("m = rowmax(h)", "type/operand"),
    ("m = rowmax(1.0)", "type/operand"),
    ("m = rowmax(X)", "type/operand"),
    ("m = rowmax(v)", "type/shape"),
    ("c = rowmax(s)", "type/assign"),
    ("(best, at) = fold(argmin, best, s, cols(s))", "type/operand"),
    ("(best, at) = fold(argmin, (at, best), s, cols(s))", "type/operand"),
    ("(best, at) = fold(argmin, (best, at), s, s)", "type/operand"),
    ("(best, at) = fold(argmin, (best, at), s, cols(narrow))", "type/shape"),
    ("(best, m) = fold(argmin, (best, at), s, cols(s))", "type/assign"),
    ("(best, at, m) = fold(argmin, (best, at), s, cols(s))", "type/assign"),
    ("few = fold(topk, m, s, cols(s))", "type/operand"),
    ("few = fold(topk, few, s, cols(s) < 3)", "type/operand"),
    ("few = fold(topk, few, h, cols(s))", "type/operand"),
    ("few = fold(topk, few, v, cols(v))", "type/shape"),
    ("few = 0.0", "type/assign"),
    ("s = empty", "type/unknown-name"),
    ("s = s + few", "type/operand"),
    # lane-partial tiles
    ("m = rowmax(l)", "type/partial"),
    ("m = rowsum(m)", "type/partial"),
    ("m = fold(sum, s)", "type/partial"),
    ("l = rowsum(s)", "type/partial"),
    ("l = 1.0", "type/partial"),
    ("m = exp2(l)", "type/partial"),
    ("s = where(l > 0.0, s, 0.0)", "type/partial"),
    ("(best, at) = fold(argmin, (l, at), s, cols(s))", "type/partial"),
    ("let top = merge(merge(few))", "type/partial"),
    ("let top = few.key", "type/partial"),
    ("let top = merge(few).keys", "type/attribute"),
    ("let top = merge(s)", "type/operand"),
    # index tiles and masks
    ("i = rows(v)", "type/shape"),
    ("i = cols(m)", "type/shape"),
    ("i = rows(X)", "type/operand"),
    ("i = rows()", "type/arguments"),
    ("s = where(s, s, 0.0)", "type/not-a-condition"),
    ("s = where(s > 0.0, s)", "type/arguments"),
    ("s = where(s > 0.0, s, cols(s))", "type/mixed"),
    ("s = where(h > 0.0, s, s)", "type/operand"),
    ("s = where(s > 0.0 and 1, s, 0.0)", "type/operand"),
    ("s = where(narrow > 0.0, s, 0.0)", "type/shape"),
    ("if s > 0.0 { m = 0.0 }", "type/not-a-condition"),
    ("i = cols(s) / 2", "type/operand"),
    # declarations
    ("frag a: topk(0, f32, i32)[128] over row layout mma part", "type/arguments"),
    ("frag a: topk(65, f32, i32)[128] over row layout mma part", "type/arguments"),
    ("frag a: topk(4, i32, f32)[128] over row layout mma part", "type/arguments"),
    ("frag a: topk(N, f32, i32)[128] over row layout mma part", "type/not-constant"),
    ("frag a: tops(4, f32, i32)[128] over row layout mma part", "type/unknown-type"),
    ("frag a: topk(4, f32, i32)[128] layout mma part", "type/over"),
    ("frag a: topk(4, f32, i32)[128] over row part sum layout mma", "type/partial"),
    ("frag a: f32[128] over row part product layout mma", "type/partial"),
    ("frag a: f32[64] over col part sum layout mma", "type/partial"),
    ("frag a: f32[128] over rows layout mma", "type/over"),
    ("frag a: f32[128, 64] layout mma whole", "type/unknown-word"),
    # loads along a tile
    ("c = load(X[0, 0 +: 64], along = cols(narrow), by = 4)", "type/shape"),
    ("c = load(X[0, 0 +: 64], along = 1, by = 4)", "type/operand"),
]


def findings(registry, statement):
    with pytest.raises(CakeError) as caught:
        build(Source("test.cake", TEXT.format(statement=statement)), registry, "sm90")
    return caught.value.diagnostics


@pytest.mark.parametrize("statement, code", CASES)
def test_a_wrong_statement_is_one_finding(registry, statement, code):
    found = findings(registry, statement)
    assert [d.code for d in found] == [code], [d.message for d in found]
    assert found[0].message[0].islower() or found[0].message[0] in "'0123456789"
    assert not found[0].message.endswith(".") and found[0].span.line > 0


def test_rows_that_are_spread_over_warps_have_no_butterfly(registry):
    text = """cake 1 derived
kernel test(A: out f32[32])
  target sm90
{
  launch 1
  role main: 4 warps at 0 {
    frag s: f32[32, 64] grid (2, 2) layout mma
    s = 0.0
    store A[0 +: 32] <- rowmax(s) by 4
  }
}
"""
    with pytest.raises(CakeError) as caught:
        build(Source("test.cake", text), registry, "sm90")
    (found,) = caught.value.diagnostics
    assert found.code == "derive/row-over-warps" and "shuffles" in found.why


def test_a_tile_that_is_in_flight_may_be_counted_but_not_read(registry):
    """`cols(s)` does not read s."""
    text = """cake 1 derived
kernel test(X: in bf16[64, 64], A: out f32[64])
  target sm90
{{
  launch 1
  shared a: bf16[64, 64] at 0 swizzle 128
  role main: 1 warpgroup at 0 {{
    frag s: f32[64, 64] layout mma, r: f32[64] over row layout mma
    wgmma.fence
    wgmma s = a @ a.T
    wgmma.commit
    {early}
    wgmma.wait 0
    r = rowmax(where(c < 3, s, 0.0))
    store A[0 +: 64] <- r by 4
  }}
}}
"""
    build(Source("test.cake", text.format(early="let c = cols(s) + 1")), registry, "sm90")
    with pytest.raises(CakeError) as caught:
        build(Source("test.cake", text.format(early="let c = s + 1.0")), registry, "sm90")
    assert [d.code for d in caught.value.diagnostics] == ["core/fragment-in-flight"]
