"""Flags that a loop waits for: the count starts at what the memory holds, so that has to be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

FOLDER = Path(__file__).resolve().parents[2] / "rules" / "core" / "cake_rules_core" / "rules" / "cta-handoff"
REGISTRY = load_registry()


@pytest.mark.parametrize("name", ["good_count_of_all", "good_owner_waits"])
def test_a_flag_that_a_loop_counts_starts_at_zero_or_is_not_believed(name):
    text = (FOLDER / f"{name}.cake").read_text(encoding="utf-8")
    assert build(Source("flag.cake", text), REGISTRY, prove=True).diagnostics == ()
    assert text.count("F: workspace") == 1
    with pytest.raises(CakeError) as raised:
        build(Source("flag.cake", text.replace("F: workspace", "F: inout")), REGISTRY, prove=True)
    found, *others = raised.value.diagnostics
    assert {d.code for d in others} <= {"rules/undecided"}  # one a pair of statements
    assert found.code == "rules/undecided" and "core/cta-handoff" in found.message and "starts at 0" in found.message and "workspace" in found.message


RELEASE = "red.add F[r] <- 1 order release scope gpu by 4"
OTHERWISE = {
    "by two": (RELEASE, RELEASE.replace("<- 1", "<- 2")),
    "by its number": (RELEASE, RELEASE.replace("<- 1", "<- c")),
    "to the most": (RELEASE, RELEASE.replace("red.add", "red.max").replace("<- 1", "<- S")),
    "twice": (RELEASE, f"{RELEASE}\n      {RELEASE}"),
    "beside it": (RELEASE, f"red.add F[r] <- 1 order release scope gpu by 4\n      let was = atomic.add(F[r], 1, order = release, scope = gpu)"),
    "in the owner": ("      x = 0.0\n", "      x = 0.0\n      red.add F[r] <- 1 order release scope gpu by 4\n"),
    "by the loop itself": ("atomic.add(F[r], 0,", "atomic.add(F[r], 1,"),
    "by who did not write": ("    if c < S {\n", "    red.add F[r] <- 1 order release scope gpu by 4\n    if c < S {\n"),
    "stored by the owner": ("      x = 0.0\n", "      x = 0.0\n      store F[r] <- S by 4\n"),
    "stored by one more": ("      x = load(X", "      if c == 0 { store F[r] <- S by 4 }\n      x = load(X"),
}


@pytest.mark.parametrize("way", OTHERWISE)
def test_a_flag_that_is_no_count_of_those_who_released_it_is_not_believed(way):
    """Whatever else is done to it: the loop may go on before all have come."""
    old, new = OTHERWISE[way]
    text = (FOLDER / "good_count_of_all.cake").read_text(encoding="utf-8")
    assert text.count(old) == 1
    with pytest.raises(CakeError) as raised:
        build(Source("flag.cake", text.replace(old, new)), REGISTRY, prove=True)
    assert {d.code for d in raised.value.diagnostics} & {"rules/undecided", "core/cta-handoff", "core/cta-race"}
