"""Barrier objects without a GPU: phases, states, bytes, and each misuse that the PTX ISA names. Expected counts are written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.bodies import on_body
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, given=None, **more: on_body(body, given or {}, emulates, shared=1024, **more)


FIRST = "setp.eq.u32 %p0, %t, 0;\n"
INIT = FIRST + "@%p0 mbarrier.init.shared::cta.b64 [%s], {};\nbar.sync 0;\n"

#: Warp 0 writes a word a lane and arrives; warp 1 waits and reads them.
PASSED = """
setp.lt.u32 %p1, %t, 32;
and.b32 %r0, %t, 31;
mad.lo.u32 %r1, %r0, 4, %s;
@!%p1 bra READ;
add.u32 %r2, %t, 100;
st.shared.b32 [%r1+64], %r2;
{arrive}
ret;
READ:
{wait}
ld.shared.b32 %r2, [%r1+64];
mul.wide.u32 %d0, %r0, 4;
add.u64 %d0, %d0, %D;
st.global.b32 [%d0], %r2;
"""
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s], 0;\n@!%p3 bra READ;"


def out(n: int = 32, kind: str = "uint32") -> dict:
    return {"D": np.zeros(n, kind)}


@pytest.mark.parametrize(
    ("count", "arrive"),
    [
        (32, "mbarrier.arrive.shared::cta.b64 _, [%s];"),
        (32, "mbarrier.arrive.release.cta.shared::cta.b64 %d1, [%s];"),
        (64, "mbarrier.arrive.shared.b64 _, [%s], 2;"),
        (32, "mbarrier.arrive_drop.shared::cta.b64 _, [%s];"),
        (32, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%s];"),
        (1, "bar.warp.sync -1;\nelect.sync _|%p2, -1;\n@%p2 mbarrier.arrive.shared::cta.b64 _, [%s];"),
        (32, "cvt.u64.u32 %d1, %s;\ncvta.shared.u64 %d1, %d1;\nmbarrier.arrive.b64 _, [%d1];"),
        (32, "fence.acq_rel.cta;\nmbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s];"),
    ],
)
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:3"])
def test_who_waits_for_a_phase_sees_what_stood_in_front_of_the_arrivals(run, count, arrive, schedule):
    done = run(INIT.format(count) + PASSED.format(arrive=arrive, wait=WAIT), out(), block=64, schedule=schedule)
    assert done.findings == []
    assert done["D"].tolist() == list(range(100, 132))


@pytest.mark.parametrize(
    ("arrive", "wait"),
    [
        ("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s];", WAIT),
        ("mbarrier.arrive.shared::cta.b64 _, [%s];", WAIT.replace("parity", "parity.relaxed.cta")),
        ("mbarrier.arrive.shared::cta.b64 _, [%s];", ""),
    ],
)
def test_a_relaxed_arrival_or_wait_orders_nothing(run, arrive, wait):
    done = run(INIT.format(32) + PASSED.format(arrive=arrive, wait=wait), out(), block=64)
    assert "emulate/race" in done.codes


def test_a_relaxed_wait_orders_behind_a_fence(run):
    wait = WAIT.replace("parity", "parity.relaxed.cta") + "\nfence.acquire.cta;"
    done = run(INIT.format(32) + PASSED.format(arrive="mbarrier.arrive.shared::cta.b64 _, [%s];", wait=wait), out(), block=64)
    assert done.findings == []


def test_each_lane_is_told_the_arrivals_that_were_pending(run):
    """36 are expected: the lanes find 36, 35, .. pending, and the phase is not over; four more end it."""
    body = """
    mbarrier.arrive.shared::cta.b64 %d1, [%s];
    mbarrier.pending_count.b64 %r1, %d1;
    mbarrier.test_wait.shared::cta.b64 %p1, [%s], %d1;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%s], 4;
    mbarrier.test_wait.shared::cta.b64 %p2, [%s], %d1;
    selp.u32 %r2, 1, 0, %p1;
    selp.u32 %r3, 2, 0, %p2;
    add.u32 %r2, %r2, %r3;
    mad.wide.u32 %d0, %t, 8, %D;
    st.global.v2.b32 [%d0], {%r1, %r2};
    """
    done = run(INIT.format(36) + body, out(64))
    assert done.findings == []
    assert done["D"].reshape(32, 2).tolist() == [[36 - lane, 2] for lane in range(32)]


def test_lanes_that_arrive_more_often_than_a_phase_waits_for_go_through_phases(run):
    """32 arrivals of one at an object for 8 complete four phases: the state of the first is too old then."""
    body = "mbarrier.arrive.shared::cta.b64 _, [%s];\nmbarrier.test_wait.parity.shared::cta.b64 %p1, [%s], 1;\n"
    body += "mbarrier.arrive.shared::cta.b64 %d1, [%s];\nmbarrier.test_wait.shared::cta.b64 %p2, [%s], %d1;\n"
    done = run(INIT.format(8) + body)
    assert done.codes == ["emulate/barrier"]
    assert "phase 8" in done.findings[0].message and "phase 4" in done.findings[0].message


def test_a_drop_counts_in_this_phase_and_in_none_behind_it(run):
    """Of 4 one drops out: 3 more end this phase, and 3 the next."""
    three = "mbarrier.arrive.shared::cta.b64 _, [%s], 3;\nmbarrier.test_wait.parity.shared::cta.b64 {}, [%s], {};\n"
    body = f"@!%p0 ret;\nmbarrier.arrive_drop.shared::cta.b64 _, [%s];\n{three.format('%p1', 0)}{three.format('%p2', 1)}"
    body += "and.pred %p3, %p1, %p2;\nselp.u32 %r1, 1, 0, %p3;\nst.global.b32 [%D], %r1;"
    done = run(INIT.format(4) + body, out(1))
    assert (done.findings, done["D"].tolist()) == ([], [1])


@pytest.mark.parametrize(
    ("before", "bytes", "over"),
    [
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 48;", (48,), 1),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 48;", (32,), 0),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 48;", (32, 16), 1),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s], 16;\nmbarrier.arrive.shared::cta.b64 _, [%s];", (), 0),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s], 16;\nmbarrier.arrive.shared::cta.b64 _, [%s];", (16,), 1),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%s], 48;\nmbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%s], 48;", (), 1),
    ],
)
def test_a_phase_waits_for_its_bytes(run, before, bytes, over):
    completes = "".join(f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%s], {n};\n" for n in bytes)
    body = f"@!%p0 ret;\n{before}\n{completes}mbarrier.test_wait.parity.shared::cta.b64 %p1, [%s], 0;\n"
    body += "selp.u32 %r1, 1, 0, %p1;\nst.global.b32 [%D], %r1;"
    done = run(INIT.format(1) + body, out(1))
    assert (done.findings, done["D"].tolist()) == ([], [over])


def test_a_program_that_only_asks_goes_on(run):
    """Warp 1 asks for a phase that its own later arrival makes possible: a wait would never end."""
    body = """
    @%p0 mbarrier.init.shared::cta.b64 [%s+8], 1;
    bar.sync 0;
    setp.lt.u32 %p1, %t, 32;
    @!%p1 bra ASK;
    OTHER:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+8], 0;
    @!%p3 bra OTHER;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%s];
    ret;
    ASK:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%s], 0;
    setp.eq.u32 %p4, %t, 32;
    @%p4 mbarrier.arrive.shared::cta.b64 _, [%s+8];
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p5, [%s], 0, 1000;
    @!%p5 bra AGAIN;
    selp.u32 %r1, 1, 0, %p2;
    @%p4 st.global.b32 [%D], %r1;
    """
    done = run(INIT.format(1) + body, out(1), block=64, schedule="adversarial")
    assert (done.findings, done["D"].tolist()) == ([], [0])


def test_lanes_wait_for_objects_of_their_own(run):
    """Two lanes wait for two objects; the first arrives at the other's when its own is over."""
    body = """
    @%p0 mbarrier.init.shared::cta.b64 [%s+8], 1;
    bar.sync 0;
    setp.ge.u32 %p1, %t, 2;
    @%p1 ret;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%s];
    mad.lo.u32 %r1, %t, 8, %s;
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
    @!%p2 bra AGAIN;
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%s+8];
    mad.wide.u32 %d0, %t, 4, %D;
    st.global.b32 [%d0], %t;
    """
    done = run(INIT.format(1) + body, {"D": np.full(2, 9, np.uint32)})
    assert (done.findings, done["D"].tolist()) == ([], [0, 1])


