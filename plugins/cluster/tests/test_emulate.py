"""Clusters without a GPU: addresses of other CTAs, the barrier of the cluster, and what tells a barrier in another CTA."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, **{"shared": 1024, "grid": 4, "cluster": 4, **more})


SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:4"])
MEET = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
#: Each thread stores 1000 * rank + thread; then it reads that of the next CTA.
STORE = "mad.lo.u32 %r1, %t, 4, %s;\nmad.lo.u32 %r2, %rank, 1000, %t;\nst.shared.b32 [%r1], %r2;\n"
NEXT = "add.u32 %r3, %rank, 1;\nand.b32 %r3, %r3, 3;\n"
OUT = "mad.lo.u32 %r5, %rank, 32, %t;\nmad.wide.u32 %d0, %r5, 4, %D;\nst.global.b32 [%d0], %r6;\n"
READ = NEXT + "mapa.shared::cluster.u32 %r4, %r1, %r3;\nld.shared::cluster.b32 %r6, [%r4];\n" + OUT


def out() -> dict:
    return {"D": np.zeros((4, 32), np.uint32)}


WANTED = [[1000 * ((rank + 1) % 4) + n for n in range(32)] for rank in range(4)]


@SCHEDULES
@pytest.mark.parametrize(
    "meet",
    [
        MEET,
        "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n",
        "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n",
        MEET * 3,
    ],
)
def test_ctas_that_met_see_each_others_stores(run, meet, schedule):
    done = run(STORE + meet + READ + MEET, out(), schedule=schedule)
    assert (done.findings, done["D"].tolist()) == ([], WANTED)


@pytest.mark.parametrize("meet", ["", "barrier.cluster.arrive;\n", "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n", "bar.sync 0;\n"])
def test_ctas_that_have_not_met_race(run, meet):
    done = run(STORE + meet + READ, out(), schedule="random:1")
    assert set(done.codes) & {"emulate/race", "emulate/uninitialised"}


def test_generic_addresses_are_mapped_too(run):
    generic = "cvt.u64.u32 %d1, %r1;\ncvta.shared.u64 %d1, %d1;\n" + NEXT + "mapa.u64 %d2, %d1, %r3;\nld.b32 %r6, [%d2];\n" + OUT
    wide = (
        "cvt.u64.u32 %d1, %r1;\n"
        + NEXT
        + "mapa.shared::cluster.u64 %d2, %d1, %r3;\ncvt.u32.u64 %r4, %d2;\nld.shared::cluster.b32 %r6, [%r4];\n"
        + OUT
    )
    for read in (generic, wide):
        done = run(STORE + MEET + read + MEET, out())
        assert (done.findings, done["D"].tolist()) == ([], WANTED)


def test_an_address_that_is_mapped_is_that_of_its_cta(run):
    """Rank and offset, whichever CTA asks and whatever the address says of a rank."""
    body = (
        NEXT
        + "mapa.shared::cluster.u32 %r1, %s, %r3;\nmapa.shared::cluster.u32 %r2, %r1, %rank;\nsetp.eq.u32 %p0, %r2, %s;\nselp.u32 %r6, %r1, 0, %p0;\n"
        + OUT
    )
    done = run(body, out())
    low = int(done["D"][0, 0]) & 0xFFFFFF
    assert done["D"].tolist() == [[(rank + 1) % 4 << 24 | low] * 32 for rank in range(4)]


def test_threads_that_have_ended_are_not_waited_for(run):
    """Of each CTA half of the threads end at once; a CTA arrives and ends without waiting: it counts once."""
    half = "setp.ge.u32 %p0, %t, 16;\n@%p0 ret;\n" + STORE + MEET + READ + MEET
    done = run(half, out())
    assert (done.findings, done["D"][:, :16].tolist()) == ([], [row[:16] for row in WANTED])
    gone = "setp.eq.u32 %p0, %rank, 3;\n@!%p0 bra STAY;\nbarrier.cluster.arrive;\nret;\nSTAY:\n" + STORE + MEET + "mov.u32 %r6, %r2;\n" + OUT + MEET
    for schedule in ("round-robin", "adversarial", "random:2"):
        assert run(gone, out(), schedule=schedule).findings == []


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n", "emulate/barrier", "again"),
        ("barrier.cluster.wait;\n", "emulate/barrier", "has not arrived"),
        ("barrier.cluster.arrive;\nbarrier.cluster.wait;\nbarrier.cluster.wait;\n", "emulate/barrier", "has not arrived"),
        ("setp.eq.u32 %p0, %rank, 0;\n@%p0 bra NO;\n" + MEET + "NO:\nbar.sync 1, 64;\n", "emulate/deadlock", "barrier"),
        ("mapa.shared::cluster.u32 %r1, %s, 4;\n", "emulate/operand", "CTA 4 of a cluster of 4"),
        ("mapa.shared::cluster.u32 %r1, %s, %t;\n", "emulate/operand", "CTA 31"),
    ],
)
def test_misuse_is_told(run, body, code, says):
    done = run(body)
    assert done.codes[0] == code
    assert says in done.findings[0].message


@pytest.mark.parametrize(
    "access",
    [
        "ld.shared::cluster.b32 %r6, [%r7];",
        "mbarrier.arrive.shared::cluster.b64 _, [%r7+512];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r7], %t, [%r7+512];",
    ],
)
def test_memory_of_a_cta_that_has_ended_is_not_there(run, access):
    """CTA 1 ends while CTA 0 still waits for a thread of its own; a meeting of the cluster in front of the end keeps CTA 1."""
    body = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s+512], 32;\n" + STORE + MEET + "mapa.shared::cluster.u32 %r7, %s, 1;\n"
    body += f"setp.ne.u32 %p2, %rank, 0;\n@%p2 bra END;\nmov.u32 %r8, 0;\nLOOP:\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p3, %r8, 2000;\n@%p3 bra LOOP;\n{access}\nEND:\n"
    assert run(body, grid=2, cluster=2).codes[0] == "emulate/out-of-bounds"
    # What nobody waits for may still be under way when both have met.
    assert (run(body + MEET, grid=2, cluster=2).codes == []) == ("async" not in access)


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:5"])
def test_what_others_do_is_in_front_of_a_ctas_end(run, schedule):
    """CTA 0 arrives at an object of CTA 1, which ends: in time or not, nothing orders the two without a wait or a meeting."""
    body = (
        "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s+512], 1;\n"
        + MEET
        + "setp.eq.u32 %p2, %rank, 0;\nmapa.shared::cluster.u32 %r7, %s, 1;\n"
    )
    body += "and.pred %p3, %p0, %p2;\n@%p3 mbarrier.arrive.shared::cluster.b64 _, [%r7+512];\n"
    done = run(body, grid=2, cluster=2, schedule=schedule)
    assert done.codes in (["emulate/race"], ["emulate/out-of-bounds"])
    assert run(body + MEET, grid=2, cluster=2, schedule=schedule).findings == []
    wait = "@%p2 bra END;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%s+512], 0;\n@!%p1 bra AGAIN;\nEND:\n"
    assert run(body + wait, grid=2, cluster=2, schedule=schedule).findings == []


# --- stores and reductions that tell a barrier ---------------------------------------------------------------------------

#: Of each CTA one object for `{n}` bytes at 512; each CTA works on the next one.
INIT = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s+512], 1;\n@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+512], {n};\n"
INIT += (
    "mad.lo.u32 %r1, %t, {size}, %s;\n{zero}\n" + MEET + NEXT + "mapa.shared::cluster.u32 %r4, %r1, %r3;\nmapa.shared::cluster.u32 %r7, %s, %r3;\n"
)
WAIT = "AGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+512], 0;\n@!%p1 bra AGAIN;\n"


@SCHEDULES
@pytest.mark.parametrize(
    ("size", "words", "value"),
    [
        (4, ".b32", "%r2"),
        (4, ".u32", "%r2"),
        (4, ".f32", "%r2"),
        (8, ".v2.b32", "{%r2, %r2}"),
        (16, ".v4.s32", "{%r2, %t, %t, %r2}"),
        (8, ".b64", "%d5"),
        (8, ".s64", "%d5"),
        (16, ".v2.b64", "{%d5, %d5}"),
    ],
)
@pytest.mark.parametrize("weak", ["", ".weak"])
def test_a_store_is_seen_behind_its_bytes(run, size, words, value, weak, schedule):
    """The last 4 bytes of each thread are read back: the value, or the upper half of it, which is 7."""
    body = INIT.format(n=32 * size, size=size, zero="") + "mad.lo.u32 %r2, %rank, 1000, %t;\nmov.b64 %d5, {%r2, 7};\n".replace("7", "%r30")
    body = "mov.u32 %r30, 7;\n" + body + f"st.async{weak}.shared::cluster.mbarrier::complete_tx::bytes{words} [%r4], {value}, [%r7+512];\n"
    done = run(body + WAIT + f"ld.shared.b32 %r6, [%r1+{size - 4}];\n" + OUT + MEET, out(), schedule=schedule)
    assert done.findings == []
    wanted = [[7 if "64" in words else 1000 * ((rank - 1) % 4) + n for n in range(32)] for rank in range(4)]
    assert done["D"].tolist() == wanted


@SCHEDULES
@pytest.mark.parametrize(
    ("operation", "type", "start", "combine"),
    [
        ("add", "u32", 2**32 - 5, lambda a, b: (a + b) % 2**32),
        ("add", "s32", 5, lambda a, b: a + b),
        ("add", "u64", 2**32 - 5, lambda a, b: a + b),
        ("min", "u32", 9, min),
        ("max", "s32", 9, max),
        ("inc", "u32", 3, lambda a, b: 0 if a >= b else a + 1),
        ("dec", "u32", 3, lambda a, b: b if a == 0 or a > b else a - 1),
        ("and", "b32", 0x7F, lambda a, b: a & b),
        ("or", "b32", 0x40, lambda a, b: a | b),
        ("xor", "b32", 0x55, lambda a, b: a ^ b),
    ],
)
def test_a_reduction_is_seen_behind_its_bytes(run, operation, type, start, combine, schedule):
    """Lanes 2n and 2n + 1 reduce into one place: the first lane first."""
    size = int(type[1:]) // 8
    zero = f"mov.u64 %d6, {start};\nst.shared.b64 [%r1], %d6;\n" if size == 8 else f"st.shared.b32 [%r1], {start};\n"
    body = (
        INIT.format(n=32 * size, size=size, zero=zero)
        + f"and.b32 %r8, %t, 30;\nmapa.shared::cluster.u32 %r4, %s, %r3;\nmad.lo.u32 %r4, %r8, {size}, %r4;\n"
    )
    value = "%t" if size == 4 else "%d5"
    body += f"cvt.u64.u32 %d5, %t;\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation}.{type} [%r4], {value}, [%r7+512];\n"
    done = run(body + WAIT + "ld.shared.b32 %r6, [%r1];\n" + OUT + MEET, out(), schedule=schedule)
    assert done.findings == []
    for row in done["D"].tolist():
        assert row == [combine(combine(start, n), n + 1) % 2**32 if n % 2 == 0 else start % 2**32 for n in range(32)]


def test_a_store_that_is_not_awaited_races(run):
    body = INIT.format(n=128, size=4, zero="") + "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %t, [%r7+512];\n"
    done = run(body + "ld.shared.b32 %r6, [%r1];\n" + OUT + WAIT + MEET, out(), schedule="random:4")
    assert set(done.codes) & {"emulate/race", "emulate/uninitialised"}


@pytest.mark.parametrize(
    ("statement", "code", "says"),
    [
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %t, [%s+512];", "emulate/operand", "another CTA"),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r4], {%t, %t}, [%r7+512];", "emulate/misaligned", "multiple of 8"),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %t, [%r7+516];", "emulate/misaligned", "multiple of 8"),
    ],
)
def test_misuse_of_stores_is_told(run, statement, code, says):
    done = run(INIT.format(n=128, size=4, zero="") + statement)
    assert done.codes[0] == code
    assert says in done.findings[0].message


@pytest.mark.parametrize(
    "statement",
    [
        "mapa.shared.u32 %r1, %s, 0;",
        "mapa.u16 %r1, %s, 0;",
        "barrier.cluster.arrive.acquire;",
        "barrier.cluster.wait.release;",
        "st.async.shared::cluster.b32 [%s], %t, [%s];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%s], %t, [%s];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%s], %t, [%s];",
    ],
)
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement)
