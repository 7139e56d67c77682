"""Copies by threads without a GPU: what they write, when they may be read, and misuse."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, **{"shared": 2048, **more})


SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:4"])
AT = "mul.lo.u32 %r10, %t, 16;\nadd.u32 %r11, %r10, %s;\ncvt.u64.u32 %d0, %r10;\nadd.u64 %d1, %d0, %A;\nadd.u64 %d2, %d0, %D;\n"
OUT = "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r11];\nst.global.v4.b32 [%d2], {%r0, %r1, %r2, %r3};\n"
WAIT = "cp.async.wait_all;\n"


def arrays() -> dict:
    return {"A": np.random.default_rng(1).integers(1, 256, 512, dtype=np.uint8), "D": np.zeros(512, np.uint8)}


@SCHEDULES
@pytest.mark.parametrize(
    ("copies", "bytes"),
    [
        ("cp.async.cg.shared.global [%r11], [%d1], 16;", 16),
        ("cp.async.cg.shared::cta.global.L2::128B [%r11], [%d1], 16, 16;", 16),
        ("cp.async.ca.shared.global.L2::cache_hint [%r11], [%d1], 16, %d9;", 16),
        ("cp.async.ca.shared.global.L2::cache_hint.L2::64B [%r11], [%d1], 16, 12, %d9;", 12),
        ("cp.async.cg.shared.global [%r11], [%d1], 16, 5;", 5),
        ("cp.async.cg.shared.global [%r11], [%d1], 16, 0;", 0),
        ("mov.u32 %r20, 7;\ncp.async.cg.shared.global [%r11], [%d1], 16, %r20;", 7),
        ("".join(f"cp.async.ca.shared.global [%r11+{n}], [%d1+{n}], 4;\n" for n in (0, 4, 8, 12)), 16),
        ("cp.async.ca.shared.global [%r11+8], [%d1+8], 8;\ncp.async.ca.shared.global [%r11], [%d1], 8, 3;", None),
    ],
)
def test_what_is_not_read_is_zero(run, copies, bytes, schedule):
    given = arrays()
    wanted = given["A"].reshape(32, 16).copy()
    if bytes is None:
        wanted[:, 3:8] = 0
    else:
        wanted[:, bytes:] = 0
    done = run("mov.b64 %d9, 0;\n" + AT + copies + "\n" + WAIT + OUT, given, schedule=schedule)
    assert done.findings == []
    assert (done["D"].reshape(32, 16) == wanted).all()


def test_each_lane_has_a_size_and_a_predicate_of_its_own(run):
    given = arrays()
    wanted = given["A"].reshape(32, 16).copy()
    for lane in range(32):
        wanted[lane, lane % 17 :] = 0
    body = AT + "rem.u32 %r20, %t, 17;\ncp.async.cg.shared.global [%r11], [%d1], 16, %r20;\n" + WAIT + OUT
    assert (run(body, given)["D"].reshape(32, 16) == wanted).all()
    # Where the source is ignored it may be anywhere.
    body = AT + "setp.ge.u32 %p1, %t, 20;\n@%p1 mov.b64 %d1, 3;\ncp.async.cg.shared.global [%r11], [%d1], 16, %p1;\n" + WAIT + OUT
    done = run(body, given)
    wanted = given["A"].reshape(32, 16).copy()
    wanted[20:] = 0
    assert (done.findings, (done["D"].reshape(32, 16) == wanted).all()) == ([], True)
    body = AT + "setp.lt.u32 %p1, %t, 20;\ncp.async.cg.shared.global [%r11], [%d1], 16, !%p1;\n" + WAIT + OUT
    assert (run(body, given)["D"].reshape(32, 16) == wanted).all()


#: Two groups to two places; the first is read behind a wait for all but so many.
GROUPS = AT + "cp.async.cg.shared.global [%r11], [%d1], 16;\ncp.async.commit_group;\ncp.async.cg.shared.global [%r11+1024], [%d1], 16;\n@@" + OUT


@SCHEDULES
@pytest.mark.parametrize(
    ("waits", "fits"),
    [
        ("cp.async.commit_group;\ncp.async.wait_group 1;\n", True),
        ("cp.async.commit_group;\ncp.async.wait_group 0;\n", True),
        ("cp.async.wait_group 0;\n", True),
        ("cp.async.wait_group 1;\n", False),
        ("cp.async.commit_group;\ncp.async.wait_group 2;\n", False),
        ("cp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 2;\n", True),
        ("cp.async.commit_group;\n", False),
        ("bar.sync 0;\n", False),
    ],
)
def test_groups_are_counted_from_the_last(run, waits, fits, schedule):
    done = run(GROUPS.replace("@@", waits) + "cp.async.wait_all;", arrays(), schedule=schedule)
    assert bool(done.findings) != fits
    if not fits:
        assert set(done.codes) <= {"emulate/race", "emulate/uninitialised"}


def test_an_operation_without_a_group_is_of_no_wait_for_groups(run):
    body = AT + "cp.async.cg.shared.global [%r11], [%d1], 16;\ncp.async.wait_group 0;\n" + OUT + "cp.async.wait_all;"
    assert run(body, arrays(), schedule="adversarial").codes != []
    assert run(body.replace("wait_group 0", "wait_all"), arrays(), schedule="adversarial").findings == []


def test_groups_are_a_lanes_own(run):
    """Lanes below 16 commit a group more: for them all but one holds the copy, for the others it does not."""
    body = AT + "cp.async.cg.shared.global [%r11], [%d1], 16;\ncp.async.commit_group;\nsetp.lt.u32 %p1, %t, 16;\n@%p1 cp.async.commit_group;\n"
    for guard, fits in (("@!%p1", True), ("@%p1", False)):
        ends = f"{guard} bra END;\ncp.async.wait_group 1;\n{OUT}END:\ncp.async.wait_all;"
        assert (run(body + ends, arrays(), schedule="adversarial").findings == []) == fits


def test_other_warps_see_it_behind_a_barrier(run):
    """What a lane's own copies wrote is known to its warp as soon as it has waited; another warp needs a barrier."""
    body = "and.b32 %r30, %t, 31;\n" + AT.replace("%t", "%r30") + "setp.lt.u32 %p1, %t, 32;\n@!%p1 bra MEET;\n"
    body += f"cp.async.cg.shared.global [%r11], [%d1], 16;\n{WAIT}MEET:\n@@setp.ge.u32 %p1, %t, 32;\n@!%p1 ret;\n{OUT}"
    given = arrays()
    done = run(body.replace("@@", "bar.sync 0;\n"), given, block=64)
    assert (done.findings, done["D"].tolist()) == ([], given["A"].tolist())
    assert set(run(body.replace("@@", "bar.arrive 0, 64;\n"), given, block=64).codes) & {"emulate/race", "emulate/uninitialised"}


