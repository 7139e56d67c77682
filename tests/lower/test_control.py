"""Control flow: how often a body runs, and with which index."""

import pytest

from cake_core.diagnostics import CakeError
from cake_core.ir.nodes import Group
from cake_core.lower.context import Context
from cake_core.lower.statements import statement
from cake_core.ptx.builder import Builder


@pytest.mark.parametrize("lo", [0, 3, -2])
@pytest.mark.parametrize("n", [-3, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_for_runs_as_range_does(trace, lo, n, step):
    """Zero trips included, with bounds and steps that are known and that are not."""
    expected = list(range(lo, n, step))
    assert trace(f"for i in {lo} .. {n} step {step} {{ trace i }}") == expected
    assert trace(f"for i in {lo} .. N step {step} {{ trace i }}", N=n) == expected
    assert trace("for i in L .. N step S { trace i }", require="S >= 1", N=n, L=lo, S=step) == expected


@pytest.mark.parametrize("n", [2**31 - 1, 2**30 + 1, 2**30])
def test_the_last_step_may_pass_the_largest_integer(trace, n):
    assert trace("for i in 0 .. N step S { trace i }", require="S >= 1", N=n, S=2**30) == list(range(0, n, 2**30))


def test_bounds_are_taken_once(trace):
    assert trace("var n = N\nfor i in 0 .. n { n = n - 1; trace i }\ntrace n", N=4) == [0, 1, 2, 3, 0]


def test_no_test_in_front_of_a_loop_that_surely_runs(role):
    """One conditional branch a loop where the first trip is sure, by the bounds or by what the requires say of them."""
    count = lambda low: low.ptx.count("bra $end_")  # noqa: E731
    assert count(role("for i in 0 .. 4 { trace i }")) == 0
    assert count(role("for i in 0 .. N { trace i }", require="1 <= N, N <= 9")) == 0
    assert count(role("for i in 0 .. N { trace i }", require="0 <= N, N <= 9")) == 1


def test_loops_nest_and_names_end(trace):
    body = "for i in 0 .. N { let x = i * 10\nfor j in 0 .. i { let x = x + j\ntrace x }\ntrace x }"
    assert trace(body, N=3) == [0, 10, 10, 20, 21, 20]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_while(trace, n):
    assert trace("var i = 0\nwhile i * i < N { trace i; i = i + 1 }\ntrace i", N=n) == [
        *(i for i in range(n) if i * i < n),
        next(i for i in range(9) if i * i >= n),
    ]


@pytest.mark.parametrize("n", [-1, 0, 1, 2])
def test_if_and_else(trace, n):
    body = "var a = 0\nif N > 0 { a = 1\nif N > 1 { a = 2 } else { trace 7 } } else { a = 3 }\nif N == 0 { trace 8 }\ntrace a"
    expected = [7] * (n == 1) + [8] * (n == 0) + [3 if n <= 0 else n]
    assert trace(body, N=n) == expected


def test_known_conditions_leave_no_branch(role):
    low = role("if 1 > 2 { trace 1 } else { trace 2 }\nif 2 > 1 { trace 3 }\nwhile 1 > 2 { trace 4 }")
    assert [line for line in low.ptx.splitlines() if "trace" in line and "//" not in line] == ["  test.trace 2;", "  test.trace 3;"]
    assert "$if" not in low.ptx and "$else" not in low.ptx


def test_every_line_has_its_statement(role):
    """The source map: a line of machine code belongs to the innermost statement that it was written for."""
    low = role("for i in 0 .. N {\ntrace i\n}\nif N > 3 {\ntrace N\n}")
    lines = low.ptx.splitlines()
    assert len(lines) == len(low.lines) == len(low.roles_of_lines)
    at = {low.lines[i].line for i, line in enumerate(lines) if "test.trace" in line}
    first = next(i for i, line in enumerate(lines) if "$loop" in line)
    assert at == {low.lines[first].line + 1, low.lines[first].line + 4}
    assert {low.roles_of_lines[i] for i, line in enumerate(lines) if "test.trace" in line} == {"r"}
    assert low.roles_of_lines[lines.index("  ret;")] is None


def test_same_text_same_bytes(role):
    text = "for i in 0 .. N { if i > 2 { trace i } else { trace 0 } }"
    assert role(text) == role(text)


def test_what_is_not_derived_is_refused():
    """A statement of the schedule form that reaches lowering is an error, not a crash."""
    cx = Context(Builder(), None, None, None, None, {}, None, {}, 1, 0, 0, 0)
    with pytest.raises(CakeError) as error:
        statement(cx, Group(()))
    assert error.value.diagnostics[0].code == "derive/not-derived"
