"""Items on demand, from the text to PTX, run on a machine of the ISA: each is taken once, every role stops, the counter is as it was."""

from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from warpgroups import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests" / "derive" / "texts" / "rows_on_demand.cake"


@cache
def built(text, arch="sm90"):
    return build(Source("on_demand.cake", text), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), arch)


def run(kernel, scalars, tensors, ctas, seed, late=False):
    """The tensors as the kernel leaves them; its workspaces hold zeros before and behind."""
    work = {p.name: np.zeros(4, np.int32) for p in kernel.manifest.params if p.mode == "workspace"}
    held = {n: np.array(x) for n, x in tensors.items()} | work
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), scalars, held, late, seed).run(ctas)
    assert all((held[n] == 0).all() for n in work), "the counter is not as it was found"
    return held


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("rows", "ctas"), [(7, 3), (1, 4), (0, 2), (12, 1)])
def test_rows_that_a_text_takes_by_itself(rows, ctas, seed):
    x = np.arange(max(rows, 1) * 256, dtype=np.float32).reshape(-1, 256)
    tensors = {"X": x, "Y": np.full_like(x, -1)}
    held = run(built(ROWS.read_text()), {"R": rows, "NC": ctas}, tensors, ctas, seed)
    assert (held["Y"][:rows] == 2 * x[:rows]).all() and (held["Y"][rows:] == -1).all()


def test_a_role_that_stops_too_late_never_ends():
    """The same text, its consumer written by hand in the derived form so that it asks for one message more."""
    derived = built(ROWS.read_text()).derived_text
    assert derived.count("    var at = 0\n    while at >= 0 {\n      let s = next_wait") == 1
    wrong = derived.replace(
        "    var at = 0\n    while at >= 0 {\n      let s = next_wait", "    var at = 0\n    while at >= -1 {\n      let s = next_wait"
    )
    with pytest.raises(AssertionError, match="a deadlock"):
        run(built(wrong), {"R": 3, "NC": 2}, {"X": np.zeros((3, 256), np.float32), "Y": np.zeros((3, 256), np.float32)}, 2, 0)
