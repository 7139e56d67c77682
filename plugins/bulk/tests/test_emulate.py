"""Bulk copies without a GPU: every direction, what they reduce, their groups, and misuse. Sums and extremes are Python's."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, **{"shared": 4096, **more})


SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:4"])
#: One thread initialises a barrier object at 2048 for one arrival; then it is the only one, unless all meet again.
INIT = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s+2048], 1;\nbar.sync 0;\n"
ONE = INIT + "@!%p0 ret;\n"
WAIT = "AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%s+2048], 0;\n@!%p1 bra AGAIN;\n"
COMMIT = "cp.async.bulk.commit_group;\n"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+2048], {};\n"
#: Each lane reads 16 bytes of shared memory and stores them to D, and puts 16 bytes of A to shared memory.
OUT = "mad.lo.u32 %r11, %t, 16, %s;\nmad.wide.u32 %d2, %t, 16, %D;\nld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r11];\nst.global.v4.b32 [%d2], {%r0, %r1, %r2, %r3};\n"
FILL = "mad.lo.u32 %r11, %t, 16, %s;\nmad.wide.u32 %d2, %t, 16, %A;\nld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d2];\nst.shared.v4.b32 [%r11], {%r0, %r1, %r2, %r3};\nfence.proxy.async;\n"


def arrays() -> dict:
    return {"A": np.random.default_rng(1).integers(0, 256, 512, dtype=np.uint8), "D": np.zeros(512, np.uint8)}


@SCHEDULES
@pytest.mark.parametrize("to", ["shared::cluster", "shared::cta"])
@pytest.mark.parametrize(("pieces", "hint"), [([(0, 512)], ""), ([(0, 512)], ".L2::cache_hint"), ([(0, 128), (128, 16), (144, 368)], "")])
def test_a_copy_to_shared_memory_completes_its_bytes(run, to, pieces, hint, schedule):
    copies = "".join(
        f"@%p0 cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes{hint} [%s+{at}], [%A+{at}], {n}, [%s+2048]{', %d9' if hint else ''};\n"
        for at, n in pieces
    )
    given = arrays()
    done = run(INIT + "mov.b64 %d9, 0;\n@%p0 " + EXPECT.format(512) + copies + WAIT + OUT, given, schedule=schedule)
    assert done.findings == []
    assert (done["D"] == given["A"]).all()


def test_a_copy_that_is_not_awaited_races(run):
    copy = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%A], 512, [%s+2048];\n"
    assert set(run(INIT + "@%p0 " + EXPECT.format(512) + copy + OUT + WAIT, arrays(), schedule="random:4").codes) & {
        "emulate/race",
        "emulate/uninitialised",
    }
    # Too few bytes are expected: the phase ends before the second copy.
    half = copy.replace("512", "256")
    two = INIT + "@%p0 " + EXPECT.format(256) + half + WAIT + half.replace("[%s], [%A]", "[%s+256], [%A+256]") + OUT
    assert run(two, arrays(), schedule="adversarial").codes != []


@SCHEDULES
def test_multicast_reaches_the_ctas_of_the_mask(run, schedule):
    """CTA 1 sends to 0, 2 and 3 of 4; each of them expects the bytes on its own object. CTA 1's memory is as it was."""
    body = INIT + "@%p0 " + EXPECT.format(512) + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
    body += "setp.eq.u32 %p2, %rank, 1;\nand.pred %p3, %p0, %p2;\nmov.b16 %h0, 13;\n"
    body += "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%A], 512, [%s+2048], %h0;\n"
    body += f"@%p2 bra END;\n{WAIT}mad.wide.u32 %D, %rank, 512, %D;\n{OUT}END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
    given = {**arrays(), "D": np.zeros((4, 512), np.uint8)}
    done = run(body, given, grid=4, cluster=4, schedule=schedule)
    assert done.findings == []
    for rank in range(4):
        assert (done["D"][rank] == (given["A"] if rank != 1 else 0)).all()


@SCHEDULES
def test_a_copy_into_another_cta(run, schedule):
    send = FILL + INIT + "@%p0 " + EXPECT.format(256) + "barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.ne.u32 %p2, %rank, 0;\n@%p2 bra TAKE;\n"
    send += "mapa.shared::cluster.u32 %r20, %s, 1;\n"
    send += "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r20], [%s+256], 256, [%r20+2048];\nbra END;\n"
    send += f"TAKE:\n{WAIT}{OUT}END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
    given = arrays()
    done = run(send, given, grid=2, cluster=2, schedule=schedule)
    assert done.findings == []
    assert (done["D"] == np.concatenate([given["A"][256:], given["A"][256:]])).all()


