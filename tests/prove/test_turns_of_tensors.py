"""A tensor that threads of one CTA write and read, turn by turn, each element in one turn alone: what orders a turn orders all."""

from __future__ import annotations

import pytest

from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXT = """cake 1
kernel k(R: i32, X: in f32[R, 1024], Y: inout f32[R, 1024], Z: out f32[R, 1024])
  require 0 <= R, R <= 1000
  target sm90
{
  tiles t = persistent(r: R)
  role main: 4 warps {
    frag x: f32[1024] vec 2, y: f32[1024] vec 8
    for r in t {
      x = load(X[r, 0 +: 1024])
      store Y[r, 0 +: 1024] <- x
      sync main
      y = load(Y[r, 0 +: 1024])
      store Z[r, 0 +: 1024] <- y
    }
  }
}
"""
SYNC, LOAD = "      sync main\n", "      y = load(Y[r, 0 +: 1024])\n"
WRONG = {
    "no meeting": (SYNC, ""),
    "a meeting in some turns": (SYNC, "      if r > 3 { sync main }\n"),
    "a meeting behind": (SYNC + LOAD, LOAD + SYNC),
    "one row in all turns": ("Y[r, 0 +: 1024]", "Y[0, 0 +: 1024]"),
    "one row in two turns": ("Y[r, 0 +: 1024]", "Y[r / 2, 0 +: 1024]"),
    "an item twice": ("for r in t {\n", "for r in t {\n    for again in 0 .. 2 {\n"),
}


def codes(text: str) -> set[str]:
    try:
        return {d.code for d in build(Source("k.cake", text), load_registry(), prove=True).diagnostics}
    except CakeError as error:
        return {d.code for d in error.diagnostics}


def test_a_meeting_in_each_turn_is_enough():
    assert codes(TEXT) == set()
    split = TEXT.replace("0 +: 1024", "256 * q +: 256").replace("f32[1024] vec", "f32[256] vec").replace("vec 8", "vec 1")
    assert codes(split.replace("for r in t {\n", "for r in t {\n    for q in 0 .. 4 {\n").replace("    }\n  }\n}", "    }\n    }\n  }\n}")) == set()


@pytest.mark.parametrize("way", WRONG)
def test_what_it_does_not_order_is_found(way):
    old, new = WRONG[way]
    assert old in TEXT
    text = TEXT.replace(old, new)
    if way == "an item twice":
        text = text.replace("    }\n  }\n}", "    }\n    }\n  }\n}")
    assert "core/agent-race" in codes(text)
