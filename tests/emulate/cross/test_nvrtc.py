"""Kernels of NVRTC over NVIDIA's headers: they choose instructions, orders and scopes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from by_nvrtc import launched, ptx

SCHEDULES = ("round-robin", "adversarial")

#: Tiles come by cuda::memcpy_async in a pipeline of two stages.
PIPELINE = """
#include <cuda/pipeline>
#include <cooperative_groups.h>
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
  __shared__ float tile[2][128];
  auto block = cooperative_groups::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  int next = 0;
  for (int t = 0; t < tiles; ++t) {
    for (; next < tiles && next < t + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[next % 2], x + 128 * next, sizeof(float) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tile[t % 2][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
"""

#: A bulk copy through cuda::ptx that completes on a barrier, and one back.
BULK = """
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void kernel(const float* x, float* out) {
  __shared__ alignas(128) float tile[256];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x + 256 * blockIdx.x, sizeof(tile), &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] = tile[i] * 2 + 1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 256 * blockIdx.x, tile, sizeof(tile));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
"""

#: CTAs of a cluster add up through distributed shared memory.
CLUSTER = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) kernel(const int* x, int* out) {
  __shared__ int mine[64];
  auto cluster = cg::this_cluster();
  mine[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  int sum = 0;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += cluster.map_shared_rank(mine, r)[threadIdx.x];
  cluster.sync();
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""

#: The last CTA to come adds up what the others have written.
LAST = """
#include <cuda/atomic>
extern "C" __global__ void kernel(const float* x, float* partial, unsigned* arrived, float* out) {
  __shared__ float sums[2];
  __shared__ bool last;
  float v = x[blockIdx.x * 64 + threadIdx.x];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0] + sums[1];
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*arrived);
    last = ref.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned n = 0; n < gridDim.x; ++n) sum += partial[n];
    *out = sum;
  }
}
"""

#: CUB's scan of a block, by threads that hold four elements each.
CUB = """
#include <cub/block/block_scan.cuh>
extern "C" __global__ void kernel(const int* x, int* sums) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ Scan::TempStorage kept;
  int v[4], s[4];
  for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
  Scan(kept).InclusiveSum(v, s);
  for (int i = 0; i < 4; ++i) sums[threadIdx.x * 4 + i] = s[i];
}
"""

#: Functions of the toolkit's library: their slow ways too (large arguments, denormals, a table in a thread's memory).
MATH = """
extern "C" __global__ void kernel(const float* x, const double* y, float* out, double* wide, long long* whole) {
  int i = threadIdx.x;
  float v = x[i];
  out[i] = sinf(v); out[64 + i] = expf(v / 4000); out[128 + i] = erff(v / 100); out[192 + i] = tanhf(v / 50);
  out[256 + i] = v / (v + 3.0f); out[320 + i] = sqrtf(fabsf(v)); out[384 + i] = powf(fabsf(v), 0.3f); out[448 + i] = log1pf(fabsf(v));
  wide[i] = y[i] / 7.0 + sqrt(fabs(y[i])) + exp(y[i] / 1e4);
  whole[i] = (long long)(y[i] * 1e6) / 12345 + (long long)(y[i] * 1e6) % 789 + __popcll((long long)v) + __clz((int)v);
}
"""

#: Conversions to small floats by cuda_fp8.h and cuda_fp4.h: by hand for sm_80, by instructions behind it.
SMALL = """
#include <cuda_fp8.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const float* x, unsigned char* e4m3, unsigned char* e5m2, __nv_bfloat16* b, __half* h, float* back) {
  int i = threadIdx.x;
  e4m3[i] = __nv_fp8_e4m3(x[i]).__x;
  e5m2[i] = __nv_fp8_e5m2(x[i]).__x;
  b[i] = __float2bfloat16(x[i]);
  h[i] = __hadd(__float2half(x[i]), __half(1.0f));
  __nv_fp8_e4m3 f; f.__x = e4m3[i];
  back[i] = float(f);
}
"""

#: Votes, matches and reductions of tiles.
TILES = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const int* x, int* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = x[threadIdx.x];
  out[threadIdx.x] = cg::reduce(tile, v, cg::plus<int>()) + 100 * __popc(tile.match_any(v)) + 10000 * tile.any(v > 8) + 100000 * tile.shfl_xor(v, 3);
  auto some = cg::coalesced_threads();
  if (v & 1) out[threadIdx.x] += 1000000 * cg::coalesced_threads().num_threads();
}
"""

