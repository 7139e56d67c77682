"""Kernels of rows and elements, from the text to PTX, run on a machine of the ISA: against the companions' references, on rows that
end inside a thread's vectors, on special values, and with faults put in."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from rowwise import Grid

from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime.companion import load_companion
from cake_core.runtime.formula import compile_formula
from cake_core.runtime.host import element_name, to_float64
from cake_core.runtime.elements import ELEMENTS
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SHAPES = {
    "rmsnorm/rmsnorm": ({"CMAX": 1024, "WARPS": 2}, [(0, 64), (1, 8), (5, 1024), (7, 520)]),
    "softmax/softmax": ({"CMAX": 1024, "WARPS": 2, "CTAS": 1}, [(0, 64), (1, 8), (12, 1024), (12, 520)]),
    "softmax/softmax_short": ({"CMAX": 1024, "WARPS": 2}, [(0, 64), (12, 1024), (12, 520)]),
    "softmax/softmax_cluster": ({"CMAX": 1024, "WARPS": 2, "CTAS": 2, "RESIDENT": 1}, [(1, 8), (12, 1024), (12, 520), (9, 264)]),
    "quantize/quantize_e4m3": ({"CMAX": 2048, "WARPS": 2}, [(1, 16), (9, 2048), (12, 1040)]),
    "elementwise/silu_mul_bias": ({"WARPS": 2}, [(1, 8), (5, 520), (9, 1024)]),
    "elementwise/scale_shift": ({"WARPS": 2}, [(1, 1, 8), (2, 5, 520), (3, 4, 512)]),
}
CASES = [(k, s) for k, (_, shapes) in SHAPES.items() for s in shapes]


@cache
def built(name, old="", new=""):
    text = (KERNELS / f"{name}.cake").read_text()
    assert old in text
    return build(Source(Path(name).name + ".cake", text.replace(old, new)), REGISTRY, "sm90", SHAPES[name][0], violated=bool(old))


def launched(name, sizes, kernel, clusters=2):
    """(outputs as float64, expected, admitted) of a launch of a few clusters."""
    companion = load_companion(KERNELS / f"{name}.py")
    dims = companion.call("shapes")[0]
    shape = dict(zip(dims, sizes, strict=True))
    inputs = companion.call("inputs", shape, np.random.default_rng(3))
    expected = companion.call("reference", inputs)
    m = kernel.manifest
    scalars = {p.name: shape.get(p.name, inputs.get(p.name)) for p in m.params if p.kind == "scalar"}
    tensors = {n: np.ascontiguousarray(x).reshape(-1).copy() for n, x in inputs.items() if isinstance(x, np.ndarray)}
    elems = {p.name: ELEMENTS[p.elem] for p in m.params if p.kind == "tensor"}
    assert all(element_name(tensors[n]) == elems[n].name for n in tensors)
    tensors |= {n: np.full(expected[n].size * elems[n].bytes, 0xFF, np.uint8) for n in expected}
    items = int(compile_formula(m.launch.items, scalars)(scalars))
    grid = Grid(kernel.lowered.ptx, m.launch.cluster, m.launch.threads // 32, m.launch.shared_bytes, scalars, tensors)
    grid.run(min(items, clusters) if m.launch.persistent else items)
    words = {n: tensors[n].view({1: "u1", 2: "<u2", 4: "<f4"}[elems[n].bytes]).reshape(expected[n].shape) for n in expected}
    return {n: to_float64(w, elems[n]) for n, w in words.items()}, expected, companion.admitted(inputs, expected)


def agrees(found, expected, admitted):
    with np.errstate(invalid="ignore"):
        same = (found == expected) | np.isnan(found) & np.isnan(expected)
        return bool((same | np.isfinite(expected) & (np.abs(found - expected) <= admitted)).all())


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=lambda x: x if isinstance(x, str) else "x".join(map(str, x)))
def test_a_kernel_is_right(name, sizes):
    found, expected, admitted = launched(name, sizes, built(name))
    for out in expected:
        assert agrees(found[out], expected[out], admitted[out])


FAULTS = [
    ("softmax/softmax", "store total[warp] <- warpsum(x)\n      sync main", "store total[warp] <- warpsum(x)", "a barrier left out"),
    ("softmax/softmax", "if t.next.r < R", "if t.next.r < R - 1", "a row that is never loaded"),
    ("softmax/softmax", "- m) * LOG2E", ") * LOG2E", "not measured from the largest"),
    ("softmax/softmax_cluster", "cluster.store totals[t.n % 2][c]", "cluster.store totals[0][c]", "a slot too few"),
    ("softmax/softmax_cluster", "exp2((load(tops[t.n % 2][c]) - m) * LOG2E) * ", "", "parts on scales of their own"),
    ("softmax/softmax_cluster", "let pivot = max(own, LOWEST)", "let pivot = own", "NaN from a part that is -inf"),
    ("softmax/softmax_short", "store top[warp] <- warpmax(x)\n      sync main", "store top[warp] <- warpmax(x)", "a barrier left out of a row"),
    ("rmsnorm/rmsnorm", "/ f32(C) + eps", "/ f32(CMAX) + eps", "a mean over what is not there"),
    ("quantize/quantize_e4m3", "rcp(top + LEAST)", "rcp(top)", "a row of zeros"),
]


@pytest.mark.parametrize(("name", "old", "new"), [f[:3] for f in FAULTS], ids=[f[3] for f in FAULTS])
def test_a_wrong_kernel_is_seen(name, old, new):
    kernel = built(name, old, new)
    try:
        results = [launched(name, s, kernel) for s in SHAPES[name][1] if s[0] > 4]
    except AssertionError:
        return  # an access outside, or a deadlock
    assert not all(agrees(f[o], e[o], a[o]) for f, e, a in results for o in e)
