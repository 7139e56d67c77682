"""wgmma executed without a GPU: values held against loops over elements placed by the ISA's tables, and what the ISA forbids."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
CODES = {0: 0, 128: 1, 64: 2, 32: 3}
BASE = 1024  # of shared memory in its window


@cache
def emulates():
    return load_registry().emulates


def place(r: int, k: int, size: int, major: str, swizzle: int, leading: int, stride: int) -> int:
    """The byte of element (row, k) behind a start that is a multiple of 1024 (PTX ISA, Strides and canonical layouts): written per element."""
    along, across = (k * size, r) if major == "k" else (r * size, k)
    if swizzle == 0:
        piece, inside = divmod(along, 16)
        tall, low = divmod(across, 8)
        at = low * 16 + inside + (tall * stride + piece * leading if major == "k" else tall * leading + piece * stride)
        return at
    block, inside = divmod(along, swizzle)
    tall, low = divmod(across, 8)
    at = block * leading + tall * stride + low * swizzle + inside
    rows_of_128, chunk = at // 128, at // 16 % 8
    exchanged = {128: rows_of_128 % 8, 64: rows_of_128 % 4, 32: rows_of_128 % 2}[swizzle]
    return at // 128 * 128 + (chunk ^ exchanged) * 16 + at % 16


def image(x: np.ndarray, major: str, swizzle: int) -> tuple[np.ndarray, int, int]:
    """Bytes of a factor (rows, K) in shared memory, with its leading and stride offsets."""
    rows, depth = x.shape
    size = x.dtype.itemsize
    if swizzle == 0:  # two pieces of all rows behind each other, with a gap; or pieces of rows behind each other
        leading, stride = (rows * 16 + 128, 128) if major == "k" else (16 * 8, 16 * depth + 256)
    else:
        leading, stride = (16, 8 * swizzle) if major == "k" else (swizzle * depth, 8 * swizzle)
    out = np.zeros(32768, np.uint8)
    raw = x.view(np.uint8).reshape(rows, depth, size)
    for r in range(rows):
        for k in range(depth):
            at = place(r, k, size, major, swizzle, leading, stride)
            out[at : at + size] = raw[r, k]
    return out, leading, stride


def descriptor(start: int, leading: int, stride: int, swizzle: int) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | CODES[swizzle] << 62


def text(body: str, extra: str = "") -> str:
    """Both images come into shared memory at 1024 and 33792 of the window, then `body`, then `%f` or `%r` go to D, 128 a thread."""
    return f""".version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry k(
  .param .b64 S,
  .param .b64 D,
  .param .b64 C
)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b32 %a<4>;
  .reg .b32 %x<128>;
  .reg .b64 %d<12>;
  {extra}
  ld.param.b64 %d0, [S];
  ld.param.b64 %d1, [D];
  ld.param.b64 %d2, [C];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, sm;
  shl.b32 %r2, %r0, 4;
  cvt.u64.u32 %d3, %r2;
  add.u64 %d3, %d0, %d3;
  add.u32 %r1, %r1, %r2;
  mov.u32 %r3, 0;
