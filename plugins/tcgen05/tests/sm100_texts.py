"""PTX texts on tensor memory, executed without a GPU: what every one of them does first and last, and factors placed element by element."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from cake_core.emulate.arrays import on_arrays
from cake_core.plugins import load_registry

BASE = 1024  # of shared memory in its window
FACTORS = 65536  # bytes of it that come from S
CODES = {(0, 16): 0, (128, 32): 1, (128, 16): 2, (64, 16): 4, (32, 16): 6}


@cache
def emulates():
    return load_registry().emulates


def text(body: str, columns: int = 512, group: int = 1, alloc: str | None = None, dealloc: str | None = None) -> str:
    """128 threads: S comes into shared memory at BASE; %r0 the thread, %r1 its warp, %r2 BASE, %r3 the address of a barrier of one arrival, %r4 that of
    tensor memory; %p0: thread 0; %d4 and %d5 the thread's 512 words of D and C."""
    cta = f"cta_group::{group}"
    begin = (
        f"  tcgen05.alloc.{cta}.sync.aligned.shared::cta.b32 [%r5], {columns};\n  tcgen05.relinquish_alloc_permit.{cta}.sync.aligned;"
        if alloc is None
        else alloc
    )
    end = f"  tcgen05.dealloc.{cta}.sync.aligned.b32 %r4, {columns};" if dealloc is None else dealloc
    meet = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;" if group == 2 else "  bar.sync 0;"
    return f""".version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry k(
  .param .b64 S,
  .param .b64 D,
  .param .b64 C
)
{{
  .reg .pred %p<8>;
  .reg .b16 %h<4>;
  .reg .b32 %r<32>;
  .reg .b32 %x<128>;
  .reg .b64 %d<16>;
  ld.param.b64 %d0, [S];
  ld.param.b64 %d1, [D];
  ld.param.b64 %d2, [C];
  mov.u32 %r0, %tid.x;
  mov.u32 %r20, %ctaid.x;
  shr.b32 %r1, %r0, 5;
  mov.u32 %r2, sm;
  add.u32 %r3, %r2, {FACTORS};
  add.u32 %r5, %r2, {FACTORS + 8};
  mul.lo.u32 %r21, %r20, {FACTORS};
  shl.b32 %r6, %r0, 4;
  add.u32 %r7, %r2, %r6;
  add.u32 %r6, %r6, %r21;
  cvt.u64.u32 %d3, %r6;
  add.u64 %d3, %d0, %d3;
  mov.u32 %r8, 0;
COPY:
  ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%d3];
  st.shared.v4.b32 [%r7], {{%x0, %x1, %x2, %x3}};
  add.u64 %d3, %d3, 2048;
  add.u32 %r7, %r7, 2048;
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p1, %r8, {FACTORS // 2048};
  @%p1 bra COPY;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ALLOCATED;
{begin}
ALLOCATED:
  fence.proxy.async.shared::cta;
{meet}
  ld.shared.b32 %r4, [%r5];
  mul.lo.u32 %r22, %r20, 128;
  add.u32 %r22, %r22, %r0;
  mul.wide.u32 %d5, %r22, 2048;
  add.u64 %d4, %d1, %d5;
  add.u64 %d5, %d2, %d5;
{body}
{meet}
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra OVER;
{end}
OVER:
  ret;
}}
"""


#: All threads wait for phase 0 of the barrier, and see what the engine did.
WAIT = """WAITING:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra WAITING;
  tcgen05.fence::after_thread_sync;"""
#: Threads have stored to tensor memory, and thread 0 may use it.
STORED = "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  tcgen05.fence::after_thread_sync;"
COMMIT = "  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];"


def vector(count: int) -> str:
    return "{" + ", ".join(f"%x{i}" for i in range(count)) + "}"


def moves(columns: int, store: bool) -> str:
    """All 128 lanes, `columns` columns from the start, 32 at a time: from C into tensor memory, or from there to D."""
    lines = ["  shl.b32 %r9, %r1, 21;", "  add.u32 %r9, %r9, %r4;"]
    for first in range(0, columns, 32):
        n = min(32, columns - first)
        if store:
            lines += [f"  ld.global.b32 %x{i}, [%d5+{4 * (first + i)}];" for i in range(n)]
            lines += [f"  tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%r9+{first}], {vector(n)};"]
        else:
            lines += [f"  tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {vector(n)}, [%r9+{first}];", "  tcgen05.wait::ld.sync.aligned;"]
            lines += [f"  st.global.b32 [%d4+{4 * (first + i)}], %x{i};" for i in range(n)]
    return "\n".join(lines)


def execute(body: str, image: np.ndarray | None = None, c: np.ndarray | None = None, ctas: int = 1, schedule: str = "round-robin", **more):
    """`image`: bytes of shared memory, FACTORS of each CTA; `c`: cells (128 lanes, columns) of each CTA. The run, and D as uint32 (ctas, 128, 512)."""
    shared = np.zeros(ctas * FACTORS, np.uint8)
    if image is not None:
        shared[: image.size] = image.reshape(-1)
    cells = np.zeros((ctas, 128, 512), np.uint32)
    if c is not None:
        cells[:, :, : c.shape[-1]] = c.view(np.uint32).reshape(-1, 128, c.shape[-1])
    run = on_arrays(
        text(body, group=2 if ctas == 2 else 1, **more),
        {"S": shared, "D": np.zeros((ctas, 128, 512), np.uint32), "C": cells},
        emulates(),
        block=128,
        grid=ctas,
        cluster=ctas,
        dynamic=FACTORS + 64,
        schedule=schedule,
    )
    return run, run["D"]


