"""Every kernel of the zoo is proved, for all sizes that its `require`s admit: nothing violated, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import build, choose_kernel
from cake_core.plugins import load_registry
from cake_core.prove.prover import Prover
from cake_core.rules.predicates import Given, Standing
from cake_core.source import Source
from cake_core.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_registry()


def _targets():
    for path in sorted((ROOT / "kernels").rglob("*.cake")):
        source = Source(str(path), path.read_text(encoding="utf-8"))
        for arch in choose_kernel(parse(source), None).targets:
            yield pytest.param(source, arch, id=f"{path.stem}-{arch}")


#: Roles that ask what they received how long to go on: the prover says that it does not know.
RECEIVING = ("moe_grouped_dynamic_sm90",)


@pytest.mark.parametrize(("source", "arch"), _targets())
def test_proved(source, arch):
    built = build(source, REGISTRY, arch)
    rows = rows_of(facts_of(built.typed, REGISTRY, built.arch), built.arch, REGISTRY)
    prover = Prover(rows)
    kernel = rows["kernel"][0]
    if built.typed.name in RECEIVING:
        assert prover.deadlock_free(kernel).standing is Standing.UNKNOWN
        return
    answers = [prover.deadlock_free(kernel), prover.drained(kernel)]
    answers += [prover.phase_safe(s) for r in ("wait", "arrive", "engine_arrive") for s in rows[r] if s.site.part != "before"]
    accesses = [r for r in rows["access"] if r.site.part != "before" and r.site.act.region.memory in ("shared", "tensor")]
    for n, a in enumerate(accesses):
        for b in accesses[n:]:
            if "write" in (a.site.act.mode, b.site.act.mode):
                answers.append(prover.ordered(a, b, (Given("same_slot", (a, b)), Given("overlap", (a, b)))))
    assert [a for a in answers if a.standing is not Standing.PROVED] == []
