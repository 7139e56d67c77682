"""Moves, addresses, loads and stores of every space and form, and release and acquire through memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.emulate.registers import on_registers

LANE = np.arange(32, dtype=np.uint32)


def kernel(params: str, body: str, shared: str = "") -> str:
    return f"{shared}\n.visible .entry k(\n" + ",\n".join(f".param .{p}" for p in params.split(", ")) + "\n)\n{\n" + body + "\nret;\n}\n"


def test_values_parts_and_special_registers(execute):
    a = (LANE.astype(np.uint64) << np.uint64(40)) + np.uint64(0x1234567)
    text = """mov.b64 {%lo, %hi}, %a;
              mov.b64 %back, {%hi, %lo};
              mov.b32 {%h0, %h1}, %lo;
              mov.b32 %w, {%h1, %h0};
              mov.u32 %t, %tid.x;
              mov.f32 %f, 0fBF800000;
              mov.b32 %g, 0f3F800000;
              mov.f64 %d, 0d3FF8000000000000;
              mov.pred %q, %p;
              mov.s32 %m, -5;
              mov.b64 {%x, _}, %a;
              mov.u32 %z, WARP_SZ;"""
    outs = {"lo": "uint32", "hi": "uint32", "back": "uint64", "h0": "uint16", "h1": "uint16", "w": "uint32", "t": "uint32", "f": "float32", "g": "float32",
            "d": "float64", "q": "bool", "m": "int32", "x": "uint32", "z": "uint32"}  # fmt: skip
    run = execute(text, {"a": a, "p": LANE % 5 == 0}, outs)
    assert (run["lo"] == (a & np.uint64(0xFFFFFFFF))).all() and (run["hi"] == a >> np.uint64(32)).all()
    assert (run["back"] == (a << np.uint64(32) | a >> np.uint64(32))).all()
    assert set(run["h0"].tolist()) == {0x4567} and set(run["h1"].tolist()) == {0x123} and set(run["w"].tolist()) == {0x45670123}
    assert (run["t"] == LANE).all() and set(run["f"].tolist()) == {-1.0} and set(run["g"].tolist()) == {1.0} and set(run["d"].tolist()) == {1.5}
    assert (run["q"] == (LANE % 5 == 0)).all() and set(run["m"].tolist()) == {-5} and (run["x"] == run["lo"]).all() and set(run["z"].tolist()) == {32}


def test_registers_that_are_wider_than_the_type(emulates):
    """A byte or half word into a wider register is extended by its type's sign; of a wider register the low bits are stored."""
    a = np.array([0x80, 0x7F, 0xFF, 1] * 8, np.uint8)
    out = np.zeros((4, 32), np.int32)
    text = kernel(
        "u64 A, u64 D",
        """.reg .b32 %r<6>; .reg .b64 %d<4>;
        mov.u32 %r0, %laneid;
        ld.param.u64 %d0, [A];
        ld.param.u64 %d1, [D];
        cvt.u64.u32 %d2, %r0;
        add.u64 %d0, %d0, %d2;
        mad.wide.u32 %d1, %r0, 4, %d1;
        ld.global.s8 %r1, [%d0];
        ld.global.u8 %r2, [%d0];
        ld.global.b8 %r3, [%d0];
        st.global.b32 [%d1], %r1;
        st.global.b32 [%d1+128], %r2;
        st.global.b32 [%d1+256], %r3;
        mov.b32 %r4, 0;
        st.global.b32 [%d1+384], %r4;
        mov.b32 %r5, 0xABCD1234;
        st.global.u8 [%d1+385], %r5;
        st.global.u16 [%d1+386], %r5;""",
    ).replace("; .reg", ";\n.reg")
    run = on_arrays(text, {"A": a, "D": out}, emulates)
    assert run.findings == []
    assert run["D"][0].tolist() == a.view(np.int8).tolist() and run["D"][1].tolist() == a.tolist() == run["D"][2].tolist()
    assert {hex(v) for v in run["D"][3].tolist()} == {"0x12343400"}


