"""Functions that a kernel calls: parameters, frames, recursion, and lanes that part in them."""

import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported

SCHEDULES = pytest.mark.parametrize("schedule", ["round-robin", "random:2", "adversarial"])

ENTRY = """
.visible .entry k(.param .b64 D) {{
  .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>;
  mov.u32 %r0, %tid.x;
  ld.param.b64 %d0, [D];
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d0, %d0, %d1;
{body}
  st.global.b32 [%d0], %r1;
  ret;
}}
"""
#: Calls with %r0 and puts what is given back into %r1.
CALL = "{{ .param .b32 param0; st.param.b32 [param0], %r0; .param .b32 retval0; {guard}call.uni (retval0), {name}, (param0); ld.param.b32 %r1, [retval0]; }}\n"


@pytest.fixture
def values(emulates):
    def run(functions: str, body: str, block: int = 64, **more):
        text = ".version 8.6\n.target sm_90a\n.address_size 64\n" + functions + ENTRY.format(body=body)
        made = on_arrays(text, {"D": np.zeros(block, np.int32)}, emulates, block=block, fresh=("D",), **more)
        return made.findings or made["D"].tolist()

    return run


FIB = """
.func (.param .b32 given) fib(.param .b32 n) {
  .reg .b32 %r<8>; .reg .pred %p<2>;
  ld.param.b32 %r0, [n];
  mov.b32 %r3, %r0;
  setp.lt.s32 %p0, %r0, 2;
  @%p0 bra $end;
  add.s32 %r1, %r0, -1;
  { .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0; call (retval0), fib, (param0); ld.param.b32 %r2, [retval0]; }
  add.s32 %r1, %r0, -2;
  { .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0; call (retval0), fib, (param0); ld.param.b32 %r3, [retval0]; }
  add.s32 %r3, %r3, %r2;
$end:
  st.param.b32 [given], %r3;
  ret;
}
"""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@SCHEDULES
def test_a_function_that_calls_itself(values, schedule):
    """Lanes go to several depths; each finds its own registers when it comes back."""
    body = "  and.b32 %r0, %r0, 7;\n" + CALL.format(name="fib", guard="")
    assert values(FIB, body, schedule=schedule) == [fib(n % 8) for n in range(64)]


def test_a_recursion_without_an_end_is_told(values):
    endless = FIB.replace("setp.lt.s32 %p0, %r0, 2;", "setp.lt.s32 %p0, %r0, -1000;")
    (found,) = values(endless, CALL.format(name="fib", guard=""), block=32)
    assert found.code == "emulate/unsupported" and "'fib' is called 65 calls deep" in found.message


def test_a_guard_holds_lanes_back_from_a_call(values):
    double = (
        ".func (.param .b32 y) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r0, [x]; add.s32 %r1, %r0, %r0; st.param.b32 [y], %r1; ret; }\n"
    )
    body = "  mov.b32 %r1, 7;\n  setp.lt.u32 %p0, %r0, 9;\n" + CALL.format(name="twice", guard="@%p0 ").replace("ld.param", "@%p0 ld.param")
    assert values(double, body) == [2 * n if n < 9 else 7 for n in range(64)]


def test_registers_and_numbers_are_passed_too(values):
    function = ".func (.reg .b32 y) f(.reg .b32 a, .param .b32 b) { .reg .b32 %r<2>; ld.param.b32 %r0, [b]; mad.lo.s32 y, a, 10, %r0; ret; }\n"
    assert values(function, "  call (%r1), f, (%r0, 3);\n") == [10 * n + 3 for n in range(64)]