@pytest.mark.parametrize("asks", ["try_wait", "test_wait"])
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:3"])
def test_what_never_comes_is_a_deadlock(run, asks, schedule):
    wait = WAIT.replace("try_wait", asks)
    done = run(INIT.format(2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%s];\nREAD:\n" + wait, schedule=schedule)
    assert done.codes == ["emulate/deadlock"]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("mbarrier.init.shared::cta.b64 [%s], 0;", "emulate/operand", "1 to 1048575"),
        ("mbarrier.init.shared::cta.b64 [%s], 1048576;", "emulate/operand", "1048576 arrivals"),
        ("mbarrier.init.shared::cta.b64 [%s+4], 1;", "emulate/misaligned", "multiple of 8"),
        ("mbarrier.arrive.shared::cta.b64 _, [%s+8];", "emulate/barrier", "not initialised"),
        ("mbarrier.inval.shared::cta.b64 [%s];\nmbarrier.arrive.shared::cta.b64 _, [%s];", "emulate/barrier", "not initialised"),
        ("mbarrier.arrive.shared::cta.b64 _, [%s], 0;", "emulate/operand", "0 arrivals"),
        ("mbarrier.arrive.shared::cta.b64 _, [%s], 3;", "emulate/barrier", "3 arrivals"),
        ("mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%s], 2;", "emulate/barrier", ".noComplete"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 1048576;", "emulate/operand", "1048576 bytes"),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p1, [%s], 2;", "emulate/operand", "parity 2"),
        ("mov.b64 %d1, 7;\nmbarrier.test_wait.shared::cta.b64 %p1, [%s], %d1;", "emulate/barrier", "state of phase 7"),
        ("mbarrier.arrive.shared::cta.b64 _, [16777216];", "emulate/out-of-bounds", "no CTA"),
        ("mbarrier.arrive.b64 _, [%D];", "emulate/out-of-bounds", "no CTA"),
    ],
)
def test_misuse_is_told(run, body, code, says):
    done = run(INIT.format(2) + "@!%p0 ret;\n" + body, out(1))
    assert done.codes == [code]
    assert says in done.findings[0].message


