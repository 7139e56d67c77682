"""Texts with faults in them are lowered as they are: machine code that follows a wrong text is no difference."""

from __future__ import annotations

from random import Random

import pytest
from read_back_zoo import REGISTRY, ZOO, targets

from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.facts import facts_of
from cake_core.lower import lower
from cake_core.mutate.campaign import mutants
from cake_core.pipeline import frontend
from cake_core.reread import reread
from cake_core.source import Source

MOST = 5


@pytest.mark.parametrize("name", ["gemm_sm80", "gemm_sm90", "gemm_sm100_pair", "softmax_cluster"])
def test_a_fault_of_the_text_is_none_of_lowering(name):
    front = frontend(Source(f"{name}.cake", ZOO[name].read_text(encoding="utf-8")), REGISTRY, targets(name)[0])
    edits = list(mutants(front.derived, front.typed, REGISTRY))
    Random(name).shuffle(edits)
    read = 0
    for edit in edits[:MOST]:
        try:
            typed = elaborate(edit.kernel, REGISTRY, front.arch, derived=True, overrides={})
            facts, written = facts_of(typed, REGISTRY, front.arch), lower(typed, REGISTRY, front.arch)
        except CakeError:
            continue
        reading = reread(written, facts, REGISTRY.rereads, front.arch)
        assert reading.findings == (), (edit.operator, edit.what)
        read += reading.left == ()
    assert read > MOST // 2
