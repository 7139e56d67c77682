"""What is kept of a text, where control goes, and what ends the reading of a thread."""

from __future__ import annotations

import pytest

from cake_core.ptx.acts import Act, Reread, met
from cake_core.ptx.reader import read
from cake_core.reread.coding import coded
from cake_core.reread.flow import NotFollowed, blocks_of, meetings
from cake_core.reread.talks import Talks, Unsaid
from cake_core.reread.threads import Run


def entry(body: str):
    return read(".visible .entry k(\n  .param .b32 arg_N\n)\n.reqntid 32, 1, 1\n{\n" + body + "\n}\n")


def fails(s, at):
    raise IndexError("no such thing")


def ored(s, at):
    given = at.gathered(s.operands[1])
    at.give(s.operands[0], None if given is None else given[0] | given[1])
    return ()


REREADS = {
    "act": Reread("act", lambda s, at: (met(at.value(s.operands[0]), 0),)),
    "sets": Reread("sets", lambda s, at: at.give(s.operands[0], at.lane) or (), acts=False, writes=True),
    "redux.sync.or": Reread("redux.sync.or", ored, acts=False, writes=True),
    "draws": Reread("draws", lambda s, at: at.give(s.operands[0], at.drawn(s.operands[1])) or (), acts=False, writes=True),
    "fails": Reread("fails", fails),
    "act.not": Reread("act.not"),
}


def run(body: str, n: int | None = 3, lane: int = 0, talks: Talks | None = None, messages: bool = False) -> list[Act]:
    code = coded(entry(body), REREADS, messages)
    assert not code.unread, code.unread
    r = [None] * len(code.slots)
    for slot, number in code.constants:
        r[slot] = number
    r[code.slots["arg_N"]] = n
    done = Run(code, r, 0, 0, lane, 32, lambda address, size: None, lambda address, n: 10 * n + address, (), talks or Talks({(0, 0): (0, 31)}))
    return [s.act.at for s in done.go()]


