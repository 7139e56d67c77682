"""What orders two accesses, and what does not: scopes of the two sides, which lanes of a warp have waited, and reads in front of the first write."""

import numpy as np
import pytest

D = np.zeros(64, np.uint32)
TID = "  mov.u32 %r0, %tid.x;\n  mov.u32 %r5, %ctaid.x;\n  mov.u32 %r2, sm;\n  shl.b32 %r1, %r0, 2;\n  add.u32 %r3, %r2, %r1;\n  setp.eq.u32 %p0, %r0, 0;\n"
SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "random:2", "adversarial"])
RACE = ["emulate/race"]


def done(run, body, **more):
    more.setdefault("block", 64)
    return run("D:b64", TID + body, D=D, dynamic=1024, **more)


# --- scopes


MESSAGE = """
  setp.eq.u32 %p1, %r5, {sender};
  @%p1 bra $send;
$poll:
  {acquire}
  setp.eq.u32 %p2, %r9, 0;
  @%p2 bra $poll;
  {behind}ld.global.u32 %r9, [%d+128];
  bra $end;
$send:
  st.global.u32 [%d+128], 7;
  {front}{release}
$end:
"""
LD, ST = "ld.{}.global.u32 %r9, [%d];", "st.{}.global.u32 [%d], 1;"


def message(run, acquire, release, behind="", front="", grid=2, cluster=1, sender=1):
    body = MESSAGE.format(acquire=acquire, release=release, behind=behind, front=front, sender=sender)
    return done(run, body, grid=grid, cluster=cluster, block=1)


@pytest.mark.parametrize(
    ("acquire", "release", "cluster", "orders"),
    [
        ("acquire.gpu", "release.gpu", 1, True),
        ("acquire.sys", "release.gpu", 1, True),
        ("acquire.gpu", "release.cta", 1, False),
        ("acquire.cta", "release.gpu", 1, False),
        ("acquire.cluster", "release.gpu", 1, False),
        ("acquire.cluster", "release.cluster", 2, True),
        ("acquire.cluster", "release.cta", 2, False),
        ("acquire.cta", "release.cta", 2, False),
    ],
)
def test_a_message_needs_scopes_that_hold_both(run, acquire, release, cluster, orders):
    found = message(run, LD.format(acquire), ST.format(release), cluster=cluster)
    assert (found.codes == []) == orders
    if not orders:
        assert "emulate/race" in found.codes
        assert any("scope" in (f.why or "") and f.fix for f in found.findings)


@pytest.mark.parametrize(
    ("front", "write", "read", "behind", "orders"),
    [
        ("fence.acq_rel.gpu;", "relaxed.gpu", "relaxed.gpu", "fence.acq_rel.gpu;", True),
        ("membar.gl;", "volatile", "volatile", "membar.gl;", True),
        ("fence.acq_rel.cta;", "relaxed.gpu", "relaxed.gpu", "fence.acq_rel.gpu;", False),
        ("fence.acq_rel.gpu;", "relaxed.gpu", "relaxed.gpu", "fence.acq_rel.cta;", False),
        ("fence.acq_rel.gpu;", "relaxed.cta", "relaxed.gpu", "fence.acq_rel.gpu;", False),
        ("fence.acq_rel.gpu;", "relaxed.gpu", "relaxed.cta", "fence.acq_rel.gpu;", False),
        ("fence.acq_rel.gpu;fence.acq_rel.cta;", "relaxed.gpu", "relaxed.gpu", "fence.acq_rel.gpu;", True),  # the wider one stands further in front
        ("membar.cta;", "volatile", "volatile", "membar.gl;", False),
    ],
)
def test_a_fence_has_the_scope_of_its_pattern(run, front, write, read, behind, orders):
    found = message(run, LD.format(read), ST.format(write), behind, front)
    assert (found.codes == []) == orders
    assert orders or "emulate/race" in found.codes


def test_a_sequence_of_atomics_goes_on_through_scopes_that_hold_each_other(run):
    """CTA 2 releases, CTA 1 adds, CTA 0 acquires."""
    body = """
  setp.eq.u32 %p1, %r5, 2;
  @%p1 bra $send;
  setp.eq.u32 %p1, %r5, 1;
  @%p1 bra $pass;
$poll:
  ld.acquire.gpu.global.u32 %r9, [%d];
  setp.lt.u32 %p2, %r9, 2;
  @%p2 bra $poll;
  ld.global.u32 %r9, [%d+128];
  bra $end;
$pass:
  ld.relaxed.gpu.global.u32 %r9, [%d];
  setp.eq.u32 %p2, %r9, 0;
  @%p2 bra $pass;
  atom.relaxed.{scope}.global.add.u32 %r9, [%d], 1;
  bra $end;
$send:
  st.global.u32 [%d+128], 7;
  st.release.gpu.global.u32 [%d], 1;
$end:
"""
    assert done(run, body.format(scope="gpu"), grid=3, block=1).codes == []
    assert "emulate/race" in done(run, body.format(scope="cta"), grid=3, block=1).codes