#: Matrices of mma.h.
WMMA = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void kernel(const half* a, const half* b, float* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
  wmma::fill_fragment(acc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}
"""

#: Functions that are not inlined: a structure by value, pointers to the caller's variables, two that call themselves.
CALLS = """
struct Weights { float x[5]; int n; };
__device__ __noinline__ float weighted(Weights p, float w) { float s = 0; for (int i = 0; i < p.n; ++i) s += p.x[i] * w; return s; }
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ void swap(int* a, int* b) { int t = *a; *a = *b; *b = t; }
extern "C" __global__ void kernel(float* x, int* ints) {
  int t = threadIdx.x;
  Weights p;
  p.n = t % 5;
  for (int i = 0; i < 5; ++i) p.x[i] = x[t] + i;
  x[t] = weighted(p, 2.0f);
  int a = ints[t], b = t;
  if (t % 3) swap(&a, &b);
  ints[t] = ackermann(2, t % 4) + a * 1000 + b;
}
"""

#: Tensor memory through cuda::ptx: written in one shape, read in the other by the layout that the ISA gives.
COLUMNS = """
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void kernel(const unsigned* x, unsigned* out, unsigned* across) {
  __shared__ unsigned base;
  unsigned warp = threadIdx.x / 32, v[8], w[16];
  if (warp == 0) { ptx::tcgen05_alloc(ptx::cta_group_1, &base, 32); ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1); }
  __syncthreads();
  unsigned at = base + (warp << 21);
  for (int i = 0; i < 8; ++i) v[i] = x[threadIdx.x * 8 + i];
  ptx::tcgen05_st_32x32b(at, v);
  ptx::tcgen05_wait_st();
  unsigned r[8], q[4];
  ptx::tcgen05_ld_32x32b(r, at);
  ptx::tcgen05_ld_16x256b(q, at);
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = r[i];
  for (int i = 0; i < 4; ++i) across[threadIdx.x * 4 + i] = q[i];
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(ptx::cta_group_1, base, 32);
}
"""


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def pipeline():
    x = normal(5 * 128)
    want = x.reshape(5, 128)[:, ::-1]
    return {"x": x, "out": np.zeros(128, np.float32), "tiles": np.int32(5)}, {"block": 128}, {"out": np.add.accumulate(want, 0)[-1]}, 1e-6


def bulk():
    x = normal(512)
    return {"x": x, "out": np.zeros(512, np.float32)}, {"block": 64, "grid": 2}, {"out": x * 2 + 1}, 1e-6


def cluster():
    x = np.arange(512, dtype=np.int32) ** 2
    want = np.repeat(x.reshape(2, 4, 64).sum(1, keepdims=True), 4, 1).reshape(-1)
    return {"x": x, "out": np.zeros(512, np.int32)}, {"block": 64, "grid": 8, "cluster": 4}, {"out": want}, 0


def last():
    x = normal(6 * 64)
    given = {"x": x, "partial": np.zeros(6, np.float32), "arrived": np.zeros(1, np.uint32), "out": np.zeros(1, np.float32)}
    return given, {"block": 64, "grid": 6}, {"out": [x.sum()]}, 1e-4


def cub():
    x = np.random.default_rng(0).integers(-1000, 1000, 256).astype(np.int32)
    given = {"x": x, "sums": np.zeros(256, np.int32)}
    return given, {"block": 64}, {"sums": np.cumsum(x)}, 0


def functions():
    x = (normal(64) * np.logspace(-3, 5, 64)).astype(np.float32)
    y = normal(64).astype(np.float64) * 1000
    v = x.astype(np.float64)
    outs = [
        np.sin(v),
        np.exp(v / 4000),
        [math.erf(e / 100) for e in v],
        np.tanh(v / 50),
        v / (v + 3),
        np.sqrt(abs(v)),
        abs(v) ** 0.3,
        np.log1p(abs(v)),
    ]
    by = [int(e) for e in y * 1e6]
    rounded = [abs(n) // 12345 * (1 if n >= 0 else -1) + math.fmod(n, 789) for n in by]
    bits = [(int(e) & 2**64 - 1).bit_count() + 32 - (int(e) & 2**32 - 1).bit_length() for e in x]
    given = {"x": x, "y": y, "out": np.zeros(512, np.float32), "wide": np.zeros(64), "whole": np.zeros(64, np.int64)}
    want = {"out": np.concatenate(outs), "wide": y / 7 + np.sqrt(abs(y)) + np.exp(y / 1e4), "whole": np.add(rounded, bits)}
    return given, {"block": 64}, want, 1e-5


def small():
    x = (normal(64) * np.logspace(-4, 2, 64)).astype(np.float32)
    x[:4] = 0, -0.0, 448, -1e-9
    given = {
        "x": x,
        "e4m3": np.zeros(64, np.uint8),
        "e5m2": np.zeros(64, np.uint8),
        "b": np.zeros(64, ml_dtypes.bfloat16),
        "h": np.zeros(64, np.float16),
    }
    e4m3 = x.astype(ml_dtypes.float8_e4m3fn)
    want = {"e4m3": e4m3.view(np.uint8), "e5m2": x.astype(ml_dtypes.float8_e5m2).view(np.uint8), "b": x.astype(ml_dtypes.bfloat16)}
    want |= {"h": x.astype(np.float16) + np.float16(1), "back": e4m3.astype(np.float32)}
    return given | {"back": np.zeros(64, np.float32)}, {"block": 64}, want, 0


def tiles():
    x = np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)
    out = np.zeros(64, np.int64)
    for i, v in enumerate(x.tolist()):
        group = x[i // 8 * 8 : i // 8 * 8 + 8]
        out[i] = group.sum() + 100 * (group == v).sum() + 10000 * (group > 8).any() + 100000 * x[i ^ 3]
        out[i] += 1000000 * (x[i // 32 * 32 : i // 32 * 32 + 32] & 1).sum() if v & 1 else 0
    return {"x": x, "out": np.zeros(64, np.int32)}, {"block": 64}, {"out": out}, 0


def wmma():
    a, b = (normal(16, 16, seed=s).astype(np.float16) for s in (0, 1))
    want = a.astype(np.float32) @ b.astype(np.float32).T
    return {"a": a, "b": b, "d": np.zeros((16, 16), np.float32)}, {"block": 32}, {"d": want}, 1e-4


def calls():
    t, ints = np.arange(64), 7 * np.arange(64)
    weighted = [sum(2 * (n + i) for i in range(n % 5)) for n in t]
    a, b = np.where(t % 3, t, ints), np.where(t % 3, ints, t)
    want = {"x": np.array(weighted), "ints": 2 * (t % 4) + 3 + 1000 * a + b}
    return {"x": t.astype(np.float32), "ints": ints.astype(np.int32)}, {"block": 64}, want, 0


def columns():
    x = np.random.default_rng(0).integers(0, 2**32, (128, 8), dtype=np.uint32)
    # PTX ISA, tcgen05.ld, Matrix fragments for shape .16x256b: lane l has columns 2(l%4) and behind of rows l/4 and l/4+8 of its warp's first 16.
    lane, warp = np.arange(128) % 32, np.arange(128) // 32
    row, at = 32 * warp + lane // 4, 2 * (lane % 4)
    across = np.stack([x[row, at], x[row, at + 1], x[row + 8, at], x[row + 8, at + 1]], 1)
    given = {"x": x, "out": np.zeros_like(x), "across": np.zeros((128, 4), np.uint32)}
    return given, {"block": 128}, {"out": x, "across": across}, 0


#: Kernel: its text, its data, what its PTX must hold for an architecture.
CASES = {
    "pipeline": (PIPELINE, pipeline, {"sm_80": "cp.async"}),
    "bulk": (BULK, bulk, {"sm_90a": "cp.async.bulk.shared::cluster", "sm_100a": "cp.async.bulk.shared::cluster"}),
    "cluster": (CLUSTER, cluster, {"sm_90a": "mapa"}),
    "last": (LAST, last, {"sm_90a": "atom"}),
    "cub": (CUB, cub, {"sm_80": "shfl.sync"}),
    "functions": (MATH, functions, {"sm_80": "ex2.approx", "sm_90a": "div"}),
    "small": (SMALL, small, {"sm_80": "cvt.rn", "sm_90a": "e4m3x2", "sm_100a": "e5m2x2"}),
    "tiles": (TILES, tiles, {"sm_80": "match"}),
    "wmma": (WMMA, wmma, {"sm_80": "wmma"}),
    "calls": (CALLS, calls, {"sm_80": "call.uni", "sm_90a": "call.uni"}),
    "columns": (COLUMNS, columns, {"sm_100a": "tcgen05.ld.sync.aligned.16x256b.x1"}),
}
ALL = [(name, arch) for name, (_, _, archs) in CASES.items() for arch in archs]


@pytest.fixture(scope="module")
def compiled():
    kept = {}

    def of(name, arch):
        if (name, arch) not in kept:
            kept[name, arch] = ptx(CASES[name][0], arch)
        return kept[name, arch]

    return of


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "arch"), ALL, ids=str)
def test_it_is_right(name, arch, schedule, compiled, emulates):
    text = compiled(name, arch)
    _, data, archs = CASES[name]
    assert archs[arch] in text
    arguments, launch, want, tolerance = data()
    run = launched(text, arguments, emulates, schedule=schedule, **launch)
    assert run.findings == []
    for output, values in want.items():
        np.testing.assert_allclose(run[output].astype(np.float64), np.asarray(values).astype(np.float64), rtol=tolerance, atol=tolerance)