def test_an_object_of_another_cta_is_not_in_shared_cta(run):
    body = "@!%p0 ret;\nxor.b32 %r1, %s, 16777216;\nmbarrier.{}.shared::{}.b64 {}[%r1]{};"
    ends = "\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
    done = run(INIT.format(1) + body.format("init", "cta", "", ", 1"), grid=2, cluster=2)
    assert done.codes == ["emulate/out-of-bounds"]
    assert "window of the executing CTA" in done.findings[0].why
    body = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nxor.b32 %r1, %s, 16777216;\n@%p0 mbarrier.arrive.shared::cluster.b64 _, [%r1];"
    wait = "READ:\n" + WAIT
    assert run(INIT.format(1) + body + ends + "\n" + wait, grid=2, cluster=2).findings == []


BEGUN = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s], 1;\n{meet}@!%p0 bra END;\nxor.b32 %r1, %s, 16777216;\n"
BEGUN += "mbarrier.arrive.shared::cluster.b64 _, [%r1];\nEND:\nREAD:\n" + WAIT + "\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"


@pytest.mark.parametrize(
    ("meet", "fits"),
    [
        ("barrier.cluster.arrive;\nbarrier.cluster.wait;\n", True),
        ("fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n", True),
        ("fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n", True),
        ("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n", False),
        ("barrier.cluster.arrive.relaxed;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.wait;\n", False),
    ],
)
def test_an_object_is_used_behind_its_initialisation(run, meet, fits):
    """Each CTA arrives at the object of the other."""
    assert run(BEGUN.format(meet=meet), grid=2, cluster=2).codes == ([] if fits else ["emulate/race"])