@pytest.mark.parametrize("form", ["v2.b32", "v4.f32", "v4.b32", "v2.b64", "v4.u16", "v2.u8", "v8.b32", "v4.b64"])
def test_vectors(emulates, form):
    vector, kind = form.split(".")
    count, size = int(vector[1]), int(kind[1:]) // 8
    data = np.arange(32 * count * size, dtype=np.uint8) ^ 0x5A
    names = ", ".join(f"%v{n}" for n in range(count))
    width = max(8 * size, 16)
    text = kernel(
        "u64 A, u64 D",
        f""".reg .b32 %r0;
        .reg .b64 %d<4>;
        .reg .b{width} %v<8>;
        mov.u32 %r0, %laneid;
        ld.param.u64 %d0, [A];
        ld.param.u64 %d1, [D];
        cvta.to.global.u64 %d0, %d0;
        mad.wide.u32 %d0, %r0, {count * size}, %d0;
        mad.wide.u32 %d1, %r0, {count * size}, %d1;
        ld.global.nc.L1::no_allocate.L2::128B.{form} {{{names}}}, [%d0];
        st.global.cs.{form} [%d1], {{{names}}};""",
    )
    run = on_arrays(text, {"A": data, "D": np.zeros_like(data)}, emulates)
    assert run.findings == [] and (run["D"] == data).all()


def test_spaces_and_generic_addresses(emulates):
    """Through shared memory by both kinds of addresses, and a parameter by its generic one."""
    text = kernel(
        "u64 D, u32 N",
        """.reg .pred %p<4>;
        .reg .b32 %r<6>;
        .reg .b64 %d<8>;
        mov.u32 %r0, %laneid;
        ld.param.u64 %d0, [D];
        mad.wide.u32 %d0, %r0, 4, %d0;
        mov.u32 %r1, buffer;
        mad.lo.u32 %r1, %r0, 4, %r1;
        st.shared.b32 [%r1], %r0;
        cvt.u64.u32 %d1, %r1;
        cvta.shared.u64 %d2, %d1;
        ld.b32 %r2, [%d2];
        cvta.to.shared.u64 %d3, %d2;
        ld.shared::cta.b32 %r3, [%d3];
        mov.b64 %d4, N;
        cvta.param.u64 %d5, %d4;
        ld.u32 %r4, [%d5];
        add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %r4;
        isspacep.shared %p0, %d2;
        isspacep.global %p1, %d2;
        isspacep.global %p2, %d0;
        isspacep.param %p3, %d5;
        @%p1 trap;
        @!%p0 trap;
        @!%p2 trap;
        @!%p3 trap;
        getctarank.u64 %r5, %d2;
        add.u32 %r2, %r2, %r5;
        st.b32 [%d0], %r2;""",
        ".shared .align 16 .b8 buffer[128];",
    )
    run = on_arrays(text, {"D": np.zeros(32, np.uint32), "N": np.uint32(100)}, emulates)
    assert run.findings == [] and run["D"].tolist() == [2 * n + 100 for n in range(32)]


@pytest.mark.parametrize(("access", "code"), [("ld.global.b32 %r1, [%d0+2]", "emulate/misaligned"), ("ld.global.v4.b32 {%r1, %r1, %r1, %r1}, [%d0+8]", "emulate/misaligned"),
                                              ("ld.global.b32 %r1, [%d0+4096]", "emulate/out-of-bounds"), ("st.global.b32 [%d0+4096], %r0", "emulate/out-of-bounds"),
                                              ("discard.global.L2 [%d0+64], 128", "emulate/misaligned"), ("trap", "emulate/trap")])  # fmt: skip
def test_misuse(emulates, access, code):
    text = kernel("u64 D", f".reg .b32 %r<2>;\n.reg .b64 %d0;\nmov.u32 %r0, 0;\nld.param.u64 %d0, [D];\n{access};")
    run = on_arrays(text, {"D": np.zeros(64, np.uint32)}, emulates)
    assert run.codes == [code]
    assert run.findings[0].line == text.splitlines().index(f"{access};") + 1


