"""Barriers of threads, elections and fences without a GPU."""

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


STORE = "mad.lo.u32 %r1, %t, 4, %s;\nst.shared.b32 [%r1], %t;\n"
#: The word of the thread as many places on, of as many as there are.
LOAD = """
mov.u32 %r2, %ntid.x;
add.u32 %r3, %t, {by};
rem.u32 %r3, %r3, %r2;
mad.lo.u32 %r3, %r3, 4, %s;
ld.shared.b32 %r4, [%r3];
mad.wide.u32 %d0, %t, 4, %D;
st.global.b32 [%d0], %r4;
"""


def out(n: int) -> dict:
    return {"D": np.zeros(n, np.uint32)}


@pytest.mark.parametrize(
    "meet",
    ["bar.sync 0;", "bar.cta.sync 3, 96;", "barrier.sync 15;", "barrier.cta.sync.aligned 2, 96;", "mov.u32 %r9, 5;\nbar.sync %r9, 96;",
     "setp.lt.u32 %p1, %t, 50;\nbar.red.popc.u32 %r9, 1, %p1;", "setp.lt.u32 %p1, %t, 50;\nbarrier.cta.red.and.aligned.pred %p2, 1, 96, !%p1;"],
)  # fmt: skip
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random:1"])
def test_threads_that_met_see_each_others_stores(run, meet, schedule):
    done = run(STORE + meet + LOAD.format(by=33), out(96), block=96, schedule=schedule)
    assert done.findings == []
    assert done["D"].tolist() == [(n + 33) % 96 for n in range(96)]


@pytest.mark.parametrize("meet", ["", "bar.warp.sync -1;", "bar.arrive 1, 96;\nbar.sync 2, 32;"])
def test_threads_that_have_not_met_race(run, meet):
    assert "emulate/race" in run(STORE + meet + LOAD.format(by=33), out(96), block=96, schedule="random:5").codes


def test_those_who_arrive_do_not_wait_and_are_seen(run):
    """Warps 0 and 1 store and arrive; warp 2 waits for them, and for itself: 96 threads."""
    body = STORE + "setp.ge.u32 %p0, %t, 64;\n@%p0 bra LAST;\nbar.arrive 4, 96;\nret;\nLAST:\nbar.sync 4, 96;\n" + LOAD.format(by=32)
    done = run(body, out(96), block=96)
    assert done.findings == []
    assert done["D"][64:].tolist() == list(range(32))


def test_a_barrier_is_used_again(run):
    body = (
        STORE
        + "bar.sync 1;\n"
        + LOAD.format(by=32)
        + "bar.sync 1;\nadd.u32 %r5, %t, 1000;\nst.shared.b32 [%r1], %r5;\nbar.sync 1;\n"
        + LOAD.format(by=64)
    )
    done = run(body, out(96), block=96, schedule="random:2")
    assert (done.findings, done["D"].tolist()) == ([], [(n + 64) % 96 + 1000 for n in range(96)])


@pytest.mark.parametrize(
    ("holds", "popc", "both", "any"),
    [
        ("setp.lt.u32 %p1, %t, 50;", 50, 0, 1),
        ("setp.lt.u32 %p1, %t, 0;", 0, 0, 0),
        ("setp.lt.u32 %p1, %t, 64;", 64, 1, 1),
        ("setp.eq.u32 %p1, %t, 63;", 1, 0, 1),
    ],
)
def test_predicates_of_all_threads_are_combined(run, holds, popc, both, any):
    body = f"""{holds}
    bar.red.popc.u32 %r1, 2, %p1;
    bar.red.popc.u32 %r4, 2, 64, !%p1;
    bar.red.and.pred %p2, 1, 64, %p1;
    barrier.cta.red.or.pred %p3, 0, %p1;
    selp.u32 %r2, 1, 0, %p2;
    selp.u32 %r3, 1, 0, %p3;
    mad.wide.u32 %d0, %t, 16, %D;
    st.global.v4.b32 [%d0], {{%r1, %r2, %r3, %r4}};
    """
    done = run(body, out(256), block=64)
    assert done.findings == []
    assert done["D"].reshape(64, 4).tolist() == [[popc, both, any, 64 - popc]] * 64


