"""`let`s of a kernel's body that read inputs, from the text to PTX, run on a machine of the ISA: every role has the values."""

from dataclasses import asdict

import numpy as np
import pytest
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXT = """cake 1
kernel scaled(R: i32, N: in i32[2], S: in f32[1], X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  assume 0 <= N[0], N[0] <= N[1], N[1] <= R
  target sm90
{
  let most = ceildiv(R, 4), first = load(N[0]), s = load(S[0])
  let rows = N[1] - first
  tiles t = persistent(b: most) {
    let left = min(rows - 4 * b, 4)
  }
  shared a: f32[2][256]
  pipeline p: 2 { a } from read to main
  role read: 1 warp {
    frag x: f32[256] vec 8
    for b in t {
      for i in 0 .. left {
        acquire p as k
        x = load(X[first + 4 * b + i, 0 +: 256])
        store a[k] <- x
        commit p
      }
    }
  }
  role main[2]: 2 warps {
    frag x: f32[256] vec 4
    for b in t {
      for i in 0 .. left {
        wait p as k
        x = load(a[k])
        release p
        if i % 2 == main.i {
          store Y[first + 4 * b + i, 0 +: 256] <- x * s
        }
      }
    }
  }
}
"""
KERNEL = build(Source("scaled.cake", TEXT), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("rows", "first", "end"), [(9, 2, 9), (9, 0, 9), (9, 3, 3), (1, 0, 1)])
def test_rows_between_two_numbers_of_an_input(rows, first, end, seed):
    x = np.arange(rows * 256, dtype=np.float32).reshape(rows, 256)
    held = {"N": np.array([first, end], np.int32), "S": np.array([0.5], np.float32), "X": x, "Y": np.full_like(x, -1)}
    Grid(KERNEL.lowered.ptx, asdict(KERNEL.manifest), {"R": rows}, held, False, seed).run(2)
    expected = np.full_like(x, -1)
    expected[first:end] = 0.5 * x[first:end]
    assert (held["Y"] == expected).all()


def test_memory_is_read_once_a_thread_in_front_of_the_roles():
    in_front, _, _ = KERNEL.lowered.ptx.partition("// role")
    assert in_front.count("ld.global.nc") == 3