COPY:
  ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%d3];
  st.shared.v4.b32 [%r1], {{%x0, %x1, %x2, %x3}};
  add.u64 %d3, %d3, 2048;
  add.u32 %r1, %r1, 2048;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p0, %r3, 32;
  @%p0 bra COPY;
  mul.lo.u32 %r4, %r0, 512;
  cvt.u64.u32 %d4, %r4;
  add.u64 %d5, %d2, %d4;
  add.u64 %d4, %d1, %d4;
  fence.proxy.async.shared::cta;
  bar.sync 0;
{body}
  ret;
}}
"""


def vector(count: int, name: str = "%x") -> str:
    return "{" + ", ".join(f"{name}{i}" for i in range(count)) + "}"


def loads(count: int) -> str:
    return "\n".join(f"  ld.global.b32 %x{i}, [%d5+{4 * i}];" for i in range(count))


def stores(count: int) -> str:
    return "\n".join(f"  st.global.b32 [%d4+{4 * i}], %x{i};" for i in range(count))


FENCE, COMMIT, WAIT = "  wgmma.fence.sync.aligned;", "  wgmma.commit_group.sync.aligned;", "  wgmma.wait_group.sync.aligned 0;"


def execute(body: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, threads: int = 128, **more):
    """`a`, `b`: images. The words that threads stored, uint32 (threads, 128)."""
    held = np.zeros((threads, 128), np.uint32)
    if c is not None:
        held[:, : c.shape[1]] = c.view(np.uint32)
    run = on_arrays(
        text(body),
        {"S": np.concatenate([a, b]), "D": np.zeros((threads, 128), np.uint32), "C": held},
        emulates(),
        block=threads,
        dynamic=65536,
        **more,
    )
    return run, run["D"]


def matrix(words: np.ndarray, n: int, d: str) -> np.ndarray:
    """Words of 128 threads as (64, N), element by element (PTX ISA, Register Fragments: accumulator D of m64nNk)."""
    out = np.zeros((64, n), np.float64)
    for t in range(128):
        for i in range(n // 2):
            row, column = 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2
            if d == "f16":
                value = words[t, i // 2 : i // 2 + 1].view(np.float16)[i % 2]
            else:
                value = words[t, i : i + 1].view({"f32": np.float32, "s32": np.int32}[d])[0]
            out[row, column] = value
    return out


def accumulators(c: np.ndarray, d: str) -> np.ndarray:
    """The inverse: uint32 (128, registers)."""
    n = c.shape[1]
    out = np.zeros((128, n // 2), np.dtype({"f16": np.float16, "f32": np.float32, "s32": np.int32}[d]))
    for t in range(128):
        for i in range(n // 2):
            out[t, i] = c[16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2]
    return out.view(np.uint32)


def random(rng, kind: str, rows: int) -> np.ndarray:
    """Small whole numbers: products and sums are exact in every format, so results must be equal."""
    depth = DEPTH[kind]
    if kind in ("s8", "u8"):
        low, high = (-128, 128) if kind == "s8" else (0, 256)
        return rng.integers(low, high, (rows, depth)).astype(TYPES[kind])
    return rng.integers(-4, 5, (rows, depth)).astype(np.float32).astype(TYPES[kind])


CASES = [
    # D, A, B, N, swizzles of A and B, majors, negated
    ("f32", "bf16", "bf16", 64, 128, 128, "kk", (1, 1)),
    ("f32", "f16", "f16", 24, 64, 32, "kk", (-1, 1)),
    ("f16", "f16", "f16", 16, 32, 64, "kk", (1, -1)),
    ("f32", "bf16", "bf16", 32, 0, 0, "kk", (1, 1)),
    ("f32", "f16", "f16", 64, 128, 128, "mm", (1, 1)),
    ("f32", "bf16", "bf16", 48, 64, 32, "mm", (1, 1)),
    ("f16", "f16", "f16", 8, 0, 0, "mm", (1, 1)),
    ("f32", "bf16", "bf16", 128, 32, 64, "km", (-1, -1)),
    ("f32", "tf32", "tf32", 16, 128, 64, "kk", (1, 1)),
    ("f32", "e4m3", "e5m2", 40, 128, 128, "kk", (1, 1)),
    ("f16", "e5m2", "e4m3", 8, 64, 0, "kk", (1, 1)),
    ("s32", "s8", "u8", 48, 128, 32, "kk", None),
    ("s32", "u8", "s8", 8, 0, 128, "kk", None),
]


def statement(d: str, a: str, b: str, n: int, majors: str = "kk", negated=(1, 1), scale: str = "1", registers: bool = False, first: int = 0) -> str:
    count = n // 4 if d == "f16" else n // 2
    half = a in ("f16", "bf16")
    flags = [*(negated or ())]
    if half:
        flags += [int(m == "m") for m in (majors[1:] if registers else majors)]
    left = "{%a0, %a1, %a2, %a3}" if registers else "%d6"
    tail = "".join(f", {f}" for f in flags)
    vec = "{" + ", ".join(f"%x{first + i}" for i in range(count)) + "}"
    return f"  wgmma.mma_async.sync.aligned.m64n{n}k{DEPTH[a]}.{d}.{a}.{b} {vec}, {left}, %d7, {scale}{tail};"


def descriptors(a: int, b: int) -> str:
    return f"  mov.b64 %d6, 0x{a:x};\n  mov.b64 %d7, 0x{b:x};"


@pytest.mark.parametrize(("d", "a", "b", "n", "sa", "sb", "majors", "negated"), CASES)
def test_products_of_factors_in_shared_memory(d, a, b, n, sa, sb, majors, negated):
    rng = np.random.default_rng(n)
    x, y = random(rng, a, 64), random(rng, b, n)
    left, *la = image(x, "k" if majors[0] == "k" else "mn", sa)
    right, *lb = image(y, "k" if majors[1] == "k" else "mn", sb)
    c = rng.integers(-8, 9, (64, n))
    body = [descriptors(descriptor(BASE, *la, sa), descriptor(BASE + 32768, *lb, sb))]
    count = n // 4 if d == "f16" else n // 2
    body += [loads(count), FENCE, statement(d, a, b, n, majors, negated), COMMIT, WAIT, stores(count)]
    run, words = execute("\n".join(body), left, right, accumulators(c, d))
    sign = 1 if negated is None else negated[0] * negated[1]
    expected = c + sign * (x.astype(np.float64) @ y.astype(np.float64).T)
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, n, d), expected)


@pytest.mark.parametrize(("a", "n"), [("bf16", 32), ("e4m3", 16), ("tf32", 8), ("s8", 16)])
def test_a_from_registers(a, n):
    """Register j of thread t: row t / 4 of its warp's 16, 8 further for odd j; bytes 4 (t mod 4) of K, 16 further from j = 2 on (PTX ISA, fragment A)."""
    rng = np.random.default_rng(5)
    x, y = random(rng, a, 64), random(rng, a, n)
    right, *lb = image(y, "k", 128)
    raw = x.view(np.uint8).reshape(64, 32)
    fragments = np.zeros((128, 4), np.uint32)
    for t in range(128):
        for j in range(4):
            row, byte = 16 * (t // 32) + t % 32 // 4 + 8 * (j % 2), 4 * (t % 4) + 16 * (j // 2)
            fragments[t, j] = raw[row, byte : byte + 4].view(np.uint32)[0]
    d, count = ("s32" if a == "s8" else "f32"), n // 2
    body = [descriptors(0, descriptor(BASE + 32768, *lb, 128))]
    body += [f"  ld.global.b32 %a{i}, [%d5+{4 * i}];" for i in range(4)]
    body += [FENCE, statement(d, a, a, n, negated=None if a == "s8" else (1, 1), scale="0", registers=True), COMMIT, WAIT, stores(count)]
    run, words = execute("\n".join(body), np.zeros(32768, np.uint8), right, fragments)
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, n, d), x.astype(np.float64) @ y.astype(np.float64).T)