def test_threads_that_have_ended_are_not_waited_for(run):
    body = "setp.ge.u32 %p0, %t, 40;\n@%p0 ret;\n" + STORE + "bar.sync 0;\nmad.wide.u32 %d0, %t, 4, %D;\nst.global.b32 [%d0], %t;"
    done = run(body, out(40), block=96)
    assert (done.findings, done["D"].tolist()) == ([], list(range(40)))


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("bar.sync 16;", "emulate/operand", "barrier 16"),
        ("bar.sync 0, 48;", "emulate/operand", "48 threads"),
        ("bar.arrive 0, 0;", "emulate/operand", "0 threads"),
        ("bar.sync %t;", "emulate/divergent", "different values"),
        ("bar.sync 1, 32;\nbar.sync 2, 96;", "emulate/deadlock", "barrier 2"),
        ("setp.lt.u32 %p0, %t, 32;\n@%p0 bar.arrive 1, 64;\n@!%p0 bar.sync 1, 96;", "emulate/barrier", "waited for by 64"),
    ],
)
def test_misuse_is_told(run, body, code, says):
    done = run(body, block=64)
    assert done.codes[0] == code
    assert says in done.findings[0].message


# --- lanes of a warp -------------------------------------------------------------------------------------------------


def test_lanes_of_a_warp_meet_before_they_see_each_other(run):
    body = STORE + "{}" + LOAD.format(by=1)
    assert "emulate/race" in run(body.format(""), out(32)).codes
    done = run(body.format("bar.warp.sync -1;"), out(32))
    assert (done.findings, done["D"].tolist()) == ([], [(n + 1) % 32 for n in range(32)])


def test_other_ways_of_lanes_to_meet(run):
    """A barrier of the CTA, arrivals and a wait of all lanes, and a meeting of half a warp order lanes; an election and an arrival do not."""
    init = "setp.eq.u32 %p0, %t, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%s+512], 32;\nbar.sync 0;\n"
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%s+512];\n"
    wait = "AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%s+512], 0;\n@!%p3 bra AGAIN;\n"
    for meet in ("bar.sync 1;", arrive + wait, "barrier.cluster.arrive;\nbarrier.cluster.wait;"):
        assert run(init + STORE + meet + "\n" + LOAD.format(by=1), out(32)).findings == [], meet
    for none in ("elect.sync _|%p2, -1;", arrive, "bar.arrive 1, 64;", "barrier.cluster.arrive;"):
        assert "emulate/race" in run(init + STORE + none + "\n" + LOAD.format(by=1), out(32)).codes, none


@pytest.mark.parametrize(("by", "fits"), [(2, True), (16, False)])
def test_half_a_warp_meets(run, by, fits):
    """Lanes that differ in `by`: of one half, and of both."""
    load = LOAD.replace("add.u32 %r3, %t, {by};\nrem.u32 %r3, %r3, %r2;", f"xor.b32 %r3, %t, {by};")
    halves = "setp.lt.u32 %p0, %t, 16;\n@!%p0 bra HIGH;\nbar.warp.sync 65535;\nbra BOTH;\nHIGH:\nbar.warp.sync 4294901760;\nBOTH:\n"
    assert run(STORE + halves + load, out(32)).codes == ([] if fits else ["emulate/race"])


@pytest.mark.parametrize(("mask", "who", "leader"), [("-1", "0", 0), ("4294967295", "0", 0), ("65520", "4080", 4), ("2147483648", "1", 31)])
def test_the_lowest_lane_of_a_mask_is_elected_each_time(run, mask, who, leader):
    lanes = int(mask) & 0xFFFFFFFF
    body = f"""mov.u32 %r1, 99;
    shr.u32 %r2, {lanes}, %t;
    and.b32 %r2, %r2, 1;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra OUT;
    elect.sync %r1|%p1, {mask};
    elect.sync _|%p2, {mask};
    selp.u32 %r3, 1, 0, %p1;
    selp.u32 %r4, 1, 0, %p2;
    mad.wide.u32 %d0, %t, 16, %D;
    st.global.v4.b32 [%d0], {{%r1, %r3, %r4, %r4}};
    OUT:
    """
    done = run(body, out(128))
    assert done.findings == []
    wanted = [[leader, *[int(n == leader)] * 3] if lanes >> n & 1 else [0] * 4 for n in range(32)]
    assert done["D"].reshape(32, 4).tolist() == wanted


