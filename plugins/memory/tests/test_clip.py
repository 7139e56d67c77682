"""`store .. clip e`: what lies at or behind e along the first sliced dimension is dropped, the rest lands where it would."""

from __future__ import annotations

import pytest

from cake_core.diagnostics import CakeError

POINTER = 1 << 32


def clipped(place, shape, clip, frag="layout mma", by=4, dims="R, C", extra="", form="derived"):
    words = f" by {by}" if form else ""
    sizes = ", ".join(f"1 <= {d}, {d} <= 4096" for d in dims.split(", ")) + ", C % 2 == 0" * ("C" in dims)
    return f"""cake 1 {form}
kernel k({", ".join(f"{d}: i32" for d in dims.split(", "))}, e: i32, Y: out f32[{dims}])
  require {sizes}{extra}
  target sm90
{{
  launch 1
  role main: 2 warps at 0 {{
    frag x: f32[{shape}] {frag}
    store Y[{place}] <- x clip {clip}{words}
  }}
}}
"""


@pytest.mark.parametrize("end", [-5, 0, 8, 9, 20, 39, 40, 61, 5000])
def test_rows_behind_the_clip_are_dropped(ptx_of, run, end):
    rows, columns = 61, 50
    machine = run(ptx_of(clipped("8 +: 32, 16 +: 32", "32, 32", "e")), 64, 4, arg_R=rows, arg_C=columns, arg_e=end, ptr_Y=POINTER)
    inside = [(r, c) for r in range(8, min(40, rows, end)) for c in range(16, min(48, columns))]
    assert set(machine.memory) == {("global", POINTER + 4 * (r * columns + c)) for r, c in inside}


@pytest.mark.parametrize("end", [0, 3, 17, 64])
def test_the_first_sliced_dimension_is_clipped_whatever_stands_before_it(ptx_of, run, end):
    text = clipped("3, 0 +: 32, 2, 0 +: 32", "32, 32", "e", dims="H, R, Z, C")
    machine = run(ptx_of(text), 64, 4, arg_H=5, arg_R=100, arg_Z=4, arg_C=32, arg_e=end, ptr_Y=POINTER)
    inside = [(r, c) for r in range(min(32, end)) for c in range(32)]
    assert set(machine.memory) == {("global", POINTER + 4 * (((3 * 100 + r) * 4 + 2) * 32 + c)) for r, c in inside}


@pytest.mark.parametrize("end", [1, 30, 1000])
def test_one_value_a_row(ptx_of, run, end):
    text = clipped("0 +: 32", "32", "e", frag="over row layout mma", dims="R")
    machine = run(ptx_of(text), 64, 4, arg_R=40, arg_e=end, ptr_Y=POINTER)
    assert set(machine.memory) == {("global", POINTER + 4 * r) for r in range(min(32, end))}


def test_a_clip_may_reach_past_a_tile_that_surely_lies_inside(ptx_of, run):
    text = clipped("0 +: 32, 0 +: 32", "32, 32", "e", extra=", 32 <= R, 32 <= C")
    machine = run(ptx_of(text), 64, 4, arg_R=64, arg_C=64, arg_e=5, ptr_Y=POINTER)
    assert {at // 256 for _, at in ((s, a - POINTER) for s, a in machine.memory)} == set(range(5))


def test_no_access_straddles_a_clip(ptx_of, run):
    """A clip of neighbours in memory: the derived width is that of one element unless the end is known to fit."""
    row = clipped("0 +: 256", "256", "e", frag="vec 4 layout vector", by=16, dims="C", extra=", C % 4 == 0")
    with pytest.raises(CakeError) as caught:
        ptx_of(row)
    assert caught.value.diagnostics[0].code == "ptx/access-width"
    machine = run(ptx_of(row.replace("by 16", "by 4")), 64, 4, arg_C=256, arg_e=5, ptr_Y=POINTER)
    assert set(machine.memory) == {("global", POINTER + 4 * i) for i in range(5)}
    fits = row.replace("C % 4 == 0", "C % 4 == 0, 0 <= e, e <= 256, e % 4 == 0")
    machine = run(ptx_of(fits), 64, 4, arg_C=256, arg_e=8, ptr_Y=POINTER)
    assert set(machine.memory) == {("global", POINTER + 4 * i) for i in range(8)}


@pytest.mark.parametrize(
    ("place", "shape", "clip", "code"),
    [
        ("0 +: 32, 0 +: 32", "32, 32", "warp", "core/one-place"),
        ("0 +: 32, 0 +: 32", "32, 32", "1.5", "type/operand"),
    ],
)
def test_what_is_no_clip(ptx_of, place, shape, clip, code):
    with pytest.raises(CakeError) as caught:
        ptx_of(clipped(place, shape, clip))
    assert code in [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("store", "says"), [("store s[0] <- x clip e by 4", "no tensor"), ("store Y[0, 0] <- 1.0 clip e by 4", "one element")]
)
def test_a_clip_where_nothing_is_clipped(ptx_of, store, says):
    text = clipped("0 +: 32, 0 +: 32", "32, 32", "e").replace("store Y[0 +: 32, 0 +: 32] <- x clip e by 4", store)
    text = text.replace("  launch 1\n", "  launch 1\n  shared s: f32[1][32, 32] at 0\n")
    with pytest.raises(CakeError, match=says) as caught:
        ptx_of(text)
    assert [d.code for d in caught.value.diagnostics] == ["type/clip"]
