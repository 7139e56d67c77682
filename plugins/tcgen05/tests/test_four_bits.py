"""Block-scaled products of 4-bit factors: descriptors and shapes that other compilers emit, and products on the machine of the ISA."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_core.pipeline import build
from cake_core.source import Source

MXF4 = {"elem": "e2m1x2", "k": 64, "scaled": True}
NVF4 = {"elem": "e2m1x2", "k": 32, "scaled": True, "scale": "e4m3"}
SCALES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "e4m3": ml_dtypes.float8_e4m3fn}

#: A slot of four blocks: 256 numbers of K, each 64 with scales of their own.
BLOCKS = """cake 1
kernel k(K: i32, A: in e2m1x2[128, K / 2], SA: in e4m3[K / 64, 32, 16], B: in e2m1x2[128, K / 2], SB: in e4m3[K / 64, 32, 16], D: out f32[128, 128])
  require 256 <= K, K <= 65536, K % 256 == 0
  target sm100
{
  shared a: e2m1x2[2][128, 128], b: e2m1x2[2][128, 128]
  shared sa: e4m3[2][4][32, 16], sb: e4m3[2][4][32, 16]
  shared d: f32[1][128, 32]
  tmem acc: f32[1][128, 128]
  tmem ta: e4m3[2][4][128, 4], tb: e4m3[2][4][128, 4]
  pipeline ab: 2 { a, b, sa, sb } from load to mma
  pipeline accp: 1 { acc } from mma to epi
  role load: 1 warp {
    for k in 0 .. K / 256 {
      acquire ab as s
      tma.load a[s] <- A[0 +: 128, 128 * k +: 128]
      tma.load b[s] <- B[0 +: 128, 128 * k +: 128]
      for j in 0 .. 4 unroll {
        tma.load sa[s][j] <- SA[4 * k + j, 0 +: 32, 0 +: 16]
        tma.load sb[s][j] <- SB[4 * k + j, 0 +: 32, 0 +: 16]
      }
      commit ab
    }
  }
  role mma: 1 warp {
    acquire accp as u
    for k in 0 .. K / 256 {
      wait ab as s
      for j in 0 .. 4 unroll {
        tcgen05.cp ta[s][j] <- sa[s][j]
        tcgen05.cp tb[s][j] <- sb[s][j]
        tcgen05.mma acc[u] += a[s][:, 32 * j +: 32] @ b[s][:, 32 * j +: 32].T init k == 0 and j == 0 scale_a ta[s][j] scale_b tb[s][j]
      }
      release ab
    }
    commit accp
  }
  role epi: 4 warps aligned 4 {
    frag x: f32[128, 32]
    wait accp as u
    for j in 0 .. 4 unroll {
      tcgen05.ld x <- acc[u][:, j * 32 +: 32]
      tcgen05.wait.ld
      tma.store.wait.read 0
      sync epi
      store d[0] <- x
      sync epi
      tma.store D[0 +: 128, j * 32 +: 32] <- d[0]
    }
    release accp
    tma.store.wait.read 0
  }
}
"""


@pytest.fixture(scope="module")
def machine():
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import sm100_machine
    finally:
        sys.path.pop(0)
    return sm100_machine


def numbers(rng, rows: int, k: int):
    """(values [rows, k], bytes [rows, k / 2]): any of the sixteen, the first of two in the low half of a byte."""
    patterns = rng.integers(0, 16, (rows, k), dtype=np.uint8)
    return patterns.view(ml_dtypes.float4_e2m1fn).astype(np.float64), patterns[:, ::2] | patterns[:, 1::2] << 4


def scales(rng, rows: int, k: int, kind: str):
    """(factor of each number [rows, k], blocks [k blocks, rows / 128, 32, 16]): powers of two, so that sums are exact."""
    vector = 32 if kind == "ue8m0" else 16
    values = (2.0 ** rng.integers(-2, 3, (rows, k // vector))).astype(SCALES[kind])
    blocks = values.reshape(rows // 128, 4, 32, -1, 4).transpose(3, 0, 2, 1, 4).reshape(-1, rows // 128, 32, 16)
    return np.repeat(values.astype(np.float64), vector, axis=1), np.ascontiguousarray(blocks).view(np.uint8)


def run(machine, b, arrays, cluster: int = 1, **sizes):
    maps = {t.param: (arrays[t.tensor], t.box, t.swizzle) for t in b.lowered.tensor_maps}
    machine.Machine(b.lowered.ptx, b.lowered.launch.threads, cluster, sizes, maps, 0, 1, seed=1).run()


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("n", [128, 256])
@pytest.mark.parametrize("how", [MXF4, NVF4], ids=["mxf4", "nvf4"])
def test_a_product(machine, registry, text_of, how, n, pair):
    b = build(Source("k.cake", text_of(n=n, pair=pair, **how)), registry, "sm100")
    rng, ctas, k, kind = np.random.default_rng(n), 1 + pair, 2 * how["k"], how.get("scale", "ue8m0")
    (left, a), (right, of_b) = numbers(rng, 128 * ctas, k), numbers(rng, n, k)
    (by_a, sa), (by_b, sb) = scales(rng, 128 * ctas, k, kind), scales(rng, n, k, kind)
    d = np.full((128 * ctas, n), np.nan, np.float32)
    run(machine, b, {"A": a, "B": of_b, "SA": sa[0], "SB": sb[0] if n > 128 else sb[0, 0], "D": d}, ctas)
    assert np.array_equal(d, (left * by_a) @ (right * by_b).T)


@pytest.mark.parametrize("k", [256, 768])
def test_several_blocks_a_slot(machine, registry, k):
    """A part of a row that starts inside of a panel: the address of a step of K."""
    b = build(Source("k.cake", BLOCKS), registry, "sm100")
    rng = np.random.default_rng(k)
    (left, a), (right, of_b) = numbers(rng, 128, k), numbers(rng, 128, k)
    (by_a, sa), (by_b, sb) = scales(rng, 128, k, "e4m3"), scales(rng, 128, k, "e4m3")
    d = np.full((128, 128), np.nan, np.float32)
    run(machine, b, {"A": a, "B": of_b, "SA": sa[:, 0], "SB": sb[:, 0], "D": d}, K=k)
    assert np.array_equal(d, (left * by_a) @ (right * by_b).T)


def test_what_is_emitted(compile_, text_of, values):
    """The instruction descriptors that Triton, CUTLASS and the CuTe DSL emit for 128 x 128, and one instruction a 32 bytes of K."""
    for how, name, wanted in (
        (MXF4, "kind::mxf4.block_scale.scale_vec::2X", [0x08A00480, 0x48A004A0]),
        (NVF4, "kind::mxf4nvf4.block_scale.scale_vec::4X", [0x08200480]),
    ):
        found = compile_(text_of(**how))
        assert [row[3] for row in values(found, "tcgen05.mma", {"shared_memory": 0})] == wanted
        assert all(i.startswith(f"tcgen05.mma.cta_group::1.{name} ") for i in found.all("tcgen05.mma"))


@pytest.mark.parametrize(
    ("code", "said", "how", "changes"),
    [
        ("ptx/tcgen05-shape", "K is 32 | a block of scales covers 64 pairs of K", {**MXF4, "k": 32}, []),
        ("ptx/tcgen05-shape", "a block of scales covers 32 pairs of K", {**NVF4, "k": 64}, []),
        ("type/element", "two of e2m1x2 with scales of e4m3", {**MXF4, "elem": "bf16"}, []),
        ("type/element", "the factors are e2m1x2 and e2m1x2", {"elem": "e2m1x2"}, []),
        ("ptx/tcgen05-operand", "lies M- or N-major", {**MXF4, "b": "MN"}, []),
        (
            "type/operand",
            "scales are ue8m0 in tensor memory",
            MXF4,
            [("tb: ue8m0", "tb: e4m3"), ("sb: ue8m0", "sb: e4m3"), ("SB: in ue8m0", "SB: in e4m3")],
        ),
        ("type/element", "on both sides", MXF4, [("ta: ue8m0", "ta: e4m3")]),
        ("ptx/tcgen05-shape", "N is 64", {**NVF4, "n": 64}, []),
    ],
)
def test_what_is_refused(refused, text_of, code, said, how, changes):
    text = text_of(**how)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = refused(text)
    assert any(c == code and said in words for c, words in found), found