@pytest.mark.parametrize("statement", ["elect.sync _|%p1, 1;", "bar.warp.sync 1;"])
def test_a_lane_outside_of_its_mask_is_told(run, statement):
    done = run(statement)
    assert done.codes == ["emulate/operand"]
    assert "0x1" in done.findings[0].message


# --- fences ----------------------------------------------------------------------------------------------------------

SENT = STORE + "{fence}\nbar.sync 0;\nsetp.eq.u32 %p0, %t, 0;\n@!%p0 ret;\ncp.async.bulk.global.shared::cta.bulk_group [%D], [%s], 128;\n"
SENT += "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"


@pytest.mark.parametrize(
    ("fence", "fits"),
    [
        ("", False),
        ("fence.proxy.async;", True),
        ("fence.proxy.async.shared::cta;", True),
        ("fence.proxy.async.shared::cluster;", True),
        ("membar.proxy.async;", True),
        ("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", True),
        ("fence.proxy.async.global;", False),
        ("fence.proxy.alias;", False),
        ("fence.acq_rel.gpu;", False),
        ("fence.sc.sys;", False),
        ("fence.mbarrier_init.release.cluster;", False),
        ("membar.gl;", False),
        ("fence.proxy.tensormap::generic.release.gpu;", False),
    ],
)
def test_stores_reach_engines_through_a_fence_of_the_proxy(run, fence, fits):
    done = run(SENT.format(fence=fence), out(32), block=32)
    assert done.codes == ([] if fits else ["emulate/missing-fence"])
    assert done["D"].tolist() == list(range(32))


def test_a_fence_of_one_lane_orders_no_accesses_of_others(run):
    """Lane 0 fences and copies what all lanes stored: behind a barrier the fence is enough; without one the lanes are in a race with the engine."""
    one = "setp.eq.u32 %p0, %t, 0;\n@!%p0 ret;\nfence.proxy.async;\n" + SENT[SENT.index("cp.async.bulk.global") :]
    assert run(STORE + "bar.sync 0;\n" + one, out(32)).findings == []
    assert run(STORE + one, out(32)).codes == ["emulate/race"]


def test_a_fence_orders_around_relaxed_flags(run):
    """Warp 0 stores data and, behind a fence, a flag; warp 1 polls the flag and fences: the pattern of the memory model, and the same without fences."""
    body = """
    setp.lt.u32 %p1, %t, 32;
    and.b32 %r0, %t, 31;
    mad.lo.u32 %r1, %r0, 4, %s;
    @!%p1 bra READ;
    st.shared.b32 [%r1+64], %t;
    bar.warp.sync -1;
    {fence}
    setp.eq.u32 %p2, %t, 0;
    @%p2 st.relaxed.cta.shared.b32 [%s], 1;
    ret;
    READ:
    ld.relaxed.cta.shared.b32 %r2, [%s];
    setp.ne.u32 %p3, %r2, 1;
    @%p3 bra READ;
    {fence}
    ld.shared.b32 %r2, [%r1+64];
    mad.wide.u32 %d0, %r0, 4, %D;
    st.global.b32 [%d0], %r2;
    """
    zero = "setp.eq.u32 %p0, %t, 0;\n@%p0 st.shared.b32 [%s], 0;\nbar.sync 0;\n"
    for fence in ("fence.acq_rel.cta;", "membar.cta;", "fence.sc.gpu;", "fence.cta;"):
        done = run(zero + body.format(fence=fence), out(32), block=64)
        assert (done.findings, done["D"].tolist()) == ([], list(range(32))), fence
    assert "emulate/race" in run(zero + body.format(fence=""), out(32), block=64).codes


@pytest.mark.parametrize(
    "statement",
    ["fence.proxy.tensormap::generic.acquire.gpu [%D], 64;", "fence.acq_rel.warp;", "membar.gpu;", "bar.sync 0, 32, 1;", "barrier.sync.weak 0;"],
)
def test_a_form_that_is_not_covered_is_refused_by_name(run, statement):
    with pytest.raises(Unsupported):
        run(statement, out(1))
