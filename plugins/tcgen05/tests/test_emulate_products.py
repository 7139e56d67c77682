"""tcgen05.mma without a GPU: every kind, layout and group held against float64 products of values that ml_dtypes reads, and what the ISA forbids."""

from __future__ import annotations

import runpy
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported

TEXTS = runpy.run_path(str(Path(__file__).with_name("sm100_texts.py")))
COMMIT, K, STORED, WAIT, draw, execute, idesc, image, moves, named, scaled_idesc = (
    TEXTS[n] for n in ("COMMIT", "K", "STORED", "WAIT", "draw", "execute", "idesc", "image", "moves", "named", "scaled_idesc")
)
P128, P64, P32, NONE, ATOM = (128, 16), (64, 16), (32, 16), (0, 16), (128, 32)


def test_descriptors_that_compilers_write():
    """Read from PTX of Triton, TVM and CUTLASS."""
    assert idesc("f32", "f16", "f16", 128, 128) == 0x08200010
    assert idesc("f32", "f16", "f16", 64, 128) == 0x04200010
    assert idesc("f32", "f16", "f16", 256, 128) == 0x10200010
    assert idesc("f32", "f16", "f16", 128, 128, "km") == 0x08210010
    assert idesc("f32", "e5m2", "e5m2", 128, 128) == 0x08200490
    assert idesc("f32", "tf32", "tf32", 128, 128) == 0x08200910


