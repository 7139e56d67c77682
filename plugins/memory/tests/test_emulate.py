"""Matrices of shared memory without a GPU. What each lane must hold is written element by element from the PTX ISA's tables."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, **{"shared": 4096, **more})


#: Fills 2 KB of shared memory with A, 64 bytes a lane, and lets the lanes meet.
FILL = """
mad.wide.u32 %d0, %t, 64, %A;
mad.lo.u32 %r100, %t, 64, %s;
""" + "".join(f"ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%d0+{n}];\nst.shared.v4.b32 [%r100+{n}], {{%r0, %r1, %r2, %r3}};\n" for n in (0, 16, 32, 48))  # fmt: skip
MET = "bar.warp.sync -1;\n"


def data() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, 2048, dtype=np.uint8)


def kept(n: int) -> str:
    """Stores registers %r0 to %r(n-1) of each lane to D."""
    lines = [f"mad.wide.u32 %d1, %t, {4 * n}, %D;"]
    return "\n".join([*lines, *(f"st.global.b32 [%d1+{4 * i}], %r{i};" for i in range(n))])


def registers(n: int) -> str:
    return "{" + ", ".join(f"%r{i}" for i in range(n)) + "}"


#: Row r of a matrix is at row_of(r) in shared memory: rows are scattered, 16 bytes each.
def row_of(r: int) -> int:
    return 16 * (r * 37 % 128)


ADDRESS = "mul.lo.u32 %r101, %t, 37;\nrem.u32 %r101, %r101, 128;\nmad.lo.u32 %r101, %r101, 16, %s;\n"


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("space", [".shared", ".shared::cta"])
def test_ldmatrix_of_eight_by_eight(run, number, trans, space):
    """The lanes behind the addresses that count hold no address at all."""
    far = f"setp.ge.u32 %p0, %t, {8 * number};\n@%p0 mov.u32 %r101, 4294967293;\n"
    body = FILL + MET + ADDRESS + far
    body += f"ldmatrix.sync.aligned.m8n8.x{number}{'.trans' if trans else ''}{space}.b16 {registers(number)}, [%r101];\n" + kept(number)
    a = data()
    done = run(body, {"A": a, "D": np.zeros(32 * number, np.uint32)})
    assert done.findings == []
    for lane in range(32):
        for m in range(number):
            element = lambda row, column, m=m: int.from_bytes(a[row_of(8 * m + row) + 2 * column :][:2].tobytes(), "little")
            first, second = (lane // 4, 2 * (lane % 4)), (lane // 4, 2 * (lane % 4) + 1)
            low, high = (element(c, r) if trans else element(r, c) for r, c in (first, second))
            assert done["D"][number * lane + m] == low | high << 16, (lane, m)


@pytest.mark.parametrize("number", [1, 2])
def test_ldmatrix_of_sixteen_by_sixteen_bytes(run, number):
    """Register r of a matrix: column l / 4 + 8r of the rows 4(l % 4) to 4(l % 4) + 3."""
    body = FILL + MET + ADDRESS + f"ldmatrix.sync.aligned.m16n16.x{number}.trans.shared.b8 {registers(2 * number)}, [%r101];\n" + kept(2 * number)
    a = data()
    done = run(body, {"A": a, "D": np.zeros(64 * number, np.uint32)})
    assert done.findings == []
    for lane in range(32):
        for m in range(number):
            for r in range(2):
                wanted = [int(a[row_of(16 * m + 4 * (lane % 4) + j) + lane // 4 + 8 * r]) for j in range(4)]
                assert int(done["D"][2 * number * lane + 2 * m + r]).to_bytes(4, "little") == bytes(wanted), (lane, m, r)


@pytest.mark.parametrize(("bits", "source"), [(4, "b4x16_p64"), (6, "b6x16_p32")])
@pytest.mark.parametrize(("shape", "number"), [("m8n16", 1), ("m8n16", 2), ("m8n16", 4), ("m16n16", 1), ("m16n16", 2)])
def test_ldmatrix_of_packed_elements(run, shape, number, bits, source):
    """Element n of a row is the bits from n * bits on, in the low bits of a byte; of a row nothing but its elements has a value in memory."""
    a, registers_of = data(), number * (2 if shape == "m16n16" else 1)
    fill = FILL
    if bits == 4:  # the upper half of each row stays unwritten
        fill = fill.replace("v4.b32 {%r0, %r1, %r2, %r3}", "v2.b32 {%r0, %r1}")
    trans = ".trans" if shape == "m16n16" else ""
    body = (
        fill
        + MET
        + ADDRESS
        + f"ldmatrix.sync.aligned.{shape}.x{number}{trans}.shared.b8x16.{source} {registers(registers_of)}, [%r101];\n"
        + kept(registers_of)
    )
    done = run(body, {"A": a, "D": np.zeros(32 * registers_of, np.uint32)})
    assert done.findings == []

    def element(row: int, n: int) -> int:
        return int.from_bytes(a[row_of(row) :][:16].tobytes(), "little") >> bits * n & (1 << bits) - 1

    for lane in range(32):
        for r in range(registers_of):
            if shape == "m8n16":
                wanted = [element(8 * r + lane // 4, 4 * (lane % 4) + j) for j in range(4)]
            else:
                wanted = [element(16 * (r // 2) + 4 * (lane % 4) + j, lane // 4 + 8 * (r % 2)) for j in range(4)]
            assert int(done["D"][registers_of * lane + r]).to_bytes(4, "little") == bytes(wanted), (lane, r)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize(("shape", "trans"), [("m8n8", False), ("m8n8", True), ("m16n8", True)])
def test_stmatrix(run, number, shape, trans):
    a = data()
    load = f"mad.wide.u32 %d0, %t, {4 * number}, %A;\n" + "".join(f"ld.global.b32 %r{i}, [%d0+{4 * i}];\n" for i in range(number))
    far = f"setp.ge.u32 %p0, %t, {8 * number};\n@%p0 mov.u32 %r101, 4294967293;\n"
    store = f"stmatrix.sync.aligned.{shape}.x{number}{'.trans' if trans else ''}.shared.{'b16' if shape == 'm8n8' else 'b8'} [%r101], {registers(number)};\n"
    send = "fence.proxy.async;\nbar.warp.sync -1;\nsetp.eq.u32 %p1, %t, 0;\n@!%p1 ret;\n"
    send += "cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 2048;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    zero = "mad.lo.u32 %r100, %t, 64, %s;\nmov.u32 %r50, 0;\n" + "".join(
        f"st.shared.v4.b32 [%r100+{n}], {{%r50, %r50, %r50, %r50}};\n" for n in (0, 16, 32, 48)
    )
    done = run(zero + MET + load + ADDRESS + far + store + send, {"A": a, "D": np.zeros(2048, np.uint8)})
    assert done.findings == []
    wanted = np.zeros(2048, np.uint8)
    for lane in range(32):
        for m in range(number):
            word = a[4 * (number * lane + m) :][:4]
            for b in range(4):
                if shape == "m8n8":
                    row, column, byte = lane // 4, 2 * (lane % 4) + b // 2, b % 2
                    if trans:
                        row, column = column, row
                    wanted[row_of(8 * m + row) + 2 * column + byte] = word[b]
                else:
                    row, column = lane // 4 + 8 * (b // 2), 2 * (lane % 4) + b % 2
                    wanted[row_of(8 * m + column) + row] = word[b]
    assert (done["D"] == wanted).all()


@pytest.mark.parametrize(
    "statement", ["ldmatrix.sync.aligned.m8n8.x4.b16 {%r0, %r1, %r2, %r3}, [%d5];", "stmatrix.sync.aligned.m8n8.x1.b16 [%d5], {%r0};"]
)
def test_generic_addresses(run, statement):
    to = ADDRESS + "cvt.u64.u32 %d5, %r101;\ncvta.shared.u64 %d5, %d5;\n"
    body = FILL + MET + to + statement + "\n" + kept(1)
    assert run(body, {"A": data(), "D": np.zeros(32, np.uint32)}).findings == []
    body = FILL + MET + "mov.b64 %d5, %A;\n" + statement
    assert run(body, {"A": data()}).codes == ["emulate/out-of-bounds"]


def test_what_a_lane_gets_of_other_lanes_needs_a_meeting(run):
    """Words stored by the lanes that get them are in order; the same words transposed are not, and neither is a store over what others read."""
    own = "mad.lo.u32 %r100, %t, 4, %s;\nst.shared.b32 [%r100], %t;\nmad.lo.u32 %r101, %t, 16, %s;\n"
    load = "ldmatrix.sync.aligned.m8n8.x1{}.shared.b16 {{%r0}}, [%r101];\n"
    assert run(own + load.format("")).findings == []
    assert run(own + load.format(".trans")).codes == ["emulate/race"]
    assert run(own + MET + load.format(".trans")).findings == []
    assert run(own + "xor.b32 %r101, %r101, 16;\n" + load.format("")).codes == ["emulate/race"]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("add.u32 %r101, %s, 8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r101];", "emulate/misaligned", "lane 0 is no multiple of 16"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%t], {%t};", "emulate/misaligned", "lane 1 is no multiple of 16"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s];", "emulate/uninitialised", "nobody has written"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s+4096];", "emulate/out-of-bounds", ""),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s+16777216];", "emulate/out-of-bounds", "no CTA"),
        ("setp.eq.u32 %p0, %t, 3;\n@%p0 ret;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%t};", "emulate/divergent", "have ended"),
    ],
)
def test_misuse_is_told(run, body, code, says):
    done = run(body)
    assert done.codes[:1] == [code]
    assert says in done.findings[0].message


@pytest.mark.parametrize(
    "statement",
    [
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0, %r1, %r2}, [%s];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%s];",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r0, %r1}, [%s];",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%s];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r0}, [%s];",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8x16.b4x16_p64 {%r0, %r1}, [%s];",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%s], {%r0};",
        "ldmatrix.sync.m8n8.x1.shared.b16 {%r0}, [%s];",
    ],
)
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement)
