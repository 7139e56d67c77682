"""Every kernel of the zoo is proved, for all sizes that its `require`s admit: nothing violated, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import choose_kernel, frontend
from cake_core.plugins import load_registry
from cake_core.prove.prover import Prover
from cake_core.rules import Outcome, Standing, asking, judge, rulebook
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()
ASKING = [r for r in rulebook().rules if asking(r)]

#: Roles that ask what they received how long to go on: the prover says that it does not know.
RECEIVING = ("moe_grouped_dynamic_sm90",)


def _targets():
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(str(path), path.read_text(encoding="utf-8"))
        for arch in choose_kernel(parse(source), None).targets:
            yield pytest.param(source, arch, id=f"{path.stem}-{arch}")


@pytest.mark.parametrize(("source", "arch"), _targets())
def test_proved(source, arch):
    front = frontend(source, REGISTRY, arch)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    if front.typed.name in RECEIVING:
        assert Prover(rows).deadlock_free(rows["kernel"][0]).standing is Standing.UNKNOWN
        return
    found = judge(ASKING, rows, Prover(rows))
    assert [(v.rule.id, v.finding) for v in found if v.outcome not in (Outcome.PROVED, Outcome.INAPPLICABLE)] == []
    assert any(v.outcome is Outcome.PROVED for v in found)