@pytest.mark.parametrize(("one", "cluster", "found"), [("gpu", 1, []), ("cluster", 2, []), ("cta", 2, RACE), ("cluster", 1, RACE), ("cta", 1, RACE)])
def test_strong_accesses_race_where_their_scopes_do_not_hold_both(run, one, cluster, found):
    assert done(run, f"  st.relaxed.{one}.global.u32 [%d], %r5;\n", grid=2, cluster=cluster, block=1).codes == found
    assert done(run, f"  atom.relaxed.{one}.global.add.u32 %r9, [%d], 1;\n", grid=2, cluster=cluster, block=1).codes == found
    reads = f"  setp.eq.u32 %p1, %r5, 0;\n  @%p1 ld.relaxed.{one}.global.u32 %r9, [%d];\n  @!%p1 st.relaxed.gpu.global.u32 [%d], 1;\n"
    assert done(run, reads, grid=2, cluster=cluster, block=1).codes == found


REMOTE = """
  setp.eq.u32 %p1, %r5, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
  st.shared.u32 [%r3+256], %r0;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mapa.shared::cluster.u32 %r6, %r2, 0;
  add.u32 %r7, %r6, %r1;
  @%p1 bra $wait;
  {other}
  bar.sync 0;
  @%p0 {arrive}.shared::cluster.b64 _, [%r6];
  bra $end;
$wait:
  mbarrier.try_wait.parity{wait}.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra $wait;
  {own}
$end:
  barrier.cluster.arrive;
  barrier.cluster.wait;
"""
WRITES, READS = (
    ("st.shared::cluster.u32 [%r7+512], %r0;", "ld.shared.u32 %r9, [%r3+512];"),
    ("ld.shared::cluster.u32 %r9, [%r7+256];", "st.shared.u32 [%r3+256], %r5;"),
)


@SCHEDULES
@pytest.mark.parametrize(
    ("arrive", "wait", "of_writes", "of_reads"),
    [
        ("mbarrier.arrive.release.cluster", ".acquire.cluster", [], []),
        ("mbarrier.arrive.release.cluster", "", RACE, []),
        ("mbarrier.arrive", ".acquire.cluster", RACE, []),
        ("mbarrier.arrive", "", RACE, []),  # what compilers give a slot back with
        ("fence.acq_rel.cluster;\n  @%p0 mbarrier.arrive.relaxed.cluster", ".acquire.cluster", [], []),
        ("fence.acq_rel.cta;\n  @%p0 mbarrier.arrive.relaxed.cluster", ".acquire.cluster", RACE, RACE),
        ("mbarrier.arrive.relaxed.cluster", ".acquire.cluster", RACE, RACE),
    ],
)
def test_an_arrival_in_another_cta(run, arrive, wait, of_writes, of_reads, schedule):
    """CTA 1 stores into CTA 0, or reads there what CTA 0 overwrites. An arrival of a narrow scope tells that this is over, and not what was written."""
    for (other, own), found in ((WRITES, of_writes), (READS, of_reads)):
        assert done(run, REMOTE.format(arrive=arrive, wait=wait, other=other, own=own), grid=2, cluster=2, schedule=schedule).codes == found


def test_a_narrow_arrival_tells_of_the_reads_of_the_lane_alone(run):
    """As within a CTA: a lane that arrives for a warp that has not met."""
    body = REMOTE.format(arrive="mbarrier.arrive", wait="", other=READS[0], own=READS[1])
    assert done(run, body.replace("  bar.sync 0;\n  @%p0 mb", "  @%p0 mb"), grid=2, cluster=2, block=32).codes == RACE
    assert done(run, body.replace("  bar.sync 0;\n  @%p0 mb", "  bar.warp.sync -1;\n  @%p0 mb"), grid=2, cluster=2, block=32).codes == []


@pytest.mark.parametrize(("fence", "found"), [("cluster", []), ("gpu", []), ("cta", RACE)])
def test_a_relaxed_meeting_of_a_cluster_releases_by_fences_that_hold_it(run, fence, found):
    body = f"  st.shared.u32 [%r3], %r0;\n  fence.acq_rel.{fence};\n  barrier.cluster.arrive.relaxed;\n  barrier.cluster.wait;\n"
    body += "  xor.b32 %r6, %r5, 1;\n  mapa.shared::cluster.u32 %r6, %r3, %r6;\n  ld.shared::cluster.u32 %r9, [%r6];\n"
    assert done(run, body + "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n", grid=2, cluster=2).codes == found


