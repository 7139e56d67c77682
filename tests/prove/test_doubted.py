"""A cut that rests on what tables hold, and that the event machine finds nowhere: not decided, with the example, and told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.diagnostics import CakeError, Severity
from cake_core.ir.nodes import Program
from cake_core.ir.printer import program_text
from cake_core.pipeline import build, frontend
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
LOOP = "for t_i in cluster.id .. t_total step"


def test_a_count_that_only_a_table_bounds():
    """There is no item behind the last: so much the `assume`s say, by a sum over the table that no linear arithmetic has."""
    front = frontend(Source("moe.cake", (ROOT / "kernels" / "moe" / "moe_grouped_sm90.cake").read_text(encoding="utf-8")), REGISTRY)
    text = program_text(Program(front.program.version, True, (front.derived,)))
    load, math = text.split("role math")
    assert math.count(LOOP) == 1
    wrong = Source("moe.cake", "role math".join((load, math.replace(LOOP, "for t_i in cluster.id .. t_total + 1 step"))))
    with pytest.raises(CakeError) as raised:
        build(wrong, REGISTRY, prove=True)
    (found,) = [d for d in raised.value.diagnostics if d.severity is Severity.ERROR]
    assert found.code == "rules/undecided" and "core/deadlock" in found.message and "t_behind" in found.message
    assert found.role == "math" and found.resource == "ab_full" and found.iteration is not None
    assert found.witness.params and found.witness.story and found.witness.confirmed is False
