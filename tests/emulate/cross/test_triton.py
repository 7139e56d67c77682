"""Kernels of Triton: instructions, layouts, descriptors and synchronisation are its choice."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from by_triton import Compiled, Described

SCHEDULES = ("round-robin", "adversarial")
ALL, HOPPER, BLACKWELL = (80, 90, 100), (90, 100), (100,)


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + at, e / tl.sum(e, 0), mask=at < n)


@triton.jit
def layer_norm(x, scale, shift, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(inside, v - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
    y = d * rstd * tl.load(scale + at, mask=inside) + tl.load(shift + at, mask=inside)
    tl.store(out + row * n + at, y.to(tl.bfloat16), mask=inside)


@triton.jit
def histogram(x, counts, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside, other=0)
    tl.atomic_add(counts + v, 1, mask=inside)
    tl.atomic_add(total, tl.sum(tl.where(inside, v, 0).to(tl.float32), 0))


@triton.jit
def matmul(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, num_stages=STAGES):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
        y = tl.load(b + (at + k)[:, None] * N + n[None, :], mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_maps(a, b, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, SPECIAL: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, num_stages=STAGES, warp_specialize=SPECIAL):
        acc = tl.dot(a.load([m, at]), b.load([n, at]).T, acc)
    out.store([m, n], acc.to(tl.float16))


@triton.jit
def matmul_made_maps(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Persistent, with tensor maps that the kernel makes itself."""
    A = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    B = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    D = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        m, n = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in tl.range(0, K, BK, num_stages=2):
            acc = tl.dot(A.load([m, at]), B.load([n, at]).T, acc)
        D.store([m, n], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, out, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m, d, s = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    Q = tl.load(q + m[:, None] * D + d[None, :])
    best, total, acc = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for at in tl.range(0, S, BN, num_stages=2):
        K = tl.load(k + (at + s)[:, None] * D + d[None, :])
        V = tl.load(v + (at + s)[:, None] * D + d[None, :])
        scores = tl.dot(Q, K.T) * 0.125
        higher = tl.maximum(best, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        fade = tl.exp(best - higher)
        total, best = total * fade + tl.sum(p, 1), higher
        acc = tl.dot(p.to(tl.float16), V, acc * fade[:, None])
    tl.store(out + m[:, None] * D + d[None, :], acc / total[:, None])


@triton.jit
def matmul_scaled(a, sa, b, sb, out, K, KIND: tl.constexpr, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    PACK: tl.constexpr = 2 if KIND == "e2m1" else 1
    m, n, k, g = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK // PACK), tl.arange(0, BK // GROUP)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, num_stages=1):
        x = tl.load(a + m[:, None] * (K // PACK) + (at // PACK + k)[None, :])
        y = tl.load(b + n[:, None] * (K // PACK) + (at // PACK + k)[None, :])
        xs = tl.load(sa + m[:, None] * (K // GROUP) + (at // GROUP + g)[None, :])
        ys = tl.load(sb + n[:, None] * (K // GROUP) + (at // GROUP + g)[None, :])
        acc = tl.dot_scaled(x, xs, KIND, y.T, ys, KIND, acc)
    tl.store(out + m[:, None] * BN + n[None, :], acc)


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32).astype(dtype)


def vector_add_case(arch):
    x, y = normal(300), normal(300, seed=1)
    return {"fn": vector_add, "grid": 2, "x": x, "y": y, "out": np.zeros(300, np.float32), "n": np.int32(300), "BLOCK": 256}, x + y, 0


def softmax_case(arch):
    x = normal(3, 500)
    e = np.exp(x - x.max(1, keepdims=True))
    return {"fn": softmax, "grid": 3, "x": x, "out": np.zeros_like(x), "n": np.int32(500), "BLOCK": 512}, e / e.sum(1, keepdims=True), 1e-5


def layer_norm_case(arch):
    x, scale, shift = normal(3, 200, dtype=ml_dtypes.bfloat16), normal(200, seed=1), normal(200, seed=2)
    v = x.astype(np.float32)
    want = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * scale + shift
    return (
        {"fn": layer_norm, "grid": 3, "x": x, "scale": scale, "shift": shift, "out": np.zeros_like(x), "n": np.int32(200), "BLOCK": 256},
        want,
        1e-2,
    )


def histogram_case(arch):
    x = np.random.default_rng(0).integers(0, 16, 400).astype(np.int32)
    given = {"fn": histogram, "grid": 2, "x": x, "counts": np.zeros(16, np.int32), "total": np.zeros(1, np.float32), "n": np.int32(400), "BLOCK": 256}
    return given, {"counts": np.bincount(x, minlength=16), "total": np.array([x.sum()])}, 0


def _matmul(dtype, arch, stages=3, M=70, N=72, K=96, BM=64, BN=64, BK=32, tolerance=2e-3):
    a, b = normal(M, K, dtype=dtype), normal(K, N, dtype=dtype, seed=1)
    given = {
        "fn": matmul,
        "grid": (-(-M // BM), -(-N // BN), 1),
        "a": a,
        "b": b,
        "out": np.zeros((M, N), np.float32),
        "M": np.int32(M),
        "N": np.int32(N),
        "K": np.int32(K),
    }
    return given | {"BM": BM, "BN": BN, "BK": BK, "STAGES": stages}, a.astype(np.float32) @ b.astype(np.float32), tolerance


def matmul_f16_case(arch):
    return _matmul(np.float16, arch, **({"BM": 128, "M": 140} if arch == 100 else {}))


def matmul_tf32_case(arch):
    return _matmul(np.float32, arch, K=64, tolerance=2e-2)


def matmul_e4m3_case(arch):
    return _matmul(ml_dtypes.float8_e4m3fn, arch, M=64, N=64, K=64, BK=64)


def _maps(special):
    M, N, K = 128, 64, 192
    a, b = normal(M, K, dtype=np.float16), normal(N, K, dtype=np.float16, seed=1)
    given = {
        "fn": matmul_maps,
        "grid": 1,
        "a": Described(a, (128, 64)),
        "b": Described(b, (64, 64)),
        "out": Described(np.zeros((M, N), np.float16), (128, 64)),
    }
    return (
        given | {"K": np.int32(K), "BM": 128, "BN": 64, "BK": 64, "STAGES": 2, "SPECIAL": special},
        a.astype(np.float32) @ b.astype(np.float32).T,
        1e-2,
    )


def matmul_maps_case(arch):
    return _maps(False)


def matmul_special_case(arch):
    return _maps(True)


def matmul_made_maps_case(arch):
    M, N, K = 140, 128, 64
    a, b = normal(M, K, dtype=np.float16), normal(N, K, dtype=np.float16, seed=1)
    given = {
        "fn": matmul_made_maps,
        "grid": 2,
        "a": a,
        "b": b,
        "out": np.zeros((M, N), np.float16),
        "M": np.int32(M),
        "N": np.int32(N),
        "K": np.int32(K),
        "BM": 128,
        "BN": 64,
        "BK": 32,
    }
    return given, a.astype(np.float32) @ b.astype(np.float32).T, 1e-2


def attention_case(arch):
    BM, S, D = (128 if arch == 100 else 64), 128, 64
    q, k, v = (normal(n, D, dtype=np.float16, seed=s) for s, n in enumerate((BM, S, S)))
    e = np.exp(q.astype(np.float32) @ k.astype(np.float32).T / 8)
    want = e / e.sum(1, keepdims=True) @ v.astype(np.float32)
    return (
        {"fn": attention, "grid": 1, "q": q, "k": k, "v": v, "out": np.zeros((BM, D), np.float32), "S": np.int32(S), "D": D, "BM": BM, "BN": 64},
        want,
        4e-3,
    )


def _scaled(kind, group, scales):
    M, N, K = 128, 64, 256
    rng = np.random.default_rng(0)
    e2m1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    if kind == "e2m1":
        codes = [rng.integers(0, 16, (n, K)) for n in (M, N)]
        values = [np.where(c & 8, -1, 1) * e2m1[c & 7] for c in codes]
        stored = [(c[:, ::2] | c[:, 1::2] << 4).astype(np.uint8) for c in codes]
    else:
        stored = [normal(n, K, dtype=ml_dtypes.float8_e4m3fn, seed=n) for n in (M, N)]
        values = [s.astype(np.float32) for s in stored]
    if scales == "e8m0":
        by = [rng.integers(124, 131, (n, K // group)).astype(np.uint8) for n in (M, N)]
        factors = [2.0 ** (s.astype(np.float32) - 127) for s in by]
    else:
        by = [np.abs(normal(n, K // group, seed=n)).astype(ml_dtypes.float8_e4m3fn) for n in (M, N)]
        factors = [s.astype(np.float32) for s in by]
    a, b = (v * np.repeat(f, group, 1) for v, f in zip(values, factors, strict=True))
    given = {
        "fn": matmul_scaled,
        "grid": 1,
        "a": stored[0],
        "sa": by[0],
        "b": stored[1],
        "sb": by[1],
        "out": np.zeros((M, N), np.float32),
        "K": np.int32(K),
    }
    return given | {"KIND": kind, "GROUP": group, "BM": M, "BN": N, "BK": 128}, a @ b.T, 1e-3


def matmul_mxf8_case(arch):
    return _scaled("e4m3", 32, "e8m0")


def matmul_mxf4_case(arch):
    return _scaled("e2m1", 32, "e8m0")


def matmul_nvf4_case(arch):
    return _scaled("e2m1", 16, "e4m3")


#: Kernel, capability: what its PTX must hold, or nobody knows that it is the instruction that is put to the test.
CASES = {
    **{(name, arch): () for name in ("vector_add", "softmax", "layer_norm", "histogram") for arch in ALL},
    ("matmul_f16", 80): ("mma.sync", "ldmatrix", "cp.async"), ("matmul_f16", 90): ("wgmma.mma_async", "cp.async"),
    ("matmul_f16", 100): ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.ld"),
    ("matmul_tf32", 80): ("mma.sync", "tf32"), ("matmul_tf32", 90): ("wgmma.mma_async", "tf32"), ("matmul_tf32", 100): ("tcgen05.mma", "kind::tf32"),
    ("matmul_e4m3", 90): ("wgmma.mma_async", "e4m3"), ("matmul_e4m3", 100): ("tcgen05.mma", "kind::f8f6f4"),
    ("matmul_maps", 90): ("wgmma", "cp.async.bulk.tensor"), ("matmul_maps", 100): ("tcgen05.mma", "cp.async.bulk.tensor"),
    ("matmul_special", 100): ("tcgen05.mma", "cp.async.bulk.tensor"),
    ("matmul_made_maps", 90): ("tensormap.replace",), ("matmul_made_maps", 100): ("tensormap.replace",),
    ("attention", 80): ("mma.sync",), ("attention", 90): ("wgmma",), ("attention", 100): ("tcgen05.mma",),
    ("matmul_mxf8", 100): ("kind::mxf8f6f4.block_scale",), ("matmul_mxf4", 100): ("kind::mxf4.block_scale",),
    ("matmul_nvf4", 100): ("kind::mxf4nvf4.block_scale",),
}  # fmt: skip

#: Right kernels that leave out what the ISA asks for, and are told so. tcgen05.alloc writes the address as threads do, a copy by a tensor map takes the
#: same bytes later, and there is no fence between the two proxies (PTX ISA, Proxies; tcgen05.alloc: a weak store). Warps of a warpgroup that come back for
#: the next loop execute setmaxnreg twice without a synchronisation in between (PTX ISA, setmaxnreg).
FOUND = {
    ("matmul_maps", 100): {"emulate/missing-fence"},
    ("matmul_special", 100): {"emulate/missing-fence", "emulate/operand"},
}


@pytest.fixture(scope="module")
def compiled():
    kept = {}

    def of(name, arch):
        if (name, arch) not in kept:
            given, want, tolerance = globals()[f"{name}_case"](arch)
            kept[name, arch] = Compiled(given.pop("fn"), arch, given.pop("grid"), {"num_warps": 4}, **given), want, tolerance
        return kept[name, arch]

    return of


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "arch"), CASES, ids=str)
def test_it_is_right(name, arch, schedule, compiled, emulates):
    kernel, want, tolerance = compiled(name, arch)
    for word in CASES[name, arch]:
        assert word in kernel.text
    run = kernel.run(emulates, schedule)
    assert {f.code for f in run.findings} == FOUND.get((name, arch), set()), run.findings
    for output, values in (want if isinstance(want, dict) else {"out": want}).items():
        np.testing.assert_allclose(run[output].astype(np.float32), values, rtol=tolerance, atol=tolerance)


def test_the_fence_behind_an_allocation_is_all_that_is_missing(compiled, emulates):
    kernel = compiled("matmul_maps", 100)[0]
    assert kernel.run(emulates, "round-robin", kernel.fenced()).findings == []
