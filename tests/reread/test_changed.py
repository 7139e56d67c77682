"""A sample of docs/rereading.py: machine code of real kernels with one instruction changed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from random import Random

import pytest

SPEC = importlib.util.spec_from_file_location("docs_rereading", Path(__file__).parents[2] / "docs" / "rereading.py")
changing = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(changing)

#: Instructions that order others, or that say what engines and threads touch of shared and tensor memory.
ACTS = re.compile(r"^(mbarrier|bar|barrier|fence|cp\.async|tcgen05|wgmma|setmaxnreg|mapa|stmatrix|ldmatrix|st\.shared|cp\.reduce)\b")
#: Nothing is lost without it: it lets others allocate. And 2 is as true as 1 where a sum goes on.
HARMLESS = re.compile(r"relinquish|mma\S* .*(, 2;|, 2, 1, 1, \d, \d;)$")
KINDS = ("removed", "constant + 1", "offset + 1", "predicate inverted")
EACH, EXECUTED = 5, 1


@pytest.mark.parametrize("name", ["gemm_sm90", "gemm_sm100", "gemm_sm80"])
def test_what_acts_is_not_changed_unseen(name):
    """Whatever is done to such an instruction, the build ends."""
    text, draw = changing.made(name)[1].ptx, Random(name)
    lines, found = text.splitlines(), changing.changes(text, Random(name))
    acting = [
        (kind, n, new)
        for kind in KINDS
        for n, new in found.get(kind, ())
        if ACTS.match(changing.STATEMENT.match(lines[n])[3]) and not HARMLESS.search(lines[n] if kind == "removed" else new)
    ]
    assert len(acting) > 100
    for kind, n, new in draw.sample(acting, EACH):
        told, _ = changing.refused(name, changing.changed(text, n, new))
        assert told, (kind, lines[n], new)


@pytest.mark.parametrize("name", ["gemm_sm90", "gemm_sm80"])
def test_a_change_is_found_or_explained(name):
    reasons = changing.tomllib.loads(changing.REASONS.read_text(encoding="utf-8"))["reason"]
    for change in changing.drawn(name, EXECUTED):
        row = changing.judged(name, *change)
        assert not changing.lost(row) or changing.reason_of(row, reasons), row
