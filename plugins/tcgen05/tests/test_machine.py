"""The kernels of this target on a machine written from the ISA: right for tails, no K at all, and more items than buffers.

This is no execution on a device; see `sm100_machine.py` for what it is.
"""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from cake_core.pipeline import build
from cake_core.runtime.companion import load_companion
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "gemm"


@pytest.fixture(scope="module")
def machine():
    import sys

    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import sm100_machine
    finally:
        sys.path.pop(0)
    return sm100_machine


@pytest.fixture(scope="module")
def built(registry):
    cache = {}

    def run(name: str, **overrides):
        key = name, tuple(overrides.items())
        if key not in cache:
            path = KERNELS / f"{name}.cake"
            cache[key] = build(Source(path.name, path.read_text()), registry, "sm100", overrides)
        return cache[key]

    return run


def run(machine, b, ptx, companion, shape, clusters: int, seed: int):
    inputs = companion.call("inputs", shape, np.random.default_rng(seed))
    expected = companion.call("reference", inputs)
    import ml_dtypes

    out = np.full((shape["M"], shape["N"]), np.nan, ml_dtypes.bfloat16)
    arrays = inputs | {"D": out}
    scalars = shape | {n: x for n, x in inputs.items() if not isinstance(x, np.ndarray)}
    maps = {t.param: (arrays[t.tensor], t.box, t.swizzle) for t in b.lowered.tensor_maps}
    for index in range(clusters):
        machine.Machine(ptx, b.lowered.launch.threads, b.lowered.launch.cluster, scalars, maps, index, clusters, seed + index).run()
    with np.errstate(invalid="ignore", over="ignore"):  # of what broken kernels leave
        error = np.abs(out.astype(np.float64) - expected["D"])
    assert (error <= companion.admitted(inputs, expected)["D"]).all(), "a wrong result"


def sizes(b, shape: tuple[int, ...]) -> dict[str, int]:
    """By the first parameters of the text."""
    return {p.name: n for p, n in zip(b.manifest.params, shape, strict=False)}


SMALL = {"BN": 64, "EN": 32, "ST": 2}  # fewer columns, and rings that go round more often
SHAPES = [
    ("gemm_sm100", (130, 264, 72), 1, {}),
    ("gemm_sm100", (1, 8, 0), 1, {}),
    ("gemm_sm100", (300, 136, 328), 2, SMALL),
    ("gemm_sm100_pair", (129, 264, 72), 1, {}),
    ("gemm_sm100_pair", (257, 136, 0), 1, SMALL),
    ("gemm_sm100_pair", (520, 136, 328), 2, SMALL),
    ("gemm_sm100_mxf8", (129, 136, 256), 1, {}),
    ("gemm_sm100_mxf8", (64, 256, 512), 1, {"ST": 2}),
    ("gemm_sm100_nvf4", (129, 136, 256), 1, {}),
    ("gemm_sm100_nvf4", (64, 256, 384), 1, {"ST": 2}),
]


@pytest.mark.parametrize(
    ("name", "shape", "clusters", "consts"),
    SHAPES,
    ids=lambda x: x if isinstance(x, str) else "x".join(map(str, x)) if isinstance(x, tuple) else "",
)
def test_kernel(machine, built, name, shape, clusters, consts):
    b = built(name, **consts)
    run(machine, b, b.lowered.ptx, load_companion(KERNELS / f"{name}.py"), sizes(b, shape), clusters, seed=ceil(sum(shape)))


THROUGH = """          tcgen05.ld x <- acc[u][:, j * EN +: EN]
          tcgen05.wait.ld
"""


def test_columns_that_two_buffers_share(machine, registry):
    """What the epilogue has read goes back into the same columns under another name, and is read again there, while the engine fills the
    other slot."""
    text = (KERNELS / "gemm_sm100.cake").read_text()
    text = text.replace("tmem acc: f32[2][128, BN]", "tmem acc: f32[2][128, BN], q: f32[2][128, BN] alias acc")
    again = THROUGH + THROUGH.replace("ld", "st").replace("x <- acc[u][:, j * EN +: EN]", "q[u][:, j * EN +: EN] <- x") + THROUGH.replace("acc", "q")
    assert THROUGH in text
    b = build(Source("through.cake", text.replace(THROUGH, again)), registry, "sm100", prove=True)
    assert b.diagnostics == () and b.lowered.plan.tensors["q"].column == b.lowered.plan.tensors["acc"].column
    run(machine, b, b.lowered.ptx, load_companion(KERNELS / "gemm_sm100.py"), sizes(b, (300, 264, 72)), 1, seed=5)


