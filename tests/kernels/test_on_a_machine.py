"""Kernels of warpgroups, from the text to PTX, run on a machine of the ISA: attention and the grouped GEMM on ragged batches, searches."""

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from ptx_values import bits16
from warpgroups import Grid

from cake_core import pipeline
from cake_core.check import Checked
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.runtime.companion import load_companion
from cake_core.runtime.plan import make_items
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
ATTENTION = KERNELS / "attention" / "attn_fwd_sm90.cake"
MOE = {"static": KERNELS / "moe" / "moe_grouped_sm90.cake", "dynamic": KERNELS / "moe" / "moe_grouped_dynamic_sm90.cake"}
KMEANS = KERNELS / "kmeans" / "kmeans_assign_sm90.cake"
KNN = KERNELS / "knn" / "knn_part_sm90.cake"
POISON = 0xFFFF

#: (query rows a sequence, key rows a sequence, heads, key heads, CTAs)
BATCHES = {"tails": ([130], [200], 1, 1, 2), "empty": ([70, 0, 5, 9], [0, 3, 130, 4], 2, 1, 3)}
#: (rows a group, N, K, CTAs)
GROUPS = {"ragged": ([0, 5, 130, 0, 64], 72, 72, 2), "columns": ([64], 264, 8, 1), "none": ([0, 0], 8, 8, 1)}