def test_hints_change_nothing(execute):
    text = """createpolicy.fractional.L2::evict_first.b64 %c, 0f3F800000;
              nanosleep.u32 100;
              prefetch.global.L2 [%a];
              mov.b32 %d, 3;"""
    assert set(execute(text, {"a": np.zeros(32, np.uint64)}, {"c": "uint64", "d": "uint32"})["d"].tolist()) == {3}


MESSAGE = """.reg .pred %p0;
.reg .b32 %r<5>;
.reg .b64 %d<3>;
mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [D];
setp.ge.u32 %p0, %r0, 32;
@%p0 bra $reader;
setp.ne.u32 %p0, %r0, 0;
@%p0 ret;
st.global.b32 [%d0+4], 7;
{write}
ret;
$reader:
setp.ne.u32 %p0, %r0, 32;
@%p0 ret;
$again:
{read}
setp.eq.u32 %p0, %r1, 0;
@%p0 nanosleep.u32 20;
@%p0 bra $again;
{behind}
ld.global.b32 %r2, [%d0+4];
st.global.b32 [%d0+8], %r2;"""

WRITES = {"release": "st.release.gpu.global.b32 [%d0], 1;", "relaxed": "st.relaxed.gpu.global.b32 [%d0], 1;", "weak": "st.global.b32 [%d0], 1;"}
WRITES["mmio"] = "st.mmio.relaxed.sys.global.b32 [%d0], 1;"
READS = {
    "acquire": "ld.acquire.gpu.global.b32 %r1, [%d0];",
    "relaxed": "ld.relaxed.gpu.global.b32 %r1, [%d0];",
    "volatile": "ld.volatile.global.b32 %r1, [%d0];",
    "mmio": "ld.mmio.relaxed.sys.global.b32 %r1, [%d0];",
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", READS)
def test_a_message_needs_a_release_and_an_acquire(emulates, write, read):
    text = kernel("u64 D", MESSAGE.format(write=WRITES[write], read=READS[read], behind=""))
    run = on_arrays(text, {"D": np.zeros(4, np.uint32)}, emulates, block=64)
    if (write, read) == ("release", "acquire"):
        assert run.findings == [] and run["D"].tolist() == [1, 7, 7, 0]
    else:
        assert set(run.codes) == {"emulate/race"}


@pytest.mark.parametrize(
    "text",
    [
        "ld.acquire.global.b32 %d, [%a];",
        "st.const.b32 [%a], %d;",
        "ld.global.b128 %d, [%a];",
        "ld.global.v2.b32 %d, [%a];",
        "mov.b128 %d, %a;",
        "cvta.shared.u32 %d, %d;",
    ],
)
def test_forms_that_are_not_there_are_refused(emulates, text):
    with pytest.raises(Unsupported):
        on_registers(text, {"a": np.zeros(32, np.uint64)}, {"d": "uint32"}, emulates)


def test_a_nan_keeps_its_bits_when_it_is_moved(execute):
    a = np.array([0x7FC00001, 0xFFFFFFFF, 0x7F800001, 0x80000000] * 8, np.uint32)
    run = execute("mov.f32 %m, %a;\nselp.f32 %s, %a, %a, %p;", {"a": a, "p": LANE > 3}, {"m": "uint32", "s": "uint32"})
    assert (run["m"] == a).all() and (run["s"] == a).all() and math.isnan(run["m"].view(np.float32)[0])


def test_floats_in_wider_registers_and_sums_of_registers(execute):
    a = np.array([1.5, -2.0, math.inf, 0.0] * 8, np.float32)
    text = "add.f32 %w, %a, %a;\nmov.b32 %n, %l+3;\nadd.f32 %s, %w, %a;\n@%p mul.f32 %w, %a, %a;"
    run = execute(text, {"a": a, "l": LANE, "w": np.full(32, 2**64 - 1, np.uint64), "p": LANE > 15}, {"w": "uint64", "n": "uint32", "s": "float32"})
    assert run["w"].tolist() == np.where(LANE > 15, a * a, a + a).view(np.uint32).tolist()
    assert run["n"].tolist() == (LANE + 3).tolist() and run["s"].tolist() == (3 * a).tolist()