@pytest.mark.parametrize(
    ("operation", "type", "code", "combine"),
    [
        ("add", "u32", "I", lambda a, b: (a + b) % 2**32),
        ("add", "s32", "I", lambda a, b: (a + b) % 2**32),
        ("add", "u64", "Q", lambda a, b: (a + b) % 2**64),
        ("min", "u32", "I", min),
        ("max", "s32", "i", max),
        ("inc", "u32", "I", lambda a, b: 0 if a >= b else a + 1),
        ("dec", "u32", "I", lambda a, b: b if a == 0 or a > b else a - 1),
        ("and", "b32", "I", lambda a, b: a & b),
        ("or", "b32", "I", lambda a, b: a | b),
        ("xor", "b32", "I", lambda a, b: a ^ b),
    ],
)
def test_a_reduction_into_another_cta(run, operation, type, code, combine):
    """CTA 0's 512 bytes are combined into those of CTA 1, which are the same shifted by 4 bytes."""
    given = arrays()
    given["A"][:64] = np.frombuffer(struct.pack("<16I", *[0, 1, 2**32 - 1, 2**31, 2**31 - 1, 5, 0, 7, 2**32 - 1, 0, 3, 3, 9, 0, 0, 1]), np.uint8)
    send = FILL.replace("%A;", "%A;\nmul.wide.u32 %d3, %rank, 8;\nadd.u64 %d2, %d2, %d3;").replace(
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d2];", "ld.global.v2.b32 {%r0, %r1}, [%d2];\nld.global.v2.b32 {%r2, %r3}, [%d2+8];"
    )
    send += INIT + "@%p0 " + EXPECT.format(256) + "barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.ne.u32 %p2, %rank, 0;\n@%p2 bra TAKE;\n"
    send += "mapa.shared::cluster.u32 %r20, %s, 1;\n"
    send += f"@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{type} [%r20], [%s], 256, [%r20+2048];\nbra END;\n"
    send += f"TAKE:\n{WAIT}{OUT}END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
    a = np.concatenate([given["A"], np.zeros(8, np.uint8)])
    done = run(send, {**given, "A": a}, grid=2, cluster=2)
    assert done.findings == []
    old, new = (struct.unpack(f"<{256 // struct.calcsize(code)}{code}", a[at : at + 256].tobytes()) for at in (8, 0))
    wanted = struct.pack(f"<{len(old)}{code}", *map(combine, old, new))
    assert done["D"].tobytes() == wanted + a[264:520].tobytes()


@SCHEDULES
def test_a_copy_to_global_memory(run, schedule):
    given = arrays()
    body = (
        FILL
        + INIT
        + "@!%p0 ret;\ncp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%D+16], [%s], 256, %d9;\n"
        + COMMIT
        + "cp.async.bulk.wait_group.read 0;"
    )
    done = run("mov.b64 %d9, 0;\n" + body, given, schedule=schedule)
    assert done.findings == []
    assert done["D"].tolist() == [0] * 16 + given["A"][:256].tolist() + [0] * 240


def test_a_mask_chooses_bytes_of_each_sixteen(run):
    given = arrays()
    mask = 0b1010000000000110
    done = run(
        FILL
        + ONE
        + f"mov.b16 %h0, {mask};\ncp.async.bulk.global.shared::cta.bulk_group.cp_mask [%D], [%s], 512, %h0;\n{COMMIT}cp.async.bulk.wait_group 0;",
        given,
    )
    assert done.findings == []
    assert done["D"].tolist() == [int(v) if mask >> n % 16 & 1 else 0 for n, v in enumerate(given["A"])]


def half(v: float) -> int:
    return struct.unpack("<H", struct.pack("<e", v))[0]


HALVES = [0.0, -0.0, 1.0, 65504.0, 6e-8, float("inf"), float("nan"), -2.5]


@pytest.mark.parametrize(("operation", "pick"), [("add.noftz", None), ("min", min), ("max", max)])
def test_halves_are_combined_in_global_memory(run, operation, pick):
    """All pairs of values at the edges; the sum is that of Python's doubles, rounded once. min gives -0 of zeros, max +0; NaN loses, and two are one."""
    pairs = [(a, b) for a in HALVES for b in HALVES]
    pack = lambda vs: np.frombuffer(b"".join(struct.pack("<e", v) for v in vs), np.uint8).copy()
    given = {"A": np.resize(pack([b for _, b in pairs]), 512), "D": pack([a for a, _ in pairs])}
    body = (
        FILL + ONE + f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.f16 [%D], [%s], 128;\n" + COMMIT + "cp.async.bulk.wait_group 0;"
    )
    done = run(body, given)
    assert done.findings == []
    for got, (a, b) in zip(done["D"].view(np.uint16).tolist(), pairs, strict=True):
        a, b = (struct.unpack("<e", struct.pack("<e", v))[0] for v in (a, b))
        if pick is None:
            total = a + b
            wanted = 0x7FFF if math.isnan(total) else half(total) if abs(total) < 65520 else half(float("inf")) | (0x8000 if total < 0 else 0)
        elif math.isnan(a) or math.isnan(b):
            wanted = 0x7FFF if math.isnan(a) and math.isnan(b) else half(b if math.isnan(a) else a)
        elif a == b == 0:
            wanted = half(a) | half(b) if pick is min else half(a) & half(b)
        else:
            wanted = half(pick(a, b))
        assert got == wanted, (a, b)


