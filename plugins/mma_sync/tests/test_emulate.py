"""mma.sync executed without a GPU: fragments placed by the tables of the ISA, one element at a time, and values by loops."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}


@cache
def emulates():
    return load_registry().emulates


def place_a(kind: str, m: int, k: int, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element i of A in a lane: the tables of the ISA, Matrix Fragments for mma, by shape and type."""
    group, thread = lane >> 2, lane % 4
    match kind, m, k:
        case ("f64", 8, 4) | ("tf32", 16, 4) | ("f64", 16, 4):
            return group + 8 * i, thread
        case ("tf32" | "f64", 16, 8):
            return group + (8 if i in (1, 3) else 0), thread + (4 if i >= 2 else 0)
        case "f64", 16, 16:
            return group + (8 if i % 2 else 0), (i * 2 + thread if i % 2 == 0 else i * 2 - 2 + thread)
        case (("f16" | "bf16"), 16, 8):
            return group + (0 if i < 2 else 8), thread * 2 + (i & 1)
        case (("f16" | "bf16"), 16, 16):
            return group + (0 if 0 <= i < 2 or 4 <= i < 6 else 8), thread * 2 + (i & 1) + (0 if i < 4 else 8)
        case _, 8, 16:
            return group, thread * 4 + i
        case (("s8" | "u8" | "e4m3" | "e5m2"), 16, 16):
            return group + (0 if i < 4 else 8), thread * 4 + (i & 3)
        case (("s4" | "u4"), 8, 32):
            return group, thread * 8 + (i & 7)
        case (("s4" | "u4"), 16, 32):
            return group + (0 if i < 8 else 8), thread * 8 + (i & 7)
        case (("s4" | "u4" | "e2m1"), 16, 64):
            return group + (0 if i < 8 or 16 <= i < 24 else 8), thread * 8 + (i & 7) + (0 if i < 16 else 32)
        case _, 16, 32:
            return group + (0 if i < 4 or 8 <= i < 12 else 8), thread * 4 + (i & 3) + (0 if i < 8 else 16)
        case "b1", 8, 128:
            return group, thread * 32 + i
        case "b1", 16, 128:
            return group + (0 if i < 32 else 8), thread * 32 + (i & 31)
        case "b1", 16, 256:
            return group + (0 if i < 32 or 64 <= i < 96 else 8), thread * 32 + (i & 31) + (0 if i < 64 else 128)
    raise AssertionError((kind, m, k))


