"""`happens_before`: what is known over meetings of threads, and what is not."""

from __future__ import annotations

import pytest

from cake_core.rules import Standing
from cake_core.rules.known import happens_before

HEAD = """cake 1 derived
kernel k(N: i32, W: inout f32[64, 256], DONE: inout i32[4])
  require 1 <= N, N <= 64
  target sm90
{
  launch N
"""
WRITE = "store W[cluster.id, 0 +: 256] <- x by 8"
TELL = "red.add DONE[0] <- 1 order release scope gpu by 4"
X = "frag x: f32[256] vec 2 layout vector\n    x = 0.0"


def kernel(*roles: str) -> str:
    return HEAD + "\n".join(f"  {r}" for r in roles) + "\n}\n"


def role(head: str, *body: str) -> str:
    return f"role {head} {{\n" + "\n".join(f"    {s}" for s in body) + "\n  }"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (kernel(role("m: 4 warps at 0", X, WRITE, "bar.sync 1 threads 128", TELL)), True),
        (kernel(role("m: 4 warps at 0", X, WRITE, TELL)), False),
        (kernel(role("m: 4 warps at 0", X, WRITE, "warp.sync", TELL)), False),
        (kernel(role("m: 1 warp at 0", X.replace("vec 2", "vec 4"), WRITE, "warp.sync", TELL)), True),
        (kernel(role("m: 4 warps at 0", X, "bar.sync 1 threads 128", WRITE, TELL)), False),
        (kernel(role("m: 4 warps at 0", X, f"if N > 1 {{ {WRITE} }}", "bar.sync 1 threads 128", TELL)), False),
        (kernel(role("m: 4 warps at 0", X, f"for k in 0 .. N {{ {WRITE} }}", "bar.sync 1 threads 128", TELL)), False),
        (kernel(role("m: 4 warps at 0", X, f"for k in 0 .. 2 {{ {WRITE} }}", "bar.sync 1 threads 128", TELL)), True),
        (kernel(role("m: 4 warps at 0", X, WRITE, "if warp < 2 { bar.sync 1 threads 64 }", TELL)), False),
        (kernel(role("m: 4 warps at 0", X, WRITE, "bar.sync 1 threads 160"), role("t: 1 warp at 4", "bar.sync 1 threads 160", TELL)), True),
        (kernel(role("m: 4 warps at 0", X, WRITE, "bar.arrive 1 threads 160"), role("t: 1 warp at 4", "bar.sync 1 threads 160", TELL)), True),
        (kernel(role("m: 4 warps at 0", X, "bar.sync 1 threads 160", WRITE), role("t: 1 warp at 4", "bar.sync 1 threads 160", TELL)), False),
        (kernel(role("m: 4 warps at 0", X, WRITE, "bar.sync 1 threads 160"), role("t: 1 warp at 4", TELL, "bar.sync 1 threads 160")), False),
        (kernel(role("m: 4 warps at 0", X, WRITE, "bar.sync 2 threads 128"), role("t: 1 warp at 4", "bar.sync 1 threads 32", TELL)), False),
        (  # over a third role
            kernel(
                role("m: 4 warps at 0", X, WRITE, "bar.sync 1 threads 160"),
                role("o: 1 warp at 4", "bar.sync 1 threads 160", "bar.sync 2 threads 64"),
                role("t: 1 warp at 5", "bar.sync 2 threads 64", TELL),
            ),
            True,
        ),
        (  # each turn anew
            kernel(
                role("m: 4 warps at 0", X, "for k in 0 .. N {", WRITE, "bar.sync 1 threads 160", "}"),
                role("t: 1 warp at 4", "for k in 0 .. N {", "bar.sync 1 threads 160", TELL, "}"),
            ),
            True,
        ),
        (
            kernel(
                role("m: 4 warps at 0", X, "for k in 0 .. N {", "bar.sync 1 threads 160", WRITE, "}"),
                role("t: 1 warp at 4", "for k in 0 .. N {", "bar.sync 1 threads 160", TELL, "}"),
            ),
            False,
        ),
        (  # one instance of two
            kernel(
                role("m[2]: 4 warps at 0", X, WRITE, "if m.i == 0 { bar.sync 1 threads 160 }"),
                role("t: 1 warp at 8", "bar.sync 1 threads 160", TELL),
            ),
            False,
        ),
        (kernel(role("m[2]: 4 warps at 0", X, WRITE, "bar.sync 1 + m.i threads 128", TELL)), True),
    ],
)
def test_meetings(text, known, rows_from):
    rows = rows_from(text)
    (a,) = [r for r in rows["access"] if r["buffer"] == "W" and r["mode"] == "write"]
    (b,) = [r for r in rows["access"] if r["sem"] == "release"]
    whole = [rows.find("event", r["event"]) for r in (a, b)]  # of the statements the same is true as of what they do
    for x, y in ((a, b), tuple(whole), (whole[0], b), (a, whole[1])):
        assert happens_before(rows, x, y).standing is (Standing.PROVED if known else Standing.VIOLATED)


def test_of_one_instance_nothing_is_known_of_another(rows_from):
    rows = rows_from(kernel(role("m[2]: 4 warps at 0", X, WRITE, "bar.sync 1 + m.i threads 128", f"if m.i == 0 {{ {TELL} }}")))
    (a,) = [r for r in rows["access"] if r["buffer"] == "W" and r["mode"] == "write"]
    (b,) = [r for r in rows["access"] if r["sem"] == "release"]
    assert happens_before(rows, a, b).standing is Standing.UNKNOWN


def test_barriers_in_memory_tell_nothing(rows_from):
    barriers = "  barrier full: mbarrier[1] count 1 at 0\n  if leader { mbarrier.init full }\n  cta.sync\n"
    text = kernel(
        role("m: 4 warps at 0", X, WRITE, "bar.sync 1 threads 128", "if leader { mbarrier.arrive full[0] }"),
        role("t: 1 warp at 4", "mbarrier.wait full[0] parity 0", TELL),
    )
    rows = rows_from(text.replace("  launch N\n", f"  launch N\n{barriers}"))
    (a,) = [r for r in rows["access"] if r["buffer"] == "W" and r["mode"] == "write"]
    (b,) = [r for r in rows["access"] if r["sem"] == "release"]
    assert happens_before(rows, a, b).standing is Standing.UNKNOWN


def test_a_statement_is_over_when_all_that_it_starts_is(rows_from):
    text = (
        "cake 1\nkernel k(X: in f32[1, 1024], Y: out f32[1, 1024])\n  target sm80\n{\n  shared a: f32[1024]\n  role m: 4 warps {\n"
        "    cp.async a <- X[0, 0 +: 1024]\n    cp.async.commit\n    cp.async.wait 0\n    sync m\n    frag x: f32[1024] vec 4\n"
        "    x = load(a)\n    store Y[0, 0 +: 1024] <- x\n  }\n}\n"
    )
    rows = rows_from(text)
    (copy,) = [r for r in rows["event"] if r["op"] == "cp.async"]
    (store,) = [r for r in rows["access"] if r["buffer"] == "Y"]
    assert happens_before(rows, copy, store).standing is Standing.UNKNOWN
