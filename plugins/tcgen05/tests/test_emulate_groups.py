"""tcgen05.mma of a pair of CTAs, and weight-stationary, without a GPU: where results lie, and which columns are left out."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

TEXTS = runpy.run_path(str(Path(__file__).with_name("sm100_texts.py")))
COMMIT, K, STORED, WAIT, draw, execute, idesc, image, moves, named, scaled_idesc = (
    TEXTS[n] for n in ("COMMIT", "K", "STORED", "WAIT", "draw", "execute", "idesc", "image", "moves", "named", "scaled_idesc")
)


@pytest.mark.parametrize(
    ("m", "n", "kind", "a"), [(128, 64, "f16", "bf16"), (64, 128, "f8f6f4", "e4m3"), (32, 64, "tf32", "tf32"), (32, 128, "i8", "s8")]
)
def test_weight_stationary_products(m, n, kind, a):
    """Of 64 rows the right half of the columns lies in the lanes from 64 on, of 32 rows each quarter in 32 lanes."""
    rng = np.random.default_rng(m + n)
    (x, xr, xs), (y, yr, ys) = draw(rng, a, m, K[kind]), draw(rng, a, n, K[kind])
    (left, ld), (right, rd) = image(xr, xs), image(yr, ys)
    d, folds = "s32" if a == "s8" else "f32", 128 // m
    wide = n // folds
    c = rng.integers(-5, 6, (m, n)).astype(float)
    start = np.zeros((128, 32 * -(-wide // 32)), np.uint32)
    for row in range(m):
        for column in range(n):
            start[row + m * (column // wide), column % wide] = (
                c[row, column : column + 1].astype(np.float32 if d == "f32" else np.int32).view(np.uint32)[0]
            )
    one = f"  @%p0 tcgen05.mma.ws.cta_group::1.kind::{kind}.collector::b1::fill [%r4], %d6, %d7, %r10, 1;"
    body = [moves(start.shape[1], True), STORED, named(ld, rd, idesc(d, a, a, m, n)), one, COMMIT, WAIT, moves(start.shape[1], False)]
    run, out = execute("\n".join(body), np.stack([left, right]), start)
    got = np.ascontiguousarray(out[0, :, :wide]).view(np.float32 if d == "f32" else np.int32)
    assert run.findings == []
    np.testing.assert_array_equal(np.concatenate([got[m * i : m * i + m] for i in range(folds)], 1), c + x @ y.T)


#: The examples of the ISA, Zero-Column Mask Descriptor: M, starts and first spans from part 0 on, spans, and the first columns of each part, 1: not used.
MASKS = [
    (128, (0,), (0,), 2, 3, ["00001110000111"]),
    (64, (0, 0), (1, 0), 2, 3, ["11100001110000111", "00001110000111"]),
    (32, (0, 1, 2, 1), (1, 1, 0, 0), 2, 3, ["11100001110000", "11000011100001", "00111000011100", "00011100001110"]),
]


@pytest.mark.parametrize(("m", "starts", "first", "skip", "use", "expected"), MASKS)
def test_columns_that_are_taken_for_zeros(m, starts, first, skip, use, expected):
    rng = np.random.default_rng(2)
    (x, xr, _), (y, yr, _) = draw(rng, "bf16", m, 16), draw(rng, "bf16", 64, 16)
    (left, ld), (right, rd) = image(xr, 2), image(yr, 2)
    bits = sum(s << 8 * i for i, s in enumerate(starts)) | sum(f << 32 + i for i, f in enumerate(first)) | 1 << 39 | skip << 40 | use << 48
    one = "  @%p0 tcgen05.mma.ws.cta_group::1.kind::f16 [%r4], %d6, %d7, %r10, 0, %d8;"
    body = [named(ld, rd, idesc("f32", "bf16", "bf16", m, 64)), f"  mov.b64 %d8, 0x{bits:x};", one, COMMIT, WAIT, moves(64 * m // 128, False)]
    run, out = execute("\n".join(body), np.stack([left, right]))
    wide, product = 64 * m // 128, x @ y.T
    assert run.findings == []
    got = np.ascontiguousarray(out[0, :, :wide]).view(np.float32)
    for part, digits in enumerate(expected):
        zero = np.array([c == "1" for c in digits[:wide]])
        shown = got[part * m : part * m + m, : len(zero)]
        np.testing.assert_array_equal(shown, np.where(zero, 0.0, product[:, part * wide : part * wide + len(zero)]))


def test_block_scales_of_a_pair():
    """Each CTA has the scales of its 128 rows of A, and of all columns of B."""
    rng = np.random.default_rng(8)
    n = 64
    (x, xr, _), (y, yr, _) = draw(rng, "e4m3", 256, 32), draw(rng, "e5m2", n, 32)
    images, held = [], np.zeros((2, 4, 32, 32, 4), np.uint8)
    sa, sb = rng.integers(124, 130, 256, dtype=np.uint8), rng.integers(124, 130, n, dtype=np.uint8)
    for half in range(2):
        (left, ld), (right, rd) = image(xr[half * 128 : half * 128 + 128], 1), image(yr[half * 32 : half * 32 + 32], 1)
        images += [left, right]
        for i in range(128):
            held[half, :, i % 32, i // 32, 1] = sa[128 * half + i]
        for i in range(n):
            held[half, :, i % 32, 4 + i // 32, 1] = sb[i]
    start = held.reshape(2, 128, 128).view(np.uint32)
    bits = scaled_idesc("e4m3", "e5m2", n, "ue8m0", (1, 1), False, 256)
    stored = STORED.replace("bar.sync 0;", "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;")
    leader = ["  setp.eq.u32 %p4, %r20, 0;", "  and.pred %p4, %p4, %p0;", "  mov.b16 %h0, 3;", "  add.u32 %r14, %r4, 4;", "  add.u32 %r15, %r4, 64;"]
    body = [moves(32, True), stored, named(ld, rd, bits), *leader]
    body += ["  @%p4 tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32 [%r15], %d6, %d7, %r10, [%r4], [%r14], 0;"]
    body += ["  @%p4 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h0;", WAIT]
    body += ["  mov.u32 %r16, %r4;\n  mov.u32 %r4, %r15;", moves(n, False), "  mov.u32 %r4, %r16;"]
    run, out = execute("\n".join(body), np.stack(images), start, ctas=2)
    of = lambda s: 2.0 ** (s.astype(float) - 127)[:, None]
    assert run.findings == []
    np.testing.assert_allclose(
        np.ascontiguousarray(out[:, :, :n]).view(np.float32).reshape(256, n), (x * of(sa)) @ (y * of(sb)).T, rtol=2.0**-21, atol=2.0**-40
    )


@pytest.mark.parametrize("m", [256, 128])
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:2"])
def test_products_of_a_pair(m, schedule):
    """Each CTA has half of the rows of A and half of the columns of B. Of 256 rows each has 128 in order; of 128 each has 64, the right half of their
    columns in lanes from 64 on. Both read when the barrier of each has its arrival."""
    rng = np.random.default_rng(m)
    n = 64
    (x, xr, _), (y, yr, _) = draw(rng, "bf16", m, 16), draw(rng, "bf16", n, 16)
    images = []
    for half in range(2):
        (left, ld), (right, rd) = image(xr[half * m // 2 : (half + 1) * m // 2], 2), image(yr[half * n // 2 : (half + 1) * n // 2], 2)
        images += [left, right]
    leader = ["  setp.eq.u32 %p4, %r20, 0;", "  and.pred %p4, %p4, %p0;", "  mov.b16 %h0, 3;"]
    body = [named(ld, rd, idesc("f32", "bf16", "bf16", m, n)), *leader, "  @%p4 tcgen05.mma.cta_group::2.kind::f16 [%r4], %d6, %d7, %r10, 0;"]
    body += ["  @%p4 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h0;", WAIT]
    columns = n if m == 256 else n // 2
    run, out = execute("\n".join([*body, moves(columns, False)]), np.stack(images), ctas=2, schedule=schedule)
    got = np.ascontiguousarray(out[:, :, :columns]).view(np.float32)
    product = x @ y.T
    expected = product.reshape(2, 128, n) if m == 256 else np.stack([np.concatenate([p[:, :32], p[:, 32:]]) for p in product.reshape(2, 64, n)])
    assert run.findings == []
    np.testing.assert_array_equal(got, expected)
