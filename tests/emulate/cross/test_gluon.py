"""Kernels of Gluon: descriptors, instruction descriptors, tensor memory's layouts, pairs and clusters are its choice."""

from __future__ import annotations

import numpy as np
import pytest
from by_triton import Compiled, Described
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    clc,
    fence_async_shared,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.blackwell import tma as tma100
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

SCHEDULES = ("round-robin", "adversarial")


@gluon.jit
def shapes(x, out, M: gl.constexpr, N: gl.constexpr, INTO: gl.constexpr, FROM: gl.constexpr):
    """Through tensor memory, written in one shape and read in another."""
    plain: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    at = gl.arange(0, M, gl.SliceLayout(1, plain))[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, plain))[None, :]
    cells = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout((M, N), col_stride=1))
    cells.store(gl.convert_layout(gl.load(x + at), cells.get_reg_layout(instr_variant=INTO)))
    gl.store(out + at, gl.convert_layout(cells.load(cells.get_reg_layout(instr_variant=FROM)), plain))


@gluon.jit
def one_tile(a, b, c, d, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, IN_TMEM: gl.constexpr):
    """D = A B + C of one tile; A in shared or tensor memory."""
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.init(done, count=1)
    sa = gl.allocate_shared_memory(a.dtype, [M, K], a.layout)
    sb = gl.allocate_shared_memory(b.dtype, [K, N], b.layout)
    sc = gl.allocate_shared_memory(c.dtype, [M, N], c.layout)
    mbarrier.expect(ready, a.nbytes_per_cta + b.nbytes_per_cta + c.nbytes_per_cta)
    tma.async_load(a, [0, 0], ready, sa)
    tma.async_load(b, [0, 0], ready, sb)
    tma.async_load(c, [0, 0], ready, sc)
    mbarrier.wait(ready, phase=0)
    acc = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout((M, N), col_stride=1))
    acc.store(sc.load(acc.get_reg_layout()))
    if IN_TMEM:
        ta = allocate_tensor_memory(a.dtype, [M, K], TensorMemoryLayout((M, K), col_stride=1))
        ta.store(sa.load(ta.get_reg_layout()))
        tcgen05_mma(ta, sb, acc)
    else:
        tcgen05_mma(sa, sb, acc)
    tcgen05_commit(done)
    mbarrier.wait(done, phase=0)
    mbarrier.invalidate(ready)
    mbarrier.invalidate(done)
    sc.store(acc.load(acc.get_reg_layout()))
    fence_async_shared()
    tma.async_store(d, [0, 0], sc)
    tma.store_wait(pendings=0)


@gluon.jit
def pair(a, b, d, M: gl.constexpr, N: gl.constexpr):
    """One tile by two CTAs: A and D by halves of rows, B by halves of columns."""
    sa = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    sb = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    ready = mbarrier.allocate_mbarrier(two_ctas=True)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=1)
    mbarrier.init(done, count=1)
    mbarrier.expect(ready, a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [0, 0], ready, sa)
    tma.async_load(b, [0, 0], ready, sb)
    mbarrier.wait(ready, phase=0, deps=[sa, sb])
    mbarrier.invalidate(ready)
    layout: gl.constexpr = TensorMemoryLayout(block=(M // 2, N), col_stride=1, cga_layout=d.layout.cga_layout, two_ctas=True)
    acc = allocate_tensor_memory(gl.float32, [M, N], layout)
    tcgen05_mma(sa, sb, acc, use_acc=False, mbarriers=[done])
    mbarrier.wait(done, phase=0, deps=[sa, sb])
    mbarrier.invalidate(done)
    sd = gl.allocate_shared_memory(d.dtype, d.block_shape, d.layout)
    sd.store(acc.load(acc.get_reg_layout()).to(d.dtype))
    fence_async_shared()
    tma.async_store(d, [0, 0], sd)
    tma.store_wait(pendings=0)


@gluon.jit
def copied(x, out, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr):
    """Shared memory to tensor memory by the engine (tcgen05.cp), and to registers."""
    plain: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    at = gl.arange(0, M, gl.SliceLayout(1, plain))[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, plain))[None, :]
    sx = gl.allocate_shared_memory(gl.float32, [M, N], LAYOUT)
    sx.store(gl.load(x + at))
    fence_async_shared()
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    cells = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout((M, N), col_stride=1))
    tcgen05_copy(sx, cells)
    tcgen05_commit(done)
    mbarrier.wait(done, phase=0)
    mbarrier.invalidate(done)
    gl.store(out + at, gl.convert_layout(cells.load(cells.get_reg_layout()), plain))


