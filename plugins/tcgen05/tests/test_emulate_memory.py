"""Tensor memory without a GPU: what is allocated, how registers and rows of shared memory lie in it, and what may not be done with it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from cake_core.emulate.outcome import Unsupported

TEXTS = runpy.run_path(str(Path(__file__).with_name("sm100_texts.py")))
COMMIT, STORED, WAIT, execute, image, moves, vector = (TEXTS[n] for n in ("COMMIT", "STORED", "WAIT", "execute", "image", "moves", "vector"))

#: Registers of a number of 1, and lane and column of register r of thread t (computed from CuTe's layouts of the same names).
SHAPES = {
    "32x32b": (1, lambda r, t: (t, r)),
    "16x64b": (1, lambda r, t: (t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2)),
    "16x128b": (2, lambda r, t: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4)),
    "16x256b": (4, lambda r, t: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2)),
}
WINDOW = "  shl.b32 %r9, %r1, 21;\n  add.u32 %r9, %r9, %r4;"


def filled(columns: int = 64) -> np.ndarray:
    return (np.arange(128)[:, None] * 1000 + np.arange(columns)).astype(np.uint32)


def loaded(form: str, registers: int, offset: int = 0, more: str = "") -> tuple:
    """All warps load with this form; the run, and registers (128 threads, n)."""
    body = [
        moves(64, True),
        STORED,
        WINDOW,
        f"  tcgen05.ld.sync.aligned.{form}.b32 {vector(registers)}, [%r9+{offset}]{more};",
        "  tcgen05.wait::ld.sync.aligned;",
    ]
    body += [f"  st.global.b32 [%d4+{4 * i}], %x{i};" for i in range(registers)]
    run, out = execute("\n".join(body), c=filled())
    return run, out[0, :, :registers]


@pytest.mark.parametrize("half", [0, 16])
@pytest.mark.parametrize(
    ("shape", "number"), [("32x32b", 1), ("32x32b", 64), ("16x64b", 1), ("16x64b", 8), ("16x128b", 2), ("16x256b", 1), ("16x256b", 8)]
)
def test_loads(shape, number, half):
    each, place = SHAPES[shape]
    if half and shape == "32x32b":
        half = 0
    run, got = loaded(f"{shape}.x{number}", each * number, half << 16)
    expected = np.zeros_like(got)
    for t in range(128):
        for r in range(each * number):
            lane, column = place(r, t % 32)
            expected[t, r] = (32 * (t // 32) + half + lane) * 1000 + column
    assert run.findings == []
    np.testing.assert_array_equal(got, expected)


def test_loads_of_two_halves_of_columns():
    run, got = loaded("16x32bx2.x4", 4, more=", 32")
    expected = [[(32 * (t // 32) + t % 16) * 1000 + r + 32 * (t % 32 // 16) for r in range(4)] for t in range(128)]
    assert run.findings == []
    np.testing.assert_array_equal(got, expected)


def test_two_columns_of_sixteen_bits_in_a_register():
    run, got = loaded("16x64b.x2.pack::16b", 2)
    low = filled() & 0xFFFF
    for t in range(128):
        for r in range(2):
            lane, word = SHAPES["16x64b"][1](r, t % 32)
            lane += 32 * (t // 32)
            assert got[t, r] == low[lane, 2 * word] | low[lane, 2 * word + 1] << 16
    assert run.findings == []


@pytest.mark.parametrize("form", ["32x32b.x8", "16x64b.x4", "16x128b.x2", "16x256b.x2", "16x32bx2.x8", "32x32b.x8.unpack::16b"])
def test_stores(form):
    shape, number = form.split(".")[0], int(form.split(".")[1][1:])
    each, place = SHAPES.get(shape, (1, lambda r, t: (t % 16, r + 16 * (t // 16))))
    n, more = each * number, ", 16" if shape == "16x32bx2" else ""
    body = [moves(32, True), "  tcgen05.wait::st.sync.aligned;", "  mul.lo.u32 %r11, %r0, 4096;"]
    body += [f"  add.u32 %x{i}, %r11, {i + 70000};" for i in range(n)]
    body += [WINDOW, f"  tcgen05.st.sync.aligned.{form}.b32 [%r9]{more}, {vector(n)};", STORED, moves(32, False)]
    run, out = execute("\n".join(body), c=np.zeros((128, 32), np.uint32))
    expected = np.zeros((128, 32), np.uint32)
    for t in range(128):
        for r in range(n):
            lane, column = place(r, t % 32)
            lane, value = lane + 32 * (t // 32), t * 4096 + r + 70000
            if "unpack" in form:
                expected[lane, 2 * column], expected[lane, 2 * column + 1] = value & 0xFFFF, value >> 16
            else:
                expected[lane, column] = value
    assert run.findings == []
    np.testing.assert_array_equal(out[0, :, :32], expected)


LANES = {
    "128x256b": (128, 32, lambda i: [i]),
    "128x128b": (128, 16, lambda i: [i]),
    "4x256b": (4, 32, lambda i: [32 * i]),
    "64x128b.warpx2::02_13": (64, 16, lambda i: [i, i + 64]),
    "64x128b.warpx2::01_23": (64, 16, lambda i: [i, i + 32] if i < 32 else [i + 32, i + 64]),
    "32x128b.warpx4": (32, 16, lambda i: [i, i + 32, i + 64, i + 96]),
}


@pytest.mark.parametrize(("form", "swizzle"), [(f, s) for n, f in enumerate(LANES) for s in [((0, 16), (128, 16), (32, 16))[n % 3]]])
def test_copies(form, swizzle):
    rows, wide, lanes = LANES[form]
    raw = np.random.default_rng(rows).integers(0, 256, (rows, wide), dtype=np.uint8)
    held, bits = image(raw, 1, swizzle=swizzle)
    body = [
        moves(8, True),
        STORED,
        f"  mov.b64 %d6, 0x{bits | 1024 >> 4:x};",
        f"  @%p0 tcgen05.cp.cta_group::1.{form} [%r4], %d6;",
        COMMIT,
        WAIT,
        moves(8, False),
    ]
    run, out = execute("\n".join(body), held, np.zeros((128, 8), np.uint32))
    expected = np.zeros((128, 8), np.uint32)
    for i in range(rows):
        for lane in lanes(i):
            expected[lane, : wide // 4] = raw[i].view(np.uint32)
    assert run.findings == []
    np.testing.assert_array_equal(out[0, :, :8], expected)


def test_schedules_agree():
    for schedule in ("adversarial", "random:1", "random:2"):
        run, out = execute("\n".join([moves(64, True), STORED, moves(64, False)]), c=filled(), schedule=schedule)
        assert run.findings == []
        np.testing.assert_array_equal(out[0, :, :64], filled())


# --- what may not be done


def alloc(columns: int) -> str:
    return f"  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], {columns};"


RELINQUISH = "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


def dealloc(columns: int) -> str:
    return f"  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, {columns};"


@pytest.mark.parametrize(
    ("begin", "end", "code", "what"),
    [
        (alloc(48), dealloc(48), "emulate/operand", "48 columns"),
        (f"{RELINQUISH}\n{alloc(32)}", dealloc(32), "emulate/operand", "relinquish"),
        (f"{alloc(32)}\n{alloc(64)}", dealloc(32), "emulate/operand", "behind one of 32"),
        (alloc(64), dealloc(32), "emulate/operand", "no allocation of that size"),
        (alloc(64), f"{dealloc(64)}\n{dealloc(64)}", "emulate/operand", "no allocation"),
        (alloc(64), "  mov.u32 %r6, 0;", "emulate/unfinished", "64 columns of tensor memory from column 0 on"),
        (f"{alloc(512)}\n{alloc(32)}", dealloc(512), "emulate/deadlock", "32 free columns"),
        (alloc(64), "  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r4, 64;", "emulate/operand", "in a kernel that has used"),
        ("  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r5], 64;", dealloc(64), "emulate/operand", "no peer"),
    ],
)
def test_allocations_that_are_none(begin, end, code, what):
    run, _ = execute("", alloc=begin, dealloc=end)
    assert run.codes[0] == code
    assert what in run.findings[0].message


def test_addresses_without_a_space_are_generic():
    begin = "  cvt.u64.u32 %d6, %r5;\n  cvta.shared.u64 %d6, %d6;\n  tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d6], 64;"
    body = ["  cvt.u64.u32 %d7, %r3;", "  cvta.shared.u64 %d7, %d7;", "  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d7];", WAIT]
    run, _ = execute("\n".join(body), alloc=begin, dealloc=dealloc(64))
    assert run.findings == []


def test_what_is_freed_can_be_had_again():
    begin = f"{alloc(512)}\n  ld.shared.b32 %r4, [%r5];\n{dealloc(512)}\n{alloc(256)}\n{alloc(256)}"
    end = "  mov.u32 %r4, 0;\n" + dealloc(256) + "\n  mov.u32 %r4, 256;\n" + dealloc(256)
    run, _ = execute("", alloc=begin, dealloc=end)
    assert run.findings == []


def test_columns_are_given_back_behind_all_accesses():
    """Warp 0 stores, and warp 1 deallocates without having met it; what is had again, nobody has written."""
    store = "  mov.u32 %x0, 7;\n  mov.u32 %r4, 0;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%x0};\n  tcgen05.wait::st.sync.aligned;"
    other = f"  setp.ne.u32 %p4, %r1, 0;\n  @%p4 bra HERE;\n{store}\nHERE:\n"
    for met, codes in (("  bar.sync 0;", []), ("", ["emulate/race"])):
        run, _ = execute(
            f"{other}{met}\n  setp.ne.u32 %p4, %r1, 1;\n  @%p4 bra THERE;\n  mov.u32 %r4, 0;\n{dealloc(64)}\nTHERE:",
            alloc=alloc(64),
            dealloc="  mov.u32 %r6, 0;",
        )
        assert run.codes == codes
    again = f"{alloc(64)}\n  mov.u32 %r4, 0;\n  mov.u32 %x0, 7;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {{%x0}};\n  tcgen05.wait::st.sync.aligned;\n"
    again += f"{dealloc(64)}\n{alloc(64)}\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%x0}}, [%r4];"
    run, _ = execute("", alloc=again, dealloc=f"  mov.u32 %r4, 0;\n  tcgen05.wait::ld.sync.aligned;\n{dealloc(64)}")
    assert run.codes == ["emulate/uninitialised"]


@pytest.mark.parametrize(
    ("body", "code", "what"),
    [
        ("  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r4+64];", "emulate/out-of-bounds", "not allocated"),
        ("  tcgen05.ld.sync.aligned.32x32b.x64.b32 " + vector(64) + ", [%r4+480];", "emulate/out-of-bounds", "has 512"),
        ("  mov.u32 %r9, 0x400000;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r9];", "emulate/out-of-bounds", "from lane 64 on"),
        ("  mov.u32 %r9, 0x100000;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r9];", "emulate/out-of-bounds", "from lane 16 on"),
        ("  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r4];", "emulate/uninitialised", "nobody has written it"),
        ("  add.u32 %r9, %r4, %r0;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%r9];", "emulate/divergent", "one for all"),
        ("  setp.lt.u32 %p3, %r0, 100;\n  @%p3 tcgen05.wait::ld.sync.aligned;", "emulate/divergent", "missing"),
    ],
)
def test_accesses_that_are_none(body, code, what):
    run, _ = execute(body, alloc=alloc(64), dealloc=dealloc(64))
    assert run.codes[0] == code
    assert what in run.findings[0].message


ST, LD = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%x0};", "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x1}, [%r9];"
WAIT_ST, WAIT_LD, NOTHING = "  tcgen05.wait::st.sync.aligned;", "  tcgen05.wait::ld.sync.aligned;", ""


@pytest.mark.parametrize(("wait", "codes"), [(NOTHING, ["emulate/race"]), (WAIT_ST, [])])
def test_a_load_behind_a_store(wait, codes):
    run, _ = execute(f"  mov.u32 %x0, 7;\n{WINDOW}\n{ST}\n{wait}\n{LD}\n{WAIT_LD}")
    assert run.codes[:1] == codes


@pytest.mark.parametrize(("wait", "codes"), [(NOTHING, ["emulate/race"]), (WAIT_LD, [])])
def test_a_store_behind_a_load(wait, codes):
    """What was loaded is used before the wait, which the ISA respects; the cells are free only behind it."""
    run, _ = execute(f"  mov.u32 %x0, 7;\n{WINDOW}\n{ST}\n{WAIT_ST}\n{LD}\n  mov.u32 %x2, %x1;\n{wait}\n{ST}\n{WAIT_ST}\n  st.global.b32 [%d4], %x2;")
    assert run.codes[:1] == codes


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("tcgen05.shift.cta_group::1.down [%r4]", "which way"),
        ("tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%r4], %d6", "decompression"),
        ("tcgen05.ld.sync.aligned.16x256b.x64.b32 {%x0}, [%r4]", "16x256b.x64"),
        ("tcgen05.ld.sync.aligned.32x32b.x3.b32 {%x0, %x1, %x2}, [%r4]", "x3"),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%x0, %x1}, %x2, [%r4]", "red"),
        ("tcgen05.cp.cta_group::1.64x128b [%r4], %d6", "64x128b"),
    ],
)
def test_forms_that_are_refused_by_name(statement, what):
    with pytest.raises(Unsupported, match=what):
        execute(f"  {statement};")