def test_frames_of_a_call_in_a_call(values):
    """A structure by value, a pointer to the caller's variable, a function that calls another one and one that falls off its end."""
    functions = """
.func add(.param .b64 to, .param .b32 n) {
  .reg .b64 %d<2>; .reg .b32 %r<4>;
  ld.param.b64 %d0, [to]; ld.param.b32 %r0, [n];
  ld.b32 %r1, [%d0]; add.s32 %r1, %r1, %r0; st.b32 [%d0], %r1;
}
.func (.param .b32 y) f(.param .align 4 .b8 s[12]) {
  .local .align 4 .b8 own[8];
  .reg .b64 %d<4>; .reg .b32 %r<4>;
  ld.param.b32 %r0, [s]; ld.param.b32 %r1, [s+4];
  mov.u64 %d0, own; cvta.local.u64 %d1, %d0;
  st.local.b32 [%d0+4], %r0;
  add.s64 %d1, %d1, 4;
  { .param .b64 param0; st.param.b64 [param0], %d1; .param .b32 param1; st.param.b32 [param1], %r1; call.uni add, (param0, param1); }
  ld.local.b32 %r2, [%d0+4];
  st.param.b32 [y], %r2;
  ret;
}
"""
    body = "{ .param .align 4 .b8 param0[12]; st.param.b32 [param0], %r0; st.param.b32 [param0+4], 1000; .param .b32 retval0; call.uni (retval0), f, (param0); ld.param.b32 %r1, [retval0]; }\n"
    assert values(functions, body) == [n + 1000 for n in range(64)]


@SCHEDULES
def test_lanes_that_come_to_a_function_one_after_another_meet_in_it(values, schedule):
    """A barrier of the CTA and a shuffle in a function, to which lanes come from a branch."""
    function = """
.func (.param .b32 y) rotate(.param .b32 x) {
  .reg .b32 %r<4>;
  ld.param.b32 %r0, [x];
  bar.sync 0;
  shfl.sync.idx.b32 %r1, %r0, 5, 31, -1;
  st.param.b32 [y], %r1;
  ret;
}
"""
    body = "  setp.lt.u32 %p0, %r0, 40;\n  @%p0 bra $one;\n  add.s32 %r0, %r0, 100;\n$one:\n" + CALL.format(name="rotate", guard="")
    assert values(function, body, schedule=schedule) == [5] * 32 + [37] * 32


def test_a_thread_ends_in_a_function(values):
    function = ".func gone(.param .b32 x) { .reg .b32 %r<2>; .reg .pred %p<2>; ld.param.b32 %r0, [x]; setp.gt.u32 %p0, %r0, 3; @%p0 exit; ret; }\n"
    body = "  st.global.b32 [%d0], -1;\n  mov.b32 %r1, %r0;\n{ .param .b32 param0; st.param.b32 [param0], %r0; call.uni gone, (param0); }\n"
    assert values(function, body) == [n if n <= 3 else -1 for n in range(64)]


@pytest.mark.parametrize(
    ("functions", "body", "says"),
    [
        (".extern .func gone(.param .b32 x);\n", "{ .param .b32 param0; st.param.b32 [param0], %r0; call.uni gone, (param0); }\n", "'gone'"),
        ("", "  mov.b64 %d2, 64;\n  proto: .callprototype _ ();\n  call %d2, proto;\n", "'%d2'"),
    ],
)
def test_what_is_not_there_is_refused_where_it_is_reached(values, functions, body, says):
    (found,) = values(functions, body)
    assert found.code == "emulate/unsupported" and says in found.message
    assert values(functions, f"  mov.b32 %r1, 1;\n  bra $past;\n{body}$past:\n") == [1] * 64


def test_a_function_with_an_instruction_that_is_refused_is_told_where_it_is_called(values):
    function = ".func f(.param .b32 x) { txq.width.b32 %r0, [x]; ret; }\n"
    body = "{ .param .b32 param0; st.param.b32 [param0], %r0; call.uni f, (param0); }\n"
    (found,) = values(function, body)
    assert found.code == "emulate/unsupported" and "'f'" in found.message and "txq" in found.message
    assert values(function, f"  mov.b32 %r1, 1;\n  bra $past;\n{body}$past:\n") == [1] * 64


def test_a_call_that_does_not_fit_its_function(values):
    function = ".func f(.param .b32 x) { ret; }\n"
    with pytest.raises(Unsupported, match="takes 1 parameters, and is given 0"):
        values(function, "  call.uni f;\n")


def test_a_function_that_calls_itself_gives_no_result_in_a_register(values):
    function = ".func (.reg .b32 y) f(.reg .b32 a) { call (y), f, (a); ret; }\n"
    with pytest.raises(Unsupported, match="gives a result in a register"):
        values(function, "  call (%r1), f, (%r0);\n")