@pytest.mark.parametrize(
    "access",
    [
        "ld.shared.b32 %r1, [%s];",
        "st.shared.b32 [%s+4], 0;",
        "atom.shared.add.u32 %r1, [%s], 1;",
        "cp.async.ca.shared.global [%s], [%D], 4;\ncp.async.wait_all;",
        "cp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 16;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
    ],
)
def test_the_bytes_of_an_object_are_its_own(run, access):
    """Until it is invalidated; then they hold nothing that may be read."""
    body = INIT.format(1) + "@!%p0 ret;\nst.shared.b64 [%s+8], 0;\nfence.proxy.async;\n"
    assert run(body + access, out(4)).codes == ["emulate/barrier"]
    ended = "mbarrier.inval.shared::cta.b64 [%s];\n"
    assert run(body + ended + access, out(4)).codes[:1] == (
        ["emulate/uninitialised"] if "[%s+4]" not in access and "cp.async.ca" not in access else []
    )
    stored = "st.shared.b64 [%s], 0;\nfence.proxy.async;\n"
    assert run(body + ended + stored + access, out(4)).findings == []


def test_an_object_is_initialised_once(run):
    again = "mbarrier.init.shared::cta.b64 [%s], 1;\n"
    ended = "mbarrier.inval.shared::cta.b64 [%s];\n"
    assert run(INIT.format(1) + "@!%p0 ret;\n" + again).codes == ["emulate/barrier"]
    assert run(INIT.format(1) + "@!%p0 ret;\n" + ended + again).findings == []
    # Threads of another warp store there in no order with it.
    for schedule in ("round-robin", "adversarial", "random:1", "random:2"):
        assert run("st.shared.b32 [%s], 7;\n" + INIT.format(1), block=64, schedule=schedule).codes in (["emulate/race"], ["emulate/barrier"])


def test_a_warp_that_comes_late_has_met_nobody(run):
    """Warp 0 initialises and goes on; that warp 1 comes later orders nothing."""
    body = FIRST + "@%p0 mbarrier.init.shared::cta.b64 [%s], 64;\n{}mbarrier.arrive.shared::cta.b64 _, [%s];\n"
    assert run(body.format("bar.warp.sync -1;\n"), block=64).codes == ["emulate/race"]
    assert run(body.format("bar.sync 0;\n"), block=64).findings == []


def test_an_arrival_without_completion_leaves_the_phase_open(run):
    body = "@!%p0 ret;\nmbarrier.arrive.noComplete.release.cta.shared::cta.b64 %d1, [%s], 2;\nmbarrier.pending_count.b64 %r1, %d1;\nst.global.b32 [%D], %r1;"
    done = run(INIT.format(3) + body, out(1))
    assert (done.findings, done["D"].tolist()) == ([], [3])


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("mbarrier.arrive.shared::cluster.b64 %d1, [%s];", "'_'"),
        ("mbarrier.arrive.shared::cta.b32 _, [%s];", ".b64"),
        ("mbarrier.arrive.weak.shared::cta.b64 _, [%s];", "'.weak'"),
        ("mbarrier.test_wait.parity.shared::cluster.b64 %p1, [%s], 0;", "shared::cluster"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s];", "operands"),
    ],
)
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement, says):
    with pytest.raises(Unsupported) as refused:
        run(statement)
    assert says in str(refused.value)