def test_an_engine_sees_it_behind_a_fence_of_the_proxy(run):
    """These copies write as threads do (generic proxy)."""
    body = AT + "cp.async.cg.shared.global [%r11], [%d1], 16;\n" + WAIT + "{}bar.sync 0;\nsetp.eq.u32 %p0, %t, 0;\n@!%p0 ret;\n"
    body += "cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 512;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    assert run(body.format("fence.proxy.async;\n"), arrays()).findings == []
    assert run(body.format(""), arrays()).codes == ["emulate/missing-fence"]


@SCHEDULES
@pytest.mark.parametrize(
    ("count", "tells"),
    [
        (32, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+1024];"),
        (32, "cp.async.mbarrier.arrive.noinc.shared.b64 [%s+1024];\n"),
        (32, "cp.async.mbarrier.arrive.shared.b64 [%s+1024];\nmbarrier.arrive.shared.b64 _, [%s+1024];"),
        (32, "cvt.u64.u32 %d5, %s;\ncvta.shared.u64 %d5, %d5;\ncp.async.mbarrier.arrive.noinc.b64 [%d5+1024];"),
    ],
)
def test_copies_arrive_at_a_barrier_object(run, count, tells, schedule):
    body = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared.b64 [%s+1024], {};\nbar.sync 0;\n" + AT
    body += "cp.async.cg.shared.global [%r11], [%d1], 16;\n{}\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 %p1, [%s+1024], 0;\n@!%p1 bra AGAIN;\n"
    given = arrays()
    done = run(body.format(count, tells) + OUT.replace("[%r11]", "[%r12]").replace("ld", "xor.b32 %r12, %r11, 16;\nld", 1), given, schedule=schedule)
    assert done.findings == []
    assert done["D"].reshape(16, 2, 16).tolist() == given["A"].reshape(16, 2, 16)[:, ::-1].tolist()


def test_an_arrival_that_is_counted_too_leaves_the_phase_open(run):
    """Without .noinc the phase waits for one more: 32 arrivals of copies do not end a phase for 32."""
    body = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared.b64 [%s+1024], 32;\nbar.sync 0;\n" + AT
    body += "cp.async.cg.shared.global [%r11], [%d1], 16;\ncp.async.mbarrier.arrive.shared.b64 [%s+1024];\nAGAIN:\n"
    body += "mbarrier.try_wait.parity.shared.b64 %p1, [%s+1024], 0;\n@!%p1 bra AGAIN;\n"
    assert run(body, arrays()).codes == ["emulate/deadlock"]


@pytest.mark.parametrize(
    ("copy", "code", "says"),
    [
        ("cp.async.cg.shared.global [%r11+8], [%d1], 16;", "emulate/misaligned", "no multiple of 16"),
        ("cp.async.cg.shared.global [%r11], [%d1+4], 16;", "emulate/misaligned", "no multiple of 16"),
        ("cp.async.ca.shared.global [%r11], [%d1], 8, 9;", "emulate/operand", "src-size is 9"),
        ("cp.async.ca.shared.global [%r11], [%d1+4096], 4;", "emulate/out-of-bounds", ""),
        ("cp.async.ca.shared.global [%r11+2048], [%d1], 4;", "emulate/out-of-bounds", ""),
        ("cp.async.ca.shared.global [%r11], [64], 4;", "emulate/out-of-bounds", "0x40"),
    ],
)
def test_misuse_is_told(run, copy, code, says):
    done = run(f"{AT}{copy}\n{WAIT}", arrays())
    assert done.codes[:1] == [code]
    assert says in done.findings[0].message


def test_what_nobody_waited_for_is_unfinished(run):
    done = run(AT + "cp.async.cg.shared.global [%r11], [%d1], 16;", arrays(), schedule="adversarial")
    assert done.codes == ["emulate/unfinished"]


@pytest.mark.parametrize(
    "statement",
    ["cp.async.cg.shared.global [%s], [%A], 8;", "cp.async.ca.shared.global [%s], [%A], 12;", "cp.async.ca.shared.global [%s], [%A], %t;",
     "cp.async.ca.shared::cluster.global [%s], [%A], 4;", "cp.async.wait_group %t;", "cp.async.mbarrier.arrive.noinc.shared::cluster.b64 [%s];"],
)  # fmt: skip
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement, arrays())