def place(r: int, byte: int, k: int, size: int, major: str, swizzle: tuple[int, int], leading: int, stride: int) -> int:
    """The byte of element (row, K) behind a start that is a multiple of 1024: `byte` along K, or along rows where the factor is M- or N-major (PTX ISA,
    Canonical layouts)."""
    span, atom = swizzle
    along, across = (byte, r) if major == "k" else (r * size, k)
    tall = 4 if atom == 32 else 8
    group, low = divmod(across, tall)
    if span == 0:
        piece, inside = divmod(along, 16)
        return low * 16 + inside + (group * stride + piece * leading if major == "k" else group * leading + piece * stride)
    block, inside = divmod(along, span)
    at = block * leading + group * stride + low * span + inside
    if atom == 32:
        return at // 128 * 128 + (at // 32 % 4 ^ at // 128 % 4) * 32 + at % 32
    row, chunk = at // 128, at // 16 % 8
    return row * 128 + (chunk ^ row % {128: 8, 64: 4, 32: 2}[span]) * 16 + at % 16


def image(raw: np.ndarray, size: int, major: str = "k", swizzle: tuple[int, int] = (128, 16), depth: int = 0) -> tuple[np.ndarray, int]:
    """Bytes (rows, bytes along K) of a factor in shared memory, 32768 of them, and its descriptor for a start of 0."""
    rows, wide = raw.shape
    span, atom = swizzle
    tall = 4 if atom == 32 else 8
    if span == 0:
        leading, stride = (rows * 16 + 128, 128) if major == "k" else (128, wide // size * 16 + 256)
    else:
        leading, stride = (16, tall * span) if major == "k" else (span * max(wide // size, tall), tall * span)
    out = np.zeros(32768, np.uint8)
    for r in range(rows):
        for b in range(0, wide, size):
            at = place(r, b, b // size, size, major, swizzle, leading, stride)
            out[at : at + size] = raw[r, b : b + size]
    return out, leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | CODES[swizzle] << 61


def named(a: int, b: int, idesc: int) -> str:
    """%d6, %d7 and %r10 are the descriptors, of factors at BASE and 32768 bytes behind it."""
    return f"  mov.b64 %d6, 0x{a | BASE >> 4:x};\n  mov.b64 %d7, 0x{b | BASE + 32768 >> 4:x};\n  mov.b32 %r10, 0x{idesc:x};"


# --- products

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
#: Codes of types in the instruction descriptor (PTX ISA, Instruction descriptor).
A_CODE = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
D_CODE = {"f16": 0, "f32": 1, "s32": 2}
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}


def idesc(d: str, a: str, b: str, m: int, n: int, majors: str = "kk", negated: tuple[int, int] = (0, 0)) -> int:
    bits = D_CODE[d] << 4 | A_CODE[a] << 7 | A_CODE[b] << 10 | negated[0] << 13 | negated[1] << 14
    return bits | (majors[0] == "m") << 15 | (majors[1] == "m") << 16 | n >> 3 << 17 | m >> 4 << 24


def draw(rng, kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Values (rows, K), their bytes in shared memory (rows, bytes along K), and bytes an element. Sums of products are exact."""
    if kind in ("s8", "u8"):
        x = rng.integers(-128, 128, (rows, k)).astype(np.int8) if kind == "s8" else rng.integers(0, 256, (rows, k)).astype(np.uint8)
        return x.astype(float), x.view(np.uint8), 1
    if kind in ("e2m1", "e2m3", "e3m2"):
        return *narrow(rng, kind, rows, k), 1
    x = rng.integers(-3, 4, (rows, k)).astype(np.float32).astype(TYPES[kind])
    return x.astype(np.float64), x.view(np.uint8).reshape(rows, -1), x.dtype.itemsize


def narrow(rng, kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixteen elements stand in the first 8 or 12 of 16 bytes, the first lowest; of K 64 two a byte without gaps."""
    bits = 4 if kind == "e2m1" else 6
    codes = rng.integers(0, 1 << bits, (rows, k)).astype(np.uint8)
    values = codes.view(TYPES[kind]).astype(np.float64)
    if k == 64:
        return values, codes[:, ::2] | codes[:, 1::2] << 4
    raw = np.full((rows, k), 0xFF, np.uint8)
    for r in range(rows):
        for chunk in range(k // 16):
            whole = sum(int(c) << bits * i for i, c in enumerate(codes[r, 16 * chunk : 16 * chunk + 16]))
            raw[r, 16 * chunk : 16 * chunk + 2 * bits] = np.frombuffer(whole.to_bytes(2 * bits, "little"), np.uint8)
    return values, raw


def scaled_idesc(a: str, b: str, n: int, scale: str, at: tuple[int, int], four: bool, m: int = 128) -> int:
    codes = (1, 1) if four else (A_CODE[a], A_CODE[b])
    return at[1] << 4 | codes[0] << 7 | codes[1] << 10 | n >> 3 << 17 | (scale == "ue8m0") << 23 | m >> 7 << 27 | at[0] << 29
