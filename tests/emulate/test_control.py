"""Lanes that part, loop, end and meet."""

import numpy as np
import pytest

#: D[thread] of 64 threads gets %r9.
STORE = """
  mov.u32 %r14, %ctaid.x;
  mov.u32 %r13, %ntid.x;
  mov.u32 %r15, %tid.x;
  mad.lo.u32 %r15, %r14, %r13, %r15;
  mul.wide.u32 %d15, %r15, 4;
  add.u64 %d15, %d, %d15;
  st.global.b32 [%d15], %r9;
"""
TID = "  mov.u32 %r0, %tid.x;\n"


def values(run, body, threads=64, **more):
    made = run("D:b64", TID + body + STORE, D=np.zeros(threads, np.uint32), fresh=("D",), block=threads, **more)
    assert not made.findings
    return made["D"]


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pytest.mark.parametrize("schedule", ["round-robin", "random:1", "adversarial"])
def test_loops_whose_lanes_leave_one_by_one(run, schedule):
    body = """
  mov.u32 %r1, %r0;
  mov.u32 %r9, 0;
$again:
  setp.le.u32 %p0, %r1, 1;
  @%p0 bra $done;
  add.u32 %r9, %r9, 1;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $even;
  mad.lo.u32 %r1, %r1, 3, 1;
  bra $again;
$even:
  shr.u32 %r1, %r1, 1;
  bra $again;
$done:
"""
    assert values(run, body, schedule=schedule).tolist() == [collatz(n) for n in range(64)]


def test_a_guard_holds_lanes_back_and_nothing_else(run):
    body = """
  mov.u32 %r9, 5;
  setp.lt.u32 %p0, %r0, 7;
  @%p0 add.u32 %r9, %r9, %r0;
  @!%p0 mov.u32 %r9, 1;
"""
    assert values(run, body).tolist() == [5 + n if n < 7 else 1 for n in range(64)]


def test_lanes_that_end_early_are_not_waited_for(run):
    body = """
  mov.u32 %r9, 3;
  setp.ge.u32 %p0, %r0, 40;
  @%p0 ret;
  bar.sync 0;
"""
    made = run("D:b64", TID + body + STORE, D=np.zeros(64, np.uint32), block=64)
    assert not made.findings
    assert made["D"].tolist() == [3] * 40 + [0] * 24


def test_threads_that_are_no_whole_warp(run):
    assert values(run, "  add.u32 %r9, %r0, 1;\n", threads=37).tolist() == list(range(1, 38))


def test_those_that_come_first_wait_for_the_others(run):
    """Half of the lanes take a way round; the exchange behind it is of all 32."""
    body = """
  mov.u32 %r9, %r0;
  and.b32 %r1, %r0, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra $join;
  mov.u32 %r2, 0;
$more:
  add.u32 %r2, %r2, 1;
  add.u32 %r9, %r9, 100;
  setp.lt.u32 %p1, %r2, %r0;
  @%p1 bra $more;
$join:
  shfl.sync.bfly.b32 %r9, %r9, 1, 31, -1;
"""
    expected = [100 * (n ^ 1) + (n ^ 1) if (n ^ 1) % 2 else n ^ 1 for n in range(64)]
    assert values(run, body).tolist() == expected


def test_ctas_one_after_another_and_side_by_side(run):
    body = "  mov.u32 %r9, %ctaid.x;\n"
    for resident in (1, 3):
        made = run("D:b64", TID + body + STORE, D=np.zeros(32 * 5, np.uint32), grid=5, resident=resident)
        assert made["D"].tolist() == [n // 32 for n in range(160)]


def test_a_thread_count_that_the_text_does_not_have(run, emulates):
    from cake_core.emulate.arrays import on_arrays

    text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(\n  .param .b32 n\n)\n.reqntid 64, 1, 1\n{\n  ret;\n}\n"
    assert on_arrays(text, {"n": np.int32(1)}, emulates, block=32).codes == ["emulate/operand"]


# --- what does not end


def test_a_meeting_that_lacks_a_warp(run):
    body = """
  setp.lt.u32 %p0, %r0, 32;
  @%p0 bar.sync 1, 64;
"""
    made = run("D:b64", TID + body, D=np.zeros(1, np.uint32), block=64)
    assert made.codes == ["emulate/deadlock"]
    assert "warp 0 of CTA 0" in made.findings[0].message


def test_a_meeting_of_lanes_that_never_come(run):
    body = """
  setp.eq.u32 %p0, %r0, 3;
  @%p0 bra $alone;
  ret;
$alone:
  bar.warp.sync 0xF;
"""
    assert run("D:b64", TID + body, D=np.zeros(1, np.uint32)).codes == ["emulate/divergent"]


def test_polling_for_what_nobody_writes(run):
    body = """
$poll:
  ld.volatile.global.u32 %r1, [%d];
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra $poll;
"""
    assert run("D:b64", TID + body, D=np.zeros(1, np.uint32)).codes == ["emulate/deadlock"]


def test_polling_for_what_another_cta_writes(run):
    body = """
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 st.relaxed.gpu.global.u32 [%d], 1;
  @%p1 bra $out;
$poll:
  ld.relaxed.gpu.global.u32 %r1, [%d];
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra $poll;
$out:
"""
    assert run("D:b64", TID + body, D=np.zeros(1, np.uint32), grid=2).codes == []


def test_a_loop_without_end_that_stores(run):
    body = "$on:\n  st.global.u32 [%d], 1;\n  bra $on;\n"
    assert run("D:b64", TID + body, D=np.zeros(1, np.uint32), block=1, most=5000).codes == ["emulate/unfinished"]


TABLE = """
  mov.u32 %r9, 7;
  and.b32 %r1, %r0, 3;
  setp.ne.u32 %p0, %r0, 5;
$table: .branchtargets $zero, $one, $two;
  setp.eq.u32 %p1, %r1, 3;
  @%p1 bra $end;
  @%p0 brx.idx %r1, $table;
  bra $end;
$two:
  add.u32 %r9, %r9, 2;
$one:
  add.u32 %r9, %r9, 10;
  bra.uni $end;
$zero:
  mov.u32 %r9, 0;
$end:
"""


def test_a_table_of_labels_is_branched_into_lane_by_lane(run):
    by = [0, 17, 19, 7]
    assert values(run, TABLE).tolist() == [7 if n == 5 else by[n % 4] for n in range(64)]
    outside = run("D:b64", TID + TABLE.replace("%r1, 3;\n  @%p1", "%r1, 4;\n  @%p1") + STORE, D=np.zeros(64, np.uint32), block=64)
    assert outside.codes == ["emulate/operand"] and "the index 3 into a table of 3 labels" in outside.findings[0].message
