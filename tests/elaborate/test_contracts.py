"""Conditions that say the same once constants are known: written once, and read back."""

TEXT = """cake 1
kernel k(N: i32, OFF: in i32[N], B: out i32[N])
  const A = 8, D = 4
  require 1 <= N, N <= 1024, N % A == 0, N % (2 * D) == 0
  assume OFF[A] == 0, OFF[2 * D] == 0
  target sm90
{
  role main: 1 warp {
    store B[0] <- OFF[0] + 0
  }
}
"""


def test_conditions_that_become_one(compiled):
    done = compiled(TEXT)
    assert "require 1 <= N, N <= 1024, N % 8 == 0\n  assume OFF[8] == 0\n" in done.text
    assert compiled(done.text).text == done.text


def test_and_stay_two_where_they_differ(compiled):
    done = compiled(TEXT, sets={"A": 16})
    assert "N % 16 == 0, N % 8 == 0\n  assume OFF[16] == 0, OFF[8] == 0\n" in done.text