def place_b(kind: str, m: int, k: int, lane: int, i: int) -> tuple[int, int]:
    """Column and row (n, k) of element i of B."""
    group, thread = lane >> 2, lane % 4
    if kind in ("tf32", "f64"):
        return group, thread + 4 * i
    word = {"f16": 2, "bf16": 2, "s4": 8, "u4": 8, "b1": 32}.get(kind, 8 if k == 64 else 4)
    return group, thread * word + i % word + (i // word) * 4 * word


def place_c(kind: str, m: int, lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (0 if i < 2 else 8), (lane % 4) * 2 + (i & 1)


def words_of(codes: np.ndarray, bits: int, place, rows: int, k: int) -> np.ndarray:
    """Codes (rows, K) as registers of lanes, elements low to high: uint32 (32, n), or uint64 for f64."""
    wide = 64 if bits == 64 else 32
    each = rows * k // 32
    out = np.zeros((32, each * bits // wide), np.uint64 if wide == 64 else np.uint32)
    for lane in range(32):
        for i in range(each):
            at, inside = divmod(i * bits, wide)
            out[lane, at] |= out.dtype.type(int(codes[place(lane, i)]) << inside)
    return out


def codes(x: np.ndarray, bits: int) -> np.ndarray:
    return x.view({64: np.uint64, 32: np.uint32, 16: np.uint16, 8: np.uint8}[max(bits, 8)])


def text(opcode: str, a: int, b: int, c: int, d: int, factor: str, result: str, tail: str = "", guard: str = "") -> str:
    """A lane's registers lie behind each other in A, B, C, D, 16 words of 8 bytes a lane."""
    size = {"b32": 4, "b64": 8, "f64": 8, "f32": 4, "s32": 4}
    lines = [".version 8.7", ".target sm_100a", ".address_size 64", ".visible .entry k(", "  .param .b64 A,", "  .param .b64 B,", "  .param .b64 C,"]
    lines += [
        "  .param .b64 D,",
        "  .param .b64 S",
        ")",
        "{",
        "  .reg .pred %p<2>;",
        "  .reg .b16 %h<4>;",
        "  .reg .b32 %r<4>;",
        "  .reg .b64 %l<8>;",
    ]
    lines += [f"  .reg .{factor} %a<8>;", f"  .reg .{factor} %b<8>;", f"  .reg .{result} %c<8>;", f"  .reg .{result} %d<8>;"]
    lines += ["  mov.u32 %r0, %tid.x;", "  mul.wide.u32 %l7, %r0, 128;"]
    for n, name in enumerate("ABCDS"):
        lines += [f"  ld.param.b64 %l{n}, [{name}];", f"  add.u64 %l{n}, %l{n}, %l7;"]
    for n, name, count, kind in ((0, "a", a, factor), (1, "b", b, factor), (2, "c", c, result)):
        bits = f"b{size[kind] * 8}"
        lines += [f"  ld.global.{bits} %{name}{i}, [%l{n}+{size[kind] * i}];" for i in range(count)]
    lines += ["  ld.global.b32 %r1, [%l4];", "  ld.global.b32 %r2, [%l4+4];", "  ld.global.b16 %h0, [%l4+8];", "  ld.global.b16 %h1, [%l4+10];"]
    group = lambda name, count: "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"
    lines += [f"  {guard}{opcode} {group('d', d)}, {group('a', a)}, {group('b', b)}, {group('c', c)}{tail};"]
    lines += [f"  st.global.b{size[result] * 8} [%l3+{size[result] * i}], %d{i};" for i in range(d)]
    return "\n".join([*lines, "  ret;", "}", ""])


def execute(opcode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: int, result: str, scales: np.ndarray | None = None, **more):
    """Registers of lanes (32, n) for A, B, C; those of D, (32, d)."""
    factor = "f64" if a.dtype == np.uint64 else "b32"

    def padded(x: np.ndarray) -> np.ndarray:
        out = np.zeros((32, 128), np.uint8)
        out[:, : x.shape[1] * x.dtype.itemsize] = np.ascontiguousarray(x).view(np.uint8)
        return out

    given = {"A": padded(a), "B": padded(b), "C": padded(c), "D": np.zeros((32, 128), np.uint8)}
    given["S"] = padded(np.zeros((32, 4), np.uint32) if scales is None else scales)
    run = on_arrays(text(opcode, a.shape[1], b.shape[1], c.shape[1], d, factor, result, **more), given, emulates())
    size = 8 if result == "f64" else 4
    return run, run["D"][:, : d * size].copy().view(np.uint64 if size == 8 else np.uint32)


def accumulators(c: np.ndarray, kind: str) -> np.ndarray:
    """C (M, 8) as registers of lanes."""
    typed = c.astype(TYPES[kind])
    each = c.shape[0] // 4
    out = np.zeros((32, each), typed.dtype)
    for lane in range(32):
        for i in range(each):
            out[lane, i] = typed[place_c(kind, c.shape[0], lane, i)]
    return out.view(np.uint64 if kind == "f64" else np.uint32)


def matrix(words: np.ndarray, m: int, kind: str) -> np.ndarray:
    held = np.ascontiguousarray(words).view(TYPES[kind])
    out = np.zeros((m, 8))
    for lane in range(32):
        for i in range(m // 4):
            out[place_c(kind, m, lane, i)] = held[lane, i]
    return out


def numbers(rng, kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Values, and their codes. Sums of products are exact."""
    match kind:
        case "s4" | "u4":
            x = rng.integers(-8, 8, (rows, k)) if kind == "s4" else rng.integers(0, 16, (rows, k))
            return x.astype(float), (x & 15).astype(np.uint8)
        case "s8" | "u8":
            x = rng.integers(-128, 128, (rows, k)).astype(np.int8) if kind == "s8" else rng.integers(0, 256, (rows, k)).astype(np.uint8)
            return x.astype(float), codes(x, 8)
        case "b1":
            x = rng.integers(0, 2, (rows, k)).astype(np.uint8)
            return x.astype(float), x
    x = rng.integers(-2, 3, (rows, k)).astype(np.float32).astype(TYPES[kind])
    return x.astype(np.float64), codes(x, BITS.get(kind, 8))


CASES = [
    # M, K, D, A, B, C
    (16, 8, "f32", "f16", "f16", "f32"),
    (16, 8, "f32", "bf16", "bf16", "f32"),
    (16, 16, "f32", "bf16", "bf16", "f32"),
    (16, 16, "f16", "f16", "f16", "f16"),
    (16, 16, "f32", "f16", "f16", "f16"),
    (16, 16, "f16", "f16", "f16", "f32"),
    (16, 4, "f32", "tf32", "tf32", "f32"),
    (16, 8, "f32", "tf32", "tf32", "f32"),
    (8, 4, "f64", "f64", "f64", "f64"),
    (16, 4, "f64", "f64", "f64", "f64"),
    (16, 8, "f64", "f64", "f64", "f64"),
    (16, 16, "f64", "f64", "f64", "f64"),
    (8, 16, "s32", "s8", "u8", "s32"),
    (16, 16, "s32", "u8", "s8", "s32"),
    (16, 32, "s32", "s8", "s8", "s32"),
    (8, 32, "s32", "u4", "s4", "s32"),
    (16, 32, "s32", "s4", "u4", "s32"),
    (16, 64, "s32", "s4", "s4", "s32"),
    (16, 32, "f32", "e4m3", "e5m2", "f32"),
    (16, 16, "f16", "e5m2", "e4m3", "f16"),
]


@pytest.mark.parametrize(("m", "k", "d", "a", "b", "c"), CASES)
def test_products(m, k, d, a, b, c):
    rng = np.random.default_rng(m * k)
    (x, xc), (y, yc) = numbers(rng, a, m, k), numbers(rng, b, 8, k)
    start = rng.integers(-3, 4, (m, 8)).astype(float)
    bits = BITS.get(a, 8)
    left, right = (
        words_of(xc, bits, lambda lane, i: place_a(a, m, k, lane, i), m, k),
        words_of(yc, bits, lambda lane, i: place_b(b, m, k, lane, i), 8, k),
    )
    opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col.{d}.{a}.{b}.{c}"
    result = {"f64": "f64"}.get(d, "b32")
    run, words = execute(opcode, left, right, accumulators(start, c), m // (8 if d == "f16" else 4), result)
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, m, d), x @ y.T + start)


@pytest.mark.parametrize(("m", "k"), [(8, 128), (16, 128), (16, 256)])
@pytest.mark.parametrize("operation", ["and", "xor"])
def test_bits(m, k, operation):
    rng = np.random.default_rng(k)
    (_, xc), (_, yc) = numbers(rng, "b1", m, k), numbers(rng, "b1", 8, k)
    left = words_of(xc, 1, lambda lane, i: place_a("b1", m, k, lane, i), m, k)
    right = words_of(yc, 1, lambda lane, i: place_b("b1", m, k, lane, i), 8, k)
    start = rng.integers(-3, 4, (m, 8)).astype(float)
    run, words = execute(
        f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc", left, right, accumulators(start, "s32"), m // 4, "b32"
    )
    expected = [[sum(p & q if operation == "and" else p ^ q for p, q in zip(r, s, strict=True)) for s in yc.tolist()] for r in xc.tolist()]
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, m, "s32"), start + np.array(expected))


@pytest.mark.parametrize(("a", "b"), [("e2m1", "e3m2"), ("e2m3", "e2m1"), ("e3m2", "e4m3"), ("e5m2", "e2m3")])
def test_floats_of_four_and_six_bits_in_bytes(a, b):
    """An e2m1 has bits 2 to 5 of its byte, floats of six bits the low six (PTX ISA, mma with .kind::f8f6f4); the rest says nothing."""
    rng = np.random.default_rng(9)

    def drawn(kind, rows):
        x = rng.integers(0, 1 << {"e2m1": 4, "e3m2": 6, "e2m3": 6}.get(kind, 7), (rows, 32)).astype(np.uint8)
        if kind == "e4m3":
            x[x & 127 == 127] = 0
        if kind == "e5m2":
            x[x & 124 == 124] = 0
        value = x.view(TYPES[kind]).astype(np.float64)
        return value, (x << 2 | 0xC0 if kind == "e2m1" else x | 0xC0 if kind in ("e3m2", "e2m3") else x)

    (x, xc), (y, yc) = drawn(a, 16), drawn(b, 8)
    left = words_of(xc, 8, lambda lane, i: place_a("e4m3", 16, 32, lane, i), 16, 32)
    right = words_of(yc, 8, lambda lane, i: place_b("e4m3", 16, 32, lane, i), 8, 32)
    zero = accumulators(np.zeros((16, 8)), "f32")
    run, words = execute(f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{a}.{b}.f32", left, right, zero, 4, "b32")
    assert run.findings == []
    np.testing.assert_allclose(matrix(words, 16, "f32"), x @ y.T, rtol=2**-22, atol=0)


SCALED = [
    # kind, size, K, A, B, scales, bits, byte of A, thread of A, byte of B, thread of B
    ("mxf8f6f4", "1X", 32, "e4m3", "e5m2", "ue8m0", 8, 3, 1, 2, 3),
    ("mxf4", "2X", 64, "e2m1", "e2m1", "ue8m0", 4, 2, 0, 0, 2),
    ("mxf4nvf4", "4X", 64, "e2m1", "e2m1", "ue4m3", 4, 0, 1, 0, 0),
    ("mxf4nvf4", "4X", 64, "e2m1", "e2m1", "ue8m0", 4, 0, 0, 0, 1),
]


@pytest.mark.parametrize(("kind", "size", "k", "a", "b", "scale", "bits", "byte_a", "thread_a", "byte_b", "thread_b"), SCALED)
def test_block_scales(kind, size, k, a, b, scale, bits, byte_a, thread_a, byte_b, thread_b):
    """Row m of A has its scales in lane 4 (m mod 8) + 2 t + m / 8, column n of B in lane 4 n + t; all other registers and bytes hold what would be seen."""
    rng = np.random.default_rng(4)
    n = int(size[0])

    def drawn(kind, rows):
        if kind == "e2m1":
            x = rng.integers(0, 16, (rows, k)).astype(np.uint8)
            return x.view(TYPES[kind]).astype(np.float64), x
        x = rng.integers(-3, 4, (rows, k)).astype(np.float32).astype(TYPES[kind])
        return x.astype(np.float64), codes(x, 8)

    (x, xc), (y, yc) = drawn(a, 16), drawn(b, 8)
    left = words_of(xc, bits, lambda lane, i: place_a(a, 16, k, lane, i), 16, k)
    right = words_of(yc, bits, lambda lane, i: place_b(b, 16, k, lane, i), 8, k)
    type_of = ml_dtypes.float8_e8m0fnu if scale == "ue8m0" else ml_dtypes.float8_e4m3fn
    sa, sb = (rng.integers(120, 132, (rows, n)) if scale == "ue8m0" else rng.integers(1, 126, (rows, n)) for rows in (16, 8))
    held = np.full((32, 2, 4), 0x55, np.uint8)
    for m in range(16):
        held[4 * (m % 8) + 2 * thread_a + m // 8, 0, byte_a : byte_a + n] = sa[m]
    for m in range(8):
        held[4 * m + thread_b, 1, byte_b : byte_b + n] = sb[m]
    ids = np.zeros((32, 4), np.uint8)
    ids[:, 0], ids[:, 2] = byte_b, thread_b
    scales = np.concatenate([held.reshape(32, 8), ids], 1)
    tail = f", {{%r1}}, {{{byte_a}, {thread_a}}}, %r2, {{%h0, %h1}}"
    zero = accumulators(np.zeros((16, 8)), "f32")
    opcode = f"mma.sync.aligned.kind::{kind}.block_scale.scale_vec::{size}.m16n8k{k}.row.col.f32.{a}.{b}.f32.{scale}"
    run, words = execute(opcode, left, right, zero, 4, "b32", scales, tail=tail)
    of = lambda s: np.repeat(s.astype(np.uint8).view(type_of).astype(np.float64), k // n, 1)
    assert run.findings == []
    np.testing.assert_allclose(matrix(words, 16, "f32"), (x * of(sa)) @ (y * of(sb)).T, rtol=2**-22, atol=0)


def test_a_selector_that_the_isa_does_not_have():
    zero = accumulators(np.zeros((16, 8)), "f32")
    opcode = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    run, _ = execute(opcode, np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32), zero, 4, "b32", tail=", %r1, {1, 0}, %r2, {0, 0}")
    assert run.codes == ["emulate/operand"]


def test_steps_of_f64_are_fused():
    """(1 + 2^-30)^2 - 1 - 2^-29 is 2^-60 where the product is not rounded, else 0. Beyond the greatest number a sum is infinite."""
    x, y, start = np.zeros((8, 4)), np.zeros((8, 4)), np.zeros((8, 8))
    x[0, 0], y[:, 0], start[0] = 1 + 2.0**-30, 1 + 2.0**-30, -1 - 2.0**-29
    x[1, :2], start[1] = (1e308, 1e308), 1e308
    y[:, 1] = 1
    x[2, 3], y[:, 3] = np.inf, 0
    left = words_of(codes(x, 64), 64, lambda lane, i: place_a("f64", 8, 4, lane, i), 8, 4)
    right = words_of(codes(y, 64), 64, lambda lane, i: place_b("f64", 8, 4, lane, i), 8, 4)
    _, words = execute("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", left, right, accumulators(start, "f64"), 2, "f64")
    d = matrix(words, 8, "f64")
    assert (d[0] == 2.0**-60).all() and (d[1] == np.inf).all() and np.isnan(d[2]).all() and (d[3] == 0).all()


def test_integers_wrap_or_saturate():
    left, right = np.full((32, 4), 0x80808080, np.uint32), np.full((32, 2), 0x7F7F7F7F, np.uint32)
    start = accumulators(np.full((16, 8), -(2.0**31) + 5), "s32")
    for word, expected in (("", 2**31 + 5 - 128 * 127 * 32), (".satfinite", -(2**31))):
        _, words = execute(f"mma.sync.aligned.m16n8k32.row.col{word}.s32.s8.s8.s32", left, right, start, 4, "b32")
        assert (words.view(np.int32) == expected).all()


def test_special_values():
    """Infinities, NaN, denormals; a sum is exact before it is cut off, and rounded to the nearest as f16; of tf32 the low 13 bits say nothing."""
    x = np.zeros((16, 16), np.float16)
    x[0, 0], x[1, 0], x[2, :2], x[3, 0], x[4, 0], x[5, 0] = np.inf, np.nan, (np.inf, -np.inf), 2.0**-24, 1, -1
    y = np.zeros((8, 16), np.float16)
    y[:, :2] = 1
    left = words_of(codes(x, 16), 16, lambda lane, i: place_a("f16", 16, 16, lane, i), 16, 16)
    right = words_of(codes(y, 16), 16, lambda lane, i: place_b("f16", 16, 16, lane, i), 8, 16)
    start = np.zeros((16, 8))
    start[4], start[5] = 2.0**25 - 2, -(2.0**25) + 2
    _, words = execute("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", left, right, accumulators(start, "f32"), 4, "b32")
    d = matrix(words, 16, "f32")
    assert (d[0] == np.inf).all() and np.isnan(d[1:3]).all() and (d[3] == 2.0**-24).all()
    assert (d[4] == 2.0**25 - 2).all() and (d[5] == -(2.0**25) + 2).all()
    assert words[4, 0] == 0x7FFFFFFF  # lane 4 has row 1
    start[4], start[5] = 2048, -2048
    _, words = execute("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", left, right, accumulators(start, "f16"), 2, "b32")
    assert (matrix(words, 16, "f16")[4:6] == [[2048] * 8, [-2048] * 8]).all()
    ones = np.full((32, 4), 0x3F801FFF, np.uint32)
    zero = accumulators(np.zeros((16, 8)), "f32")
    _, words = execute("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ones, ones[:, :2], zero, 4, "b32")
    assert (matrix(words, 16, "f32") == 8).all()


@pytest.mark.parametrize(
    ("a", "b", "d", "c"), [("row", "col", "f32", "f32"), ("col", "row", "f16", "f16"), ("row", "row", "f32", "f16"), ("col", "col", "f32", "f32")]
)
def test_four_products_of_quads(a, b, d, c):
    """Rows, columns and places by the formulas of the ISA for m8n8k4 of f16, a lane and an element at a time."""
    rng = np.random.default_rng(6)
    x, y = (rng.integers(-4, 5, (4, *shape)).astype(np.float16) for shape in ((8, 4), (4, 8)))
    start = rng.integers(-4, 5, (4, 8, 8)).astype(float)

    def accumulator(kind: str, lane: int, i: int) -> tuple[int, int]:
        high = 4 * (lane >= 16)
        if kind == "f16":
            return lane % 4 + high, i
        return (lane & 0b1) + (i & 0b10) + high, (i & 0b100) + (lane & 0b10) + (i & 0b1)

    left, right, sums = np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float16), np.zeros((32, 8), TYPES[c])
    for lane in range(32):
        quad, high, inside = lane % 16 // 4, 4 * (lane >= 16), lane % 4
        for i in range(4):
            left[lane, i] = x[quad, inside + high, i] if a == "row" else x[quad, i + high, inside]
            right[lane, i] = y[quad, i, inside + high] if b == "col" else y[quad, inside, i + high]
        for i in range(8):
            sums[lane, i] = start[(quad, *accumulator(c, lane, i))]
    opcode = f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}"
    words = [np.ascontiguousarray(v).view(np.uint32) for v in (left, right, sums)]
    run, out = execute(opcode, *words, 4 if d == "f16" else 8, "b32")
    got, expected = np.ascontiguousarray(out).view(TYPES[d]), x.astype(float) @ y.astype(float) + start
    assert run.findings == []
    for lane in range(32):
        for i in range(8):
            assert got[lane, i] == expected[(lane % 16 // 4, *accumulator(d, lane, i))]


def test_a_missing_lane():
    zero = accumulators(np.zeros((16, 8)), "f32")
    given = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32), zero, 4, "b32"
    run, _ = execute("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", *given, guard="setp.ne.u32 %p0, %r0, 7;\n  @%p0 ")
    assert run.codes[0] == "emulate/divergent"


def test_movmatrix():
    rows = np.arange(64, dtype=np.uint16).reshape(8, 8)
    held = words_of(rows, 16, lambda lane, i: (lane >> 2, lane % 4 * 2 + i), 8, 8)
    body = text("mma.sync", 1, 0, 0, 1, "b32", "b32").replace("mma.sync {%d0}, {%a0}, {}, {}", "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0")
    given = {n: np.zeros((32, 128), np.uint8) for n in "ABCDS"}
    given["A"][:, :4] = held.view(np.uint8)
    run = on_arrays(body, given, emulates())
    assert run.findings == []
    np.testing.assert_array_equal(run["D"][:, :4].copy().view(np.uint32), words_of(rows.T, 16, lambda lane, i: (lane >> 2, lane % 4 * 2 + i), 8, 8))


@pytest.mark.parametrize(
    ("opcode", "what"),
    [
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "mma.sp"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16", "bf16"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "m16n8k32"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32", "words"),
        ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32", "m8n8k4"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16", "have to be one"),
        ("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32", "row"),
        ("mma.sync.aligned.kind::mxf4nvf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", "mxf4nvf4"),
        ("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.s8.f32", "s8"),
    ],
)
def test_forms_that_are_refused_by_name(opcode, what):
    zero = accumulators(np.zeros((16, 8)), "f32")
    with pytest.raises(Unsupported, match=what):
        execute(opcode, np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32), zero, 4, "b32")