def test_bits_are_anded_and_counted():
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 256, (rows, 32), dtype=np.uint8) for rows in (64, 16))
    left, *la = image(x, "k", 32)
    right, *lb = image(y, "k", 128)
    body = [descriptors(descriptor(BASE, *la, 32), descriptor(BASE + 32768, *lb, 128)), FENCE]
    body += [f"  wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc {vector(8)}, %d6, %d7, 0;", COMMIT, WAIT, stores(8)]
    run, words = execute("\n".join(body), left, right)
    expected = [[sum(int(p & q).bit_count() for p, q in zip(r, s, strict=True)) for s in y.tolist()] for r in x.tolist()]
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, 16, "s32"), expected)


def test_integers_wrap_or_saturate():
    x, y = np.full((64, 32), -128, np.int8), np.full((8, 32), 127, np.int8)
    left, *la = image(x, "k", 128)
    right, *lb = image(y, "k", 128)
    start = np.full((64, 8), -(2**31) + 5)
    for word, expected in (("", -(2**31) + 5 - 128 * 127 * 32 + 2**32), (".satfinite", -(2**31))):
        body = [descriptors(descriptor(BASE, *la, 128), descriptor(BASE + 32768, *lb, 128)), loads(4), FENCE]
        body += [f"  wgmma.mma_async.sync.aligned.m64n8k32{word}.s32.s8.s8 {vector(4)}, %d6, %d7, 1;", COMMIT, WAIT, stores(4)]
        _, words = execute("\n".join(body), left, right, accumulators(start, "s32"))
        assert (matrix(words, 8, "s32") == expected).all()


