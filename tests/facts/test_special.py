"""What is filled in past the end of a tensor: minus infinity where a tile may lie behind it as a whole, and nothing where it surely has an element."""

from __future__ import annotations

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXT = """cake 1 derived
kernel k(R: i32, C: i32, X: in f32[R, C], Y: out f32[R])
  require 1 <= R, R <= 65536, LEAST <= C, C <= 65536
  target sm90
{
  launch R
  role main: 1 warp at 0 {
    frag x: f32[128] vec 1 layout vector
    var l = 0.0
    for c in 0 .. TURNS {
      x = load(X[cluster.id, START +: 128], by = 4, fill = FILL)
      l = l + warpsum(exp2(x - warpmax(x)))
    }
    store Y[cluster.id] <- l by 4
  }
}
"""
REGISTRY = load_registry()


def special(least: str, turns: str, start: str, fill: str) -> bool:
    text = TEXT.replace("LEAST", least).replace("TURNS", turns).replace("START", start).replace("FILL", fill)
    front = frontend(Source("k.cake", text), REGISTRY)
    return any(row["nan"] or row["unmasks"] for row in rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)["special"])


@pytest.mark.parametrize(
    ("least", "turns", "start", "may"),
    [
        ("1", "1", "0", False),
        ("0", "1", "0", True),
        ("129", "1", "128", False),
        ("128", "1", "128", True),
        ("1", "ceildiv(C, 128)", "c * 128", False),
        ("1", "ceildiv(C, 128)", "128 * c", False),
        ("1", "ceildiv(C, 64)", "c * 128", True),
        ("1", "ceildiv(C, 128) + 1", "c * 128", True),
        ("1", "ceildiv(R, 128)", "c * 128", True),
        ("1", "2", "c * 128", True),
    ],
)
@pytest.mark.parametrize("fill", ["-inf", "-3.0e38"])
def test_a_tile_may_lie_behind_the_end(least, turns, start, may, fill):
    assert special(least, turns, start, fill) is may


def test_other_numbers_are_ordinary():
    assert not special("0", "1", "0", "0.0") and not special("0", "1", "0", "-1.0e20")