BEGUN = """
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
  {fence}
  barrier.cluster.arrive{arrive};
  {early}
  barrier.cluster.wait;
  {late}
  barrier.cluster.arrive;
  barrier.cluster.wait;
"""
USE = "xor.b32 %r6, %r5, 1;\n  mapa.shared::cluster.u32 %r6, %r2, %r6;\n  @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"


@pytest.mark.parametrize(
    ("fence", "arrive", "late", "found"),
    [
        ("", "", True, []),
        ("fence.mbarrier_init.release.cluster;", ".relaxed", True, []),
        ("fence.acq_rel.cluster;", ".relaxed", True, []),
        ("", ".relaxed", True, RACE),
        ("fence.mbarrier_init.release.cluster;", ".relaxed", False, RACE),  # nobody has waited yet
    ],
)
def test_an_initialisation_is_known_to_those_who_have_waited_for_it(run, fence, arrive, late, found):
    body = BEGUN.format(fence=fence, arrive=arrive, early="" if late else USE, late=USE if late else "")
    codes = done(run, body, grid=2, cluster=2, schedule="round-robin").codes
    assert codes == found or (not late and codes == ["emulate/barrier"])  # or there is no object yet


def test_an_object_needs_no_proxy_fence_for_an_asynchronous_copy(run):
    """It accesses the object as threads do; a barrier of the CTA is in between."""
    body = """
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
  {meet}
  setp.eq.u32 %p1, %r0, 32;
  @!%p1 bra $wait;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+256], [%d], 256, [%r2];
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra $wait;
  ld.shared.u32 %r9, [%r3+256];
"""
    assert done(run, body.format(meet="bar.sync 0;")).codes == []
    assert set(done(run, body.format(meet="")).codes) & {"emulate/race", "emulate/barrier"}


# --- lanes that wait alone


ALONE = """
  setp.lt.u32 %p4, %r0, 2;
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 32;
  bar.sync 0;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra $other;
{who}  bra $past;
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra $wait;
$past:
  {meet}
  {reads}
  bra $end;
$other:
  st.shared.u32 [%r3+384], %r0;
  mbarrier.arrive.shared::cta.b64 _, [%r2];
$end:
"""
ONE, ALL, BOTH = "  @!%p0", "  setp.ge.u32 %p3, %r0, 32;\n  @%p3", "  @!%p4"
READ, OWN, NEXT = "ld.shared.u32 %r9, [%r3+512];", "@%p0 ld.shared.u32 %r9, [%r3+512];", "@%p4 ld.shared.u32 %r9, [%r3+512];"
#: Who waits; how the warp meets; who reads; what is found.
WAITS = {
    "all wait": (ALL, "", READ, []),
    "one waits and reads": (ONE, "", OWN, []),
    "one waits, all read": (ONE, "", READ, ["emulate/race", "emulate/uninitialised"]),
    "one waits, another reads too": (ONE, "", NEXT, ["emulate/race", "emulate/uninitialised"]),
    "two wait and read": (BOTH, "", NEXT, []),
    "the warp meets": (ONE, "bar.warp.sync -1;", READ, []),
    "the CTA's threads meet": (ONE, "bar.sync 1, 32;", READ, []),
    "two lanes meet": (ONE, "@%p4 bar.warp.sync 3;", NEXT, []),
    "two lanes meet, all read": (ONE, "@%p4 bar.warp.sync 3;", READ, ["emulate/race", "emulate/uninitialised"]),
    "a shuffle orders nothing": (ONE, "shfl.sync.idx.b32 %r8, %r0, 0, 31, -1;", READ, ["emulate/race"]),
    "nor does a vote": (ONE, "vote.sync.any.pred %p5, %p0, -1;", READ, ["emulate/race"]),
}


@SCHEDULES
@pytest.mark.parametrize("case", list(WAITS))
def test_who_has_not_waited_knows_nothing(run, case, schedule):
    who, meet, reads, found = WAITS[case]
    codes = done(run, ALONE.format(who=who, meet=meet, reads=reads), schedule=schedule).codes
    assert (codes == []) == (found == []) and set(codes) <= set(found)


