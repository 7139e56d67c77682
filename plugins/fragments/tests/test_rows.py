"""An elementwise text over the layout `rows`: accesses of 16 bytes, clipped at both edges, tiles along the axes repeated."""

from __future__ import annotations

import re
from dataclasses import replace

from cake_core.assemble import assemble
from cake_core.derive import derive
from cake_core.elaborate import elaborate
from cake_core.ir.printer import program_text
from cake_core.lower import lower
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

TEXT = """cake 1
kernel k(R: i32, C: i32, X: in bf16[R, C], S: in f32[R], T: in bf16[C], Y: out bf16[R, C], Z: out f32[R])
  require 0 <= R, R <= 4096, 1 <= C, C <= 4096, C % 8 == 0
  target sm90
{
  tiles t = grid(c: ceildiv(C, 512), r: ceildiv(R, 3))
  role main: 1 warp {
    frag x: bf16[3, 512] vec 8, z: f32[3] over row vec 8
    for (c, r) in t {
      x = load(X[r * 3 +: 3, c * 512 +: 512])
      let s = load(S[r * 3 +: 3], along = rows(x))
      let b = load(T[c * 512 +: 512], along = cols(x))
      store Y[r * 3 +: 3, c * 512 +: 512] <- bf16(f32(x) * s + f32(b))
      z = s * 2.0
      store Z[r * 3 +: 3] <- z
    }
  }
}
"""
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]


def test_an_elementwise_tile():
    program = parse(Source("k.cake", TEXT))
    kernel = derive(elaborate(program.kernels[0], REGISTRY, SM90, derived=False), REGISTRY, SM90)
    text = program_text(replace(program, derived=True, kernels=(kernel,)))
    assert "bf16[3, 512] vec 8 layout rows" in text and "f32[3] over row vec 8 layout rows" in text
    assert "along = rows(x), by = 4" in text and "along = cols(x), by = 16" in text
    typed = elaborate(parse(Source("d.cake", text)).kernels[0], REGISTRY, SM90, derived=True)
    found = lower(typed, REGISTRY, SM90)
    assert assemble(found.ptx, SM90.target, "k", lines=found.lines).cubin
    guarded = re.findall(r"@(%p\d+) (ld|st)\.global\S*?\.(v4\.b32|b32) (.*);", found.ptx)
    count = lambda what, width: sum(w == what and v == width for _, w, v, _ in guarded)  # noqa: E731
    assert (count("ld", "v4.b32"), count("st", "v4.b32")) == (3 * 2 + 2, 3 * 2)  # X and T, Y: a row is two accesses of a warp
    assert (count("ld", "b32"), count("st", "b32")) == (3, 3)  # S, Z: one value a row
    fused = re.findall(r"fma\.rn\.f32 %f\d+, %f\d+, (%f\d+), (%f\d+);", found.ptx)
    assert len(fused) == 3 * 16
    scales, shifts = (list(dict.fromkeys(x)) for x in zip(*fused, strict=True))
    assert [s for s, _ in fused] == [s for s in scales for _ in range(16)] and len(scales) == 3
    assert [b for _, b in fused] == shifts * 3 and len(shifts) == 16