def test_special_values_and_what_is_cut_off():
    """Infinities, NaN, denormals and -0 go through; sums are exact before they are cut off towards zero."""
    x, y = np.zeros((64, 16), np.float16), np.zeros((8, 16), np.float16)
    x[0, 0], x[1, 0], x[2, :2], x[3, 0], x[4, 0] = np.inf, np.nan, (np.inf, -np.inf), 2.0**-24, 1
    y[:, 0], y[:, 1] = 1, 1
    left, *la = image(x, "k", 128)
    right, *lb = image(y, "k", 128)
    c = np.zeros((64, 8), np.float32)
    c[4] = 2.0**25 - 1 - 1  # 33554430; + 1 is no f32: the nearest even is above, what is cut off is below
    c[5] = -0.0
    body = [descriptors(descriptor(BASE, *la, 128), descriptor(BASE + 32768, *lb, 128)), loads(4), FENCE]
    body += [statement("f32", "f16", "f16", 8), COMMIT, WAIT, stores(4)]
    _, words = execute("\n".join(body), left, right, accumulators(c, "f32"))
    d = matrix(words, 8, "f32")
    assert (d[0] == np.inf).all() and np.isnan(d[1:3]).all() and (d[3] == 2.0**-24).all() and (d[4] == 2.0**25 - 2).all()
    t = next(t for t in range(128) if 16 * (t // 32) + t % 32 // 4 == 1)
    assert words[t, 0] == 0x7FFFFFFF


def chain(between: list[str], **more):
    """Two products over one accumulator of ones, `between` them these lines."""
    ones = np.ones((64, 16), ml_dtypes.bfloat16)
    left, *la = image(ones, "k", 128)
    right, *lb = image(ones[:16], "k", 128)
    body = [descriptors(descriptor(BASE, *la, 128), descriptor(BASE + 32768, *lb, 128)), FENCE]
    one = statement("f32", "bf16", "bf16", 16, scale="0")
    body += [one, *between, statement("f32", "bf16", "bf16", 16), COMMIT, WAIT, stores(8)]
    return execute("\n".join(body), left, right, **more)


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:1"])
@pytest.mark.parametrize("between", [[], [COMMIT], [COMMIT, WAIT], [COMMIT, "  wgmma.wait_group.sync.aligned 1;"]])
def test_products_of_one_accumulator_follow_each_other(between, schedule):
    run, words = chain(between, schedule=schedule)
    assert run.findings == []
    assert (matrix(words, 16, "f32") == 32).all()


@pytest.mark.parametrize(
    ("between", "code"),
    [
        (["  mov.b32 %x3, 0;"], "emulate/race"),  # an accumulator in flight is written
        ([COMMIT, "  mov.b32 %r5, %x3;"], "emulate/race"),  # and read
        ([statement("f32", "bf16", "bf16", 8, first=4)], "emulate/race"),  # and taken by a product of another shape
        ([COMMIT, WAIT, "  mov.b32 %x3, 0;"], "emulate/missing-fence"),
        ([COMMIT, WAIT, "  mov.b32 %r5, %x3;"], "emulate/missing-fence"),  # it may be overwritten before it was read
        (["  mov.u32 %r6, %tid.x;", "  shr.b32 %r6, %r6, 5;", "  cvt.u64.u32 %d8, %r6;", "  add.u64 %d7, %d7, %d8;"], "emulate/divergent"),
        (["  setp.lt.u32 %p1, %r0, 96;", "  @!%p1 exit;"], "emulate/deadlock"),  # three warps begin the second product
    ],
)
def test_misuse(between, code):
    run, _ = chain(between)
    assert run.codes[0] == code, run.findings


def test_what_the_text_must_do_first_and_last():
    ones = np.ones((64, 16), ml_dtypes.bfloat16)
    left, *la = image(ones, "k", 128)
    right, *lb = image(ones[:16], "k", 128)
    one, named = statement("f32", "bf16", "bf16", 16, scale="0"), descriptors(descriptor(BASE, *la, 128), descriptor(BASE + 32768, *lb, 128))
    run, _ = execute(f"{named}\n{one}\n{COMMIT}\n{WAIT}", left, right)
    assert run.codes == ["emulate/missing-fence"]
    run, _ = execute(f"{named}\n{FENCE}\n{one}\n{COMMIT}", left, right)
    assert "emulate/unfinished" in run.codes
    run, _ = execute("\n".join([named, "  setp.ne.u32 %p1, %r0, 5;", FENCE, "  @%p1 " + one.strip(), COMMIT, WAIT]), left, right)
    assert run.codes[0] == "emulate/divergent"


@pytest.mark.parametrize(("bit", "code"), [(14, "emulate/operand"), (46, "emulate/operand"), (49, "emulate/unsupported")])
def test_bits_of_a_descriptor_that_are_none(bit, code):
    named = descriptors(descriptor(BASE, 16, 1024, 128) | 1 << bit, descriptor(BASE, 16, 1024, 128))
    run, _ = execute("\n".join([named, FENCE, statement("f32", "bf16", "bf16", 16, scale="0"), COMMIT, WAIT]), *[np.zeros(32768, np.uint8)] * 2)
    assert run.codes == [code]


def test_a_factor_that_ends_outside_of_shared_memory():
    named = descriptors(descriptor(BASE, 16, 1024, 128), descriptor(BASE + 65536 - 1024, 16, 1024, 128))
    run, _ = execute("\n".join([named, FENCE, statement("f32", "bf16", "bf16", 16, scale="0"), COMMIT, WAIT]), *[np.zeros(32768, np.uint8)] * 2)
    assert run.codes[0] == "emulate/out-of-bounds"


def test_a_start_inside_of_a_pattern():
    """The next K step of a row of 128 bytes: 32 bytes further, and the exchange goes by the address."""
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-4, 5, (rows, 64)).astype(np.float32).astype(ml_dtypes.bfloat16) for rows in (64, 16))
    left, *la = image(x, "k", 128)
    right, *lb = image(y, "k", 128)
    body = [descriptors(descriptor(BASE + 64, *la, 128), descriptor(BASE + 32768 + 64, *lb, 128)), FENCE]
    run, words = execute("\n".join([*body, statement("f32", "bf16", "bf16", 16, scale="0"), COMMIT, WAIT, stores(8)]), left, right)
    assert run.findings == []
    np.testing.assert_array_equal(matrix(words, 16, "f32"), x[:, 32:48].astype(np.float64) @ y[:, 32:48].astype(np.float64).T)


