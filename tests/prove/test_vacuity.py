"""A proof of nothing is told: contracts that no launch keeps, roles that no launch gives anything to do."""

from __future__ import annotations

from itertools import product

import pytest

from cake_core.diagnostics import CakeError, Severity
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

REGISTRY = load_registry()
TEXT = """cake 1 derived
kernel k(R: i32, C: i32, P: in i32[R], X: in i32[R, C], Y: out i32[R])
  require 1 <= R, R <= 32768, 1 <= C, C <= 65535
  target sm90
{
  launch ITEMS persistent
  role main: 1 warp at 0 {
    for r in cluster.id .. R step cluster.count {
      if TEST {
        store Y[r] <- load(X[r, 0], by = 4) + 0 by 4
      }
    }
  }
}
"""


def told(test: str = "r >= 0", contracts: str = "", items: str = "R"):
    text = TEXT.replace("TEST", test).replace("  target", f"{contracts}  target").replace("ITEMS", items)
    try:
        return build(Source("k.cake", text), REGISTRY, prove=True).diagnostics
    except CakeError as error:
        return error.diagnostics


@pytest.mark.parametrize(
    ("contracts", "named"),
    [
        ("  require R < C\n  require C < R\n", ("R < C", "C < R")),
        ("  require R + C <= 9, C >= 5, R > 4\n", ("R + C <= 9", "C >= 5", "R > 4")),
        ("  require R <= C\n  require 4 * C == 2 * R + 1 - R * 2\n", ("4 * C == 2 * R + 1 - R * 2",)),
        ("  assume P[0] > R\n  assume P[0] < R\n", ("P[0] > R", "P[0] < R")),
        ("  assume P[0] == C\n  require C == R\n  assume P[0] < R\n", ("C == R", "P[0] == C", "P[0] < R")),
    ],
    ids=lambda x: " and ".join(x.split("\n")) if isinstance(x, str) else "",
)
def test_contracts_that_contradict_each_other(contracts, named):
    """One error, with the fewest that do not go together; all else that would be proved of nothing is not told."""
    (d,) = told(contracts=contracts)
    assert (d.code, d.severity) in (("core/contradiction", Severity.ERROR), ("type/require", Severity.ERROR))
    if d.code == "core/contradiction":
        said = d.why.partition(" together")[0]
        assert all(f"`{n}`" in said for n in named) and said.count("`") == 2 * len(named)
        assert len(d.related) == len(named) - 1 and d.span.line > 3


@pytest.mark.parametrize("contracts", ["", "  require R < C\n", "  require R + C <= 9\n  require C >= 5, R > 3\n", "  assume P[0] > R\n"])
def test_contracts_that_something_keeps(contracts):
    assert told(contracts=contracts) == ()


def test_a_launch_without_items_is_none():
    (d,) = told(items="max(R - C, 0)", contracts="  require R <= C\n")
    assert d.code == "core/contradiction" and "`R <= C`" in d.why and "a launch that has an item" in d.why


@pytest.mark.parametrize(
    ("test", "idle"),
    [
        ("R > 32768", True),
        ("R > 32767", False),
        ("r >= R", True),
        ("r + 1 >= R", False),
        ("r % 2 == 3", True),
        ("r % 2 == 1", False),
        ("r * 2 == R + R", True),
    ],
)
def test_a_role_that_never_does_anything(test, idle):
    found = told(test)
    assert [(d.code, d.severity, d.role) for d in found] == ([("core/idle-role", Severity.WARNING, "main")] if idle else [])


def test_what_is_called_idle_never_runs():
    """Against small sizes, one by one: no index of the loop passes a test that is called idle, and one passes each that is not."""
    for a, b in product(("r + 2", "2 * r", "R - r"), ("R + 1", "2 * R", "1", "0")):
        if {d.code for d in told(f"{a} > {b}")} == {"core/idle-role"}:
            assert not any(eval(f"{a} > {b}", {"r": r, "R": n}) for n in range(1, 40) for r in range(n))
        else:
            assert any(eval(f"{a} > {b}", {"r": r, "R": n}) for n in range(1, 40) for r in range(n))
