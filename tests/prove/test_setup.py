"""Accesses in front of the roles: all threads run them, and a meeting of all orders them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.prove.answers import Answers
from cake_core.rules.predicates import Given, Standing
from cake_core.source import Source

REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
TEXT = (Path(__file__).resolve().parents[1] / "machine" / "texts" / "columns.cake").read_text(encoding="utf-8")
READ = "  let tmem_base = load(tmem_at[0], by = 4)\n"


def found(text: str) -> list[str]:
    """What is wrong with accesses in front of the roles."""
    front = frontend(Source("kernel.cake", text), REGISTRY, None)
    rows = rows_of(facts_of(front.typed, REGISTRY, front.arch), front.arch, REGISTRY)
    accesses = [r for r in rows["access"] if r.site.act.region.memory == "shared"]
    proof, out = Answers(rows), []
    for n, a in enumerate(accesses):
        for b in accesses[n:]:
            if "before" in (a.site.part, b.site.part) and "write" in (a.site.act.mode, b.site.act.mode):
                answer = proof.ordered(a, b, (Given("same_slot", (a, b)), Given("overlap", (a, b))))
                if answer.standing is not Standing.PROVED:
                    assert answer.standing is Standing.VIOLATED
                    out.append(answer.reason)
    return out


def test_met_between_the_two():
    assert found(TEXT) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("  cta.sync\n" + READ, READ + "  cta.sync\n", "no barrier of all threads stands between two accesses of 'tmem_at'"),
        ("  cta.sync\n" + READ, "  warp.sync\n" + READ, "no barrier of all threads stands between two accesses of 'tmem_at'"),
        (
            "  if warp == 0 {\n    warp.sync\n    tcgen05.alloc tmem_at[0] columns 64\n    tcgen05.relinquish\n  }\n",
            "  warp.sync\n  tcgen05.alloc tmem_at[0] columns 64\n  tcgen05.relinquish\n",
            "all warps write 'tmem_at'",
        ),
    ],
    ids=["read before", "warps alone", "all warps"],
)
def test_not_met(old, new, told):
    assert old in TEXT
    wrong = found(TEXT.replace(old, new, 1))
    assert wrong and all(told in w for w in wrong)