@cache
def built(path, **constants):
    return build(Source(path.name, path.read_text()), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90", constants)


def bits(array):
    return array.view(np.uint16) if array.dtype.itemsize == 2 else array


def launch(kernel, scalars, tensors, outputs, ctas, late):
    """The outputs of a launch, as float64 where they are floats."""
    held = {n: np.ascontiguousarray(bits(x)) for n, x in tensors.items()} | {n: np.full(s, np.iinfo(t).max, t) for n, (s, t) in outputs.items()}
    work = {p.name: np.zeros(1, np.int32) for p in kernel.manifest.params if p.mode == "workspace"}
    Grid(kernel.lowered.ptx, asdict(kernel.manifest), scalars, held | work, late).run(ctas)
    assert all((w == 0).all() for w in work.values()), "a workspace is not as it was found"
    return {n: held[n] for n in outputs}


def ends(sizes):
    return np.cumsum([0, *sizes]).astype(np.int32)


def attention(batch, late, kernel):
    """(inputs, outputs) of a launch."""
    lq, lk, h, hk, ctas = batch
    companion = load_companion(ATTENTION.with_suffix(".py"))
    shape = {"B": len(lq), "H": h, "HK": hk, "TQ": sum(lq), "TK": sum(lk)}
    inputs = companion.call("inputs", shape, np.random.default_rng(2)) | {"CQ": ends(lq), "CK": ends(lk)}
    scalars = shape | {"sl2": inputs["sl2"]}
    items = make_items(kernel.manifest, scalars, {n: inputs[n] for n in ("CQ", "CK")}, ctas)
    tensors = {n: inputs[n] for n in ("CQ", "CK", "Q", "K", "V")} | {"t_items": items}
    outputs = {"O": (inputs["Q"].shape, np.uint16), "LSE": ((h, sum(lq)), np.uint32)}
    found = launch(kernel, scalars | {"t_count": len(items)}, tensors, outputs, min(ctas, len(items)), late)
    return inputs, found


def judged(inputs, found, causal):
    """Largest error over the admitted one of O and of LSE."""
    companion = load_companion(ATTENTION.with_suffix(".py"))
    companion.module.CAUSAL = causal
    expected = companion.call("reference", inputs)
    admitted = companion.admitted(inputs, expected)
    o = (found["O"].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    got = {"O": o, "LSE": found["LSE"].view(np.float32).astype(np.float64)}
    with np.errstate(invalid="ignore"):
        return {n: float(np.where(got[n] == expected[n], 0.0, np.abs(got[n] - expected[n]) / admitted[n]).max(initial=0)) for n in got}


@pytest.mark.parametrize(("causal", "late"), [(True, True), (False, False)], ids=["causal-late", "full-early"])
@pytest.mark.parametrize("batch", BATCHES)
def test_attention(batch, causal, late):
    errors = judged(*attention(BATCHES[batch], late, built(ATTENTION, CAUSAL=causal)), causal)
    assert errors["O"] <= 1 and errors["LSE"] <= 1, errors


def mutated(old, new):
    """The attention kernel in derived form with one place changed, past the checks of the compiler."""
    derived = built(ATTENTION, CAUSAL=True).derived_text
    assert derived.count(old) >= 1
    return derived.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("let hi = clamp(min(q0 + 128, lq) + off, 0, lk)", "let hi = clamp(min(q0 + 110, lq) + off, 0, lk)"),
        ("            o = o * al\n", ""),
        ("          wgmma.wait 1\n          if leader {\n            mbarrier.arrive kp_empty", "          if leader {\n            mbarrier.arrive kp_empty"),
    ],
    ids=["a key block too few", "a result not rescaled", "scores read too early"],
)
def test_a_wrong_kernel_is_seen(old, new, monkeypatch):
    source = Source("wrong.cake", mutated(old, new))
    monkeypatch.setattr(pipeline, "checked", lambda *_: Checked([]))
    wrong = build(source, load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90")
    right = built(ATTENTION, CAUSAL=True)
    wrong = replace(wrong, manifest=replace(wrong.manifest, plan=right.manifest.plan))
    batch = ([130], [140], 1, 1, 2)
    errors = judged(*attention(batch, True, wrong), True)
    assert not max(errors.values()) <= 1


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("schedule", MOE)
def test_grouped_gemm(schedule, groups, late):
    sizes, n, k, ctas = GROUPS[groups]
    rng = np.random.default_rng(3)
    draw = lambda *shape: bits16(rng.standard_normal(shape)).astype(np.uint16)  # noqa: E731
    a, w, off = draw(sum(sizes), k), draw(len(sizes), n, k), ends(sizes)
    scalars = {"E": len(sizes), "T": sum(sizes), "N": n, "K": k}
    found = launch(built(MOE[schedule]), scalars, {"OFF": off, "A": a, "W": w}, {"D": ((sum(sizes), n), np.uint16)}, ctas, late)
    value = lambda x: (x.astype(np.uint32) << 16).view(np.float32)  # noqa: E731
    for e in range(len(sizes)):
        rows = slice(off[e], off[e + 1])
        expected = value(a[rows]) @ value(w[e]).T
        assert np.allclose(value(found["D"][rows]), expected, rtol=2.0**-8, atol=2.0**-8)


def searched(path, shape, late, kernel, outputs, ctas):
    """Whether each output of a search is within its companion's tolerance, exactly where that is 0."""
    companion = load_companion(path.with_suffix(".py"))
    inputs = companion.call("inputs", shape, np.random.default_rng(5))
    found = launch(kernel, shape, inputs, outputs, ctas, late)
    expected = companion.call("reference", inputs)
    admitted = companion.admitted(inputs, expected)
    right = {}
    for name, wanted in expected.items():
        got = (found[name].view(np.float32) if outputs[name][1] is np.uint32 else found[name].astype(np.int32)).astype(np.float64)
        with np.errstate(invalid="ignore"):
            right[name] = bool(((got == wanted) | np.isfinite(wanted) & (np.abs(got - wanted) <= admitted[name])).all())
    return right


#: A cluster is beyond the machine: the CTAs are alone.
ALONE = {"CL": 1}


@pytest.mark.parametrize(("shape", "late", "ctas"), [((2, 150, 132), True, 2), ((1, 1, 4), False, 1)], ids=["tails-late", "one-early"])
def test_kmeans(shape, late, ctas):
    nb, n, k = shape
    outputs = {"L": ((nb, n), np.int32)}
    assert searched(KMEANS, {"NB": nb, "N": n, "K": k}, late, built(KMEANS, **ALONE), outputs, ctas) == {"L": True}


@pytest.mark.parametrize(("shape", "late"), [((70, 600), True), ((3, 8), False)], ids=["tails-late", "few-early"])
def test_nearest_neighbours(shape, late):
    q, n = shape
    outputs = {"V": ((4, q, 10), np.uint32), "I": ((4, q, 10), np.int32)}
    assert searched(KNN, {"Q": q, "N": n}, late, built(KNN), outputs, -(-q // 128) * 4) == {"V": True, "I": True}


@pytest.mark.parametrize(
    ("old", "new"),
    [("if (j + 1) * BN > K", "if (j + 1) * BN > K + BN"), ("cols(s) + j * BN)", "cols(s) + j * BN + 1)"), ("at = 0", "at = 3")],
    ids=["zero rows win", "indices one too large", "a point without a distance"],
)
def test_a_wrong_search_is_seen(old, new):
    text = KMEANS.read_text()
    assert text.count(old) == 1
    wrong = build(Source("wrong.cake", text.replace(old, new)), load_registry(environ={"CAKE_LOAD_PLUGINS": ""}), "sm90", ALONE)
    assert searched(KMEANS, {"NB": 1, "N": 200, "K": 12}, False, wrong, {"L": ((1, 200), np.int32)}, 1) == {"L": False}
