"""Which `while`s surely end, by their text."""

from __future__ import annotations

import pytest

from cake_core.facts import facts_of
from cake_core.facts.ending import ends
from cake_core.facts.schema import While, walk
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

REGISTRY = load_registry()
TEXT = """cake 1 derived
kernel k(R: i32, P: in i32[R])
  require 1 <= R, R <= 4096
  target sm90
{
  launch R persistent
  role main: 1 warp at 0 {
    var x = 0, y = 0
    while TEST {
      BODY
    }
  }
}
"""


@pytest.mark.parametrize(
    ("test", "body", "surely"),
    [
        ("x < R", "x = x + 1", True),
        ("x <= R", "x = x + 3", True),
        ("y >= 0 and x < R", "y = load(P[x], by = 4)\n      x = x + 1", True),
        ("x < R or y >= 0", "x = x + 1\n      y = y + 1", False),
        ("x < R", "x = x - 1", False),
        ("x < R", "x = x + y", False),
        ("x < y", "x = x + 1\n      y = y + 1", False),
        ("x < R", "if y > 0 {\n        x = x + 1\n      }", False),
        ("x < R", "if leader {\n        x = x + 1\n      }", False),
        ("x < R", "x = x + 1\n      x = 0", False),
        ("x >= 0", "x = load(P[y], by = 4)", False),
    ],
)
def test_ends(test, body, surely):
    front = frontend(Source("k.cake", TEXT.replace("TEST", test).replace("BODY", body)), REGISTRY)
    (loop,) = (n for n in walk(facts_of(front.typed, REGISTRY, front.arch).roles[0].body) if isinstance(n, While))
    assert ends(loop) is surely