@SCHEDULES
def test_a_lane_passes_on_what_it_waited_for(run, schedule):
    """A lane of warp 0 waits for warp 1 and arrives for warp 2; in warp 2 all wait and read what warp 1 stored."""
    body = """
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 32;
  @%p0 mbarrier.init.shared::cta.b64 [%r2+8], 1;
  bar.sync 0;
  setp.lt.u32 %p1, %r0, 32;
  @%p1 bra $first;
  setp.lt.u32 %p1, %r0, 64;
  @%p1 bra $second;
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+8], 0;
  @!%p2 bra $wait;
  ld.shared.u32 %r9, [%r3+256];
  bra $end;
$first:
  setp.ne.u32 %p3, %r0, {waits};
  @%p3 bra $next;
$one:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra $one;
  {meet}
$next:
  setp.ne.u32 %p3, %r0, 0;
  @%p3 bra $end;
  mbarrier.arrive.shared::cta.b64 _, [%r2+8];
  bra $end;
$second:
  st.shared.u32 [%r3+384], %r0;
  mbarrier.arrive.shared::cta.b64 _, [%r2];
$end:
"""
    more = {"block": 96, "schedule": schedule}
    assert done(run, body.format(waits=0, meet=""), **more).codes == []
    assert set(done(run, body.format(waits=1, meet=""), **more).codes) & {"emulate/race", "emulate/uninitialised"}


def test_each_lane_that_waits_for_an_object_of_its_own_knows_of_that_alone(run):
    """Lanes 0 and 1 of warp 0 wait for two objects, at which warps 1 and 2 arrive; each reads what was stored for it, or for the other."""
    body = """
  setp.lt.u32 %p4, %r0, 2;
  shl.b32 %r6, %r0, 3;
  add.u32 %r6, %r2, %r6;
  @%p4 mbarrier.init.shared::cta.b64 [%r6], 1;
  bar.sync 0;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra $other;
  @!%p4 bra $end;
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
  @!%p2 bra $wait;
  xor.b32 %r7, %r1, {other};
  add.u32 %r7, %r2, %r7;
  ld.shared.u32 %r9, [%r7+256];
  bra $end;
$other:
  shr.u32 %r8, %r0, 5;
  and.b32 %r7, %r0, 31;
  setp.ne.u32 %p3, %r7, 0;
  @%p3 bra $end;
  shl.b32 %r7, %r8, 2;
  add.u32 %r7, %r2, %r7;
  st.shared.u32 [%r7+252], %r0;
  shl.b32 %r7, %r8, 3;
  add.u32 %r7, %r2, %r7;
  mbarrier.arrive.shared::cta.b64 _, [%r7+-8];
$end:
"""
    assert done(run, body.format(other=0), block=96).codes == []
    assert set(done(run, body.format(other=4), block=96).codes) & {"emulate/race", "emulate/uninitialised"}


@pytest.mark.parametrize("statement", ["bar.warp.sync -1;", "bar.sync 0;", "shfl.sync.idx.b32 %r8, %r0, 0, 31, -1;"])
def test_lanes_that_a_guard_keeps_from_a_meeting(run, statement):
    """They stand where the others do, and do not come."""
    assert done(run, f"  @%p0 {statement}\n", block=32).codes == ["emulate/divergent"]
    assert done(run, f"  setp.lt.u32 %p0, %r0, 32;\n  @%p0 {statement}\n", block=32).codes == []


# --- reads in front of the first write


def test_a_read_in_front_of_the_first_write_to_an_allocation_is_kept(run):
    body = "  mov.b64 %d1, %d;\n  cvt.u64.u32 %d2, %r1;\n  add.s64 %d1, %d1, %d2;\n  xor.b32 %r6, %r1, 128;\n  cvt.u64.u32 %d2, %r6;\n  add.s64 %d3, %d, %d2;\n"
    body += "  ld.global.u32 %r9, [%d1];\n  {meet}\n  st.global.u32 [{to}], %r9;\n"
    assert done(run, body.format(meet="", to="%d1")).codes == []  # each lane its own
    for schedule in ("round-robin", "adversarial"):
        assert done(run, body.format(meet="", to="%d3"), schedule=schedule).codes[:1] == RACE  # what the other warp reads
    assert done(run, body.format(meet="bar.sync 0;", to="%d3")).codes == []
    assert done(run, body.format(meet="", to="%d1"), grid=2).codes[:1] == RACE


def test_of_reads_in_front_of_the_first_write_so_many_are_kept(run, monkeypatch):
    """An input is as large as it likes: what is kept of its reads has a bound."""
    body = "  ld.global.u32 %r9, [%d];\n  ld.global.u32 %r9, [%d];\n  bar.sync 0;\n"
    grid = done(run, body)
    assert grid.grid.early == 4 * 32
    monkeypatch.setattr("cake_core.emulate.races.EARLY", 1)
    assert done(run, body).grid.early == 32
