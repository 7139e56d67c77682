"""Every access is looked at: where it is, whether there is a value, and who was there before."""

import numpy as np
import pytest

TID = """
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, sm;
  add.u32 %r3, %r2, %r1;
  xor.b32 %r4, %r1, 4;
  add.u32 %r4, %r2, %r4;
  mov.u32 %r5, %ctaid.x;
"""
D = np.zeros(64, np.uint32)


def codes(run, body, **more):
    more.setdefault("block", 64)
    return run("D:b64", TID + body, D=D, dynamic=1024, **more).codes


@pytest.mark.parametrize(
    "access",
    ["ld.global.u32 %r9, [%d+256]", "ld.global.u32 %r9, [%d+-4]", "st.global.v4.u32 [%d+256], {%r0, %r0, %r0, %r0}", "ld.global.u32 %r9, [64]",
     "st.shared.u32 [%r3+1024], %r0", "ld.shared.u32 %r9, [%r3+-1024]", "st.shared.u32 [16], %r0"],
)  # fmt: skip
def test_outside(run, access):
    assert codes(run, f"  {access};\n", block=32) == ["emulate/out-of-bounds"]


def test_the_end_is_inside(run):
    assert codes(run, "  ld.global.u32 %r9, [%d+252];\n  st.shared.u32 [%r3+896], %r0;\n", block=32) == []


@pytest.mark.parametrize(
    "access", ["ld.global.u32 %r9, [%d+2]", "ld.global.v2.u32 {%r9, %r10}, [%d+4]", "st.shared.b64 [%r2+4], %d0", "ld.global.u16 %h0, [%d+1]"]
)
def test_misaligned(run, access):
    assert codes(run, f"  {access};\n") == ["emulate/misaligned"]


def test_what_nobody_has_written(run):
    assert codes(run, "  ld.shared.u32 %r9, [%r3];\n") == ["emulate/uninitialised"]
    assert codes(run, "  st.shared.u32 [%r3], %r0;\n  ld.shared.u32 %r9, [%r3];\n") == []
    assert codes(run, "  st.shared.u8 [%r3], %r0;\n  ld.shared.u32 %r9, [%r3];\n") == ["emulate/uninitialised"]


# --- races: a lane, and the lane beside it


NEIGHBOUR = {
    "write, read": ("st.shared.u32 [%r3], %r0;", "ld.shared.u32 %r9, [%r4];"),
    "write, write": ("st.shared.u32 [%r3], %r0;", "st.shared.u32 [%r4], %r0;"),
    "read, write": ("ld.shared.u32 %r9, [%r3];", "st.shared.u32 [%r4], %r0;"),
}
FIRST = "  st.shared.u32 [%r3], 0;\n  bar.sync 0;\n"


@pytest.mark.parametrize("schedule", ["round-robin", "random:2", "adversarial"])
@pytest.mark.parametrize("pair", list(NEIGHBOUR))
def test_lanes_of_a_warp_are_ordered_by_a_meeting_alone(run, pair, schedule):
    a, b = NEIGHBOUR[pair]
    assert codes(run, f"{FIRST}  {a}\n  {b}\n", schedule=schedule) == ["emulate/race"]
    assert codes(run, f"{FIRST}  {a}\n  bar.warp.sync -1;\n  {b}\n", schedule=schedule) == []
    assert codes(run, f"{FIRST}  {a}\n  bar.sync 0;\n  {b}\n", schedule=schedule) == []


@pytest.mark.parametrize("schedule", ["round-robin", "random:2", "adversarial"])
@pytest.mark.parametrize("pair", list(NEIGHBOUR))
def test_warps_are_ordered_by_a_barrier(run, pair, schedule):
    a, b = (x.replace("%r4", "%r6") for x in NEIGHBOUR[pair])
    other = "  xor.b32 %r6, %r1, 128;\n  add.u32 %r6, %r2, %r6;\n"
    assert set(codes(run, f"{other}{FIRST}  {a}\n  bar.warp.sync -1;\n  {b}\n", schedule=schedule)) == {"emulate/race"}
    assert codes(run, f"{other}{FIRST}  {a}\n  bar.sync 1, 64;\n  {b}\n", schedule=schedule) == []


