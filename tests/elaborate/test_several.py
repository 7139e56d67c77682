"""Several errors in one text are reported in one run, and none brings others with it."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = """cake 1
kernel several(N: i32, s: f16, A: in fp32[N], B: out f32[N])
  const T = 256, U = V
  require 1 <= N, N <= 1048576, N
  target sm90
{
  let nk = ceildiv(L, T)
  tiles t = persistent(i: ceildiv(N, T), rastr = 4)
  shared d: f32[2][T], e: f32[0]
  pipeline p: 3 { d } from load to main
  role load: 1 warp regs 41 {
    for k in 0 .. nk {
      acquire p as c
      tma.lod d[c] <- A[k * T +: T]
      commit p
    }
  }
  role main: 4 wraps {
    sync nobody
  }
  role other[2]: 4 warps {
    frag x: f32[T] vec 2, y: f32[N] vec 2
    var n = nk
    n = 1.5
    for i in t {
      x = load(A[i * T +: T], fill = 0)
      if i { sync mainly }
      store A[i * T +: T] <- x * n
      store B[i * T +: T] <- x * z
      frag x: f32[T] vec 2
    }
  }
}
"""
FOUND = [
    ("type/element", "s", 2),
    ("type/unknown-type", "fp32", 2),
    ("type/unknown-name", "V", 3),
    ("type/not-a-condition", "N", 4),
    ("type/unknown-name", "L", 7),
    ("type/unknown-option", "rastr", 8),
    ("type/dimension", "e", 9),
    ("type/slots", "d", 10),
    ("type/register-count", "41", 11),
    ("type/unknown-operation", "tma.lod", 14),
    ("type/unknown-group", "wraps", 18),
    ("type/not-constant", "y", 22),
    ("type/unknown-name", "mainly", 27),
    ("type/unknown-name", "z", 29),
]


def test_all_that_is_wrong(told):
    found, text = told(TEXT)
    assert [(d.code, d.span.line) for d in found if d.code != "type/redefined"] == [(c, line) for c, _, line in FOUND], text


CASCADES = {
    "a const": ("const T = 256", "const T = 1.5 + N"),
    "a let of the kernel": ("let nk = ceildiv(K, 64)", "let nk = ceildiv(K, 64, 3)"),
    "a buffer": ("a: bf16[4][64, 64]", "a: bf17[4][64, 64]"),
    "a tensor": ("A: in bf16[M, K]", "A: in bf16[M, L]"),
    "a pipeline": ("from load to math", "from laod to math"),
    "a schedule": ("persistent(m:", "persistent(3, m:"),
    "a fragment": ("acc: f32[64, 128]", "acc: f32[64, n]"),
    "a slot": ("wait ab as s", "wait ab as s.t"),
    "an acquire": ("acquire ab as s", "acquire ab, ab as s"),
    "a role": ("role load: 1 warp", "role load: 1 wrap"),
    "a cluster": ("  target sm90\n", "  target sm90\n  cluster m = M\n"),
    "a parameter": ("K: i32", "K: bf16"),
    "a pattern": ("for (m, n) in t {\n      acc", "for m in t {\n      acc"),
    "a scalar parameter": ("N: i32", "N: f64"),
}


@pytest.mark.parametrize(("old", "new"), CASCADES.values(), ids=CASCADES)
def test_one_error_is_one_finding(old, new, told):
    text = (Path(__file__).parents[1] / "derive" / "texts" / "persistent.cake").read_text()
    if old.startswith("const"):
        text = text.replace("  target", "  const T = 256\n  target").replace("k * 64 +: 64]", "k * 64 +: T / 4]")
    assert old in text
    found, shown = told(text.replace(old, new, 1))
    assert len(found) == 1 and found[0].code.startswith(("type/", "name/")), shown