#: What is broken in the machine code, as (pattern, replacement, how often); the machine must not come to a right end.
FAULTS = {
    "a slot handed back before it is read": (
        "gemm_sm100",
        r"tcgen05.commit.*?\[(%r\d+)\];",
        r"mbarrier.arrive.shared::cta.b64 _, [\1];",
        1,
    ),
    "an accumulator that nobody announces": ("gemm_sm100", r"tcgen05.commit[^;]*;(?![\s\S]*tcgen05.commit)", "", 1),
    "bytes of one factor": ("gemm_sm100", r"expect_tx(.*), (\d+);", r"expect_tx\1, 16384;", 1),
    "a phase off by one": ("gemm_sm100", r"(try_wait.*), (%r\d+);", r"\1, 1;", 1),
    "no wait for the loads": ("gemm_sm100", r"tcgen05.wait::ld.sync.aligned;", "", 0),
    "no proxy fence": ("gemm_sm100", r"fence.proxy.async.shared::cta;", "", 0),
    "a wrong type of B": ("gemm_sm100", r"(tcgen05.mma.*), (\d+), (%p\d+|1);", lambda m: f"{m[1]}, {int(m[2]) ^ 1 << 10}, {m[3]};", 0),
    "a stride of 512 bytes": ("gemm_sm100", r"or.b64 (.*), (\d+);", lambda m: f"or.b64 {m[1]}, {int(m[2]) ^ (64 ^ 32) << 32};", 0),
    "memory that is kept": ("gemm_sm100", r"tcgen05.dealloc[^;]*;", "", 0),
    "lanes of the first warp": ("gemm_sm100", r"(shl.b32 %r\d+, %r\d+, )21;", r"\g<1>0;", 0),
    "a commit to one CTA": ("gemm_sm100_pair", r"mov.b16 (%h\d+), 3;", r"mov.b16 \1, 1;", 0),
    "loads that signal their own CTA": (
        "gemm_sm100_pair",
        r"mapa.shared::cluster.u32 (%r\d+), (%r\d+), 0;(?=\s+cp.async)",
        r"mov.b32 \1, \2;",
        0,
    ),
    "arrivals that stay at home": (
        "gemm_sm100_pair",
        r"mapa.shared::cluster.u32 (%r\d+), (%r\d+), 0;(?=\s+mbarrier.arrive.shared)",
        r"mov.b32 \1, \2;",
        0,
    ),
    "both CTAs issue": (
        "gemm_sm100_pair",
        r"(// role mma.*\n(?:.*\n){0,4}?)\s+setp.ne.s32 (%p\d+), (%r\d+), 0;\n\s+@\2 bra [^;]*;",
        r"\1",
        1,
    ),
    "the scales of the first step for all": (
        "gemm_sm100_mxf8",
        r"(tcgen05.mma.*), (681574416|1218445344|1755316272), ",
        r"\1, 144703488, ",
        0,
    ),
    "a step of K at the address of another": ("gemm_sm100_nvf4", r"add.s32 (%r\d+), (%r\d+), 64;", r"add.s32 \1, \2, 32;", 0),
    "scales that are not copied": ("gemm_sm100_mxf8", r"tcgen05.cp.cta_group[^;]*;", "", 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(machine, built, fault):
    name, pattern, replacement, count = FAULTS[fault]
    b = built(name, **(SMALL if "mxf8" not in name and "nvf4" not in name else {"ST": 2}))
    broken = re.sub(pattern, replacement, b.lowered.ptx, count=count)
    assert broken != b.lowered.ptx
    shape = {"gemm_sm100": (130, 72, 328), "gemm_sm100_pair": (257, 72, 328), "gemm_sm100_mxf8": (8, 8, 384), "gemm_sm100_nvf4": (8, 8, 256)}[name]
    with pytest.raises(AssertionError):
        for seed in range(4):
            run(machine, b, broken, load_companion(KERNELS / f"{name}.py"), sizes(b, shape), 1, seed)


#: One product each; what the element types are in numpy.
TYPES = {"bf16": "bfloat16", "f16": "float16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "f32": "float32"}
PRODUCTS = [
    {},
    {"n": 256, "k": 192},
    {"elem": "f16", "n": 48, "k": 32, "b": "MN"},
    {"a": "MN", "b": "MN", "n": 96},
    {"a": "tmem", "k": 128},
    {"elem": "e4m3", "k": 128},
    {"elem": "e5m2", "k": 64, "a": "MN", "b": "MN"},
    {"elem": "f32", "k": 64, "n": 64, "words": "kind tf32"},
    {"pair": True, "n": 64, "k": 80},
    {"pair": True, "a": "MN", "b": "MN"},
    {"elem": "e4m3", "k": 128, "scaled": True, "n": 256},
    {"elem": "e4m3", "k": 128, "scaled": True, "pair": True},
]


@pytest.mark.parametrize("how", PRODUCTS, ids=lambda h: "-".join(f"{k}={v}" for k, v in h.items()) or "plain")
def test_product(machine, registry, text_of, how):
    import ml_dtypes

    b = build(Source("k.cake", text_of(**how)), registry, "sm100")
    rng, ctas, n, k = np.random.default_rng(7), 2 if how.get("pair") else 1, how.get("n", 128), how.get("k", 64)
    kind = np.dtype(getattr(ml_dtypes, TYPES[how.get("elem", "bf16")], None) or TYPES[how["elem"]])
    draw = lambda rows: rng.integers(-2, 3, (rows, k)).astype(np.float32).astype(kind)  # noqa: E731 - exact in every type
    left, right = draw(128 * ctas), draw(n)
    arrays = {"A": left.T.copy() if how.get("a") == "MN" else left, "B": right.T.copy() if how.get("b") == "MN" else right}
    x, y = left.astype(np.float64), right.astype(np.float64)
    if how.get("scaled"):
        of = lambda rows: (2.0 ** rng.integers(-2, 3, (rows, 4))).astype(ml_dtypes.float8_e8m0fnu)  # noqa: E731
        sa, sb = of(128 * ctas), of(n)
        x, y = (v * np.repeat(s.astype(np.float64), 32, axis=1) for v, s in ((x, sa), (y, sb)))
        block = lambda s: s.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).reshape(-1, 32, 16)  # noqa: E731 - [block, m % 32, 4 (m / 32) + s]
        arrays |= {"SA": block(sa), "SB": block(sb) if n > 128 else block(sb)[0]}
    arrays["D"] = np.full((128 * ctas, n), np.nan, np.float32)
    maps = {t.param: (arrays[t.tensor], t.box, t.swizzle) for t in b.lowered.tensor_maps}
    machine.Machine(b.lowered.ptx, b.lowered.launch.threads, b.lowered.launch.cluster, {}, maps, 0, 1, seed=3).run()
    assert np.array_equal(arrays["D"], x @ y.T)