def lanes_of(m: int, alignment: int = 0) -> list[int]:
    """Of 128 rows row m lies in lane m; of 64 in lane 32 (m / 16) + m mod 16 from the alignment on."""
    return list(range(128)) if m == 128 else [32 * (i // 16) + alignment + i % 16 for i in range(64)]


def cells(c: np.ndarray, d: str, alignment: int = 0) -> np.ndarray:
    """Accumulators (M, N) as cells of tensor memory (128, N)."""
    out = np.zeros((128, c.shape[1]), np.uint32)
    for row, lane in enumerate(lanes_of(len(c), alignment)):
        match d:
            case "f32":
                out[lane] = c[row].astype(np.float32).view(np.uint32)
            case "f16":
                out[lane] = c[row].astype(np.float16).view(np.uint16)
            case "s32":
                out[lane] = c[row].astype(np.int32).view(np.uint32)
    return out


def results(out: np.ndarray, m: int, n: int, d: str, alignment: int = 0) -> np.ndarray:
    held = np.ascontiguousarray(out[lanes_of(m, alignment), :n])
    if d == "f16":
        return held.astype(np.uint16).view(np.float16).astype(np.float64)
    return held.view({"f32": np.float32, "s32": np.int32}[d]).astype(np.float64)


def wide(n: int) -> int:
    """Columns that `moves` takes: a power of two or a multiple of 32."""
    return max(32, -(-n // 32) * 32)


def issue(kind: str, more: str = "", a: str = "%d6", enable: str = "1", d: str = "%r4", words: str = "", behind: str = "") -> str:
    return f"  @%p0 tcgen05.mma.cta_group::1.kind::{kind}{words} [{d}], {a}, %d7, %r10{more}, {enable}{behind};"


CASES = [
    # kind, D, A, B, M, N, swizzles, majors, negated
    ("f16", "f32", "bf16", "bf16", 128, 64, (P128, P128), "kk", (0, 0)),
    ("f16", "f32", "f16", "f16", 64, 24, (P64, P32), "kk", (1, 0)),
    ("f16", "f16", "f16", "f16", 128, 16, (NONE, P64), "kk", (0, 1)),
    ("f16", "f32", "bf16", "bf16", 128, 64, (P128, P128), "mm", (0, 0)),
    ("f16", "f32", "f16", "f16", 64, 48, (P64, NONE), "mm", (0, 0)),
    ("f16", "f32", "bf16", "bf16", 128, 40, (P32, NONE), "mk", (1, 1)),
    ("tf32", "f32", "tf32", "tf32", 128, 16, (P128, P64), "kk", (0, 0)),
    ("tf32", "f32", "tf32", "tf32", 64, 32, (ATOM, ATOM), "mm", (0, 0)),
    ("f8f6f4", "f32", "e4m3", "e5m2", 128, 32, (P128, P128), "kk", (0, 0)),
    ("f8f6f4", "f16", "e5m2", "e4m3", 64, 32, (P128, P32), "mm", (0, 0)),
    ("f8f6f4", "f32", "e2m1", "e3m2", 128, 16, (P128, P64), "kk", (0, 1)),
    ("f8f6f4", "f32", "e2m3", "e2m1", 64, 8, (NONE, P128), "kk", (0, 0)),
    ("i8", "s32", "s8", "u8", 128, 24, (P128, P128), "kk", (0, 0)),
    ("i8", "s32", "u8", "s8", 64, 48, (P64, P128), "km", (0, 0)),
]


@pytest.mark.parametrize(("kind", "d", "a", "b", "m", "n", "swizzles", "majors", "negated"), CASES)
def test_products(kind, d, a, b, m, n, swizzles, majors, negated):
    rng = np.random.default_rng(m + n)
    (x, xr, xs), (y, yr, ys) = draw(rng, a, m, K[kind]), draw(rng, b, n, K[kind])
    (left, ld), (right, rd) = (
        image(xr, xs, "k" if majors[0] == "k" else "mn", swizzles[0]),
        image(yr, ys, "k" if majors[1] == "k" else "mn", swizzles[1]),
    )
    c = rng.integers(-5, 6, (m, n)).astype(float)
    body = [moves(wide(n), True), STORED, named(ld, rd, idesc(d, a, b, m, n, majors, negated)), issue(kind), COMMIT, WAIT, moves(wide(n), False)]
    start = np.pad(cells(c, d), ((0, 0), (0, wide(n) - n)))
    run, out = execute("\n".join(body), np.stack([left, right]), start)
    sign = (-1) ** (negated[0] + negated[1])
    assert run.findings == []
    np.testing.assert_allclose(results(out[0], m, n, d), c + sign * (x @ y.T), rtol=2.0**-22 if d == "f32" else 2.0**-10, atol=0)


def simple(m: int = 128, n: int = 32, seed: int = 0):
    """Factors of bf16, their descriptors, and the product."""
    rng = np.random.default_rng(seed)
    (x, xr, _), (y, yr, _) = draw(rng, "bf16", m, 16), draw(rng, "bf16", n, 16)
    (left, ld), (right, rd) = image(xr, 2), image(yr, 2)
    return np.stack([left, right]), named(ld, rd, idesc("f32", "bf16", "bf16", m, n)), x @ y.T


@pytest.mark.parametrize(("enable", "times"), [("0", 0), ("1", 1), ("%p4", 1), ("!%p4", 0)])
def test_whether_d_is_added_to(enable, times):
    factors, head, product = simple()
    c = np.ones((128, 32))
    body = [moves(32, True), STORED, head, "  setp.eq.u32 %p4, %r0, %r0;", issue("f16", enable=enable), COMMIT, WAIT, moves(32, False)]
    run, out = execute("\n".join(body), factors, cells(c, "f32"))
    assert run.findings == []
    np.testing.assert_array_equal(results(out[0], 128, 32, "f32"), times * c + product)


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:1"])
def test_products_of_a_thread_are_in_order(schedule):
    factors, head, product = simple()
    body = [head, issue("f16", enable="0"), issue("f16"), issue("f16"), COMMIT, WAIT, moves(32, False)]
    run, out = execute("\n".join(body), factors, schedule=schedule)
    assert run.findings == []
    np.testing.assert_array_equal(results(out[0], 128, 32, "f32"), 3 * product)


def test_d_is_halved_and_lanes_are_left():
    factors, head, product = simple()
    c = np.arange(128 * 32).reshape(128, 32) / 4
    body = [moves(32, True), STORED, head, "  mov.b32 %r11, 0x80000001;", "  mov.b32 %r12, 0;", "  mov.b32 %r13, 0x00000100;"]
    body += [issue("f16", ", {%r11, %r12, %r12, %r13}", behind=", 2"), COMMIT, WAIT, moves(32, False)]
    run, out = execute("\n".join(body), factors, cells(c, "f32"))
    expected = product + c / 4
    for lane in (0, 31, 96 + 8):
        expected[lane] = c[lane]
    assert run.findings == []
    np.testing.assert_array_equal(results(out[0], 128, 32, "f32"), expected)


@pytest.mark.parametrize(("m", "alignment"), [(128, 0), (64, 0), (64, 16)])
@pytest.mark.parametrize("a", ["bf16", "tf32", "e4m3"])
def test_a_from_tensor_memory(a, m, alignment):
    """A packed along columns, its rows in the lanes of those of D; D from column 64 on."""
    rng = np.random.default_rng(m)
    kind = {"bf16": "f16", "tf32": "tf32", "e4m3": "f8f6f4"}[a]
    (x, xr, _), (y, yr, ys) = draw(rng, a, m, K[kind]), draw(rng, a, 16, K[kind])
    right, rd = image(yr, ys)
    held = np.zeros((128, 32), np.uint32)
    held[lanes_of(m, alignment), :8] = xr.view(np.uint32)
    body = [moves(32, True), STORED, named(0, rd, idesc("f32", a, a, m, 16)), f"  add.u32 %r14, %r4, {alignment << 16};", "  add.u32 %r15, %r14, 64;"]
    body += [issue(kind, a="[%r14]", enable="0", d="%r15"), COMMIT, WAIT]
    load = [f"  add.u32 %r16, %r15, %r9;\n  sub.u32 %r16, %r16, %r4;\n  sub.u32 %r16, %r16, {alignment << 16};"]
    # rows in their lanes of each window, 16 at a time: lane l of 16x256b is a row
    load += [
        f"  add.u32 %r16, %r16, {alignment << 16};",
        "  tcgen05.ld.sync.aligned.16x256b.x2.b32 {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, [%r16];",
    ]
    load += ["  tcgen05.wait::ld.sync.aligned;", *(f"  st.global.b32 [%d4+{4 * i}], %x{i};" for i in range(8))]
    image_of_b = np.stack([np.zeros_like(right), right])
    run, out = execute("\n".join([*body, *load]), image_of_b, held)
    rows = range(0, m, 32) if m == 128 else range(0, 64, 16)
    expected = x @ y.T
    assert run.findings == []
    for w, first in enumerate(rows):
        for t in range(32):
            for r in range(8):
                value = out[0, 32 * w + t, r : r + 1].view(np.float32)[0]
                assert value == expected[first + t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2]


SCALED = [
    # kind, words, scales a row, A, B, scale, byte of A, byte of B, N
    ("mxf8f6f4", ".scale_vec::1X", 1, "e4m3", "e5m2", "ue8m0", 0, 3, 128),
    ("mxf8f6f4", "", 1, "e2m1", "e4m3", "ue8m0", 2, 1, 40),
    ("mxf4", ".scale_vec::2X", 2, "e2m1", "e2m1", "ue8m0", 2, 0, 64),
    ("mxf4nvf4", ".scale_vec::4X", 4, "e2m1", "e2m1", "ue4m3", 0, 0, 128),
    ("mxf4nvf4", ".block16", 4, "e2m1", "e2m1", "ue8m0", 0, 0, 16),
    ("mxf4nvf4", ".block32", 2, "e2m1", "e2m1", "ue8m0", 0, 2, 32),
]


def test_descriptors_of_block_scales_that_compilers_write():
    assert [scaled_idesc("e4m3", "e4m3", 128, "ue8m0", (i, i), False) for i in range(4)] == [0x08A00000, 0x28A00010, 0x48A00020, 0x68A00030]
    assert [scaled_idesc("e2m1", "e2m1", 128, "ue8m0", (i, i), True) for i in (0, 2)] == [0x08A00480, 0x48A004A0]
    assert scaled_idesc("e2m1", "e2m1", 128, "ue4m3", (0, 0), True) == 0x08200480


@pytest.mark.parametrize(("kind", "words", "count", "a", "b", "scale", "at_a", "at_b", "n"), SCALED)
def test_block_scales(kind, words, count, a, b, scale, at_a, at_b, n):
    """Scales of A stand in 4 columns from 256 on, those of B from 260 on: row i in lane i mod 32 and its copies, column i / 32. Other bytes are noise."""
    rng = np.random.default_rng(n)
    (x, xr, _), (y, yr, _) = draw(rng, a, 128, K[kind]), draw(rng, b, n, K[kind])
    (left, ld), (right, rd) = image(xr, 1), image(yr, 1)
    dtype = ml_dtypes.float8_e8m0fnu if scale == "ue8m0" else ml_dtypes.float8_e4m3fn
    held = np.repeat(rng.integers(1, 126, (1, 32, 32, 4), dtype=np.uint8), 4, 0)
    factors = []
    for first, at, rows in ((0, at_a, 128), (4, at_b, n)):
        codes = rng.integers(120, 133, (rows, count), dtype=np.uint8) if scale == "ue8m0" else rng.integers(1, 126, (rows, count), dtype=np.uint8)
        for i in range(rows):
            held[:, i % 32, first + i // 32, at : at + count] = codes[i]
        factors.append(np.repeat(codes.view(dtype).astype(np.float64), K[kind] // count, 1))
    start = held.reshape(128, 128).view(np.uint32)
    body = [moves(32, True), STORED, named(ld, rd, scaled_idesc(a, b, n, scale, (at_a, at_b), kind != "mxf8f6f4"))]
    body += [
        "  add.u32 %r14, %r4, 4;",
        "  add.u32 %r15, %r4, 64;",
        issue(kind, ", [%r4], [%r14]", enable="0", d="%r15", words=".block_scale" + words),
    ]
    body += [
        COMMIT,
        WAIT,
        "  mov.u32 %r16, %r4;\n  mov.u32 %r4, %r15;",
        moves(wide(n), False) if n % 32 == 0 else moves(n, False),
        "  mov.u32 %r4, %r16;",
    ]
    run, out = execute("\n".join(body), np.stack([left, right]), start)
    assert run.findings == []
    np.testing.assert_allclose(results(out[0], 128, n, "f32"), (x * factors[0]) @ (y * factors[1]).T, rtol=2.0**-21, atol=2.0**-40)


# --- what may not be done


@pytest.mark.parametrize(
    ("bits", "what"),
    [
        (idesc("f32", "bf16", "bf16", 128, 32) | 4, "sparse"),
        (idesc("f32", "bf16", "bf16", 128, 32) | 1 << 23, "zero"),
        (idesc("f32", "bf16", "f16", 128, 32), "differ"),
        (idesc("f16", "bf16", "bf16", 128, 32), "result of f16"),
        (idesc("f32", "bf16", "bf16", 96, 32), "96 x 32"),
        (idesc("f32", "bf16", "bf16", 256, 32), "256 x 32"),
        (idesc("f32", "bf16", "bf16", 128, 264), "128 x 264"),
        (0, "0 x 0"),
    ],
)
def test_instruction_descriptors_that_are_none(bits, what):
    factors, head, _ = simple()
    run, _ = execute("\n".join([head, f"  mov.b32 %r10, 0x{bits:x};", issue("f16", enable="0")]), factors)
    assert run.codes[0] in ("emulate/operand", "emulate/unsupported")
    assert what in run.findings[0].message


@pytest.mark.parametrize(
    ("change", "code"), [(1 << 46, "emulate/operand"), (1 << 53, "emulate/operand"), (1 << 61, "emulate/operand"), (1 << 49, "emulate/unsupported")]
)
def test_descriptors_of_factors_that_are_none(change, code):
    factors, head, _ = simple()
    run, _ = execute("\n".join([head, f"  mov.b64 %d8, 0x{change:x};", "  xor.b64 %d7, %d7, %d8;", issue("f16", enable="0")]), factors)
    assert run.codes[0] == code


@pytest.mark.parametrize(
    ("body", "code", "what"),
    [
        ([issue("f16", enable="0"), moves(32, False)], "emulate/race", "nothing orders"),
        ([issue("f16"), COMMIT, WAIT], "emulate/uninitialised", "nobody has written it"),
        ([issue("f16", enable="0", d="%r9"), COMMIT, WAIT], "emulate/operand", "from lane 16 on"),
        ([issue("f16", enable="0"), "  @%p0 st.shared.b32 [%r2], %r0;", COMMIT, WAIT], "emulate/race", "nothing orders"),
        ([issue("f16", enable="0", d="%r11"), COMMIT, WAIT], "emulate/out-of-bounds", "has 512"),
        (
            ["  mov.b16 %h0, 2;", "  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h0;"],
            "emulate/operand",
            "mask 0x2",
        ),
    ],
)
def test_misuse(body, code, what):
    factors, head, _ = simple()
    run, _ = execute("\n".join([head, "  add.u32 %r9, %r4, 0x100000;\n  add.u32 %r11, %r4, 500;", *body]), factors)
    assert [f for f in run.findings if f.code == code and what in f.message], run.findings


def test_a_store_to_shared_memory_without_a_proxy_fence():
    factors, head, _ = simple()
    body = [head, "  @%p0 st.shared.b32 [%r2], %r0;", issue("f16", enable="0"), COMMIT, WAIT]
    run, _ = execute("\n".join(body), factors)
    assert run.codes[0] == "emulate/missing-fence"
    body.insert(2, "  fence.proxy.async.shared::cta;")
    run, _ = execute("\n".join(body), factors)
    assert run.findings == []


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [(True, True, []), (False, True, ["emulate/missing-fence"]), (True, False, ["emulate/missing-fence"]), (False, False, [])],
)
def test_fences_around_a_synchronisation(before, after, codes):
    """A store of each warp in front of a product over it. A kernel with such fences is held against them; one without any waits as CUTLASS does."""
    factors, head, product = simple()
    stored = STORED if before else STORED.replace("  tcgen05.fence::before_thread_sync;\n", "")
    wait = WAIT if after else WAIT.replace("  tcgen05.fence::after_thread_sync;", "")
    if not after:
        stored = stored.replace("\n  tcgen05.fence::after_thread_sync;", "")
    body = [moves(32, True), stored, head, issue("f16"), COMMIT, wait, moves(32, False)]
    run, out = execute("\n".join(body), factors, cells(np.ones((128, 32)), "f32"))
    assert sorted(set(run.codes)) == codes
    np.testing.assert_array_equal(results(out[0], 128, 32, "f32"), 1 + product)


@pytest.mark.parametrize(("fences", "codes"), [(2, []), (1, ["emulate/race"]), (0, ["emulate/race"])])
def test_relaxed_synchronisation(fences, codes):
    """The canonical patterns of the ISA: fences for tensor memory order with relaxed arrivals and waits, which order nothing else."""
    factors, head, product = simple()
    before, after = "  tcgen05.fence::before_thread_sync;", "  tcgen05.fence::after_thread_sync;"
    init = "  add.u32 %r12, %r3, 32;\n  @%p0 mbarrier.init.shared::cta.b64 [%r12], 128;\n  bar.sync 0;"
    arrive = "  mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%r12];"
    wait = "MET:\n  mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p5, [%r12], 0;\n  @!%p5 bra MET;"
    stored = ["  tcgen05.wait::st.sync.aligned;", before if fences else "", arrive, wait, after if fences == 2 else ""]
    done = WAIT.replace("try_wait.parity.shared", "try_wait.parity.relaxed.cluster.shared").replace(after, after if fences == 2 else "")
    body = [init, moves(32, True), *stored, head, issue("f16"), COMMIT, done, moves(32, False)]
    run, out = execute("\n".join(body), factors, cells(np.ones((128, 32)), "f32"))
    assert sorted(set(run.codes)) == codes
    np.testing.assert_array_equal(results(out[0], 128, 32, "f32"), 1 + product)


def test_copies_of_scales_that_differ():
    body = [moves(32, True), STORED, named(0x4000_4040_0001_0000, 0x4000_4040_0001_0000, scaled_idesc("e4m3", "e4m3", 32, "ue8m0", (0, 0), False))]
    body += ["  add.u32 %r15, %r4, 64;", issue("mxf8f6f4", ", [%r4], [%r4]", enable="0", d="%r15", words=".block_scale"), COMMIT, WAIT]
    run, _ = execute("\n".join(body), c=np.repeat(np.arange(128, dtype=np.uint32)[:, None], 32, 1))
    assert run.codes == ["emulate/operand"]
    assert "row 0 differ between the four quarters" in run.findings[0].message


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("tcgen05.mma.ws.cta_group::2.kind::f16 [%r4], %d6, %d7, %r10, 1", "`.ws` of kind f16"),
        ("tcgen05.mma.sp.cta_group::1.kind::f16 [%r4], %d6, %d7, [%r4], %r10, 1", "sparse"),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%r4], [%r4], %d7, %r10, 1", "ashift"),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r4], %d6, %d7, %r10, [%r4], [%r4], 1", "without a number"),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4 [%r4], %d6, %d7, %r10, 1, 3", "scale of D"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r4], %d6, %d7, %r10, {%r1, %r1}, 1", "mask of lanes of 2"),
    ],
)
def test_forms_that_are_refused_by_name(statement, what):
    with pytest.raises(Unsupported, match=what):
        execute(f"  {statement};")
