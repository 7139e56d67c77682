"""Small products, from the text to PTX, run on a machine of the ISA, early and late: groups of several statements, shared bytes, several
producers."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from ptx_values import bf16, bits16
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

TEXTS = Path(__file__).resolve().parents[1] / "derive" / "texts"


@pytest.mark.parametrize("late", [True, False], ids=["late", "early"])
@pytest.mark.parametrize("name", ["group", "alias", "two_producers"])
@pytest.mark.parametrize(("m", "n", "k", "ctas"), [(64, 128, 64, 1), (70, 200, 264, 2), (64, 40, 0, 1)])
def test_a_product(name, m, n, k, ctas, late):
    kernel = build(Source(f"{name}.cake", (TEXTS / f"{name}.cake").read_text()), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")
    rng = np.random.default_rng(m + n + k)
    held = {x: bits16(rng.standard_normal((rows, k))).astype(np.uint16) for x, rows in (("A", m), ("B", n))}
    held["D"] = np.full((m, n), 0xFFFF, np.uint16)
    a, b = bf16(held["A"]), bf16(held["B"])
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), {"M": m, "N": n, "K": k}, held, late).run(
        ctas if kernel.manifest.launch.persistent else -(-m // 64) * -(-n // 128)
    )
    expected = bf16(bits16(a @ b.T))
    assert np.abs(bf16(held["D"]) - expected).max() <= 2**-7 * max(1.0, np.abs(expected).max())