def test_two_reductions_of_ctas_are_no_race_and_two_copies_are(run):
    given = {"A": np.arange(128, dtype=np.uint32), "D": np.ones(128, np.uint32)}
    body = FILL + ONE + "@@ [%D], [%s], 512;\n" + COMMIT + "cp.async.bulk.wait_group 0;"
    done = run(body.replace("@@", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"), given, grid=3)
    assert (done.findings, done["D"].tolist()) == ([], [1 + 3 * n for n in range(128)])
    assert run(body.replace("@@", "cp.async.bulk.global.shared::cta.bulk_group"), given, grid=3).codes == ["emulate/race"]


@SCHEDULES
@pytest.mark.parametrize(
    ("waits", "fits"),
    [
        ("cp.async.bulk.wait_group.read 0;", True),
        ("cp.async.bulk.wait_group 0;", True),
        (COMMIT + "cp.async.bulk.wait_group.read 1;", True),
        ("cp.async.bulk.wait_group.read 1;", False),
        ("", False),
    ],
)
def test_a_source_is_written_again_behind_a_wait_for_its_reads(run, waits, fits, schedule):
    body = (
        FILL
        + ONE
        + f"cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 512;\n{COMMIT}{waits}\nst.shared.b32 [%s], 7;\ncp.async.bulk.wait_group 0;"
    )
    done = run(body, arrays(), schedule=schedule)
    assert (done.findings == []) == fits
    assert fits or done.codes == ["emulate/race"]


@SCHEDULES
def test_what_reads_shared_memory_is_awaited_before_the_end(run, schedule):
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 512;\n"
    assert "emulate/unfinished" in run(FILL + ONE + copy + COMMIT, arrays(), schedule=schedule).codes
    assert "emulate/unfinished" in run(FILL + ONE + copy + "cp.async.bulk.wait_group.read 0;", arrays(), schedule=schedule).codes
    assert run(FILL + ONE + copy + COMMIT + "cp.async.bulk.wait_group.read 0;", arrays(), schedule=schedule).findings == []
    # All lanes commit and wait, of which one has copied: groups are of a thread, and those of the others are empty.
    copy = INIT + FILL + "bar.sync 0;\n@%p0 " + copy
    assert run(copy + COMMIT + "cp.async.bulk.wait_group.read 0;", arrays(), schedule=schedule).findings == []
    assert "emulate/unfinished" in run(copy + COMMIT + "@!%p0 cp.async.bulk.wait_group.read 0;", arrays(), schedule=schedule).codes


@pytest.mark.parametrize(
    ("copy", "code", "says"),
    [
        ("cp.async.bulk.global.shared::cta.bulk_group [%D], [%s+8], 16;", "emulate/misaligned", "multiple of 16"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%D+8], [%s], 16;", "emulate/misaligned", "multiple of 16"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 24;", "emulate/operand", "24 bytes"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%D+512], [%s], 16;", "emulate/out-of-bounds", ""),
        ("cp.async.bulk.global.shared::cta.bulk_group [%D], [%s+4096], 16;", "emulate/out-of-bounds", ""),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%A+520], 16, [%s+2048];", "emulate/misaligned", "multiple of 16"),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%A], 16, [%s+3072];", "emulate/barrier", "not initialised"),
        ("mov.b16 %h0, 2;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%A], 16, [%s+2048], %h0;", "emulate/operand", "0x2"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+16777216], [%A], 16, [%s+2048];", "emulate/out-of-bounds", "no CTA"),
    ],
)  # fmt: skip
def test_misuse_is_told(run, copy, code, says):
    done = run(FILL + ONE + EXPECT.format(16) + copy + "\n" + COMMIT + "cp.async.bulk.wait_group 0;", arrays())
    assert done.codes[:1] == [code]
    assert says in done.findings[0].message


def test_the_barrier_is_in_the_cta_of_the_destination(run):
    body = INIT + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@!%p0 ret;\nmapa.shared::cluster.u32 %r20, %s, 1;\n"
    body += "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%A], 16, [%r20+2048];"
    done = run(body, arrays(), grid=2, cluster=2)
    assert done.codes[0] == "emulate/operand"
    assert "another CTA" in done.findings[0].message


def test_a_hint_is_checked_and_does_nothing(run):
    assert run("cp.async.bulk.prefetch.L2.global [%A], 64;", arrays()).findings == []
    assert run("cp.async.bulk.prefetch.L2.global [%A], 65;", arrays()).codes == ["emulate/operand"]


@pytest.mark.parametrize(
    "statement",
    ["cp.async.bulk.global.global.bulk_group [%D], [%A], 16;", "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%D], [%s], 16, [%s];",
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%D], [%s], 16;", "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%D], [%s], 16;",
     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%s], [%s], 16, [%s];",
     "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [%s], [%s], 16, [%s];", "cp.async.bulk.wait_group %t;",
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%s], [%A], 16, 0, 0, [%s];"],
)  # fmt: skip
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement, arrays())