LOOP = """
  ld.param.b32 %r0, [arg_N];
  mov.b32 %r1, 0;
  setp.le.s32 %p0, %r0, 0;
  @%p0 bra $end;
$loop:
  act %r1;
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p1, %r1, %r0;
  @%p1 bra $loop;
$end:
  act 100;
  ret;
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop(n):
    assert run(LOOP, n) == [*range(n), 100]


def test_a_trip_count_that_is_not_known():
    with pytest.raises(NotFollowed, match="what a branch goes by is not known") as raised:
        run(LOOP, None)
    assert raised.value.line is not None


def test_a_branch_that_decides_nothing_is_passed():
    """Its way is not known, and does not matter."""
    body = "  ld.global.f32 %f0, [%d9];\n  setp.lt.f32 %p0, %f0, 0f00000000;\n  @%p0 bra $else;\n  add.f32 %f0, %f0, %f0;\n$else:\n  act 1;\n  ret;"
    assert run(body) == [1]


def test_a_loop_that_decides_nothing_is_passed():
    assert run("$again:\n  ld.global.b32 %r0, [%d9];\n  setp.eq.s32 %p0, %r0, 0;\n  @%p0 bra $again;\n  act 1;\n  ret;") == [1]


def test_a_register_that_both_ways_write():
    """A branch over what an act reads decides something."""
    body = (
        "  ld.global.b32 %r0, [%d9];\n  setp.eq.s32 %p0, %r0, 0;\n  mov.b32 %r1, 1;\n  @%p0 bra $else;\n  mov.b32 %r1, 2;\n$else:\n  act %r1;\n  ret;"
    )
    with pytest.raises(NotFollowed, match="what a branch goes by"):
        run(body)


def test_guards():
    body = "  ld.param.b32 %r0, [arg_N];\n  setp.eq.s32 %p0, %r0, 3;\n  @%p0 act 1;\n  @!%p0 act 2;\n  @%p0 ret;\n  act 3;\n  ret;"
    assert run(body, 3) == [1]
    assert run(body, 4) == [2, 3]


def test_a_guard_that_is_not_known():
    with pytest.raises(NotFollowed, match="is guarded by is not known"):
        run("  setp.lt.f32 %p0, %f0, %f1;\n  @%p0 act 1;\n  ret;")


def test_an_operand_that_is_not_known():
    with pytest.raises(NotFollowed, match="goes by is not known"):
        run("  ld.global.b32 %r0, [%d9];\n  act %r0;\n  ret;")


def test_one_known_side_may_decide():
    known = "  ld.param.b32 %r0, [arg_N];\n  setp.eq.s32 %p0, %r0, 3;\n  setp.lt.f32 %p1, %f0, %f1;\n"
    assert run(known + "  or.pred %p2, %p0, %p1;\n  @%p2 act 1;\n  ret;", 3) == [1]
    assert run(known + "  and.pred %p2, %p1, %p0;\n  @%p2 act 1;\n  ret;", 4) == []
    assert run(known + "  selp.b32 %r1, 5, 6, %p0;\n  selp.b32 %r2, %r1, 5, %p1;\n  act %r2;\n  ret;", 3) == [5]


def test_what_lane_0_tells():
    body = "  sets %r0;\n  add.s32 %r1, %r0, 7;\n  shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n  act %r2;\n  ret;"
    talks = Talks({(0, 0): (0, 31)})
    assert run(body, lane=0, talks=talks) == [7]
    assert run(body, lane=31, talks=talks) == [7]


def test_what_lanes_gather():
    """Each lane needs what the others give, so the first one is run again."""
    body = "  sets %r0;\n  add.s32 %r1, %r0, 64;\n  redux.sync.or.b32 %r2, %r1, -1;\n  act %r2;\n  ret;"
    talks = Talks({(0, 0): (0, 31)})
    with pytest.raises(Unsaid):
        run(body, lane=0, talks=talks)
    assert run(body, lane=31, talks=talks) == [64 | 95]
    assert run(body, lane=0, talks=talks) == [64 | 95]


SAYS = "  mov.b32 %r0, 0;\n$more:\n  add.s32 %r1, %r0, 40;\n  st.shared.b32 [64], %r1;\n  add.s32 %r0, %r0, 1;\n  setp.lt.s32 %p0, %r0, 2;\n  @%p0 bra $more;\n  ret;"
HEARS = "  ld.shared.b32 %r0, [64];\n  act %r0;\n  ld.shared.b32 %r1, [32+32];\n  act %r1;\n  ret;"
AGAIN = (
    "  mov.b32 %r9, 0;\n$more:\n  ld.shared.b32 %r0, [64];\n  act %r0;\n  add.s32 %r9, %r9, 1;\n  setp.lt.s32 %p0, %r9, 2;\n  @%p0 bra $more;\n  ret;"
)


def test_messages():
    """Each instruction hears what was said in its turn."""
    talks = Talks({(0, 0): (0, 31)})
    with pytest.raises(Unsaid):
        run(AGAIN, lane=31, talks=talks, messages=True)
    assert run(SAYS, lane=0, talks=talks, messages=True) == []
    assert run(AGAIN, lane=31, talks=talks, messages=True) == [40, 41]
    assert run(HEARS, lane=31, talks=talks, messages=True) == [40, 40]


def test_a_message_that_never_comes():
    talks = Talks({(0, 0): (0, 31)}, ended=True)
    with pytest.raises(NotFollowed, match="goes by is not known"):
        run(AGAIN, talks=talks, messages=True)


def test_where_two_store_nothing_is_known():
    talks = Talks({(0, 0): (0, 31)})
    run(SAYS, lane=0, talks=talks, messages=True)
    run(SAYS, lane=31, talks=talks, messages=True)
    with pytest.raises(NotFollowed):
        run(AGAIN, lane=5, talks=talks, messages=True)


def test_numbers_of_a_counter():
    assert run("  draws %r0, [4];\n  act %r0;\n  ret;") == [4]


def test_a_reading_that_fails():
    with pytest.raises(NotFollowed, match="the reading of 'fails' failed at 'fails.so': IndexError"):
        run("  fails.so;\n  ret;")


def test_a_thread_that_does_not_end():
    with pytest.raises(NotFollowed, match="runs through more than"):
        run("$again:\n  act 1;\n  bra $again;")


@pytest.mark.parametrize(
    ("opcode", "unread"), [("acme.x", True), ("act.not.x", False), ("st.async.b32", True), ("fma.rn.f32", False), ("popc.b32", False)]
)
def test_opcodes_that_nobody_reads(opcode, unread):
    assert (opcode in coded(entry(f"  {opcode} %r0, %r1;\n  ret;"), REREADS).unread) == unread


@pytest.mark.parametrize("branch", ["bra $nowhere", "brx.idx %r0, $table", "call other, (%r0)"])
def test_control_that_is_not_followed(branch):
    with pytest.raises(NotFollowed):
        blocks_of(entry(f"  {branch};\n  ret;"))


def test_where_ways_meet():
    blocks = blocks_of(entry("  @%p0 bra $a;\n  @%p1 bra $b;\n  act 1;\n$b:\n  act 2;\n  bra $end;\n$a:\n  act 3;\n$end:\n  ret;"))
    meetings(blocks)
    first, second = blocks[0], blocks[1]
    assert blocks[first.meets].branch.opcode == "ret"
    assert blocks[second.meets].statements[0].text == "2"


@pytest.mark.parametrize(
    ("body", "register"),
    [
        ("  act %r0;", "%r0"),
        ("  mov.b32 %r0, 1;\n  act %r0;", None),
        ("  setp.eq.s32 %p0, %r9, 1;\n  @%p0 bra $a;\n  mov.b32 %r0, 1;\n$a:\n  act %r0;", "%r9"),
        ("  ld.param.b32 %r9, [arg_N];\n  setp.eq.s32 %p0, %r9, 1;\n  @%p0 bra $a;\n  mov.b32 %r0, 1;\n$a:\n  act %r0;", "%r0"),
        ("  ld.param.b32 %r0, [arg_N];\n$a:\n  add.s32 %r1, %r0, %r2;\n  mov.b32 %r2, 1;\n  act %r1;\n  bra $a;", "%r2"),
        ("  mov.b32 %r2, 0;\n$a:\n  add.s32 %r1, %r2, 1;\n  mov.b32 %r2, %r1;\n  act %r1;\n  bra $a;", None),
        ("  mov.u32 %r0, %laneid;\n  mov.b32 %f0, %f1;\n  act %r0;", None),
        ("  mov.b32 %r0, 1;\n  @%p0 act %r0;", "%p0"),
    ],
)
def test_registers_that_nothing_may_have_written(body, register):
    found = coded(entry("  .reg .b32 %r<10>;\n  .reg .f32 %f<2>;\n  .reg .pred %p<2>;\n" + body + "\n  ret;"), REREADS).unwritten
    assert (found and found[1]) == register
