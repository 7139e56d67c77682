"""Derived texts: what derivation writes for the kernels of the zoo and for small ones, each construct at least once.

`texts/<name>.cake` is a schedule text, `texts/<name>.derived` the derived form that is expected of it. Every derived text reads
back (S24): printed and parsed, it elaborates, has no findings and gives the same machine code as the nodes that it was printed from.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_core.ir.flow import walk
from cake_core.ir.nodes import Op
from cake_core.pipeline import frontend
from cake_core.source import Source

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEXTS = sorted((HERE / "texts").glob("*.cake"))
KERNELS = [ROOT / "kernels" / name for name in ("gemm/gemm_sm90.cake", "gemm/gemm_sm100.cake", "gemm/gemm_sm100_pair.cake", "rmsnorm/rmsnorm.cake")]


@pytest.mark.parametrize("path", [*TEXTS, *KERNELS], ids=lambda p: p.stem)
def test_derived_text(path, compiled, golden_text):
    text = path.read_text()
    targets = re.search(r"^  target (.*?)( *#.*)?$", text, re.M)[1].split(", ")
    done = compiled(text, arch="sm90" if "sm90" in targets else targets[0])
    assert done.findings == ()
    golden_text(HERE / "texts" / f"{path.stem}.derived", done.text)

    again = compiled(done.text)
    assert again.findings == ()
    assert again.text == done.text
    assert again.lowered.ptx == done.lowered.ptx
    assert again.lowered.requires == done.lowered.requires
    assert again.lowered.launch == done.lowered.launch
    assert again.lowered.tensor_maps == done.lowered.tensor_maps


@pytest.mark.parametrize("name", ["gemm/gemm_sm90", "gemm/gemm_sm100", "attention/attn_fwd_sm90"])
def test_what_a_verb_derives_to_stands_where_the_verb_does(offered, name):
    """Barriers of a hand-off are inside of branches for the leading lane: findings, source maps and pictures find the line of the verb by them."""
    text = (ROOT / "kernels" / f"{name}.cake").read_text(encoding="utf-8")
    front = frontend(Source("k.cake", text), offered)
    lines = [""] + text.splitlines()
    placed = [s for r in front.typed.roles for s in walk(r.body) if isinstance(s, Op)]
    assert [s.name for s in placed if not s.span.line] == []
    told = {s.name: lines[s.span.line].split()[0] for s in placed if s.name in ("mbarrier.wait", "mbarrier.expect", "mbarrier.arrive")}
    assert told.keys() >= {"mbarrier.wait", "mbarrier.expect"} and set(told.values()) <= {"acquire", "wait", "release", "drain", "commit", "role"}
