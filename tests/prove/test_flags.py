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