@gluon.jit
def gathered(x, rows, out, R: gl.constexpr, C: gl.constexpr):
    """Rows of a table by a tensor map (tile::gather4)."""
    plain: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    spread: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))
    which = gl.load(rows + gl.arange(0, R, spread))
    sx = gl.allocate_shared_memory(x.dtype, [R, C], x.layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.expect(ready, R * C * 2)
    tma100.async_gather(x, which, 0, ready, sx)
    mbarrier.wait(ready, phase=0)
    mbarrier.invalidate(ready)
    at = gl.arange(0, R, gl.SliceLayout(1, plain))[:, None] * C + gl.arange(0, C, gl.SliceLayout(0, plain))[None, :]
    gl.store(out + at, sx.load(plain))


@gluon.jit
def cancelled(out, tiles):
    """CTAs take the work of others that have not begun (cluster launch control)."""
    result = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    at = gl.program_id(0)
    phase = 0
    more = True
    while more:
        clc.try_cancel(result, bar)
        mbarrier.expect(bar, 16)
        gl.store(out + at, at + 1)
        mbarrier.wait(bar, phase)
        phase ^= 1
        taken = clc.load_result(result)
        more = taken.is_canceled()
        if more:
            at = taken.program_id(0)


@gluon.jit
def cluster_softmax(x, out, N: gl.constexpr):
    """A row over the CTAs of a cluster."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0], cga_layout=((1,), (2,)))
    at = gl.program_id(0) * N + gl.arange(0, N, layout)
    v = gl.load(x + at)
    e = gl.exp(v - gl.max(v, axis=0))
    gl.store(out + at, e * (1.0 / gl.sum(e, axis=0)))


@gluon.jit
def wgmma_tile(a, b, d, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, IN_REGISTERS: gl.constexpr):
    """D = A B of one tile on Hopper; A in shared memory or in registers."""
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    sa = gl.allocate_shared_memory(a.dtype, [M, K], a.layout)
    sb = gl.allocate_shared_memory(b.dtype, [K, N], b.layout)
    mbarrier.expect(ready, a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [0, 0], ready, sa)
    tma.async_load(b, [0, 0], ready, sb)
    mbarrier.wait(ready, phase=0)
    mbarrier.invalidate(ready)
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, 16])
    acc = gl.zeros([M, N], gl.float32, layout)
    if IN_REGISTERS:
        acc = warpgroup_mma(sa.load(gl.DotOperandLayout(0, layout, 2)), sb, acc, is_async=True)
    else:
        acc = warpgroup_mma(sa, sb, acc, is_async=True)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    at = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    gl.store(d + at, acc)


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32).astype(dtype)


def shared(shape, kind=gl.float16, **more):
    return gl.NVMMASharedLayout.get_default_for(list(shape), kind, **more)


def shapes_case(into, out, M=128):
    x = normal(M, 64)
    return {"fn": shapes, "grid": 1, "x": x, "out": np.zeros_like(x), "M": M, "N": 64, "INTO": into, "FROM": out}, {"out": x}, 0


def one_tile_case(in_tmem, M=128):
    N, K = 64, 64
    a, b, c = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16, seed=1), normal(M, N, seed=2)
    wide = shared((M, N), gl.float32)
    given = {"a": Described(a, (M, K), shared((M, K))), "b": Described(b, (K, N), shared((K, N))), "c": Described(c, (M, N), wide)}
    given |= {"d": Described(np.zeros((M, N), np.float32), (M, N), wide), "M": M, "N": N, "K": K, "IN_TMEM": in_tmem}
    return {"fn": one_tile, "grid": 1, **given}, {"d": a.astype(np.float32) @ b.astype(np.float32) + c}, 1e-3


def pair_case(M=256):
    N, K = 64, 64
    a, b = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16, seed=1)
    rows, columns = shared((M, K), cga_layout=[[1, 0]]), shared((K, N), cga_layout=[[0, 1]])
    d = Described(np.zeros((M, N), np.float16), (M, N), shared((M, N), cga_layout=[[1, 0]]))
    given = {"a": Described(a, (M, K), rows), "b": Described(b, (K, N), columns), "d": d, "M": M, "N": N}
    return {"fn": pair, "grid": 1, "options": {"num_ctas": 2}, **given}, {"d": a.astype(np.float32) @ b.astype(np.float32)}, 1e-2


def copied_case():
    x = normal(128, 32)
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    return {"fn": copied, "grid": 1, "x": x, "out": np.zeros_like(x), "M": 128, "N": 32, "LAYOUT": layout}, {"out": x}, 0


def gathered_case():
    x, rows = normal(50, 64, dtype=np.float16), np.random.default_rng(0).permutation(50)[:32].astype(np.int32)
    given = {"x": Described(x, (1, 64), shared((1, 64))), "rows": rows, "out": np.zeros((32, 64), np.float16), "R": 32, "C": 64}
    return {"fn": gathered, "grid": 1, **given}, {"out": x[rows]}, 0


def cancelled_case():
    return {"fn": cancelled, "grid": 6, "out": np.zeros(6, np.int32), "tiles": np.int32(6)}, {"out": np.arange(1, 7)}, 0


def cluster_softmax_case():
    x = normal(2, 2048)
    e = np.exp(x - x.max(1, keepdims=True))
    given = {"x": x, "out": np.zeros_like(x), "N": 2048, "options": {"num_ctas": 4}}
    return {"fn": cluster_softmax, "grid": 2, **given}, {"out": e / e.sum(1, keepdims=True)}, 1e-5


def wgmma_tile_case(in_registers):
    M, N, K = 64, 64, 64
    a, b = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16, seed=1)
    given = {"a": Described(a, (M, K), shared((M, K))), "b": Described(b, (K, N), shared((K, N))), "d": np.zeros((M, N), np.float32)}
    return (
        {"fn": wgmma_tile, "grid": 1, **given, "M": M, "N": N, "K": K, "IN_REGISTERS": in_registers},
        {"d": a.astype(np.float32) @ b.astype(np.float32)},
        1e-3,
    )


#: Kernel: its architecture, how its data is made, what its PTX must hold.
CASES = {
    "shapes_16x64b": (100, lambda: shapes_case("32x32b", "16x64b"), ("tcgen05.st.sync.aligned.32x32b", "tcgen05.ld.sync.aligned.16x64b")),
    "shapes_16x128b": (100, lambda: shapes_case("16x64b", "16x128b"), ("tcgen05.st.sync.aligned.16x64b", "tcgen05.ld.sync.aligned.16x128b")),
    "shapes_16x256b": (100, lambda: shapes_case("16x128b", "16x256b"), ("tcgen05.st.sync.aligned.16x128b", "tcgen05.ld.sync.aligned.16x256b")),
    "shapes_16x32bx2": (100, lambda: shapes_case("16x256b", "32x32b", 64), ("tcgen05.ld.sync.aligned.16x32bx2",)),
    "one_tile": (100, lambda: one_tile_case(False), ("tcgen05.mma.cta_group::1.kind::f16",)),
    "one_tile_m64": (100, lambda: one_tile_case(False, 64), ("tcgen05.mma.cta_group::1.kind::f16",)),
    "one_tile_a_in_tmem": (100, lambda: one_tile_case(True), ("tcgen05.mma.cta_group::1.kind::f16",)),
    "pair": (100, pair_case, ("tcgen05.mma.cta_group::2", "tcgen05.alloc.cta_group::2")),
    "pair_m128": (100, lambda: pair_case(128), ("tcgen05.mma.cta_group::2", "tcgen05.alloc.cta_group::2")),
    "copied": (100, copied_case, ("tcgen05.cp",)),
    "gathered": (100, gathered_case, ("tile::gather4",)),
    "cancelled": (100, cancelled_case, ("clusterlaunchcontrol.try_cancel",)),
    "cluster_softmax": (90, cluster_softmax_case, ("mapa", "barrier.cluster")),
    "wgmma_tile": (90, lambda: wgmma_tile_case(False), ("wgmma.mma_async",)),
    "wgmma_tile_a_in_registers": (90, lambda: wgmma_tile_case(True), ("wgmma.mma_async",)),
}
#: Right kernels that leave out what the ISA asks for: `FOUND` of test_triton.py says what.
UNFENCED = ("one_tile", "one_tile_m64", "one_tile_a_in_tmem", "pair", "pair_m128")


@pytest.fixture(scope="module")
def compiled():
    kept = {}

    def of(name):
        if name not in kept:
            arch, made, _ = CASES[name]
            given, want, tolerance = made()
            options = {"num_warps": 4, **given.pop("options", {})}
            kept[name] = Compiled(given.pop("fn"), arch, given.pop("grid"), options, **given), want, tolerance
        return kept[name]

    return of


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CASES)
def test_it_is_right(name, schedule, compiled, emulates):
    kernel, want, tolerance = compiled(name)
    for word in CASES[name][2]:
        assert word in kernel.text
    run = kernel.run(emulates, schedule)
    assert {f.code for f in run.findings} == ({"emulate/missing-fence"} if name in UNFENCED else set()), run.findings
    for output, values in want.items():
        np.testing.assert_allclose(run[output].astype(np.float32), values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["one_tile", "pair"])
def test_the_fence_behind_an_allocation_is_all_that_is_missing(name, compiled, emulates):
    kernel = compiled(name)[0]
    assert kernel.run(emulates, "round-robin", kernel.fenced()).findings == []
