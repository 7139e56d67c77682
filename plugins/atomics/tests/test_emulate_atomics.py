"""Atomic operations without a GPU: lane after lane by Python's numbers, every operation and type, vectors, spaces, and what orders what."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry

SHARED = ".shared .align 16 .b8 buffer[256];\n"


@pytest.fixture(scope="module")
def emulates():
    return load_registry().emulates


def kernel(body: str) -> str:
    """%A: values of each lane, %P: the place, %D: what was there, of each lane."""
    return (
        SHARED
        + f""".visible .entry k(
.param .u64 A,
.param .u64 P,
.param .u64 D
)
{{
.reg .pred %p<4>;
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %d<9>;
.reg .b64 %A;
.reg .b64 %P;
.reg .b64 %D;
mov.u32 %r0, %tid.x;
ld.param.u64 %A, [A];
ld.param.u64 %P, [P];
ld.param.u64 %D, [D];
{body}
ret;
}}
"""
    )


def registers(dtype) -> str:
    return {1: "%h1", 2: "%h1", 4: "%r1", 8: "%d1"}[np.dtype(dtype).itemsize]


def atomically(emulates, form: str, dtype, start, values, more: str = "", space: str = "global"):
    """(what is there in the end, what each lane found)."""
    dtype = np.dtype(dtype)
    size, r = dtype.itemsize, registers(dtype)
    bits, old = f"b{8 * size}", r[:-1] + "2"
    place = "%P" if space != "shared" else "%r3"
    body = f"mad.wide.u32 %d0, %r0, {size}, %A;\nld.global.{bits} {r}, [%d0];\n"
    if space == "shared":
        body += f"mov.u32 %r3, buffer;\nld.global.{bits} {old}, [%P];\nst.shared.{bits} [%r3], {old};\nbar.warp.sync -1;\n"
    body += f"atom.{form} {old}, [{place}], {r}{more};\nmad.wide.u32 %d0, %r0, {size}, %D;\nst.global.{bits} [%d0], {old};\n"
    if space == "shared":
        body += f"bar.warp.sync -1;\nld.shared.{bits} {old}, [%r3];\nst.global.{bits} [%P], {old};\n"
    given = {"A": np.array(values, dtype), "P": np.array([start], dtype), "D": np.zeros(32, dtype)}
    run = on_arrays(kernel(body), given, emulates)
    assert run.findings == [] or space == "shared" and set(run.codes) == {"emulate/race"}  # of all lanes that store the end
    return run["P"][0], run["D"]


def wrapped(v: int, kind: str) -> int:
    width = int(kind[1:])
    v &= (1 << width) - 1
    return v - (1 << width) if kind[0] == "s" and v >> width - 1 else v


INTEGERS = [
    *[(f"add.{k}", k, lambda o, n: o + n) for k in ("u32", "s32", "u64")],
    *[(f"min.{k}", k, min) for k in ("u32", "s32", "u64", "s64")],
    *[(f"max.{k}", k, max) for k in ("u32", "s32", "u64", "s64")],
    *[(f"and.b{w}", f"u{w}", lambda o, n: o & n) for w in (32, 64)],
    *[(f"or.b{w}", f"u{w}", lambda o, n: o | n) for w in (32, 64)],
    *[(f"xor.b{w}", f"u{w}", lambda o, n: o ^ n) for w in (32, 64)],
    *[(f"exch.b{w}", f"u{w}", lambda o, n: n) for w in (32, 64)],
    ("inc.u32", "u32", lambda o, n: 0 if o >= n else o + 1),
    ("dec.u32", "u32", lambda o, n: n if o == 0 or o > n else o - 1),
]


@pytest.mark.parametrize(("form", "kind", "f"), INTEGERS, ids=[c[0] for c in INTEGERS])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_integers(emulates, form, kind, f, space):
    width = int(kind[1:])
    values = [(n * 0x9E3779B97F4A7C15 + (5 if form[:3] in ("inc", "dec") else 1 << 62)) % 2**width for n in range(32)]
    if form[:3] in ("inc", "dec"):
        values = [7] * 30 + [2, 2**32 - 1]
    there = 3
    end, found = atomically(emulates, f"{space}.{form}", f"uint{width}", there, values, space=space)
    for lane, n in enumerate(values):
        assert found[lane] == wrapped(there, f"u{width}")
        there = wrapped(f(wrapped(there, kind), wrapped(n, kind)), kind)
    assert end == wrapped(there, f"u{width}")


@pytest.mark.parametrize("width", [16, 32, 64])
def test_compare_and_swap(emulates, width):
    """Each lane that finds its own number puts the next one there; the others leave it."""
    dtype = f"uint{width}"
    r = {16: "%h", 32: "%r", 64: "%d"}[width]
    body = f"""mad.wide.u32 %d0, %r0, {width // 8}, %A;
        ld.global.b{width} {r}1, [%d0];
        mov.b{width} {r}4, 9;
        atom.acq_rel.gpu.global.cas.b{width} {r}2, [%P], {r}1, {r}4;
        mad.wide.u32 %d0, %r0, {width // 8}, %D;
        st.global.b{width} [%d0], {r}2;"""
    values = np.array([5, 5, 9, 1] * 8, dtype)
    run = on_arrays(kernel(body), {"A": values, "P": np.array([5], dtype), "D": np.zeros(32, dtype)}, emulates)
    assert run.findings == [] and run["P"][0] == 9 and run["D"].tolist() == [5, *[9] * 31]


def test_sums_of_f32_are_rounded_at_each_lane_and_flushed_in_global_memory(emulates):
    values = np.array([2.0**24, 1.0, 1.0, 1.0, 1e-40, -(2.0**24)] + [0.0] * 26, np.float32)
    end, found = atomically(emulates, "global.add.f32", np.float32, 0.0, values)
    there = np.float32(0)
    for lane, v in enumerate(values):
        assert found[lane] == there
        there = np.float32(there + (v if abs(v) > 1e-38 or v == 0 else np.float32(0)))
    assert end == there == 0
    tiny = np.array([1e-40] * 32, np.float32)
    assert atomically(emulates, "global.add.f32", np.float32, 0.0, tiny)[0] == 0
    flat, _ = atomically(emulates, "add.f32", np.float32, 1e-40, tiny * 0)
    assert flat == 0
    assert atomically(emulates, "global.add.noftz.f32", np.float32, 1e-40, tiny * 0)[0] == np.float32(1e-40)
    shared, _ = atomically(emulates, "shared.add.f32", np.float32, 0.0, tiny, space="shared")
    want = np.float32(0)
    for v in tiny:
        want = np.float32(want + v)
    assert shared == want > 0
    assert atomically(emulates, "global.add.f64", np.float64, 0.5, np.arange(32.0))[0] == 496.5


def by_pairs(emulates, form: str, start: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """What two halves hold after each lane has come with its pair: by a packed register, or by a vector of two."""
    body = "mad.wide.u32 %d0, %r0, 4, %A;\nld.global.b32 %r1, [%d0];\nmov.b32 {%h1, %h2}, %r1;\n"
    body += f"red.global.{form} [%P], {'{%h1, %h2}' if '.v2.' in form else '%r1'};"
    given = {"A": np.ascontiguousarray(pairs).view(np.uint16), "P": start.view(np.uint16), "D": np.zeros(1, np.uint32)}
    run = on_arrays(kernel(body), given, emulates)
    assert run.findings == []
    return run["P"].view(start.dtype)


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_halves_and_pairs(emulates, op, kind, dtype):
    pairs = np.array([[0.1 * n, -0.3 * n + 1] for n in range(32)]).astype(dtype)
    pairs[7, 0] = np.nan if op != "add" else 2.0
    pairs[9], pairs[10] = [0.0, -0.0], [-0.0, 0.0]
    f = {"add": lambda o, n: dtype(np.float32(o) + np.float32(n)), "min": np.fmin, "max": np.fmax}[op]
    start = np.array([0.5, -0.5], dtype)
    there = start
    for row in pairs:
        there = np.array([f(np.float32(o), np.float32(n)).astype(dtype) for o, n in zip(there, row, strict=True)], dtype)
    forms = [f"{op}.noftz.v2.{kind}"] + ([f"add.noftz.{kind}x2"] if op == "add" else [])
    for form in forms:
        assert by_pairs(emulates, form, start, pairs).astype(np.float32).tolist() == there.astype(np.float32).tolist()
    if op == "add":
        bits = int(np.array(0.5, dtype).view(np.uint16))
        one, _ = atomically(emulates, f"global.add.noftz.{kind}", np.uint16, bits, pairs[:, 0].copy().view(np.uint16))
        assert float(np.array([one], np.uint16).view(dtype)[0]) == float(there[0])


def test_nan_and_zeros_of_both_signs(emulates):
    nan, zero, minus, one = 0x7E00, 0x0000, 0x8000, 0x3C00
    for op, rows in {
        "min": [(zero, minus, minus), (minus, zero, minus), (nan, one, one), (one, nan, one), (nan, nan, 0x7FFF)],
        "max": [(zero, minus, zero), (minus, zero, zero), (nan, one, one), (one, nan, one), (nan, nan, 0x7FFF)],
    }.items():
        for start, value, end in rows:
            found = by_pairs(emulates, f"{op}.noftz.v2.f16", np.array([start] * 2, np.uint16).view(np.float16), np.full((32, 2), value, np.uint16))
            assert found.view(np.uint16).tolist() == [end] * 2, (op, start, value)


@pytest.mark.parametrize(
    ("form", "count", "dtype"),
    [
        ("v4.f32", 4, np.float32),
        ("v2.f32", 2, np.float32),
        ("v4.bf16x2", 8, ml_dtypes.bfloat16),
        ("v2.f16x2", 4, np.float16),
        ("v8.f16", 8, np.float16),
    ],
)
@pytest.mark.parametrize("name", ["red", "atom"])
def test_vectors(emulates, name, form, count, dtype):
    """Two lanes a place."""
    vector, kind = form.split(".")
    n = int(vector[1])
    size = count * np.dtype(dtype).itemsize
    r = {2: "%h", 4: "%r"}[size // n]
    names = ", ".join(f"{r}{i + 1}" for i in range(n))
    noftz = "" if kind == "f32" else ".noftz"
    body = f"""mad.wide.u32 %d0, %r0, {size}, %A;
        {chr(10).join(f"ld.global.b{8 * size // n} {r}{i + 1}, [%d0+{i * size // n}];" for i in range(n))}
        shr.u32 %r0, %r0, 1;
        mad.wide.u32 %d0, %r0, {size}, %P;
        {name}.relaxed.gpu.global.add{noftz}.{form} {"{" + names + "}, " if name == "atom" else ""}[%d0], {{{names}}};"""
    values = (np.arange(32 * count) % 13 - 6).astype(dtype)
    start = (np.arange(16 * count) % 5).astype(dtype)
    run = on_arrays(kernel(body), {"A": values.view(np.uint8), "P": start.view(np.uint8), "D": np.zeros(1, np.uint32)}, emulates)
    want = start.astype(np.float32).reshape(16, count) + values.astype(np.float32).reshape(16, 2, count).sum(1)
    assert run.findings == [] and (run["P"].view(dtype).astype(np.float32) == want.reshape(-1)).all()


def test_only_active_lanes_take_part(emulates):
    body = "setp.lt.u32 %p0, %r0, 5;\n@%p0 atom.global.add.u32 %r1, [%P], 1;\n@!%p0 red.global.add.u32 [%P], 100;"
    run = on_arrays(kernel(body), {"A": np.zeros(1, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates)
    assert run.findings == [] and run["P"][0] == 5 + 2700


@pytest.mark.parametrize(
    ("line", "code"), [("red.global.add.u32 [%P+2], 1;", "emulate/misaligned"), ("red.global.add.u32 [%P+4096], 1;", "emulate/out-of-bounds")]
)
def test_misuse(emulates, line, code):
    run = on_arrays(kernel(line), {"A": np.zeros(1, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates)
    assert run.codes == [code]


LAST = """setp.ne.u32 %p0, %r0, 0;
@%p0 ret;
mov.u32 %r4, %ctaid.x;
mad.wide.u32 %d0, %r4, 4, %A;
add.u32 %r5, %r4, 10;
st.global.b32 [%d0], %r5;
{atom}
setp.ne.u32 %p1, %r6, 3;
@%p1 ret;
ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%A];
add.u32 %r1, %r1, %r2;
add.u32 %r3, %r3, %r4;
add.u32 %r1, %r1, %r3;
st.global.b32 [%D], %r1;"""


@pytest.mark.parametrize(
    ("order", "races"), [("acq_rel.gpu.", False), ("relaxed.gpu.", True), ("release.gpu.", True), ("acquire.gpu.", True), ("", True)]
)
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
def test_the_last_cta_reads_what_the_others_have_written(emulates, order, races, schedule):
    """A counter of CTAs that are done: each releases its part with it, and the last one acquires all of them, through those between."""
    text = kernel(LAST.format(atom=f"atom.{order}global.add.u32 %r6, [%P], 1;"))
    run = on_arrays(
        text, {"A": np.zeros(4, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates, grid=4, schedule=schedule
    )
    assert set(run.codes) == ({"emulate/race"} if races else set())
    assert run["P"][0] == 4 and (races or run["D"][0] == 46)


def test_fences_make_a_relaxed_counter_one_that_orders(emulates):
    text = kernel(LAST.format(atom="fence.acq_rel.gpu;\natom.relaxed.gpu.global.add.u32 %r6, [%P], 1;\nfence.acq_rel.gpu;"))
    run = on_arrays(text, {"A": np.zeros(4, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates, grid=4)
    assert run.findings == [] and run["D"][0] == 46


@pytest.mark.parametrize(
    "text",
    [
        "atom.global.add.s64 %d1, [%P], %d1;\natom.global.sub.u32 %r1, [%P], %r1;",
        "atom.global.add.b128 %d1, [%P], %d1;",
        "atom.global.add.f16 %h1, [%P], %h1;",
        "red.global.exch.b32 [%P], %r1;",
        "red.acquire.gpu.global.add.u32 [%P], %r1;",
        "atom.global.min.f32 %r1, [%P], %r1;",
        "red.global.min.v2.f32 [%P], {%r1, %r2};",
        "atom.global.inc.s32 %r1, [%P], %r1;",
        "atom.global.min.noftz.f16 %h1, [%P], %h1;",
        "atom.global.exch.f32 %r1, [%P], %r1;",
        "red.shared.add.v2.f32 [%r3], {%r1, %r2};",
    ],
)
def test_other_forms_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_arrays(kernel(text), {"A": np.zeros(1, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates)


MIXED = """setp.ne.u32 %p0, %r0, 0;
@%p0 ret;
mov.u32 %r4, %ctaid.x;
setp.eq.u32 %p1, %r4, 0;
@%p1 {first};
@!%p1 {second};"""
ADDS, ALSO = "red.relaxed.gpu.global.add.u32 [%P], 1", "atom.global.max.u32 %r5, [%P], 5"
LOADS, STORES, STRONG = "ld.global.u32 %r5, [%P]", "st.global.u32 [%P], 3", "ld.relaxed.gpu.global.u32 %r5, [%P]"


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [(ADDS, ALSO, False), (ADDS, STRONG, False), (ADDS, LOADS, True), (ADDS, STORES, True), (STORES, ALSO, True), (STORES, STRONG, True)],
)
def test_atomics_race_with_plain_accesses_only(emulates, first, second, races):
    text = kernel(MIXED.format(first=first, second=second))
    run = on_arrays(text, {"A": np.zeros(1, np.uint32), "P": np.zeros(1, np.uint32), "D": np.zeros(1, np.uint32)}, emulates, grid=2)
    assert set(run.codes) == ({"emulate/race"} if races else set())