def test_reads_are_in_no_race(run):
    assert codes(run, FIRST + "  ld.shared.u32 %r9, [%r3];\n  ld.shared.u32 %r9, [%r4];\n  ld.shared.u32 %r9, [%r2];\n") == []


def test_bytes_beside_each_other_are_different_ones(run):
    body = "  add.u32 %r6, %r2, %r0;\n  st.shared.u8 [%r6], %r0;\n  ld.shared.u8 %r9, [%r6];\n"
    assert codes(run, body) == []


def test_ctas_that_write_one_place(run):
    assert codes(run, "  st.global.u32 [%d], %r5;\n", grid=2, block=1) == ["emulate/race"]
    assert codes(run, "  st.relaxed.gpu.global.u32 [%d], %r5;\n", grid=2, block=1) == []


def test_a_message_with_release_and_acquire(run):
    """CTA 1 writes data and then a flag; CTA 0 polls the flag and reads the data."""
    body = """
  setp.eq.u32 %p0, %r5, 1;
  @%p0 bra $send;
$poll:
  ld.{acquire}.gpu.global.u32 %r9, [%d];
  setp.eq.u32 %p1, %r9, 0;
  @%p1 bra $poll;
  ld.global.u32 %r9, [%d+128];
  ret;
$send:
  st.global.u32 [%d+128], 7;
  st.{release}.gpu.global.u32 [%d], 1;
"""
    for acquire, release, found in (("acquire", "release", []), ("relaxed", "release", ["emulate/race"]), ("acquire", "relaxed", ["emulate/race"])):
        assert codes(run, body.format(acquire=acquire, release=release), grid=2, block=1) == found


# --- a single lane that tells for others


TELL = """
  mov.u32 %r7, sm;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r7], 1;
  bar.sync 0;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra $other;
  st.shared.u32 [%r3+512], %r0;
{meet}  @%p0 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r7];
  bra $end;
$other:
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0;
  @!%p2 bra $wait;
  ld.shared.u32 %r9, [%r3+{back}];
$end:
"""


def test_a_lane_arrives_for_a_warp_that_has_not_met(run):
    """The reader's warp reads what the writers' lanes wrote: lane 0's arrival tells of the others only if they met first."""
    back = 512 - 128
    assert codes(run, TELL.format(meet="  bar.warp.sync -1;\n", back=back)) == []
    assert codes(run, TELL.format(meet="", back=back)) == ["emulate/race"]


def test_warps_that_store_one_value(run):
    """A value that several warps hold alike is stored by each; who reads it is ordered behind the first."""
    store = (
        "  shl.b32 %r6, %r0, 2;\n  and.b32 %r6, %r6, 127;\n  add.u32 %r6, %r2, %r6;\n  and.b32 %r7, %r0, 31;\n  {first}st.shared.u32 [%r6], %r7;\n"
    )
    assert codes(run, store.format(first="") + "  bar.sync 0;\n  ld.shared.u32 %r9, [%r6];\n") == []
    assert codes(run, store.format(first="add.u32 %r7, %r7, %r0;\n  ")) == ["emulate/race"]


def test_lanes_of_one_store_at_one_place(run):
    """One value from several lanes is one value; several are a race, by a weak store."""
    body = TID + "{store}\nbar.warp.sync -1;\n"
    store = lambda value, scope="": run("D:b64", body.format(store=f"st{scope}.global.u32 [%d], {value};"), D=np.zeros(1, np.uint32))
    assert store("7").codes == [] and store("%r0", ".relaxed.gpu").codes == []
    found = store("%r0")
    assert found.codes == ["emulate/race"] and "lane 0 of warp 0" in found.findings[0].message
