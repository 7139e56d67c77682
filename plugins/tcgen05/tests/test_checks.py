"""What is refused, and why: one text a code, each a small change of one that compiles."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import cake_tcgen05

MX = {"elem": "e4m3", "k": 128, "scaled": True}
CODES = tomllib.loads((Path(cake_tcgen05.__file__).parent / "codes.toml").read_text(encoding="utf-8"))


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


#: code, what must be said, arguments of the product kernel, changes of its text
SCHEDULE = [
    ("ptx/tcgen05-warps", "`4 warps aligned 4`", {}, [("role epi: 4 warps aligned 4", "role epi: 8 warps aligned 4")]),
    ("ptx/tcgen05-warps", "first at a multiple of 1", {}, [("role epi: 4 warps aligned 4", "role epi: 4 warps")]),
    (
        "ptx/tcgen05-rows",
        "all of its 128 rows",
        {},
        [
            ("acc[u][:, j * 128 +: 128]", "acc[u][0 +: 64, j * 128 +: 128]"),
            ("x: f32[128, 128]", "x: f32[64, 128]"),
            ("D[0 +: 128", "D[0 +: 64"),
        ],
    ),
    ("ptx/tcgen05-shape", "M is 64 | it must be 128, in each CTA of a pair", {"m": 64, "pair": True}, []),
    ("ptx/tcgen05-shape", "N is 68", {"m": 64, "n": 68}, []),
    ("ptx/tcgen05-shape", "a multiple of 16 up to 256", {"m": 64, "n": 72, "elem": "e4m3", "k": 128, "b": "MN"}, []),
    ("type/element", "of bf16 in 64 rows", {"m": 64, "a": "tmem"}, []),
    ("ptx/tcgen05-rows", "all of its 64 rows", {"m": 64}, [("acc[u] =", "acc[u][0 +: 32, :] ="), ("a[s] @", "a[s][0 +: 32, :] @")]),
    ("ptx/tcgen05-kind", "write `kind tf32`", {"elem": "f32", "k": 32}, []),
    ("ptx/tcgen05-kind", "leave it out", {"words": "kind f16"}, []),
    ("ptx/tcgen05-shape", "N is 24", {"n": 24}, []),
    ("ptx/tcgen05-shape", "a multiple of 32 up to 256 in a pair", {"n": 48, "pair": True}, []),
    ("ptx/tcgen05-shape", "K is 8", {"k": 8, "b": "MN", "a": "MN"}, []),
    ("ptx/tcgen05-operand", "rows are not along K", {"elem": "f32", "k": 32, "b": "MN", "words": "kind tf32"}, []),
    (
        "ptx/tcgen05-operand",
        "not whole panels",
        {"k": 24 * 2, "n": 40 * 2, "b": "MN", "a": "MN"},
        [("a: bf16[1][48, 128]", "a: bf16[1][48, 130]"), ("a[s].T", "a[s][:, 1 +: 128].T"), ("a[s] <-", "a[s][:, 0 +: 128] <-")],
    ),
    ("ptx/tcgen05-pair", "write `on pair[0]`", {"pair": True}, [(" on pair[0]", " on pair")]),
    (
        "type/shape",
        "each CTA of a pair holds half of B's columns",
        {"pair": True},
        [("b: bf16[1][64, 64]", "b: bf16[1][128, 64]"), ("B[64 * pair.i +: 64", "B[0 +: 128")],
    ),
    ("type/shape", "is a `.T` missing", {}, [("b[s].T", "b[s]")]),
    ("type/word", "starts from zero anyway", {"words": "init 0 < 1"}, []),
    (
        "type/element",
        "accumulate in another type than f32",
        {},
        [("acc: f32[1]", "acc: i32[1]"), ("x: f32", "x: i32"), ("D: out f32", "D: out i32")],
    ),
    ("type/element", "factors other than", {"elem": "i32", "k": 32}, []),
    ("type/element", "two of f16, two of bf16", {}, [("b: bf16", "b: f16"), ("B: in bf16", "B: in f16")]),
    (
        "ptx/tcgen05-scales",
        "by different slots",
        MX,
        [("ue8m0[1][32, 16], sb", "ue8m0[1][32, 16], sc: ue8m0[2][32, 16], sb"), ("cp ta[s] <- sa[s]", "cp ta[s] <- sc[s]")],
    ),
    ("ptx/tcgen05-scales", "no whole slot", MX, [("cp ta[s] <- sa[s]", "cp ta[s] <- sa[s][0 +: 16, :]")]),
    (
        "ptx/tcgen05-shape",
        "N is 64",
        MX | {"n": 64},
        [
            ("sb: ue8m0[1][0, 32, 16]", "sb: ue8m0[1][32, 16]"),
            ("SB: in ue8m0[0, 32, 16]", "SB: in ue8m0[32, 16]"),
            ("SB[0 +: 0, ", "SB["),
            ("tb: ue8m0[1][64, 4]", "tb: ue8m0[1][128, 4]"),
        ],
    ),
    ("ptx/tcgen05-shape", "a block of scales covers 128 elements", MX | {"k": 64}, []),
    ("type/missing-word", "the other has none", MX, [(" scale_b tb[s]", "")]),
    ("type/operand", "scales are ue8m0 in tensor memory", MX, [("scale_a ta[s]", "scale_a sa[s]")]),
    (
        "type/shape",
        "the scales of 128 rows are [128, 4]",
        MX,
        [
            ("ta: ue8m0[1][128, 4]", "ta: ue8m0[1][256, 4]"),
            ("sa: ue8m0[1][32, 16]", "sa: ue8m0[1][2, 32, 16]"),
            ("sa[s] <- SA[0, ", "sa[s][0, :, :] <- SA[0, "),
        ],
    ),
    ("type/element", "copies of other elements than ue8m0", MX, [("cp ta[s] <- sa[s]", "cp acc[s] <- sa[s]")]),
    ("type/element", "factors other than", MX | {"elem": "bf16"}, []),
    (
        "derive/no-hand-off",
        "may be filled again",
        MX,
        [("{ a, b, sa, sb }", "{ a, b, sb }"), ("  tma.load sa[s] <- SA[0, 0 +: 32, 0 +: 16]\n", "")],
    ),
    ("derive/tensor-shape", "has no place in 'tmem'", MX, [("ta: ue8m0[1][128, 4]", "ta: ue8m0[1][128, 4], tc: ue8m0[1][64, 4]")]),
    ("type/transposed", "can't be transposed", {"a": "tmem", "k": 128}, [("at[v] @", "at[v].T @")]),
    ("type/slot", "needs an index for its slot", {}, [("acc[u] =", "acc =")]),
    ("type/slot", "needs an index for its slot", {}, [("acc[u][:, j * 128 +: 128]", "acc")]),
    ("type/shape", "the registers one of [128, 64]", {}, [("x: f32[128, 128]", "x: f32[128, 64]")]),
    ("core/undistributed", "which thread holds which row", {"a": "tmem"}, [("at[v] <- y", "at[v] <- load(A[0 +: 128, 0 +: 64])")]),
    (
        "derive/no-hand-off",
        "nothing tells when the product",
        {},
        [
            ("  pipeline accp: 1 { acc } from mma to epi\n", ""),
            ("acquire accp as u; ", ""),
            ("; commit accp", ""),
            ("wait accp as u\n", ""),
            ("release accp\n", ""),
            ("acc[u]", "acc[0]"),
        ],
    ),
    ("derive/tensor-shape", "has no place in 'tmem'", {}, [("acc: f32[1][128, 128]", "acc: f32[1][128, 128], more: f32[1][96, 128]")]),
    ("derive/tensor-capacity", "640 columns", {}, [("acc: f32[1][128, 128]", "acc: f32[1][128, 128], more: f32[2][128, 256]")]),
]


@pytest.mark.parametrize(("code", "said", "how", "changes"), SCHEDULE, ids=lambda x: x if isinstance(x, str) else "")
def test_a_text_that_is_refused(refused, text_of, code, said, how, changes):
    found = refused(changed(text_of(**how), *changes))
    assert any(c == code and said in words for c, words in found), found


#: code, what must be said, changes of the derived text of gemm_sm100
DERIVED = [
    (
        "ptx/tcgen05-columns",
        "48 columns can't be allocated",
        [("tcgen05.alloc tmem_at[0] columns 512", "tcgen05.alloc tmem_at[0] columns 48")],
    ),
    ("ptx/tcgen05-mask", "mask 4 names no CTAs", [("ab_empty[ab_release % 4]", "ab_empty[ab_release % 4] mask 4")]),
    ("ptx/tcgen05-layout", "`layout tmem`", [("layout tmem", "layout mma")]),
    ("ptx/tcgen05-align", "not a multiple of 1024", [("at 65536 swizzle 128", "at 65792 swizzle 128")]),
    ("ptx/tcgen05-warps", "multiple of 2", [("role epi: 4 warps at 4", "role epi: 4 warps at 2")]),
    (
        "core/tensor-columns",
        "and the CTA takes none",
        [("    tcgen05.alloc tmem_at[0] columns 512\n", ""), ("    tcgen05.dealloc tmem_base columns 512\n", "")],
    ),
    ("core/tensor-allocation", "gives none back", [("    tcgen05.dealloc tmem_base columns 512\n", "")]),
    ("core/tensor-columns", "ends at column 511, and the CTA takes 256", [("columns 512", "columns 256")]),
    (
        "core/tensor-overlap",
        "starts at column 256, inside 'acc'",
        [("at 0 base tmem_base", "at 0 base tmem_base, more: f32[1][128, 64] at 256 base tmem_base")],
    ),
    (
        "core/in-flight-at-hand-off",
        "wait for it before the hand-off",
        [
            ("        tcgen05.wait.ld\n        tcgen05.fence.before\n", "        tcgen05.fence.before\n"),
            ("accp_release = accp_release + 1\n", "accp_release = accp_release + 1\n        tcgen05.wait.ld\n"),
        ],
    ),
    (
        "core/fragment-in-flight",
        "wait for the group",
        [("        tcgen05.ld x <- acc[u][:, 0 +: 64]\n        tcgen05.wait.ld\n", "        tcgen05.ld x <- acc[u][:, 0 +: 64]\n")],
    ),
    ("core/arrival-count", "its roles bring 0", [("            tcgen05.commit ab_empty[ab_release % 4]\n", "")]),
    ("core/arrival-count", "its roles bring 4", [("accp_empty: mbarrier[2] count 4", "accp_empty: mbarrier[2] count 1")]),
]


@pytest.mark.parametrize(("code", "said", "changes"), DERIVED, ids=lambda x: x if isinstance(x, str) else "")
def test_a_derived_text_that_is_refused(refused, one, code, said, changes):
    found = refused(changed(one.derived, *changes))
    assert any(c == code and said in words for c, words in found), found


#: what must be said, changes of the derived text of gemm_sm100_pair
PAIR = [
    ("core/arrival-count", "its roles bring 2", [("ab_full: mbarrier[6] count 2", "ab_full: mbarrier[6] count 1")]),
    ("core/arrival-count", "1 in CTA 0, 0 in CTA 1", [("ab_empty[ab_release % 6] mask 3", "ab_empty[ab_release % 6] mask 1")]),
    ("core/arrival-count", "its roles bring 4", [("accp_empty[accp_release % 2] at 0", "accp_empty[accp_release % 2]")]),
    (
        "core/transaction-bytes",
        "announce them at the barrier of the CTA that receives them",
        [("bytes 32768 at 0", "bytes 32768"), ("count 2 at 229384", "count 1 at 229384")],
    ),
    ("ptx/cluster-rank", "no CTA of rank 2", [("bytes 32768 at 0", "bytes 32768 at 2")]),
    ("ptx/tma-signal", "without pairs", [("  cluster m = 2 pair m\n", "  cluster m = 2\n"), (" on pair[0]", ""), (" on pair", "")]),
]


@pytest.mark.parametrize(("code", "said", "changes"), PAIR, ids=lambda x: x if isinstance(x, str) else "")
def test_a_derived_text_of_a_pair_that_is_refused(refused, pair, code, said, changes):
    found = refused(changed(pair.derived, *changes))
    assert any(c == code and said in words for c, words in found), found


def test_every_code_of_this_plugin_is_met():
    assert set(CODES) == {row[0] for row in (*SCHEDULE, *DERIVED) if row[0].startswith("ptx/tcgen05")}


def test_a_target_without_the_engine_names_what_it_lacks(registry, text_of):
    from cake_core.diagnostics import CakeError
    from cake_core.pipeline import build
    from cake_core.source import Source

    with pytest.raises(CakeError) as caught:
        build(Source("k.cake", text_of().replace("target sm100", "target sm90")), registry, "sm90")
    assert {d.code for d in caught.value.diagnostics} == {"type/missing-capability"}
    assert "'tmem' needs 'tcgen05', which sm90 does not offer" in {d.message for d in caught.value.diagnostics}


def test_a_warpgroup_product_is_not_of_this_target(refused):
    text = "cake 1\nkernel k(A: in bf16[64, 64])\n  target sm100\n{\n  role r: 1 warpgroup {\n  }\n}\n"
    assert refused(text)[0][0] == "type/missing-capability"
