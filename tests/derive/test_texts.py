"""Derived texts: what derivation writes for the kernels of the zoo and for small ones, each construct at least once.

`texts/<name>.cake` is a schedule text, `texts/<name>.derived` the derived form that is expected of it. Every derived text reads
back (S24): printed and parsed, it elaborates, has no findings and gives the same machine code as the nodes that it was printed from.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