@pytest.mark.parametrize(("value", "expected"), [(1, 32), (0, 16)])
def test_scale_d_from_a_predicate(value, expected):
    ones = np.ones((64, 16), ml_dtypes.bfloat16)
    left, *la = image(ones, "k", 128)
    right, *lb = image(ones[:16], "k", 128)
    body = [
        descriptors(descriptor(BASE, *la, 128), descriptor(BASE + 32768, *lb, 128)),
        f"  mov.u32 %r6, {value};",
        "  setp.ne.u32 %p2, %r6, 0;",
        FENCE,
    ]
    body += [statement("f32", "bf16", "bf16", 16, scale=p) for p in ("0", "%p2")]
    run, words = execute("\n".join([*body, COMMIT, WAIT, stores(8)]), left, right)
    assert run.findings == []
    assert (matrix(words, 16, "f32") == expected).all()


@pytest.mark.parametrize(
    ("opcode", "what"),
    [
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16", "sparse"),
        ("wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16", "m64n12k16"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16", "bf16"),
        ("wgmma.mma_async.sync.aligned.m64n56k32.s32.s8.s8", "m64n56k32"),
        ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.xor.popc", "xor"),
    ],
)
def test_forms_that_are_refused_by_name(opcode, what):
    with pytest.raises(Unsupported, match=what):
        execute(f"  {opcode} {vector(4)}, %d6, %d7, 1, 1, 1, 0, 0;", *[np.zeros(32768, np.uint8)] * 2)
